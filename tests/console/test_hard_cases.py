"""What an operator meets at night: a broker that answers late or dies under a change, others at the same lever, rights
that end, and clocks that differ. What is said is so, and nothing is done by halves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fila.sync import FilaClient
from fila.v1 import admin_pb2, events_pb2, watch_pb2
from fila_console import line
from fila_console.broker_clock import BrokerClock
from fila_console.changes import NewKeyPolicy
from fila_console.settings import Broker
from fila_console.trouble import Trouble
from fila_console.upstream import Upstream
from tests.cli.fake_broker import FakeBroker
from tests.console.conftest import until
from tests.console.test_levers import NO_PARTS, limit_of, line_in, posted, words

pytestmark = [pytest.mark.e2e]

HOME = "/b/broker/"


@pytest.fixture
def fake() -> Iterator[FakeBroker]:
    broker = FakeBroker()
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def client(broker):
    with FilaClient.connect(broker.addresses["grpc"]) as connected:
        yield connected


# A broker that answers late, and one that dies.


async def test_a_broker_that_answers_too_late_is_told_in_words_and_a_change_may_have_been_made(
    fake, monkeypatch
):
    monkeypatch.setattr(line, "CALL_S_MAX", 0.3)
    monkeypatch.setattr(line, "CONNECT_S_MAX", 0.3)
    may_answer = threading.Event()

    def late(_: Any) -> Any:
        may_answer.wait(20)
        return admin_pb2.GetQueueResponse()

    fake.answers["GetQueue"] = late
    fake.answers["SetKeyPolicy"] = lambda _: late(_) and admin_pb2.SetKeyPolicyResponse()
    upstream = Upstream(Broker("broker", f"http://{fake.address}"), "")
    with pytest.raises(Trouble) as read:
        await upstream.queue("orders")
    with pytest.raises(Trouble) as changed:
        await upstream.set_key_policy("orders", "acme", NewKeyPolicy(paused=True))
    may_answer.set()
    await upstream.close()

    assert (read.value.status, read.value.title) == (503, "The broker does not answer")
    assert (changed.value.status, changed.value.title) == (503, "No answer came")
    assert "may have been made, or not" in changed.value.text


def test_a_broker_that_dies_under_a_change_leaves_no_word_of_done(fake, start):
    console = start(fake.address)
    token = console.get(HOME + "limits").csrf

    def dies(_: Any) -> admin_pb2.SetKeyPolicyResponse:
        fake.stop()
        return admin_pb2.SetKeyPolicyResponse()

    fake.answers["SetKeyPolicy"] = dies
    answer = console.post(HOME + "queues/orders/key?key=acme", {"csrf": token, "paused": "yes"})

    assert answer.status == 503
    assert "The change may have been made, or not" in words(answer)
    assert "Done" not in words(answer)


# Two at one lever.


def test_of_two_who_set_one_limit_at_once_one_is_in_force_as_a_whole(console, client):
    ours = NO_PARTS | {"name": "both", "rates": "60/m", "slots": "4"}
    theirs = NO_PARTS | {"name": "both", "rates": "5/s", "budget": "500/day"}
    for _ in range(5):
        with ThreadPoolExecutor(2) as people:
            answers = [*people.map(lambda asked: posted(console, "limits/set", **asked), (ours, theirs))]
        assert [each.status for each in answers] == [200, 200]
        limit = limit_of(client, "both")
        is_ours = limit.max_in_flight == 4
        assert [rate.per_second for rate in limit.rates] == [1 if is_ours else 5]
        assert (limit.budget is None) == is_ours
    client.delete_limit("both")


def test_of_two_who_pause_and_resume_at_once_each_is_answered_and_one_holds(console, client):
    client.create_queue("pulled", fairness_key_header="tenant")
    path = "queues/pulled/key?key=acme"
    for _ in range(5):
        with ThreadPoolExecutor(2) as people:
            answers = [*people.map(lambda paused: posted(console, path, paused=paused), ("yes", "no"))]
        assert [each.status for each in answers] == [200, 200]
        assert [line_in(each).split()[2] for each in answers] == ["pause", "resume"]
        held = [each.paused for each in client.list_key_policies("pulled", fairness_key="acme")]
        assert held in ([], [False], [True])
        # The page of a second ago is shown again within that second.
        until(lambda held=held: ("paused since" in words(console.get(HOME + path))) == (held == [True]))
    client.delete_queue("pulled")


# Rights that end.


def test_a_lever_of_a_page_that_was_open_when_the_right_ended_is_refused_in_words(keyed):
    with keyed.client() as client:
        client.create_queue("theirs", fairness_key_header="tenant")
        key = client.create_key("leaves")
        client.grant("leaves", manage=["theirs"], view=["theirs"])
        keyed.console.log_in(key)
        path = HOME + "queues/theirs/key?key=acme"
        open_page = keyed.console.get(path)
        assert open_page.status == 200
        client.revoke_grant("leaves", manage=["theirs"])
        pressed = keyed.console.post(path, {"csrf": open_page.csrf, "paused": "yes"})
        again = keyed.console.get(path)

        assert pressed.status == 403
        assert "manage" in words(pressed)
        assert client.list_key_policies("theirs") == []
        assert "that needs the right to manage on theirs" in words(again)
    keyed.console.cookie = ""


# Clocks.


@pytest.mark.parametrize(
    ("ahead_s", "said"),
    [
        (0, "UTC"),
        (3_600, "by the broker's clock, 1 h 00 min ahead of this console's"),
        (-3_600, "by the broker's clock, 1 h 00 min behind this console's"),
    ],
)
def test_times_are_the_brokers_and_that_its_clock_differs_is_said(ahead_s, said):
    clock = BrokerClock()
    clock.hear(datetime.now(UTC) + timedelta(seconds=ahead_s + 0.5 * (ahead_s > 0) - 0.5 * (ahead_s < 0)))

    assert clock.as_of().endswith(said)
    assert clock.now_s() - datetime.now(UTC).timestamp() == pytest.approx(ahead_s, abs=2)


def test_a_page_of_a_broker_whose_clock_is_an_hour_ahead_has_its_times(fake, start):
    now = datetime.now(UTC) + timedelta(hours=1, seconds=20)
    told = watch_pb2.WatchStatsResponse(sequence=1, full=True)
    told.at.FromDatetime(now)
    late = events_pb2.LateKey(
        queue="mail", fairness_key="acme", cause=events_pb2.LateKey.CAUSE_THROTTLED, waiting_ms=60_000
    )
    late.until.FromDatetime(now + timedelta(minutes=5))
    is_over = threading.Event()

    def stream(_: Any) -> Iterator[watch_pb2.WatchStatsResponse]:
        yield told
        is_over.wait(20)

    fake.answers |= {
        "WatchStats": stream,
        "ListLate": events_pb2.ListLateResponse(keys=[late], waiting_keys=1),
    }
    console = start(fake.address)
    # Who is late is asked for beside the page, which does not wait for long.
    page = until(lambda: page if "mail" in (page := words(console.get(HOME))) else "")
    is_over.set()

    assert "by the broker's clock, 1 h 00 min ahead of this console's" in page
    assert f"{now:%H:%M}" in page
    assert f"{now + timedelta(minutes=5):%H:%M}" in page, (
        "it is not free yet, whatever this machine's clock says"
    )
