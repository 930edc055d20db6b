"""`fila message show` and `fila cancel`: what they ask, and how they say what they are told."""

from __future__ import annotations

import pytest

from fila.v1 import admin_pb2
from fila.v1.service_pb2 import CancelMessagesResponse as Outcome
from tests.cli.fake_broker import FakeBroker


def test_a_cancel_says_what_is_gone_what_a_consumer_had_and_what_was_not_found(fila, broker: FakeBroker):
    broker.answers["CancelMessages"] = Outcome(
        outcomes=[Outcome.OUTCOME_CANCELLED, Outcome.OUTCOME_REVOKED, Outcome.OUTCOME_NOT_FOUND]
    )

    ran = fila("cancel", "orders", "a", "--dedup-key", "x", "--dedup-key", "y", "--channel", "audit")

    request = broker.request("CancelMessages")
    assert (list(request.message_ids), list(request.dedup_keys), request.channel) == (
        ["a"],
        ["x", "y"],
        "audit",
    )
    assert ran.code == 1
    assert ran.out == "2 messages taken back, 1 of these from a consumer\n"
    assert ran.err.startswith("fila: 1 of 3 not found, the first: y; it is done, dead")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            {
                "state": 1,
                "message_id": "m",
                "place": 3,
                "cause": 3,
                "blocking_bucket": "openai",
                "attempts": 2,
            },
            ["waiting: throttled by openai", "3 of its key's waiting messages", "2 times"],
        ),
        ({"state": 1, "place": 40_000, "place_is_estimated": True, "cause": 2}, ["about 40000 of its key's"]),
        ({"state": 3, "consumer_name": "worker 7", "begun": True}, ["leased by worker 7 since"]),
        ({"state": 3}, ["leased by a pull since", "not begun"]),
        ({"state": 5, "dead_letter": {"reason": "max_attempts"}}, ["dead since", "max_attempts"]),
        ({"state": 6}, ["not known: it is done, taken back, replaced, or was never here"]),
    ],
)
def test_a_message_says_what_it_is_doing(fila, broker: FakeBroker, answer, said):
    broker.answers["GetMessage"] = admin_pb2.GetMessageResponse(**answer)

    ran = fila("message", "show", "orders", "m")

    assert ran.code == 0
    for words in said:
        assert words in " ".join(ran.out.split()), ran.out


def test_a_message_is_named_by_its_id_or_its_dedup_key(fila, broker: FakeBroker):
    assert fila("message", "show", "orders").code == 2
    assert fila("message", "show", "orders", "m", "--dedup-key", "d").code == 2
    assert fila("cancel", "orders").code == 2
    assert broker.asked == []


@pytest.mark.parametrize("asked", [("message", "show"), ("trace",)])
@pytest.mark.parametrize("named", [(), ("",), ("", "--dedup-key", "")])
def test_who_names_no_message_is_told_what_is_empty_and_where_ids_come_from(
    fila, broker: FakeBroker, asked: tuple[str, ...], named: tuple[str, ...]
):
    ran = fila(*asked, "orders", *named)

    assert ran.code == 2
    for words in ("ID and --dedup-key are both empty or missing", "give the ID", "fila message list QUEUE"):
        assert words in " ".join(ran.err.split()), ran.err
    assert broker.asked == []


def test_a_life_is_where_it_is_now_and_what_the_history_has(fila, broker: FakeBroker):
    answer = admin_pb2.GetMessageResponse(
        state=admin_pb2.GetMessageResponse.STATE_WAITING,
        message_id="m",
        offset=42,
        cause=admin_pb2.ExplainKeyResponse.STATE_NOT_ITS_TURN,
    )
    for kind, more in (
        ("enqueued", {}),
        ("delivered", {"consumer_id": 7, "waited_ms": 12_000}),
        ("nacked", {"consumer_id": 7, "held_ms": 1_000, "reason": "no\x1b route"}),
    ):
        answer.past.events.add(kind=kind, **more).at.FromSeconds(1_700_000_000)
    answer.past.until.FromSeconds(1_700_000_060)
    broker.answers["GetMessage"] = answer

    ran = fila("trace", "orders", "m", "--channel", "audit")

    assert broker.request("GetMessage") == admin_pb2.GetMessageRequest(
        queue="orders", message_id="m", channel="audit", with_past=True
    )
    assert "waiting: ready; other keys are served before its turn" in ran.out
    assert "fila queue peek orders --after 41 --count 1 -o json --channel audit" in ran.out
    listed = [line.split() for line in ran.out.splitlines() if line.startswith("2023-")]
    assert [line[1:] for line in listed] == [
        ["enqueued", "-", "-", "-"],
        ["delivered", "7", "12s", "-"],
        ["nacked", "7", "1s", "no\\x1b", "route"],
    ]
    assert ran.out.endswith("recorded up to 2023-11-14T22:14:20Z\n")


def test_what_is_not_done_is_listed_with_what_it_is_doing(fila, broker: FakeBroker):
    answer = admin_pb2.ListPendingResponse()
    for offset, state in ((7, "WAITING"), (8, "LEASED"), (9, "DEAD")):
        answer.messages.add(
            message_id=f"m{offset}",
            offset=offset,
            fairness_key="acme",
            state=f"STATE_{state}",
            age_ms=61_000,
            attempts=2,
            cost=1.5,
        )
    answer.messages[1].due_at.FromSeconds(1_700_000_000)
    broker.answers["ListPending"] = answer

    ran = fila("message", "list", "orders", "--channel", "audit", "--key", "acme", "-n", "3", "--after", "6")

    assert broker.request("ListPending") == admin_pb2.ListPendingRequest(
        queue="orders", channel="audit", fairness_key="acme", max_messages=3, after_offset=6
    )
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["OFFSET", "ID", "KEY", "STATE", "AGE", "DUE", "ATTEMPTS", "COST"]
    assert lines[1][:4] == ["7", "m7", "acme", "waiting"]
    assert lines[1][-3:] == ["-", "2", "1.5"]
    assert "2023-11-1" in ran.out.splitlines()[2]
    assert lines[3][3] == "dead"
    broker.answers["ListPending"] = admin_pb2.ListPendingResponse()
    assert fila("message", "list", "orders").out == ""


def test_a_life_that_was_not_recorded_is_no_empty_list(fila, broker: FakeBroker):
    past = admin_pb2.MessagePast(missing="not recorded: history is off")
    broker.answers["GetMessage"] = admin_pb2.GetMessageResponse(
        state=admin_pb2.GetMessageResponse.STATE_NOT_KNOWN, past=past
    )

    ran = fila("trace", "orders", "--dedup-key", "trial-4711")

    assert ran.out.endswith("\n\nbefore that: not recorded: history is off\n")
    assert "peek" not in ran.out, "it is not there to be looked at"
    assert fila("trace", "orders").code == 2
