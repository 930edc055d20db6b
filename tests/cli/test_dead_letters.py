"""`fila dlq`: what it does with dead letters, and what it says when there are more of them, or none."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from grpc import StatusCode

from fila.v1 import admin_pb2, events_pb2, messages_pb2, operation_pb2
from tests.cli.fake_broker import FakeBroker, Refusal


def letter(offset: int, error: str = "timeout after 3 ms", key: str = "acme") -> messages_pb2.Message:
    message = messages_pb2.Message(id=f"m{offset}")
    message.metadata.offset = offset
    message.metadata.fairness_key = key
    message.metadata.dead_letter.reason = "rejected"
    message.metadata.dead_letter.last_error = error
    message.metadata.dead_letter.at.FromDatetime(datetime(2026, 1, 1, tzinfo=UTC))
    return message


def pending(broker: FakeBroker, *letters: messages_pb2.Message) -> None:
    """What a look at the queue finds, page by page."""

    def page(request: admin_pb2.PeekMessagesRequest) -> admin_pb2.PeekMessagesResponse:
        behind = [each for each in letters if each.metadata.offset > request.after_offset]
        mine = [each for each in behind if request.fairness_key in ("", each.metadata.fairness_key)]
        return admin_pb2.PeekMessagesResponse(messages=mine[: request.max_messages])

    broker.answers["PeekMessages"] = page


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_list_that_leaves_letters_out_says_so(fila, broker: FakeBroker):
    pending(broker, *map(letter, (1, 2, 3)))

    told = "There are more: --count lists more of them, 'fila dlq group o.dlq' counts them\n"
    assert fila("dlq", "list", "o.dlq", "--count", "3").err == ""
    cut = fila("dlq", "list", "o.dlq", "--count", "2")
    assert ("There are more" in cut.out, cut.err) == (False, told), "what reads the table reads letters alone"
    ran = fila("dlq", "list", "o.dlq", "-n", "2", "-o", "json")
    assert (len(json.loads(ran.out)["messages"]), ran.err) == (2, told)


def test_groups_by_reason_have_no_column_without_a_name(fila, broker: FakeBroker):
    pending(broker, letter(1), letter(2, key="globex"), letter(3, "card 7"), letter(4, "card 8"))

    lines = fila("dlq", "group", "o.dlq", "--by", "reason").out.splitlines()
    assert [line.split()[:-1] for line in lines] == [
        ["COUNT", "REASON", "KEYS"],
        ["4", "rejected", "2"],
    ]
    groups = json.loads(fila("dlq", "group", "o.dlq", "-o", "json").out)["groups"]
    assert [(each["error"], each["count"], each["keys"]) for each in groups] == [
        ("timeout after N ms", 2, 2),
        ("card N", 2, 1),
    ]
    assert all(isinstance(each["oldest_ms"], int) for each in groups)


def test_moving_none_back_is_not_told_as_a_trial(fila, broker: FakeBroker):
    pending(broker)

    ran = fila("dlq", "redrive", "o.dlq", "--key", "acme")
    assert ran.out == "0 dead letters moved back\n"
    ran = fila("dlq", "redrive", "o.dlq", "--key", "acme", "-o", "json")
    assert json.loads(ran.out)["redriven"] == 0
    assert fila("dlq", "redrive", "o.dlq", "--dry-run").out == "0 dead letters would be moved back\n"


def by_hand(offset: int) -> messages_pb2.Message:
    """What somebody put into the queue himself, a minute ago."""
    message = messages_pb2.Message(id=f"m{offset}", metadata={"offset": offset})
    message.timestamps.appended_at.FromDatetime(datetime.now(UTC) - timedelta(minutes=1))
    return message


def test_what_was_put_there_by_hand_counts_from_then_and_not_from_1970(fila, broker: FakeBroker):
    pending(broker, by_hand(1), letter(2))

    assert (
        fila("dlq", "delete", "o.dlq", "--older-than", "1h", "--dry-run").out
        == "1 dead letter would be dropped\n"
    )
    listed = json.loads(fila("dlq", "list", "o.dlq", "--newer-than", "1h", "-o", "json").out)["messages"]
    assert [each["id"] for each in listed] == ["m1"]
    groups = json.loads(fila("dlq", "group", "o.dlq", "-o", "json").out)["groups"]
    assert 60_000 <= groups[0]["oldest_ms"] < 600_000
    shown = fila("dlq", "show", "o.dlq", "m1").out
    assert "put here by hand" in shown
    assert "1970" not in shown


def test_a_trial_of_a_redrive_counts_nothing_that_cannot_be_moved(fila, broker: FakeBroker):
    pending(broker, by_hand(1), letter(2))

    told = "1 dead letter would be moved back; put into o.dlq by hand, so they cannot be moved: 1\n"
    assert fila("dlq", "redrive", "o.dlq", "--dry-run").out == told


def test_an_offset_where_an_id_is_meant_is_told_as_one(fila, broker: FakeBroker):
    pending(broker, letter(7))

    assert "has no message 7 (an ID is meant here, and no offset)" in fila("dlq", "show", "o.dlq", "7").err


def test_redrive_is_short_for_dlq_redrive(fila, broker: FakeBroker):
    broker.answers["Redrive"] = admin_pb2.RedriveResponse(redriven=2, last_offset=3)

    assert fila("redrive", "o.dlq", "--count", "2").out == "2 dead letters moved back\n"
    short = [request for name, request in broker.asked if name == "Redrive"]
    broker.asked.clear()
    assert fila("dlq", "redrive", "o.dlq", "--count", "2").out == "2 dead letters moved back\n"
    assert [request for name, request in broker.asked if name == "Redrive"] == short != []


def test_a_redrive_of_some_moves_no_more_than_it_was_told(fila, broker: FakeBroker):
    pending(broker, letter(1, key="globex"), *map(letter, (2, 3, 4)))
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(depth=4, head_offset=5)
    broker.answers["Redrive"] = admin_pb2.RedriveResponse(redriven=2, last_offset=3)

    ran = fila("dlq", "redrive", "o.dlq", "--key", "acme", "--count", "2")

    assert ran.out == "2 dead letters moved back\n"
    assert list(broker.request("Redrive").offsets) == [2, 3]


@pytest.mark.parametrize("chosen", [(), ("--key", "acme"), ("--dry-run",)])
def test_a_redrive_of_none_is_bad_usage_and_does_not_move_all(fila, broker: FakeBroker, chosen):
    ran = fila("dlq", "redrive", "o.dlq", "--count", "0", *chosen)

    assert (ran.code, ran.out) == (2, "")
    assert "'0' is no whole number from 1 on" in ran.err
    assert broker.asked == []


def test_letters_that_somebody_else_took_are_not_told_as_those_that_cannot_be_moved(fila, broker: FakeBroker):
    pending(broker, *map(letter, (1, 2, 3, 4)))
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(depth=4, head_offset=5)
    broker.answers["Redrive"] = admin_pb2.RedriveResponse(redriven=1, stuck=1, last_offset=4)

    ran = fila("dlq", "redrive", "o.dlq", "--key", "acme")

    assert ran.out == (
        "1 dead letter moved back; left in o.dlq, because they cannot be moved: 1; taken by others meanwhile: 2\n"
    )


def test_the_question_before_letters_are_dropped_says_how_many(fila, broker: FakeBroker):
    pending(broker, *map(letter, (1, 2, 3)), letter(4, "no such region"))

    ran = fila("dlq", "delete", "o.dlq", "--error", "timeout")

    assert ran.code == 2
    assert ran.err.startswith(
        "fila: nobody is here to be asked: Drop 3 dead letters of o.dlq for good? --yes"
    )
    assert all(method != "DropDeadLetters" for method, _ in broker.asked)


def test_nobody_is_asked_about_no_letters(fila, broker: FakeBroker):
    pending(broker)

    assert fila("dlq", "delete", "o.dlq") == (0, "0 dead letters dropped\n", "")


@pytest.mark.parametrize("command", [("dlq", "list"), ("dlq", "group"), ("dlq", "delete")])
def test_a_reason_that_nothing_is_given_up_for_is_bad_usage(fila, broker: FakeBroker, command):
    ran = fila(*command, "o.dlq", "--reason", "max-attempts")

    assert ran.code == 2
    assert "'max_attempts', 'on_failure', 'ttl', 'rejected', 'skipped'" in ran.err
    assert broker.asked == []


def test_reasons_are_those_that_the_broker_knows():
    from fila_cli.values import REASON
    from fila_server.operations.requests import DEATHS

    assert tuple(REASON.choices) == DEATHS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("dlq", "list", "o.dlq"), "o.dlq has no dead letters\n"),
        (("dlq", "group", "o.dlq"), "o.dlq has no dead letters\n"),
        (("dlq", "list", "o.dlq", "--reason", "ttl"), "o.dlq has no such dead letters\n"),
        (("late",), "nobody waits\n"),
        (("late", "o"), "nobody waits in o\n"),
        (("queue", "list"), "there are no queues; 'fila queue create NAME' makes one\n"),
        (("queue", "peek", "o"), "nothing to look at in o: what is leased is not listed\n"),
        (("consumer", "list", "o"), "nobody consumes o just now\n"),
        (("config", "list"), "nothing is set\n"),
        (
            ("key", "list", "o"),
            "nothing was set for a key of o; 'fila key find o' lists the keys there are\n",
        ),
        (("operation", "list"), "no operations\n"),
    ],
)
def test_an_empty_answer_is_told_to_a_terminal_and_to_nothing_else(
    fila, broker: FakeBroker, monkeypatch, words, said
):
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)

    ran = fila(*words)

    assert (ran.code, ran.out) == (0, "")
    assert shown.getvalue() == said
    assert fila(*words, "-o", "json").out != ""
    assert shown.getvalue() == said


def test_an_empty_answer_is_no_line_to_a_program(fila, broker: FakeBroker):
    assert fila("consumer", "list", "orders") == (0, "", "")
    assert fila("queue", "peek", "orders") == (0, "", "")
    assert fila("queue", "list") == (0, "", "")


# --- in the words of who typed ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "rpc", "text", "said"),
    [
        (
            ("extend", "o", "m1", "--by", "13h"),
            "ExtendLease",
            "extend_ms: must be 1000 (1 s) to 43200000 (12 h)",
            "--by must be 1s to 12h",
        ),
        (
            ("extend", "o", "nope", "--by", "1m"),
            "ExtendLease",
            "message_id: must be a UUID of 36 characters, or give lease_id",
            "the ID must be a UUID of 36 characters, or give --lease",
        ),
        (
            ("config", "set", "throttle.x", "1"),
            "SetConfig",
            'value: a throttle is "rate,burst"',
            'a throttle is "rate,burst"',
        ),
        (
            ("dlq", "edit", "o.dlq", "9", "--payload", "x"),
            "EditDeadLetter",
            'offset: there is no dead letter 9 in "o.dlq"; PeekMessages shows which there are',
            "there is no dead letter 9 in \"o.dlq\"; 'fila queue peek' shows which there are",
        ),
        (
            ("operation", "cancel", "o.dlq", "9"),
            "CancelOperation",
            'id: there is no operation "9" on "o.dlq"; ListOperations tells which there are',
            'there is no operation "9" on "o.dlq"; \'fila operation list\' tells which there are',
        ),
    ],
)
def test_a_refusal_speaks_of_what_was_typed(fila, broker: FakeBroker, words, rpc, text, said):
    broker.answers[rpc] = Refusal(StatusCode.INVALID_ARGUMENT, text, "INVALID")

    assert fila(*words) == (1, "", f"fila: {said}\n")


def test_one_message_that_is_not_settled_is_told_in_one_line(fila, broker: FakeBroker):
    from fila.v1 import service_pb2

    status = messages_pb2.ItemStatus(code=5, message="message_id: no such message in this channel")
    broker.answers["AckBatch"] = service_pb2.SettleBatchResponse(results=[status])

    assert fila("ack", "orders", "m1") == (1, "", "fila: no such message in this channel\n")

    broker.answers["AckBatch"] = service_pb2.SettleBatchResponse(
        results=[messages_pb2.ItemStatus(), status, status]
    )
    ran = fila("ack", "orders", "m1", "m2", "m3")
    assert ran == (
        1,
        "1 message acked\n",
        "fila: 2 of 3 refused, the first: m2: no such message in this channel\n",
    )


# --- completion ------------------------------------------------------------------------------


@pytest.fixture
def completed(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """What bash is answered for a line that ends where the cursor is."""
    from fila_cli import main

    monkeypatch.setenv("FILA_ADDR", broker.address)

    def complete(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_FILA_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit):
            main.run([])
        shown = capfd.readouterr()
        assert shown.err == "", "it would stand in the line that is typed"
        return [answer.partition(",")[2] for answer in shown.out.splitlines() if answer]

    return complete


def test_completing_after_a_word_that_is_no_command_prints_nothing(completed):
    assert completed("fila purge ") == []
    assert completed("fila queue frobnicate ") == []


def test_what_stands_behind_a_queue_is_completed_from_that_queue(broker: FakeBroker, completed):
    broker.answers["ListChannels"] = lambda request: admin_pb2.ListChannelsResponse(
        channels=[admin_pb2.ChannelInfo(name=f"audit-of-{request.queue}")]
    )
    broker.answers["GetStats"] = lambda request: admin_pb2.GetStatsResponse(
        per_key_stats=[admin_pb2.PerFairnessKeyStats(key=f"acme-of-{request.queue}")]
    )
    broker.answers["ListOperations"] = operation_pb2.ListOperationsResponse(
        operations=[operation_pb2.Operation(id="17-ab")]
    )
    broker.answers["ListQueues"] = admin_pb2.ListQueuesResponse(queues=[admin_pb2.QueueInfo(name="orders")])

    assert completed("fila consume orders --channel ") == ["audit-of-orders"]
    assert completed("fila consumer list orders --channel ") == ["audit-of-orders"]
    assert completed("fila queue purge orders --channel ") == ["audit-of-orders"]
    assert completed("fila dlq list orders.dlq --key ") == ["acme-of-orders.dlq"]
    assert completed("fila explain orders ac") == ["acme-of-orders"]
    assert completed("fila operation watch orders.dlq ") == ["17-ab"]
    assert completed("fila hook test --queue ") == ["orders"]
    assert completed("fila dlq list orders.dlq --reason o") == ["on_failure"]


# --- events ----------------------------------------------------------------------------------


def test_kinds_of_events_stand_in_one_column(fila, broker: FakeBroker):
    from fila_server.events import KINDS

    broker.answers["WatchEvents"] = lambda _: iter(
        [events_pb2.WatchEventsResponse(events=[events_pb2.Event(kind=kind, queue="o") for kind in KINDS])]
    )

    columns = {line.index("queue=o") for line in fila("events").out.splitlines()}
    assert len(columns) == 1
