"""What decides is on the screen at every width, no number is cut, and what is of before looks so."""

from __future__ import annotations

import os
import signal

import pytest

from fila import NewMessage
from fila.sync import FilaClient
from tests.console.conftest import live, start_console, until
from tests.console.layout import EMPTY_SPACE, PROBES
from tests.e2e.conftest import launch, wait_until_started

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("chromium")]

HOME = "/b/broker/"
WIDTHS = (390, 1280, 1920)
DECIDES = {"": ("Waits", "Why", "State", "Waiting"), "queues/laid": ("Key", "Waiting", "Oldest")}
"""Headings that have to be in sight, by page."""

HIDDEN = """(names) => names.filter((name) => ![...document.querySelectorAll("main th")].some((each) => {
  const box = each.getBoundingClientRect();
  return each.innerText.trim() === name && box.width > 0 && box.left >= 0 && box.right <= innerWidth;
}))"""


LOOKS = "() => getComputedStyle(document.querySelector('main')).filter"


def faults(page):
    """What a page keeps from who looks at it."""
    return [(wrong, what) for wrong, (probe, given) in PROBES.items() for what in page.evaluate(probe, given)]


@pytest.fixture(scope="module")
def laid(broker):
    """A queue with large numbers, a long name and keys that wait."""
    with FilaClient.connect(broker.addresses["grpc"]) as client:
        client.create_queue("laid", fairness_key_header="tenant")
        many = [
            NewMessage(payload=b"x", headers={"tenant": f"a-tenant-with-a-long-name-{n}"}) for n in range(5)
        ]
        for _ in range(40):
            client.enqueue_many("laid", many * 100)
        client.set_key_policy("laid", "a-tenant-with-a-long-name-1", paused=True)
        client.set_limit("mailgun", rates=[{"per_second": 5, "burst": 10}], max_in_flight=1_000)
        client.set_limit(
            "customer-of-a-long-name:*", budget={"amount": 5_000_000, "period_ms": "24h"}, shadow=True
        )
        long = NewMessage(
            payload=b"x" * 100_000, headers={"tenant": "customer-of-the-northern-region-000001"}
        )
        client.enqueue_many("laid", [long] * 3)
        client.update_queue(
            "laid", max_attempts=7, comment="the provider asks for it, and so does the customer"
        )
        for message in client.lease("laid", 3):
            client.nack(
                "laid",
                message.id,
                error="card 4711 was declined by the bank of the customer",
                dead_letter=True,
            )
        client.create_schedule(
            "laid", "nightly", cron="0 2 * * *", time_zone="America/Argentina/Buenos_Aires"
        )
        client.create_schedule("laid", "each-minute-of-a-long-name", every_ms=60_000, paused=True)
        yield
        client.delete_schedule("laid", "nightly")
        client.delete_schedule("laid", "each-minute-of-a-long-name")
        client.delete_limit("mailgun")
        client.delete_limit("customer-of-a-long-name:*")
        client.delete_queue("laid")


@pytest.mark.parametrize("path", DECIDES)
@pytest.mark.parametrize("width", WIDTHS)
def test_what_decides_is_on_the_screen_and_no_number_is_cut(console, laid, page, path, width):
    page.set_viewport_size({"width": width, "height": 900})
    live(page, console.url + HOME + path)
    until(lambda: page.locator("table td.number").count())

    assert page.evaluate(HIDDEN, [*DECIDES[path]]) == []
    assert faults(page) == []


@pytest.mark.parametrize(
    "path",
    [
        "",
        "events",
        "limits?key=mailgun",
        "queues/laid.dlq/dead-letters",
        "queues/laid/log",
        "queues/laid/policy",
        "queues/laid/manage",
        "schedules",
    ],
)
@pytest.mark.parametrize("width", [390, 1280])
def test_no_table_hides_a_part_of_itself_at_the_side(console, laid, page, path, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(console.url + HOME + path)
    page.locator("main table tbody tr").first.wait_for()

    assert faults(page) == []


def test_a_box_is_as_high_as_what_is_in_it(console, laid, page):
    live(page, console.url + HOME)
    assert page.evaluate(EMPTY_SPACE) == []
    live(page, console.url + HOME + "queues/laid")
    assert page.evaluate(EMPTY_SPACE) == []


def test_a_broker_that_does_not_answer_greys_what_is_old_under_a_sentence(tmp_path, page, complaints):
    server = wait_until_started(launch(tmp_path / "data", tmp_path / "server.log"))
    console = start_console(server.addresses["grpc"])
    live(page, console.url + HOME)
    assert page.evaluate(LOOKS) == "none"
    assert server.stop() == 0
    page.locator("#band", has_text="The broker does not answer").wait_for()

    assert "grayscale" in page.evaluate(LOOKS)
    band, main = page.locator("#band").bounding_box(), page.locator("main").bounding_box()
    assert band["y"] + band["height"] <= main["y"] + 1, "the sentence comes first, and covers nothing"
    page.goto("about:blank")
    console.stop()
    complaints.clear()


def test_of_a_broker_that_hangs_nobody_is_told_that_it_is_the_console(tmp_path, page, complaints):
    server = wait_until_started(launch(tmp_path / "data", tmp_path / "server.log"))
    console = start_console(server.addresses["grpc"])
    live(page, console.url + HOME)
    os.kill(server.process.pid, signal.SIGSTOP)
    band = page.locator("#band:not([hidden])")
    band.wait_for()
    said, while_it_hangs = band.inner_text(), page.evaluate(LOOKS)
    os.kill(server.process.pid, signal.SIGCONT)
    page.locator("#band[hidden]").wait_for(state="attached")
    afterwards = page.evaluate(LOOKS)
    page.goto("about:blank")
    console.stop()
    server.stop()
    complaints.clear()

    assert said.startswith("● The broker ")
    assert "grayscale" in while_it_hangs, "what is of before looks so"
    assert afterwards == "none"


def test_brokers_stand_side_by_side_and_one_that_is_away_keeps_no_other_waiting(broker, page):
    console = start_console(
        broker.addresses["grpc"],
        "--broker", f"here=http://{broker.addresses['grpc'].removeprefix('http://')}",
        "--broker", "away=http://127.0.0.1:1",
    )  # fmt: skip

    def once_here_answers() -> str:
        answer = console.get("/")
        assert answer.status == 200
        return answer.text if "Waiting" in answer.text else ""

    here, away = until(once_here_answers).split('href="/b/away/"')
    console.stop()

    assert 'href="/b/here/"' in here
    assert "Waiting" in here
    assert "does not answer" in away or "did not answer" in away
    assert "Waiting" not in away
