"""Priorities inside a key on the command line: said, set, shown and explained."""

from __future__ import annotations

import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.cli.fake_broker import FakeBroker


@pytest.mark.parametrize("priority", [0, 3])
def test_a_message_is_enqueued_with_its_priority(fila, broker: FakeBroker, priority: int):
    broker.answers["Enqueue"] = service_pb2.EnqueueResponse(message_id="m", offset=7)

    ran = fila("enqueue", "orders", "x", "--priority", str(priority))

    assert ran.code == 0, ran.err
    options = broker.request("Enqueue").options
    assert options.HasField("priority")
    assert options.priority == priority


def test_a_priority_that_there_is_not_is_refused_before_anything_is_sent(fila, broker: FakeBroker):
    ran = fila("enqueue", "orders", "x", "--priority", "4")

    assert ran.code == 2
    assert "0<=x<=3" in ran.err


def test_a_queue_names_the_header_and_shows_it(fila, broker: FakeBroker):
    config = admin_pb2.QueueConfig(priority_header="rank")
    broker.answers["CreateQueue"] = admin_pb2.CreateQueueResponse()
    broker.answers["GetQueue"] = admin_pb2.GetQueueResponse(queue="orders", config=config)

    assert fila("queue", "create", "orders", "--priority-header", "rank").code == 0
    assert broker.request("CreateQueue").config.priority_header == "rank"


def test_pending_messages_show_priorities_where_some_have_another_than_the_usual_one(
    fila, broker: FakeBroker
):
    answer = admin_pb2.ListPendingResponse()
    for offset in (7, 8):
        answer.messages.add(
            message_id=f"m{offset}", offset=offset, fairness_key="acme", state="STATE_WAITING"
        )
    answer.messages[1].priority = 0
    broker.answers["ListPending"] = answer

    lines = [line.split() for line in fila("message", "list", "orders").out.splitlines()]

    assert [line[-1] for line in lines] == ["PRIORITY", "1", "0"]


def test_a_message_behind_higher_ones_says_so(fila, broker: FakeBroker):
    broker.answers["GetMessage"] = admin_pb2.GetMessageResponse(
        state="STATE_WAITING",
        message_id="m",
        place=3,
        cause="STATE_HIGHER_FIRST",
        priority=0,
        fairness_key="acme",
    )

    said = " ".join(fila("message", "show", "orders", "m").out.split())

    assert "waiting: messages of a higher priority of its key go first" in said
    assert "priority 0 of 3, within its key" in said


def test_a_message_of_the_usual_priority_names_it_where_higher_ones_go_first(fila, broker: FakeBroker):
    behind = admin_pb2.ExplainKeyResponse.STATE_HIGHER_FIRST
    for cause, is_told in ((behind, True), (admin_pb2.ExplainKeyResponse.STATE_NOT_ITS_TURN, False)):
        broker.answers["GetMessage"] = admin_pb2.GetMessageResponse(state="STATE_WAITING", cause=cause)

        said = " ".join(fila("message", "show", "orders", "m").out.split())

        assert ("priority 1 of 3, within its key" in said) is is_told


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        (0, ""),
        (1, "1 of 9 messages waits behind a higher priority of this key"),
        (4, "4 of 9 messages wait behind a higher priority of this key"),
    ],
)
def test_a_key_says_how_many_of_its_messages_wait_behind_higher_ones(
    fila, broker: FakeBroker, behind: int, said: str
):
    broker.answers["ExplainKey"] = admin_pb2.ExplainKeyResponse(
        state="STATE_NOT_ITS_TURN", pending=9, behind_higher=behind
    )

    told = " ".join(fila("explain", "orders", "acme").out.split())

    assert said in told
    assert ("behind higher" in told) is (behind > 0)
