"""Each job against its slow twin, on histories at random; and what each must find."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
import twins
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_history import frame, random_rows

from fila_pipeline import schema
from fila_pipeline.jobs.anomalies import anomalies, judged, sums
from fila_pipeline.jobs.capacity import capacity, max_min, waits_p99_ms
from fila_pipeline.jobs.delays import delays
from fila_pipeline.jobs.fairness import fairness
from fila_pipeline.jobs.retries import retries
from fila_pipeline.jobs.throttles import held_ms, throttles
from fila_pipeline.pages.fairness import fairness_page
from fila_pipeline.pages.trouble import anomalies_page
from fila_pipeline.synthetic import Scenario, Tenant, decisions, noisy_neighbours

# Each example starts Spark jobs, which take a second or more each.
ON_SPARK = settings(
    max_examples=25 if os.environ.get("FILA_SOAK") else 1,
    suppress_health_check=list(HealthCheck),
    derandomize=not os.environ.get("FILA_SOAK"),
)
SEEDS = st.integers(0, 2**32)


@ON_SPARK
@given(SEEDS)
def test_fairness_agrees_with_its_twin(spark, seed):
    rows = random_rows(seed)
    shares = fairness(frame(spark, rows), 60).shares.collect()
    found = {(r.queue, r.channel, r.window, r.fairness_key): (r.demand, r.served, r.due) for r in shares}
    expected = twins.fairness(rows, 60)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, abs=1e-6), key


@ON_SPARK
@given(SEEDS)
def test_delays_agree_with_their_twin(spark, seed):
    rows = random_rows(seed)
    found = {
        (r.queue, r.channel, r.fairness_key, r.hour): (
            r.messages,
            r.max_ms,
            [r[f"wait_{cause}_ms"] for cause in schema.CAUSES],
        )
        for r in delays(frame(spark, rows)).by_hour.collect()
    }
    assert found == twins.delays(rows)


@ON_SPARK
@given(SEEDS)
def test_retries_agree_with_their_twin(spark, seed):
    rows = random_rows(seed)
    result = retries(frame(spark, rows))
    keys, poison = twins.retries(rows)
    ends = ("acked", "nacked", "expired", "returned", "dead_lettered", "in_flight")
    names = ("delivered", *ends, "handling_lost_ms", "backoff_ms")
    assert {
        (r.queue, r.channel, r.fairness_key): tuple(float(r[name]) for name in names)
        for r in result.keys.collect()
    } == keys
    assert {(r.queue, r.channel, r.fairness_key, r.offset) for r in result.poison.collect()} == poison


@ON_SPARK
@given(SEEDS)
def test_throttles_agree_with_their_twin(spark, seed):
    rows = random_rows(seed)
    result = throttles(frame(spark, rows), frame(spark, [], schema.CHANGES))
    found = {r.bucket: (r.held, r.held_ms, r.taken) for r in result.buckets.collect()}
    assert found == twins.throttles(rows)


@ON_SPARK
@given(SEEDS)
def test_capacity_agrees_with_its_twin(spark, seed):
    rows, bound_ms = random_rows(seed), 20_000.0
    made = capacity(frame(spark, rows), bound_ms)
    found = {(r.queue, r.channel): r for r in made.queues.collect()}
    curve = made.curve.collect()
    expected = twins.arrivals(rows)
    assert found.keys() == expected.keys()
    for where, (came, served, weights) in expected.items():
        each = [sum(second.values()) for second in came]
        minutes = [slice(at, at + 60) for at in range(max(1, len(each) - 59))]
        peak, most = (max(sum(of[m]) / min(60, len(of)) for m in minutes) for of in (each, served))
        row = found[where]
        told = (row.seconds, row.demand, row.peak_60s, row.served_max)
        assert told == pytest.approx((len(each), sum(each) / len(each), peak, most), abs=1e-6)
        points = {(r.fairness_key, r.rate): r.p99_ms for r in curve if (r.queue, r.channel) == where}
        for rate in {rate for _, rate in points}:
            waits = twins.p99_ms(came, weights, rate)
            assert {key: points[key, rate] for key in waits} == pytest.approx(waits, abs=1e-6), rate
        if sum(each):
            assert max(twins.p99_ms(came, weights, row.rate).values()) <= bound_ms + 1e-6
        if row.rate > row.demand / 1000:  # else the recording is too short for such a wait
            assert max(twins.p99_ms(came, weights, row.rate * 0.9).values()) > bound_ms


@ON_SPARK
@given(SEEDS)
def test_anomalies_agree_with_their_twin(spark, seed):
    rows = random_rows(seed)
    found = {
        (r.queue, r.channel, r.fairness_key, r.window, r.what): (r.value, r.usual, r.p_value)
        for r in anomalies(frame(spark, rows), 20, 1.0).collect()
    }
    expected = twins.anomalies(rows, 20, 1.0)  # every window, odd or not
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, rel=1e-6), key


@pytest.mark.parametrize(("begins", "odd"), [(0, 8), (600, 0)])
def test_a_flood_of_a_key_that_nobody_knew_is_out_of_the_ordinary_unless_its_queue_is_as_new(begins, odd):
    windows = range(600, 600 + 20 * 60, 60)
    rows = pd.DataFrame({"queue": "q", "channel": "c", "fairness_key": "new", "window": windows})
    found = judged(rows.assign(arrived=100, cost=100.0, failed=0, ended=0), 60, begins)
    breaks = found[(found["what"] == "arrivals") & (found["p_value"] < 0.001)]
    assert list(breaks["window"]) == list(windows)[:odd], (
        "silence is usual for as long as it is most of the past"
    )


def test_dead_letters_are_no_arrivals_and_are_told_and_drawn_with_their_queue():
    rows = pd.DataFrame({"channel": "default", "fairness_key": "umbrella", "window": range(0, 1200, 60)})
    rows = rows.assign(arrived=[1] * 18 + [90, 1], failed=0, ended=0)
    rows["cost"] = rows["arrived"] * 1.0
    found = pd.concat([judged(rows.assign(queue=queue), 60, 0) for queue in ("conv", "conv.dlq")])
    odd = found[found["p_value"] < 0.001]
    assert [(row.queue, row.what, row.window) for row in odd.itertuples()] == [
        ("conv", "arrivals", 1080),
        ("conv.dlq", "dead letters", 1080),
    ]
    failures = odd[:1].assign(what="failures", window=600)
    arrivals = pd.concat([rows.assign(queue="conv", arrived=7), rows.assign(queue="conv.dlq")])
    page = anomalies_page(pd.concat([odd[1:], failures]), arrivals)
    assert "umbrella's dead letters in conv.dlq from 00:18 on (1 window)" in page.answer
    assert "umbrella's failures in conv from 00:10 on" in page.answer
    line, circles = page.figures[0].plot.series
    assert line.name == "umbrella in conv.dlq"
    assert (max(line.y), list(circles.y)) == (90, [90]), "one queue alone, and no circle for failures"


def crowd(favour: float) -> Scenario:
    tenants = [Tenant(f"t{n}", rate=20, weight=1 + n % 2) for n in range(3)]
    return Scenario((*tenants, Tenant("favourite", rate=20, favour=favour)), seconds=300, capacity=40, seed=3)


@pytest.mark.parametrize(("favour", "said"), [(1.0, "Fair: in 5 windows"), (3.0, "Not fair: favourite got")])
def test_a_key_that_is_served_too_often_is_found_and_nobody_else_is_accused(spark, favour, said):
    found = fairness(frame(spark, decisions(crowd(favour))), 60)
    found.shares.cache()
    page = fairness_page(
        *(part.toPandas() for part in (found.shares, found.windows, found.keys, found.starvation))
    )
    assert page.answer.startswith(said), page.answer


def test_a_key_that_is_never_served_is_starved_for_exactly_that_time(spark):
    rows = [row for row in decisions(crowd(1.0)) if row["fairness_key"] != "t0" or row["kind"] == "enqueued"]
    (row,) = fairness(frame(spark, rows), 60).starvation.collect()
    assert (row.fairness_key, row.windows, row.to_s - row.from_s) == ("t0", 5, 300)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 9)), min_size=1, max_size=8), st.floats(0.01, 300)
)
def test_the_model_shares_as_the_twin_does(demands, rate):
    got = max_min(np.array([d for d, _ in demands]), np.array([float(w) for _, w in demands]), rate)
    due = twins.max_min({str(n): demand for n, demand in enumerate(demands)}, rate)
    assert list(got) == pytest.approx(list(due.values()), abs=1e-6)


def test_a_rate_that_is_twice_the_steady_demand_leaves_nobody_waiting_and_half_of_it_everybody():
    arrived, weights = np.full((300, 2), 5.0), np.ones(2)
    assert waits_p99_ms(arrived, weights, 20.0).max() < 1000
    assert waits_p99_ms(arrived, weights, 5.0).min() > 60_000


def test_what_a_bucket_holds_follows_the_fluid():
    """Ten ask at once and one token comes a second: they wait 1 + 2 + ... + 9 seconds, less half a second each."""
    seconds, asked = pd.Series(range(20)), pd.Series([10] + [0] * 19)
    assert held_ms(seconds, asked, rate=1.0, burst=1.0) == pytest.approx(45_000)
    sparse = held_ms(pd.Series([0, 19]), pd.Series([10, 0]), rate=1.0, burst=1.0)
    assert sparse == pytest.approx(45_000, rel=0.12)
    assert held_ms(seconds, asked, rate=20.0, burst=20.0) == 0
    evenly = pd.Series([15] * 10)
    assert held_ms(pd.Series(range(10)), evenly, rate=16.0, burst=1.0) == 0, (
        "a burst below the rate holds no rate back"
    )


def test_every_message_ends_once_or_is_pending():
    """Of the made-up history, which the tests and the tutorial stand on."""
    ends, pending = [], set()
    for row in decisions(noisy_neighbours(300)):
        if row["kind"] == schema.ENQUEUED:
            assert not pending & set(row["offsets"])
            pending |= set(row["offsets"])
        if row["kind"] in schema.FINAL:
            ends += row["offsets"]
    assert len(ends) == len(set(ends))
    assert set(ends) <= pending


def test_no_event_is_shuffled_before_it_is_summed(spark):
    """What is exchanged first is partial sums by key and window, not runs, in each job that only sums."""
    runs = frame(spark, random_rows(1))
    limits = frame(spark, [], schema.CHANGES)
    for frames in (
        [fairness(runs, 60).shares],
        [delays(runs).by_hour],
        [retries(runs).keys, retries(runs).causes],
        [throttles(runs, limits).buckets],
        [capacity(runs).queues],
        [sums(runs, 60)],
    ):
        for made in frames:
            plan = made._jdf.queryExecution().executedPlan().toString().splitlines()
            reads = [at for at, line in enumerate(plan) if "Scan parquet" in line]
            assert reads, plan
            for read in reads:
                # The plan is a tree, each line below what it feeds: the exchange that this read feeds first.
                indent, fed = plan[read].find("- "), read
                for at in range(read - 1, -1, -1):
                    depth = plan[at].find("- ")
                    if depth >= indent:
                        continue
                    indent = depth
                    if "Exchange hash" in plan[at]:
                        break
                    fed = at
                assert "Aggregate(" in plan[fed], "\n".join(plan)
