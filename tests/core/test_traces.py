"""Spans as the core writes them down: which messages have them, from when to when, and what they cost."""

from collections.abc import Iterator

import pytest

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from fila_server.telemetry.spans import OPERATIONS, OUTCOMES, Row
from tests.core.driven_engine import WALL_START_NS, DrivenEngine, Refused

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
ALL = 2**64 - 1
MS = 1_000_000


def traceparent(trace: str = TRACE, flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{trace}-{PARENT}-{flags}"}


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine({"telemetry.trace_low_max": ALL})
    driven.create_queue("q", fairness_key_header="tenant", visibility_timeout_ms=1000)
    yield driven
    driven.remove()


def spans(engine: DrivenEngine, most: int = 10_000) -> list[Row]:
    engine.others += engine.settle_down()
    return [Row(*row) for row in engine.core.spans.take(most)]


def named(rows: list[Row]) -> list[tuple[str, str]]:
    return [(OPERATIONS[row.operation], OUTCOMES[row.outcome]) for row in rows]


def ms(row: Row) -> tuple[int, int]:
    """From when to when, since the engine began."""
    return (row.begins_ns - WALL_START_NS) // MS, (row.ends_ns - WALL_START_NS) // MS


def test_a_sampled_message_is_told_when_it_is_stored_sent_and_done(engine):
    engine.enqueue("q", headers={"tenant": "acme", **traceparent()})
    engine.sleep(3000)
    leased = engine.lease("q")
    engine.sleep(40)
    engine.ack("q", leased)

    rows = spans(engine)

    assert named(rows) == [("enqueue", "stored"), ("deliver", "sent"), ("settle", "acked")]
    assert {(f"{row.trace_id:032x}", f"{row.parent_id:016x}") for row in rows} == {(TRACE, PARENT)}
    assert [ms(row) for row in rows] == [(0, 0), (0, 3000), (3000, 3040)]
    assert {(row.queue, row.fairness_key, row.offset) for row in rows} == {("q", "acme", 1)}
    assert [row.channel for row in rows] == ["", "default", "default"]
    assert len({row.message_id for row in rows}) == 1
    assert rows[1].lease_id == rows[2].lease_id == leased[0].metadata.lease_id


def test_an_enqueue_ends_when_it_is_on_disk(engine):
    engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", headers=traceparent()))
    engine.run_pass()
    engine.advance(7)
    engine.run_pass()
    assert engine.core.spans.take(10) == []

    engine.advance(5)
    engine.commit()
    (row,) = spans(engine)

    assert ms(row) == (0, 12)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        traceparent(flags="00"),
        traceparent(trace="0" * 32),
        traceparent(trace=TRACE.upper()),
        {"traceparent": f"ff-{TRACE}-{PARENT}-01"},
        {"traceparent": f"00-{TRACE}-{'0' * 16}-01"},
        {"traceparent": "nonsense"},
    ],
)
def test_a_message_without_a_recorded_trace_has_none(engine, headers):
    engine.enqueue("q", headers=headers)
    engine.ack("q", engine.lease("q"))

    assert spans(engine) == []


def test_a_trace_has_all_of_its_spans_or_none():
    engine = DrivenEngine({"telemetry.trace_low_max": 2**63 - 1})
    engine.create_queue("q")
    for lower in ("7fffffffffffffff", "8000000000000000", "0000000000000001", "ffffffffffffffff"):
        engine.enqueue("q", headers=traceparent("0" * 15 + "1" + lower))
    engine.ack("q", engine.lease("q"))

    rows = spans(engine)
    engine.remove()

    assert sorted({row.trace_id & ALL for row in rows}) == [1, 2**63 - 1]
    assert len(rows) == 6


def test_what_fails_is_told_with_the_reason_and_its_next_wait_begins_then(engine):
    engine.enqueue("q", headers=traceparent())
    engine.sleep(10)
    engine.nack("q", engine.lease("q"))
    engine.sleep(20)
    engine.lease("q")
    engine.sleep(1001)
    engine.sleep(60_000)  # its backoff
    engine.lease("q")

    rows = spans(engine)

    assert named(rows[1:]) == [
        ("deliver", "sent"),
        ("settle", "nacked"),
        ("deliver", "sent"),
        ("settle", "expired"),
        ("deliver", "sent"),
    ]
    assert [row.why for row in rows[1:]] == ["", "no", "", "visibility timeout", ""]
    assert [ms(row) for row in rows[1:4]] == [(0, 10), (10, 10), (10, 30)]
    assert rows[5].begins_ns == rows[4].ends_ns
    assert [row.attempts for row in rows] == [0, 0, 0, 1, 1, 2]


def test_a_refused_message_is_told_with_the_reason(engine):
    engine.create_queue("full", max_depth=1)
    engine.enqueue("full")
    for queue in ("full", "nowhere"):
        with pytest.raises(Refused):
            engine.enqueue(queue, headers=traceparent())

    rows = spans(engine)

    assert named(rows) == [("enqueue", "refused")] * 2
    assert [(row.queue, row.why, row.message_id) for row in rows] == [
        ("full", "QUEUE_FULL", 0),
        ("nowhere", "QUEUE_NOT_FOUND", 0),
    ]


def test_a_repeated_dedup_key_is_told_as_the_message_that_stands_for_it(engine):
    for _ in range(2):
        engine.enqueue("q", headers=traceparent(), dedup_key="once")

    first, second = spans(engine)

    assert named([first, second]) == [("enqueue", "stored"), ("enqueue", "duplicate")]
    assert first.message_id == second.message_id


def test_each_message_of_a_batch_goes_by_its_own_trace(engine):
    other = "f" * 32
    batch = [
        service.EnqueueMessage(queue="q", headers=headers)
        for headers in (traceparent(), {}, traceparent(other), {"tenant": "acme"})
    ]
    engine.call(
        commands.ENQUEUE_BATCH, service.EnqueueBatchRequest(messages=batch), service.EnqueueBatchResponse
    )

    rows = spans(engine)

    assert [(f"{row.trace_id:032x}", row.offset) for row in rows] == [(TRACE, 1), (other, 3)]


def test_a_script_that_routes_has_a_span_before_the_message_is_taken(engine):
    engine.create_queue("scripted", on_enqueue_script="function on_enqueue(msg) end")
    engine.sleep(50)
    request = service.EnqueueRequest(queue="scripted", headers=traceparent()).SerializeToString()
    parsed = engine.core.parse(commands.ENQUEUE, request)
    parsed.was_shown(engine.mono_ns - 9 * MS, engine.mono_ns - 2 * MS)
    engine.core.submit_parsed(99, parsed)

    policy, enqueue = spans(engine)

    assert named([policy, enqueue]) == [("policy", "policy"), ("enqueue", "stored")]
    assert ms(policy) == (41, 48)
    assert ms(enqueue) == (41, 50)
    assert policy.message_id == enqueue.message_id != 0


def test_a_script_that_judges_a_failure_has_a_span(engine):
    engine.create_queue("judged", on_failure_script="function on_failure(msg) end")
    engine.enqueue("judged", headers=traceparent())
    (message,) = engine.lease("judged")
    engine.submit(
        commands.NACK,
        service.NackRequest(queue="judged", message_id=message.id, lease_id=message.metadata.lease_id),
    )
    (number,) = [out[0] for out in engine.settle_down() if out[1] == commands.EVENT]
    engine.sleep(6)
    engine.submit(commands.DECIDE, seam_frames.Decision(action=2).SerializeToString(), number)
    rows = spans(engine)

    assert named(rows[2:]) == [("settle", "nacked"), ("policy", "dead_letter")]
    assert ms(rows[3]) == (0, 6)


def test_a_dead_letter_goes_on_in_its_trace(engine):
    engine.create_queue("poor", max_attempts=1)
    engine.enqueue("poor", headers=traceparent())
    engine.nack("poor", engine.lease("poor"))
    engine.ack("poor.dlq", engine.lease("poor.dlq"))

    rows = spans(engine)

    assert [(row.queue, *name) for row, name in zip(rows[2:], named(rows[2:]), strict=True)] == [
        ("poor", "settle", "nacked"),
        ("poor.dlq", "deliver", "sent"),
        ("poor.dlq", "settle", "acked"),
    ]


def test_bytes_that_had_to_be_read_back_have_their_spans_all_the_same():
    engine = DrivenEngine({"telemetry.trace_low_max": ALL, "storage.hot_payload_bytes": 1})
    engine.create_queue("q")
    for _ in range(5):
        engine.enqueue("q", headers=traceparent())
    engine.ack("q", engine.lease("q"))

    rows = spans(engine)
    engine.remove()

    assert [row.operation for row in rows] == [1] * 5 + [3] * 5 + [4] * 5


def test_a_lease_from_before_a_restart_ends_without_a_span(engine):
    engine.enqueue("q", headers=traceparent())
    leased = engine.lease("q")
    spans(engine)
    engine.kill()
    engine.reopen()

    engine.ack("q", leased)

    assert spans(engine) == []


def test_nobody_takes_them_and_what_has_no_place_is_counted(engine):
    batch = service.EnqueueBatchRequest(
        messages=[service.EnqueueMessage(queue="q", headers=traceparent())] * 500
    )
    for _ in range(10):
        engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)

    assert len(spans(engine)) == 4096
    assert engine.core.spans.dropped == 5000 - 4096
    engine.enqueue("q", headers=traceparent())
    assert len(spans(engine)) == 1


def test_so_many_may_wait_for_the_disk_and_others_go_without(engine):
    batch = service.EnqueueBatchRequest(
        messages=[service.EnqueueMessage(queue="q", headers=traceparent())] * 2000
    )
    engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)

    assert len(spans(engine)) == 1024
    assert engine.core.spans.dropped == 2000 - 1024


def test_texts_too_long_are_cut_between_characters(engine):
    engine.create_queue("q" * 200, fairness_key_header="tenant")
    engine.enqueue("q" * 200, headers={"tenant": "ä" * 128, **traceparent()})
    (message,) = engine.lease("q" * 200)
    request = service.NackRequest(
        queue="q" * 200,
        message_id=message.id,
        lease_id=message.metadata.lease_id,
        error="ü" * 400,
    )
    engine.submit(commands.NACK, request)

    settle = spans(engine)[-1]

    assert settle.fairness_key == "ä" * 128
    assert settle.why == "ü" * ((768 - 200 - 7 - 256) // 2)


def life(engine: DrivenEngine) -> list[tuple[bytes, int]]:
    engine.create_queue("q", fairness_key_header="tenant", max_attempts=2)
    told: list[tuple[bytes, int]] = []
    for round_ in range(20):
        for tenant in ("a", "b", "c"):
            payload = f"{tenant}{round_}".encode()
            engine.enqueue("q", payload, {"tenant": tenant, **traceparent()})
        leased = engine.lease("q", most=2)
        told += [(message.payload, message.metadata.lease_id) for message in leased]
        engine.ack("q", leased[:1])
        engine.nack("q", leased[1:])
        engine.sleep(100)
    return told


def test_spans_change_nothing_that_is_decided():
    without, with_spans = DrivenEngine(), DrivenEngine({"telemetry.trace_low_max": ALL})
    assert life(without) == life(with_spans)
    assert without.core.spans is None
    for name in ("passes", "work", "walked", "next_lease_id", "epochs"):
        assert without.core.counters()[name] == with_spans.core.counters()[name]
    without.remove()
    with_spans.remove()


def test_the_wall_clock_of_spans_is_closer_than_the_milliseconds_it_is_told_in(engine):
    engine.wall_ns += 999_000
    engine.settle_down()
    engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", headers=traceparent()))
    engine.run_pass()
    engine.mono_ns += 400_000
    engine.wall_ns += 400_000
    engine.commit()
    (row,) = spans(engine)

    assert row.ends_ns - row.begins_ns == 400_000


def test_a_message_given_back_is_told_as_returned(engine):
    engine.enqueue("q", headers=traceparent())
    (message,) = engine.lease("q")
    item = service.SettleItem(message_id=message.id, lease_id=message.metadata.lease_id, release=True)
    engine.call(
        commands.NACK_BATCH,
        service.NackBatchRequest(queue="q", items=[item]),
        service.SettleBatchResponse,
    )

    assert named(spans(engine))[-1] == ("settle", "returned")
