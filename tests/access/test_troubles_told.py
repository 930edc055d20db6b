"""Of what is wrong a real broker tells each key what it may see: pauses, who made them, and nothing to a tenant."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fila.v1 import admin_pb2, auth_pb2, events_pb2, service_pb2
from tests.access.guarded_server import Client, Guarded, make_queue, refusal

pytestmark = pytest.mark.e2e

QUEUE, OTHER, KEY = "paused-orders", "paused-mail", "umbrella"
BY_ADMIN = f"{KEY} in {QUEUE} has been paused by "
WHY = "they asked for it"
UNSIGNED = f"{KEY} in {QUEUE} has been paused for "


@pytest.fixture(scope="module")
def staged(guarded: Guarded) -> Guarded:
    """A paused key in each of two queues, with messages that wait; told within some looks."""
    for queue in (QUEUE, OTHER):
        make_queue(guarded, queue, fairness_key_header="tenant")
        pause = admin_pb2.SetKeyPolicyRequest(queue=queue, fairness_key=KEY, paused=True, comment=WHY)
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
    assert told[QUEUE].text.endswith(f' ("{WHY}"): 1 message waits.')
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


def pauses(client: Client, queue: str = QUEUE) -> list[events_pb2.Pause]:
    """What ListKeyPolicies and ExplainKey say of the same pause."""
    listed = client.admin.ListKeyPolicies(events_pb2.ListKeyPoliciesRequest(queue=queue, fairness_key=KEY))
    asked = admin_pb2.ExplainKeyRequest(queue=queue, fairness_key=KEY)
    return [listed.policies[0].pause, client.admin.ExplainKey(asked).pause]


def test_who_asks_for_a_key_is_told_why_it_is_paused_and_by_whom_only_where_it_may_know(staged: Guarded):
    of_admin, of_viewer = pauses(staged.admin), pauses(staged.make_key("views-why", f"view {QUEUE}"))

    assert of_admin[0] == of_admin[1]
    assert [each.comment for each in of_admin + of_viewer] == [WHY] * 4
    assert of_admin[0].by
    assert [(each.by, each.since) for each in of_viewer] == [("", of_admin[0].since)] * 2
    tenant = staged.make_key("is-umbrella-too", f"produce {QUEUE}", as_tenant=KEY)
    asked = admin_pb2.ExplainKeyRequest(queue=QUEUE, fairness_key=KEY)
    assert not tenant.admin.ExplainKey(asked).HasField("pause")


def test_a_reason_is_bounded_and_stands_in_the_audit(staged: Guarded):
    pause = admin_pb2.SetKeyPolicyRequest(queue=QUEUE, fairness_key="other", paused=True, comment="x" * 1025)
    code, text, _ = refusal(lambda: staged.admin.admin.SetKeyPolicy(pause))
    assert (code, "comment" in text, "1024" in text) == ("INVALID_ARGUMENT", True, True)

    pause.comment = "why it was"
    staged.admin.admin.SetKeyPolicy(pause)
    records = staged.admin.auth.ListAudit(auth_pb2.ListAuditRequest(limit=1)).records
    assert records[0].details["comment"] == "why it was"


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
