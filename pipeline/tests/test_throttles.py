"""`throttles` goes by the limit that was in force at each moment, not by the last one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from random_history import frame

from fila_pipeline import schema
from fila_pipeline.jobs.throttles import NONE, Limit, _model, _used, held_ms, throttles
from fila_pipeline.pages.waiting import throttles_page

START = datetime(2026, 3, 2, 9, 0, 30, tzinfo=UTC)


def each_second(taken, held=0):
    """What a bucket gave in each second."""
    return pd.DataFrame(
        {"bucket": "smtp", "second": range(len(taken)), "held": held, "taken": taken, "passed": taken}
    )


def test_use_is_of_the_tokens_that_came_under_each_limit():
    """9 a second for 65 seconds, then 12: of 9 * 65 + 12 * 55 = 1,245 tokens 7 * 120 were taken."""
    limits = [Limit(0, 65, 9, 9), Limit(65, 120, 12, 12)]
    (row,) = _used(each_second([7] * 120), limits).itertuples()
    assert (row.rate, row.use) == (12, pytest.approx(840 / 1245))


def test_what_was_taken_without_a_limit_is_not_in_the_use_and_a_limit_taken_away_leaves_its_model():
    limits = [Limit(0, 60, 10, 10), Limit(60, 120, NONE, NONE)]
    (row,) = _used(each_second([5] * 60 + [500] * 60), limits).itertuples()
    assert (row.rate, row.use) == (None, pytest.approx(0.5))
    rows = _model(each_second([15] * 60 + [500] * 60), limits).set_index("multiple")["held_ms"]
    assert rows[1.0] == pytest.approx(sum(5 * second for second in range(1, 60)) * 1000, rel=0.05)
    assert rows[2.0] == 0


def test_the_model_at_the_recorded_limits_agrees_with_a_bucket_that_is_filled_tick_by_tick():
    rng = np.random.default_rng(7)
    asked = rng.poisson(10, 400) * (rng.random(400) < 0.6)
    rates = np.where(np.arange(400) < 150, 5.0, np.where(np.arange(400) < 230, 14.0, 6.0))
    waiting, tokens, held = 0.0, 5.0, 0.0
    for second in range(3000):
        rate = rates[min(second, 399)]
        for _ in range(100):  # what comes in a second comes at its beginning
            if _ == 0 and second < 400:
                waiting += asked[second]
            tokens = min(max(rate, 5.0), tokens + rate / 100)
            served = min(tokens, waiting)
            waiting, tokens = waiting - served, tokens - served
            held += waiting / 100
    sparse = asked > 0
    at = np.flatnonzero(sparse | np.isin(np.arange(400), (150, 230)))
    found = held_ms(at, asked[at], rates[at], rates[at])
    assert found == pytest.approx(held * 1000, rel=0.1)


def test_limits_that_change_are_in_the_tables_and_drawn_and_edges_of_minutes_have_their_length(spark):
    """From 9:00:30 to 9:01:50, with 4 tokens a second taken of 8, and of 5 from 9:01:10 on."""
    rows = [
        {
            "at": START + timedelta(seconds=second), "pass": second, "kind": schema.DELIVERED, "queue": "q",
            "channel": "default", "fairness_key": "k", "weight": 1, "throttle_keys": ["smtp"],
            "offsets": list(range(4)), "costs": [1.0], "attempts": [0],
            "wait_throttle_ms": [10 if second == 60 else 0],
        }
        for second in range(80)
    ]  # fmt: skip
    changes = [
        {
            "at": START + timedelta(seconds=after), "pass": after, "kind": "limit", "name": "smtp",
            "rate": rate, "burst": 9.0,
        }
        for after, rate in ((-5, 8.0), (40, 5.0))
    ]  # fmt: skip
    found = throttles(frame(spark, rows), frame(spark, changes, schema.CHANGES))
    buckets, larger, minutes, limits = (
        part.toPandas() for part in (found.buckets, found.larger, found.minutes, found.limits)
    )
    (bucket,) = buckets.itertuples()
    assert (bucket.rate, bucket.burst, bucket.taken) == (5.0, 9.0, 320)
    assert bucket.use == pytest.approx(320 / (40 * 8 + 40 * 5))
    by_minute = minutes.sort_values("minute")
    assert list(by_minute["seconds"]) == [30, 50]
    assert list(by_minute["taken"] / by_minute["seconds"]) == [4, 4]
    begins = START.timestamp()
    assert limits.drop(columns="bucket").to_numpy().tolist() == [
        [begins, begins + 40, 8.0, 9.0],
        [begins + 40, begins + 80, 5.0, 9.0],
    ]
    page = throttles_page(buckets, larger, minutes, limits)
    taken, limit = page.figures[0].plot.series
    assert set(taken.y) == {4}
    assert list(limit.y) == [8, 8, 5, 5]
