"""How a range is shared among tasks, and which filters the broker takes over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from pyspark_fila.filters import OFFSET_END, take_over
from pyspark_fila.ranges import MESSAGES_PER_TASK_MIN, LogRange, _Gaps, split

STRETCH = st.tuples(st.integers(1, 10**9), st.integers(0, 10**7))


@given(st.lists(STRETCH, max_size=6), st.integers(1, 200))
def test_parts_cover_the_ranges_once_and_are_even(stretches, tasks):
    wholes = [
        LogRange(start, start + length, "acme", queue=str(i)) for i, (start, length) in enumerate(stretches)
    ]
    parts = split(wholes, tasks)
    cut = [each for part in parts for each in part.ranges]
    assert all(each.fairness_key == "acme" and each.start < each.end for each in cut)
    for whole in wholes:
        of_it = [each for each in cut if each.queue == whole.queue]
        edges = [each.start for each in of_it] + [whole.end]
        assert edges[0] == whole.start
        assert [each.end for each in of_it] == edges[1:]
    if parts:
        sizes = [sum(each.end - each.start for each in part.ranges) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        assert len(parts) == 1 or min(sizes) >= MESSAGES_PER_TASK_MIN
        assert len(parts) <= tasks


OFFSET, KEY, APPENDED = ("offset",), ("fairness_key",), ("appended_at",)
FILTERS = {EqualTo: "==", GreaterThan: ">", GreaterThanOrEqual: ">=", LessThan: "<", LessThanOrEqual: "<="}


@given(st.lists(st.tuples(st.sampled_from(list(FILTERS)), st.integers(1, 30)), max_size=4))
def test_offset_filters_narrow_the_range_to_exactly_what_they_hold_for(filters):
    wanted, left = take_over([kind(OFFSET, value) for kind, value in filters], LogRange(0, OFFSET_END))
    assert left == []
    holds = [
        offset
        for offset in range(1, 40)
        if all(eval(f"{offset} {FILTERS[kind]} {value}") for kind, value in filters)
    ]
    assert [offset for offset in range(1, 40) if wanted.start <= offset < wanted.end] == holds


@given(st.sampled_from(list(FILTERS)), st.integers(0, 5000))
def test_time_filters_never_cut_what_they_hold_for_and_stay_with_spark(kind, micros):
    base = datetime(2026, 1, 31, tzinfo=UTC)
    given_filter = kind(APPENDED, base + timedelta(microseconds=micros))
    wanted, left = take_over([given_filter], LogRange(0, OFFSET_END))
    assert left == [given_filter]
    for ms in range(-1, 7):
        if eval(f"{ms * 1000} {FILTERS[kind]} {micros}"):
            moment = base + timedelta(milliseconds=ms)
            assert wanted.from_time is None or wanted.from_time <= moment
            assert wanted.to_time is None or moment < wanted.to_time


def test_one_key_is_taken_over_and_a_second_one_stays():
    first, second = EqualTo(KEY, "acme"), EqualTo(KEY, "globex")
    wanted, left = take_over([IsNotNull(KEY), first, second], LogRange(0, OFFSET_END))
    assert wanted.fairness_key == "acme"
    assert left == [second]


@pytest.mark.parametrize(
    "given_filter", [EqualTo(KEY, ""), In(KEY, ("a", "b")), EqualTo(("headers", "a"), "b")]
)
def test_what_the_broker_cannot_filter_stays(given_filter):
    wanted, left = take_over([given_filter], LogRange(0, OFFSET_END))
    assert (wanted, left) == (LogRange(0, OFFSET_END), [given_filter])


@given(st.sets(st.integers(10, 60), max_size=50), st.integers(1, 7))
def test_the_lowest_gap_of_a_read_is_found_in_responses_of_any_size(offsets, size):
    gaps, ordered = _Gaps(10), sorted(offsets)
    for begin in range(0, len(ordered), size):
        gaps.see(ordered[begin : begin + size])
    gaps.end(61)
    assert gaps.lowest == next((offset for offset in range(10, 61) if offset not in offsets), None)
