"""Of what is wrong a real broker tells each key what it may see: pauses, who made them, and nothing to a tenant."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fila.v1 import admin_pb2, events_pb2, service_pb2
from tests.access.guarded_server import Client, Guarded, make_queue, refusal

pytestmark = pytest.mark.e2e

QUEUE, OTHER, KEY = "paused-orders", "paused-mail", "umbrella"
BY_ADMIN = f"{KEY} in {QUEUE} has been paused by "
UNSIGNED = f"{KEY} in {QUEUE} has been paused for "


@pytest.fixture(scope="module")
def staged(guarded: Guarded) -> Guarded:
    """A paused key in each of two queues, with messages that wait; told within some looks."""
    for queue in (QUEUE, OTHER):
        make_queue(guarded, queue, fairness_key_header="tenant")
        pause = admin_pb2.SetKeyPolicyRequest(queue=queue, fairness_key=KEY, paused=True)
        guarded.admin.admin.SetKeyPolicy(pause)
        guarded.admin.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, headers={"tenant": KEY}))
    until_s = time.monotonic() + 30
    while len(troubles(guarded.admin)) < 2:
        assert time.monotonic() < until_s, "the broker looks around every two seconds"
        time.sleep(0.1)
    return guarded


def status(client: Client, **asked: Any) -> events_pb2.GetStatusResponse:
    answer: events_pb2.GetStatusResponse = client.admin.GetStatus(events_pb2.GetStatusRequest(**asked))
    return answer


def troubles(client: Client, **asked: Any) -> list[events_pb2.Trouble]:
    found = status(client, max_troubles=100, **asked).troubles
    return [trouble for trouble in found if trouble.queue in (QUEUE, OTHER)]


def test_an_admin_is_told_of_all_and_by_whom(staged: Guarded):
    told = {trouble.queue: trouble for trouble in troubles(staged.admin)}

    assert told.keys() == {QUEUE, OTHER}
    assert told[QUEUE].text.startswith(BY_ADMIN)
    assert told[QUEUE].text.endswith(": 1 message waits.")
    assert told[QUEUE].command == f"fila key resume {QUEUE} {KEY}"
    assert [trouble.queue for trouble in troubles(staged.admin, queue=OTHER)] == [OTHER]
    assert troubles(staged.admin, queue=QUEUE, fairness_key="hooli") == []


@pytest.mark.parametrize("right", ["view", "consume"])
def test_who_may_look_is_told_of_its_queue_and_not_by_whom(staged: Guarded, right: str):
    client = staged.make_key(f"{right}s-one", f"{right} {QUEUE}")

    [trouble] = troubles(client)
    assert trouble.text.startswith(UNSIGNED)
    assert status(client).more_troubles == 0


def test_who_paused_it_is_told_that_it_was_itself(staged: Guarded):
    client = staged.make_key("pauses-itself", f"manage {QUEUE}")
    pause = admin_pb2.SetKeyPolicyRequest(queue=QUEUE, fairness_key=KEY, paused=True)
    client.admin.SetKeyPolicy(pause)

    [trouble] = troubles(client)
    assert trouble.text.startswith(UNSIGNED), "it was paused already, by somebody else"


def test_who_only_produces_and_a_tenant_are_told_of_none(staged: Guarded):
    producer = staged.make_key("only-makes", f"produce {QUEUE}")

    assert list(status(producer).troubles) == []
    assert status(producer).well == "All is well, of what you may see."
    tenant = staged.make_key("is-umbrella", f"produce {QUEUE}", as_tenant=KEY)
    assert (list(status(tenant).troubles), status(tenant).well) == ([], "")


def test_no_more_may_be_asked_for_than_a_hundred(staged: Guarded):
    code, text, _ = refusal(lambda: status(staged.admin, max_troubles=101))
    assert (code, "max_troubles" in text) == ("INVALID_ARGUMENT", True)


def test_a_loss_is_acknowledged_by_an_admin_with_a_moment(staged: Guarded):
    manager = staged.make_key("manages-all", "manage *")
    moment = admin_pb2.SetConfigRequest(key="loss.acknowledged", value="2026-03-02T14:10:00Z")
    assert refusal(lambda: manager.admin.SetConfig(moment))[0] == "PERMISSION_DENIED"
    staged.admin.admin.SetConfig(moment)
    moment.value = "now"
    assert "must be a moment" in refusal(lambda: staged.admin.admin.SetConfig(moment))[1]
    staged.admin.admin.SetConfig(admin_pb2.SetConfigRequest(key="loss.acknowledged"))
