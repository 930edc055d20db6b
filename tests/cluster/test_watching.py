"""Who serves: a file of scenarios, and what must hold whatever happens in whatever order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fila_server.cluster.watching import Bidden, Event, Handed, Heard, Hindered, Missed, Read, Watch

SCENARIOS = yaml.load(Path(__file__).with_name("who_serves.yaml").read_text(), yaml.CSafeLoader)["scenarios"]
EVENTS: dict[str, Any] = {
    "read": Read,
    "heard": Heard,
    "missed": Missed,
    "hindered": Hindered,
    "bidden": Bidden,
    "handed": Handed,
}
ME, OWNER = 2, 1
SKEW_MAX_MS = 2_000


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["name"] for scenario in SCENARIOS])
def test_a_standby_decides_each_step_as_the_file_says(scenario):
    watch = Watch(ME, SKEW_MAX_MS)
    for step in scenario["steps"]:
        for name, event in EVENTS.items():
            if name in step:
                watch.take(step["at"], event(**step[name]))
        if "decides" not in step:
            continue
        decision = watch.decide(step["at"])
        expected = step["decides"]
        assert decision.bids == (expected == "bid"), (step, decision)
        assert (step.get("why", "") if decision.bids else expected) in decision.why, (step, decision)
        assert bool(decision.why) == bool(expected), (step, decision)
        assert decision.is_alarm == step.get("alarm", False), (step, decision)
        assert decision.is_moved == step.get("moved", False), (step, decision)


def test_a_standby_lacks_nothing_while_it_comes_to_the_end_of_the_log_and_may_serve():
    watch = Watch(ME, SKEW_MAX_MS)
    assert watch.lacks(0) == "the log is not read to its end"
    watch.take(100, Read(1, is_end=True, owner=OWNER))
    watch.take(2_000, Read(2, is_end=False, owner=OWNER))
    assert watch.lacks(3_100) == ""
    assert watch.lacks(3_101) == "the log is not read to its end"
    watch.take(4_000, Read(9, is_end=True, owner=OWNER))
    assert watch.lacks(4_000) == ""
    watch.take(4_000, Hindered("the copy is damaged"))
    assert watch.lacks(4_000) == "the copy is damaged"


def nodes() -> st.SearchStrategy[int]:
    return st.sampled_from((OWNER, 3, 4))


events: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Read,
        position=st.integers(0, 3),
        is_end=st.sampled_from((True, True, False)),
        owner=st.sampled_from((OWNER, OWNER, ME, 3, None)),
        short_terms=st.sampled_from((0, 0, 1, 3, 4, 30)),
        ahead_ms=st.sampled_from((0, -500, 2_500)),
    ),
    st.builds(
        Heard,
        node=nodes(),
        position=st.integers(0, 4),
        may_bid=st.booleans(),
        clock_ms=st.sampled_from((0, 0, 1_999, 2_001, -3_000)),
        owner_heard_ms=st.sampled_from((None, 0, 5_000)),
    ),
    st.builds(Missed, node=nodes(), is_refused=st.booleans()),
    st.builds(Hindered, why=st.sampled_from(("", "", "the copy is damaged"))),
)
histories = st.lists(st.tuples(st.sampled_from((0, 100, 300, 900, 4_000, 15_000)), events), max_size=40)


def played(history: list[tuple[int, Event]]) -> list[tuple[int, Event]]:
    """With times in place of steps; positions never go back."""
    now = furthest = 0
    told: list[tuple[int, Event]] = []
    for step, event in history:
        now += step
        if isinstance(event, Read):
            furthest = max(furthest, event.position)
            told.append((now, replace(event, position=furthest)))
        else:
            told.append((now, event))
    return told


def last(told: list[tuple[int, Event]], kind: type, node: int | None = None) -> tuple[int, Any] | None:
    for at_ms, event in reversed(told):
        if isinstance(event, kind) and (node is None or getattr(event, "node", None) == node):
            return at_ms, event
    return None


@given(histories, st.integers(0, 20_000))
def test_a_node_that_bids_has_a_cause_and_nothing_against_it(history, wait_ms):
    told, watch = played(history), Watch(ME, SKEW_MAX_MS)
    for at_ms, event in told:
        watch.take(at_ms, event)
    now = (told[-1][0] if told else 0) + wait_ms
    decision = watch.decide(now)
    if not decision.bids:
        return
    newest = last(told, Read)
    assert newest is not None
    read_ms, read = newest
    assert read.is_end
    assert now - read_ms <= 3_000
    hindered = last(told, Hindered)
    assert hindered is None or not hindered[1].why
    clocks = [found[1].clock_ms for node in (OWNER, 3, 4) if (found := last(told, Heard, node=node))]
    assert 2 * sum(abs(clock) > SKEW_MAX_MS for clock in clocks) <= len(clocks)
    moved_ms = min(at for at, event in told if isinstance(event, Read) and event.position == read.position)
    if read.short_terms > 2:
        assert now - moved_ms >= 60_000 * min(read.short_terms - 2, 10)
    if read.owner not in (None, ME) and now - moved_ms < 10_000:
        heard = last(told, Heard, node=read.owner)
        missed = [
            event
            for at, event in told[(told.index(heard) + 1 if heard else 0) :]
            if isinstance(event, Missed) and event.node == read.owner
        ]
        is_gone = len(missed) >= 3 or any(event.is_refused for event in missed)
        unheard = heard is None or now - heard[0] >= 10_000
        assert unheard or (is_gone and now - moved_ms >= 1_000)


@given(histories, st.lists(st.integers(1, 5_000), min_size=1, max_size=60))
def test_none_bids_twice_a_minute_while_it_hears_of_another(history, steps):
    watch, now, bid_ms = Watch(ME, SKEW_MAX_MS), 0, None
    for at_ms, event in played(history):
        now = at_ms
        watch.take(now, event)
    for step in steps:
        now += step
        watch.take(now, Heard(3, 0, may_bid=True))
        watch.take(now, Read(9, is_end=True, owner=OWNER))
        if watch.decide(now).bids:
            assert bid_ms is None or now - bid_ms >= 60_000
            watch.take(now, Bidden())
            bid_ms = now


@given(histories, st.sampled_from((0, 2, 3, 7, 40)))
def test_whatever_happened_a_standby_that_may_bids_once_its_owner_is_gone(history, short_terms):
    watch, now = Watch(ME, SKEW_MAX_MS), 0
    for at_ms, event in played(history):
        now = at_ms
        watch.take(now, event)
    watch.take(now, Hindered(""))
    for node in (OWNER, 3, 4):
        watch.take(now, Heard(node, 0, may_bid=node != OWNER))
    gone_ms = now
    while True:
        watch.take(now, Read(99, is_end=True, owner=OWNER, short_terms=short_terms))
        watch.take(now, Missed(OWNER))
        watch.take(now, Heard(3, 98, may_bid=True))
        if watch.decide(now).bids:
            break
        now += 300
        assert now < gone_ms + 3_600_000, "it never bids"
    assert now - gone_ms <= 1_500 + 60_000 * min(max(short_terms - 2, 0), 10)
