"""`fila enqueue`, `consume`, `dlq redrive`: bytes in, the same bytes out."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from grpc import StatusCode

from fila.v1 import admin_pb2, messages_pb2, service_pb2
from tests.cli.fake_broker import FakeBroker, Refusal


def delivered(number: int, payload: bytes) -> messages_pb2.Message:
    message = messages_pb2.Message(id=f"m{number}", headers={"tenant": "acme"}, payload=payload)
    message.metadata.lease_id = 100 + number
    message.metadata.offset = number
    message.metadata.fairness_key = "acme"
    return message


def leases(*batches: list[messages_pb2.Message]):
    """Answer one Lease after the other with these batches, then with nothing."""
    left = list(batches)
    return lambda _: service_pb2.LeaseResponse(messages=left.pop(0) if left else [])


def test_enqueue_sends_payload_headers_and_options(fila, broker: FakeBroker):
    broker.answers["Enqueue"] = service_pb2.EnqueueResponse(message_id="0198", offset=7)

    ran = fila(
        "enqueue", "orders", "hello", "-H", "tenant=acme", "-H", "q=a=b", "--delay", "5s", "--ttl", "1m30s"
    )

    assert ran == (0, "0198 at offset 7\n", "")
    assert broker.request("Enqueue") == service_pb2.EnqueueRequest(
        queue="orders",
        payload=b"hello",
        headers={"tenant": "acme", "q": "a=b"},
        options=service_pb2.EnqueueOptions(delay_ms=5_000, ttl_ms=90_000),
    )


@pytest.mark.parametrize(
    "words", [("--cost", "0"), ("--cost", "1000001"), ("--weight", "0"), ("--weight", "1001")]
)
def test_a_weight_or_cost_that_no_message_can_have_is_refused(fila, broker: FakeBroker, words):
    ran = fila("enqueue", "q", "hi", *words)

    assert (ran.code, broker.asked) == (2, [])
    assert "is not in the range" in ran.err


def test_enqueue_names_no_offset_where_none_was_told(fila, broker: FakeBroker):
    broker.answers["Enqueue"] = service_pb2.EnqueueResponse(
        message_id="0198"
    )  # as a tenant's key is answered

    assert fila("enqueue", "orders", "hello") == (0, "0198\n", "")


def test_enqueue_without_a_payload_reads_every_byte_of_stdin(fila, broker: FakeBroker):
    fila("enqueue", "orders", stdin=b"\x00\xffbinary\n")

    assert broker.request("Enqueue").payload == b"\x00\xffbinary\n"


def test_enqueue_reads_a_file_behind_an_at_sign(fila, broker: FakeBroker, tmp_path):
    path = tmp_path / "order.json"
    path.write_bytes(b"\x00\xff{}\n")

    fila("enqueue", "orders", f"@{path}")

    assert broker.request("Enqueue").payload == b"\x00\xff{}\n"


def test_a_file_that_cannot_be_read_is_bad_usage_and_enqueues_nothing(fila, broker: FakeBroker):
    ran = fila("enqueue", "orders", "@no-such-file")

    assert ran.code == 2
    assert (
        "cannot read no-such-file: No such file or directory; a text that begins with @ goes in by stdin"
        in ran.err
    )
    assert broker.asked == []


def test_why_a_line_was_refused_is_told_in_the_words_that_were_typed(fila, broker: FakeBroker):
    refused = messages_pb2.ItemStatus(
        code=8, message="options.fairness_key: at most 256 bytes of UTF-8\x1b[2J"
    )
    broker.answers["EnqueueBatch"] = service_pb2.EnqueueBatchResponse(
        results=[service_pb2.EnqueueResult(error=refused)]
    )

    ran = fila("enqueue", "orders", "--lines", "--key", "x", stdin=b"one\n")

    assert (
        ran.err == "fila: 1 line was refused, the first: line 1: --key: at most 256 bytes of UTF-8\\x1b[2J\n"
    )


def test_enqueue_lines_makes_one_message_of_each_and_reports_the_refused(fila, broker: FakeBroker):
    broker.answers["EnqueueBatch"] = service_pb2.EnqueueBatchResponse(
        results=[
            service_pb2.EnqueueResult(message_id="a", offset=4),
            service_pb2.EnqueueResult(error=messages_pb2.ItemStatus(code=3, message="payload is too long")),
            service_pb2.EnqueueResult(message_id="c", offset=5),
        ]
    )

    ran = fila("enqueue", "orders", "--lines", stdin=b"one\r\ntwo\n\n")

    assert [each.payload for each in broker.request("EnqueueBatch").messages] == [b"one", b"two", b""]
    assert ran == (
        1,
        "2 messages enqueued, offsets 4 to 5\n",
        "fila: 1 line was refused, the first: line 2: the payload is too long\n",
    )


def test_lines_are_sent_in_batches_the_broker_takes(fila, broker: FakeBroker):
    fila("enqueue", "orders", "--lines", stdin=b"x\n" * 2_500)

    sizes = [len(request.messages) for name, request in broker.asked if name == "EnqueueBatch"]
    assert sizes == [1_000, 1_000, 500]


class SessionBroker:
    """Plays the broker's side of one session after the other; each delivers what it was given."""

    def __init__(self, *sessions: list[messages_pb2.Message]) -> None:
        self._sessions = list(sessions)
        self.opened: list[service_pb2.ConsumeSessionRequest.Open] = []
        self.acked: list[int] = []

    def __call__(self, requests):
        answer = service_pb2.ConsumeSessionResponse
        deliveries = self._sessions.pop(0)
        for request in requests:
            kind = request.WhichOneof("request")
            if kind == "open":
                self.opened.append(request.open)
                yield answer(opened={"consumer_id": 7})
                yield answer(delivery={"messages": deliveries})
            elif kind == "ack":
                self.acked.extend(request.ack.lease_ids)
                yield answer(settled={"sequence": request.ack.sequence})
            elif kind == "close":
                self.closed = request.close
                return


def test_consume_prints_each_payload_and_acks_under_its_lease(fila, broker: FakeBroker):
    player = SessionBroker([delivered(1, b"one"), delivered(2, b"two")])
    broker.answers["ConsumeSession"] = player

    ran = fila("consume", "orders", "--count", "2", "--channel", "audit")

    assert ran == (0, "one\ntwo\n", "")
    assert (player.opened[0].queue, player.opened[0].channel) == ("orders", "audit")
    assert player.acked == [101, 102]


def test_consume_prints_and_acks_no_more_than_it_was_told_to(fila, broker: FakeBroker):
    player = SessionBroker([delivered(1, b"one"), delivered(2, b"two")])
    broker.answers["ConsumeSession"] = player

    assert fila("consume", "orders", "--count", "1").out == "one\n"

    assert player.opened[0].max_in_flight == 1
    assert player.acked == [101]
    assert player.closed.release


def test_consume_names_itself_so_that_it_stands_among_the_consumers(fila, broker: FakeBroker):
    player = SessionBroker([delivered(1, b"one")])
    broker.answers["ConsumeSession"] = player

    fila("consume", "orders", "--count", "1")

    assert player.opened[0].name == "fila consume"


def test_consume_without_ack_leaves_the_leases_alone(fila, broker: FakeBroker):
    broker.answers["Lease"] = leases([delivered(1, b"one")])

    fila("consume", "orders", "--no-ack", "--count", "1")

    assert [name for name, _ in broker.asked] == ["Lease"]


def test_consume_stops_when_nothing_came_for_as_long_as_it_should_wait(fila, broker: FakeBroker):
    ran = fila("consume", "orders", "--wait", "0")

    assert ran == (0, "", "")
    assert broker.request("Lease").wait_ms == 0


def test_consume_as_json_is_one_line_a_message_and_keeps_binary_payloads(fila, broker: FakeBroker):
    broker.answers["ConsumeSession"] = SessionBroker([delivered(1, b"one"), delivered(2, b"\xff\x00")])

    lines = [
        json.loads(line) for line in fila("consume", "orders", "--count", "2", "-o", "json").out.splitlines()
    ]

    assert [line.get("payload") for line in lines] == ["one", None]
    assert lines[1]["payload_base64"] == "/wA="
    assert lines[0]["metadata"]["lease_id"] == 101
    assert lines[0]["headers"] == {"tenant": "acme"}


def test_an_ack_that_came_too_late_is_an_error_that_names_the_remedy(fila, broker: FakeBroker):
    broker.answers["Lease"] = leases([delivered(1, b"one")])
    broker.answers["AckBatch"] = service_pb2.SettleBatchResponse(
        results=[messages_pb2.ItemStatus(code=9, message="message m1 is no longer held under lease 101")]
    )

    ran = fila("consume", "orders", "--count", "1", "--wait", "0")

    assert ran.code == 1
    assert "visibility-timeout" in ran.err
    assert ran.err.count("\n") == 1


def dead_letters(broker: FakeBroker, depth: int, pages: list[tuple[int, int, int]]) -> None:
    """Answer a walk over `depth` dead letters with (moved, last offset, stuck) a page."""
    left = list(pages)

    def page(_: admin_pb2.RedriveRequest) -> admin_pb2.RedriveResponse:
        moved, last, stuck = left.pop(0)
        return admin_pb2.RedriveResponse(redriven=moved, last_offset=last, stuck=stuck)

    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(depth=depth, head_offset=depth + 1)
    broker.answers["Redrive"] = page


def test_redrive_goes_page_by_page_and_ends_where_the_queue_ended_at_its_start(fila, broker: FakeBroker):
    dead_letters(broker, 1_500, [(1_000, 1_000, 0), (499, 1_500, 1)])

    ran = fila("dlq", "redrive", "orders.dlq")

    assert ran.out == ("1499 dead letters moved back; left in orders.dlq, because they cannot be moved: 1\n")
    asked = [request for name, request in broker.asked if name == "Redrive"]
    assert [(each.after_offset, each.up_to_offset, each.count) for each in asked] == [
        (0, 1_500, 1_000),
        (1_000, 1_500, 1_000),
    ]


def test_a_redrive_of_a_count_moves_no_more(fila, broker: FakeBroker):
    dead_letters(broker, 9, [(1, 1, 0)])

    assert fila("dlq", "redrive", "orders.dlq", "--count", "1").out == "1 dead letter moved back\n"
    assert broker.request("Redrive").count == 1


def dead_letter(offset: int, **headers: str) -> messages_pb2.Message:
    letter = messages_pb2.Message(id=f"id-{offset}", payload=b"body", headers=headers)
    letter.metadata.offset = offset
    letter.metadata.dead_letter.source_queue = "orders"
    return letter


def letters_with(broker: FakeBroker, *letters: messages_pb2.Message, channels: int = 1) -> None:
    pages = iter([list(letters), []])
    broker.answers["PeekMessages"] = lambda _: admin_pb2.PeekMessagesResponse(messages=next(pages))
    broker.answers["ListChannels"] = admin_pb2.ListChannelsResponse(
        channels=[admin_pb2.ChannelInfo(name=f"c{number}") for number in range(channels)]
    )


def test_dead_letters_go_back_with_other_headers_and_only_those_that_are_stored_are_dropped(
    fila, broker: FakeBroker
):
    letters_with(broker, dead_letter(3, tenant="acme", zone="z1"), dead_letter(4, tenant="b", region="us"))
    refused = service_pb2.EnqueueResult()
    refused.error.code, refused.error.message = 8, "the queue is full"
    broker.answers["EnqueueBatch"] = service_pb2.EnqueueBatchResponse(
        results=[service_pb2.EnqueueResult(offset=9), refused]
    )

    ran = fila("dlq", "redrive", "orders.dlq", "--set-header", "region=eu", "--remove-header", "zone")

    sent = broker.request("EnqueueBatch").messages
    assert [(each.queue, dict(each.headers), each.payload) for each in sent] == [
        ("orders", {"tenant": "acme", "region": "eu"}, b"body"),
        ("orders", {"tenant": "b", "region": "eu"}, b"body"),
    ]
    assert sent[0].options.dedup_key == "redrive:id-3"
    assert list(broker.request("DropDeadLetters").offsets) == [3]
    assert ran.code == 1
    assert "1 of 2 dead letters moved back; the rest stay in orders.dlq: the queue is full" in ran.err


def test_other_headers_are_refused_where_other_channels_would_get_the_message(fila, broker: FakeBroker):
    letters_with(broker, dead_letter(3), channels=2)

    ran = fila("dlq", "redrive", "orders.dlq", "--set-header", "region=eu")

    assert ran.code == 1
    assert "orders has 2 channels" in ran.err
    assert not [name for name, _ in broker.asked if name in ("EnqueueBatch", "DropDeadLetters")]


@pytest.mark.parametrize(
    "line",
    [
        "dlq list orders",
        "dlq show orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001",
        "dlq group orders",
        "dlq export orders -",
        "dlq redrive orders --dry-run",
        "dlq delete orders --yes",
        "dlq edit orders 1 --payload x",
        "dlq redrive orders",
        "operation start orders purge --yes",
        "operation list orders",
        "operation watch orders 1-a",
        "operation cancel orders 1-a",
    ],
)
def test_messages_of_a_plain_queue_are_no_dead_letters(fila, broker: FakeBroker, line: str):
    waiting = messages_pb2.Message(id="id-1", payload=b"body")
    waiting.metadata.offset = 1
    letters_with(broker, waiting)

    ran = fila(*line.split())

    assert (ran.code, ran.out) == (1, "")
    assert "orders is no dead-letter queue" in ran.err
    assert "orders.dlq" in ran.err
    assert not broker.asked


def test_a_redrive_that_is_stopped_says_how_many_it_moved(fila, broker: FakeBroker, monkeypatch):
    dead_letters(broker, 40, [(10, 10, 0)])

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fila_cli.redrive.time.sleep", stop)
    ran = fila("dlq", "redrive", "orders.dlq", "--rate", "40")

    assert ran.code == 130
    assert ran.err == "fila: stopped: 10 of 40 dead letters moved back; the rest stay in orders.dlq\n"


def test_a_redrive_that_the_broker_ends_says_how_many_it_moved(fila, broker: FakeBroker):
    def last(_: admin_pb2.RedriveRequest) -> admin_pb2.RedriveResponse:
        broker.answers["Redrive"] = Refusal(StatusCode.RESOURCE_EXHAUSTED, "the disk is full")
        return admin_pb2.RedriveResponse(redriven=1_000, last_offset=1_000)

    dead_letters(broker, 1_500, [])
    broker.answers["Redrive"] = last

    ran = fila("dlq", "redrive", "orders.dlq")

    assert (ran.code, ran.out) == (1, "")
    assert (
        ran.err
        == "1000 of 1500 dead letters moved back, then:\nfila: the disk is full; try again in a moment\n"
    )


def test_lines_that_are_stopped_say_what_was_stored_and_what_may_have_been(fila, monkeypatch):
    answers = [service_pb2.EnqueueBatchResponse(results=[{"offset": at} for at in range(1, 1_001)])]

    def store(_request, timeout: float):
        if not answers:
            raise KeyboardInterrupt
        return answers.pop()

    stub = SimpleNamespace(EnqueueBatch=store)
    monkeypatch.setattr("fila_cli.session.Session.service", property(lambda _: stub))

    ran = fila("enqueue", "orders", "--lines", stdin=b"x\n" * 1_007)

    assert ran.code == 130
    assert ran.err == "fila: stopped: 1000 messages enqueued; 7 more were on their way and may be, too\n"


def test_lines_that_the_broker_ends_say_what_was_stored_and_what_may_have_been(fila, broker: FakeBroker):
    def first(_: service_pb2.EnqueueBatchRequest) -> service_pb2.EnqueueBatchResponse:
        broker.answers["EnqueueBatch"] = Refusal(StatusCode.RESOURCE_EXHAUSTED, "the disk is full")
        return service_pb2.EnqueueBatchResponse(results=[{"offset": at} for at in range(1, 1_001)])

    broker.answers["EnqueueBatch"] = first

    ran = fila("enqueue", "orders", "--lines", stdin=b"x\n" * 1_007)

    assert (ran.code, ran.out) == (1, "")
    assert (
        ran.err.splitlines()[0] == "1000 messages enqueued; 7 more were on their way and may be, too, then:"
    )


def test_a_paced_redrive_does_not_wait_behind_the_last_dead_letter(fila, broker: FakeBroker, monkeypatch):
    dead_letters(broker, 2, [(1, 1, 0), (1, 2, 0)])
    waits: list[float] = []
    monkeypatch.setattr("fila_cli.redrive.time.sleep", waits.append)

    assert fila("dlq", "redrive", "orders.dlq", "--rate", "0.01").out == "2 dead letters moved back\n"
    assert len(waits) == 1


@pytest.mark.parametrize("rate", ["1e-300", "0", "-1", "nan", "inf", "soon"])
@pytest.mark.parametrize(
    "line", ["dlq redrive orders.dlq", "dlq redrive orders.dlq --key a", "operation start orders.dlq redrive"]
)
def test_a_rate_at_which_nothing_would_seem_to_happen_is_refused(
    fila, broker: FakeBroker, line: str, rate: str
):
    ran = fila(*line.split(), "--rate", rate)

    assert (ran.code, ran.out) == (2, "")
    assert f"'{rate}' is no rate; give messages a second, from 0.001 to 1,000,000,000" in ran.err
    assert not broker.asked


@pytest.mark.parametrize("words", ["log orders -n 1", "log tail orders -n 1"])
def test_log_takes_the_queue_at_once_or_behind_its_old_word(fila, broker: FakeBroker, words):
    broker.answers |= {
        "GetStats": admin_pb2.GetStatsResponse(tail_offset=1, head_offset=3),
        "ReadLog": lambda asked: [
            admin_pb2.ReadLogResponse(
                messages=[delivered(n, b"%d" % n) for n in (1, 2) if n >= asked.from_offset], next_offset=3
            )
        ],
    }

    assert fila(*words.split()) == (0, "2\n", "")


def test_a_missing_queue_is_exit_code_1_and_points_to_the_list(fila, broker: FakeBroker):
    broker.answers["Enqueue"] = Refusal(
        StatusCode.NOT_FOUND, "queue 'ordres' does not exist", "QUEUE_NOT_FOUND"
    )

    ran = fila("enqueue", "ordres", "x")

    assert ran.code == 1
    assert ran.err == "fila: queue 'ordres' does not exist; 'fila queue list' shows the queues there are\n"
