"""Who may take messages back, whose, and who is told where one is: a right of its own, and a tenant's limits."""

from __future__ import annotations

import itertools

import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.access.guarded_server import Client, Guarded, make_queue, refusal

pytestmark = pytest.mark.e2e

State = admin_pb2.GetMessageResponse
Outcome = service_pb2.CancelMessagesResponse
_numbers = itertools.count(1)


@pytest.fixture
def queue(guarded: Guarded) -> str:
    return make_queue(
        guarded, f"taken-{next(_numbers)}", fairness_key_header="tenant", dedup_window_ms=60_000
    )


def put(client: Client, queue: str, tenant: str, dedup_key: str = "") -> str:
    options = service_pb2.EnqueueOptions(dedup_key=dedup_key)
    request = service_pb2.EnqueueRequest(
        queue=queue, headers={"tenant": tenant}, payload=b"x", options=options
    )
    return str(client.service.Enqueue(request).message_id)


def taken_back(client: Client, queue: str, *ids: str, keys: tuple[str, ...] = ()) -> list[int]:
    request = service_pb2.CancelMessagesRequest(queue=queue, message_ids=ids, dedup_keys=keys)
    return list(client.service.CancelMessages(request).outcomes)


def where(client: Client, queue: str, message_id: str) -> State:
    told: State = client.admin.GetMessage(admin_pb2.GetMessageRequest(queue=queue, message_id=message_id))
    return told


@pytest.mark.parametrize("right", ["produce", "consume", "manage", "view"])
def test_no_other_right_takes_messages_back(guarded: Guarded, queue: str, right: str) -> None:
    message_id = put(guarded.admin, queue, "acme")
    other = guarded.make_key(f"{right}-of-{queue}", f"{right} {queue}")

    code, sentence, _ = refusal(lambda: taken_back(other, queue, message_id))

    assert code == "PERMISSION_DENIED"
    assert sentence.startswith("cancel: this key has no such right")
    assert where(guarded.admin, queue, message_id).state == State.STATE_WAITING


def test_a_key_with_the_right_takes_back_and_sees_nothing_else(guarded: Guarded, queue: str) -> None:
    message_id = put(guarded.admin, queue, "acme")
    holder = guarded.make_key(f"cancels-{queue}", f"cancel {queue}")

    assert refusal(lambda: where(holder, queue, message_id))[0] == "PERMISSION_DENIED"
    assert refusal(lambda: taken_back(holder, "another", message_id))[0] == "NOT_FOUND"
    assert taken_back(holder, queue, message_id) == [Outcome.OUTCOME_CANCELLED]


def test_a_tenant_cannot_say_another_fairness_key(guarded: Guarded) -> None:
    routed = make_queue(guarded, f"routed-{next(_numbers)}", allow_producer_routing=True)
    tenant = guarded.make_key(f"tenant-{routed}", f"produce {routed}", f"cancel {routed}", as_tenant="acme")
    options = service_pb2.EnqueueOptions(fairness_key="globex", weight=1000, cost=0.001)
    request = service_pb2.EnqueueRequest(queue=routed, payload=b"x", options=options)
    message_id = tenant.service.Enqueue(request).message_id
    peeked = guarded.admin.admin.PeekMessages(admin_pb2.PeekMessagesRequest(queue=routed, max_messages=1))

    assert where(tenant, routed, message_id).fairness_key == "acme"
    assert [(m.metadata.fairness_key, m.metadata.weight, m.metadata.cost) for m in peeked.messages] == [
        ("acme", 1, 1)
    ]


def test_a_tenant_takes_back_its_own_messages_and_others_are_not_there(guarded: Guarded, queue: str) -> None:
    tenant = guarded.make_key(f"tenant-{queue}", f"produce {queue}", f"cancel {queue}", as_tenant="acme")
    own, other = put(tenant, queue, "globex", "mine"), put(guarded.admin, queue, "globex", "theirs")
    later = put(tenant, queue, "", "later")

    assert where(tenant, queue, own).fairness_key == "acme"
    assert where(tenant, queue, own).offset == 0
    assert where(tenant, queue, other) == State(state=State.STATE_NOT_KNOWN)
    assert taken_back(tenant, queue, own, other) == [Outcome.OUTCOME_CANCELLED, Outcome.OUTCOME_NOT_FOUND]
    assert taken_back(tenant, queue, keys=("theirs", "later")) == [
        Outcome.OUTCOME_NOT_FOUND,
        Outcome.OUTCOME_CANCELLED,
    ]
    assert where(guarded.admin, queue, other).state == State.STATE_WAITING
    assert where(guarded.admin, queue, later).state == State.STATE_NOT_KNOWN


def test_who_sees_no_messages_is_told_that_one_failed_and_not_what_was_said(
    guarded: Guarded, queue: str
) -> None:
    message_id = put(guarded.admin, queue, "acme")
    guarded.admin.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=1))
    guarded.admin.service.Nack(
        service_pb2.NackRequest(queue=queue, message_id=message_id, error="card 4711 declined", delay_ms=0)
    )
    viewer = guarded.make_key(f"views-{queue}", f"view {queue}")
    consumer = guarded.make_key(f"consumes-{queue}", f"consume {queue}")

    assert where(consumer, queue, message_id).last_error == "card 4711 declined"
    assert where(viewer, queue, message_id).last_error == ""
    assert where(viewer, queue, message_id).attempts == 1


def test_a_tenants_key_holds_no_more_than_produce_view_and_cancel(guarded: Guarded, queue: str) -> None:
    code, sentence, _ = refusal(
        lambda: guarded.make_key(f"greedy-{queue}", f"cancel {queue}", f"consume {queue}", as_tenant="acme")
    )

    assert code == "INVALID_ARGUMENT"
    assert "goes with produce, view and cancel only" in sentence
