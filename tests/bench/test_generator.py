"""The load generator: its handmade bytes mean what the contract says, and it counts what happened."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import pytest
from fila_bench import frames, report, scanner
from fila_bench.load import Load, LoadFailed
from fila_bench.metrics import quantile
from fila_bench.plan import ConsumerPlan, Counter, ProducerPlan
from fila_bench.replay import NOISY, REAL, Arrival, Served, flood, read_trace, summarize
from fila_bench.report import Finding
from fila_bench.server import Server
from hypothesis import given
from hypothesis import strategies as st

from fila.v1 import messages_pb2, service_pb2
from fila_cli import main

FAKE = f"{sys.executable} {Path(__file__).with_name('fake_broker.py')}"
lease_ids = st.integers(0, 2**64 - 1)
headers = st.dictionaries(st.text(min_size=1, max_size=5), st.text(min_size=1, max_size=5), max_size=3)


@given(
    pairs=headers, payload=st.binary(max_size=300), queue=st.text(max_size=5), delay_ms=st.integers(0, 2**40)
)
def test_a_handmade_message_reads_as_the_contract_says(pairs, payload, queue, delay_ms):
    made = frames.enqueue_message(
        pairs, payload, queue=queue, options=frames.enqueue_options(delay_ms=delay_ms, dedup_key="d")
    )

    read = service_pb2.EnqueueMessage.FromString(made)

    assert (dict(read.headers), read.payload, read.queue) == (pairs, payload, queue)
    assert (read.options.delay_ms, read.options.dedup_key) == (delay_ms, "d")


@given(number=st.integers(1, 2**64 - 1), payloads=st.lists(st.binary(max_size=200), max_size=5))
def test_a_handmade_stream_frame_reads_as_the_contract_says(number, payloads):
    batch = frames.enqueue_batch("orders", [frames.enqueue_message({}, payload) for payload in payloads])

    read = service_pb2.EnqueueStreamRequest.FromString(
        frames.sequence(number) + frames.enqueue_stream_body(batch)
    )

    assert (read.sequence, read.batch.queue) == (number, "orders")
    assert [message.payload for message in read.batch.messages] == payloads


@given(ids=st.lists(lease_ids, min_size=1, max_size=50), payload=st.binary(max_size=50))
def test_a_delivery_becomes_the_ack_that_answers_it(ids, payload):
    delivery = service_pb2.ConsumeSessionResponse.Delivery()
    for lease_id in ids:
        message = delivery.messages.add(id="m", headers={"a": "b"}, payload=payload)
        message.metadata.CopyFrom(
            messages_pb2.MessageMetadata(fairness_key="k", weight=3, offset=9, lease_id=lease_id, cost=1.0)
        )
        message.timestamps.enqueued_at.seconds = 1

    frame = service_pb2.ConsumeSessionResponse(delivery=delivery).SerializeToString()
    count, packed, payload_bytes = scanner.load().delivery(frame)

    ack = service_pb2.ConsumeSessionRequest.FromString(frames.session_ack(7, packed)).ack
    assert (count, payload_bytes) == (len(ids), len(ids) * len(payload))
    assert (ack.sequence, list(ack.lease_ids)) == (7, ids)


@given(outcomes=st.lists(st.booleans(), max_size=50))
def test_refused_messages_are_not_counted_as_stored(outcomes):
    answer = service_pb2.EnqueueStreamResponse(sequence=1)
    for stored in outcomes:
        result = answer.results.add(message_id="m" if stored else "", offset=1 if stored else 0)
        if not stored:
            result.error.code = 8
            result.error.message = "full"

    counted = scanner.load().enqueue_results(answer.SerializeToString())

    assert counted == (outcomes.count(True), outcomes.count(False))


@given(frame=st.binary(max_size=100))
def test_garbage_is_an_error_or_nothing_but_never_a_crash(frame):
    for scan in (scanner.load().delivery, scanner.load().enqueue_results, scanner.load().settle_failures):
        with contextlib.suppress(ValueError):
            scan(frame)


def test_keys_come_equally_often_whatever_the_batch():
    plan = ProducerPlan(address="", queue="q", payload_bytes=1, batch=4, keys=6)

    seen: dict[str, int] = {}
    for body in plan.bodies():
        for message in service_pb2.EnqueueStreamRequest.FromString(body).batch.messages:
            seen[message.headers["tenant"]] = seen.get(message.headers["tenant"], 0) + 1

    assert len(seen) == 6
    assert len(set(seen.values())) == 1


@pytest.mark.slow
@pytest.mark.e2e
def test_a_load_counts_every_message_once_from_producer_to_ack(monkeypatch):
    monkeypatch.setenv("FILA_BENCH_SERVER", FAKE)
    with Server() as server:
        producer = ProducerPlan(address=server.address, queue="q", payload_bytes=64, message_count=2_000)
        consumer = ConsumerPlan(address=server.address, queue="q", max_in_flight=300)
        with Load([producer], [consumer]) as load:
            load.wait_for(Counter.ACKED, 2_000, timeout_s=20)

            assert [load.total(counter) for counter in (Counter.PRODUCED, Counter.CONSUMED)] == [2_000, 2_000]
            assert load.total(Counter.REFUSED) == load.total(Counter.SETTLE_FAILED) == 0


@pytest.mark.slow
@pytest.mark.e2e
def test_the_command_line_has_a_load_test_of_its_own(monkeypatch, capfd):
    monkeypatch.setenv("FILA_BENCH_SERVER", FAKE)
    with Server() as server:
        code = main.run(
            ["bench", "--messages", "1000", "--batch", "30", "-o", "json", "--addr", server.address]
        )

    found = json.loads(capfd.readouterr().out)
    assert code == 0
    assert found["messages"] == 1000
    assert found["acked_per_s"] > 0
    assert 0 < found["delay_p50_ms"] <= found["delay_p99_ms"]


@pytest.mark.slow
@pytest.mark.e2e
def test_a_load_whose_server_is_gone_fails_instead_of_measuring_nothing(monkeypatch):
    monkeypatch.setenv("FILA_BENCH_SERVER", FAKE)
    with Server() as server, Load([ProducerPlan(address=server.address, queue="q")]) as load:
        server.stop()

        with pytest.raises(LoadFailed):
            load.measure(warm_up_s=0, seconds=10)


def test_a_report_survives_its_own_json_and_says_what_was_missed():
    findings = [
        Finding(benchmark="a", case="rate", value=120_000.4, unit="msg/s", reach=110_000),
        Finding(benchmark="a", case="delay", value=7.25, unit="ms", reach=6, better="less", details={"n": 3}),
    ]

    again = report.from_json(report.as_json(findings, report.this_machine()))

    assert again == findings
    assert [finding.reached for finding in again] == [True, False]
    assert "MISSED" in report.table(again).splitlines()[2]
    assert "| delay | 7.25 ms | ≤ 6 | MISSED | n 3 |" in report.markdown(again, report.this_machine(), {})


def test_a_quantile_is_read_over_all_series_of_a_histogram():
    page = (
        "# TYPE took_seconds histogram\n"
        'took_seconds_bucket{queue="a",le="0.001"} 90\ntook_seconds_bucket{queue="a",le="+Inf"} 90\n'
        'took_seconds_bucket{queue="b",le="0.001"} 5\ntook_seconds_bucket{queue="b",le="0.01"} 10\n'
        'took_seconds_bucket{queue="a",le="0.01"} 90\ntook_seconds_bucket{queue="b",le="+Inf"} 10\n'
    )

    assert quantile(page, "took_seconds", 0.5) == (0.001, 100)
    assert quantile(page, "took_seconds", 0.99) == (0.01, 100)


def test_the_trace_is_read_with_its_seven_digit_fractions_and_cut_at_the_minute(tmp_path):
    trace = tmp_path / "code.csv"
    trace.write_bytes(
        b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n"
        b"2023-11-16 18:17:04.4799600,100,0\r\n2023-11-16 18:19:00.0000000,1,1"
    )

    assert read_trace(trace, minutes=1) == [Arrival(0.0, REAL, 4818), Arrival(0.5, REAL, 100)]


def test_the_flood_asks_for_as_many_requests_over_the_same_stretch():
    real = [Arrival(float(second), REAL, 100) for second in range(11)]

    noise = flood(real, times=10, seed=1)

    assert len(noise) == 110
    assert {arrival.tenant for arrival in noise} == {NOISY}
    assert 0 <= min(arrival.at_s for arrival in noise) <= max(arrival.at_s for arrival in noise) <= 10


def test_what_is_served_after_the_last_arrival_counts_for_waits_but_not_for_shares():
    served = [Served(0, 1, REAL, 100), Served(0, 2, NOISY, 300), Served(5, 500, NOISY, 10_000)]

    arrivals = [
        Arrival(0, REAL, 100),
        Arrival(0, NOISY, 300),
        Arrival(5, NOISY, 10_000),
        Arrival(10, NOISY, 1),
    ]
    real, noisy = summarize(served, arrivals)

    assert (real.share, noisy.share) == (0.25, 0.75)
    assert noisy.p99_s == 500
    assert (real.waiting, noisy.waiting) == (0, 1)
