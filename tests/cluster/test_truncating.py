"""How much of its log a group forgets: nothing that two nodes which answer do not have on their disks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from fila_server.cluster.log_keeper import MARKS, LogKeeper
from fila_server.cluster.reports import Report
from fila_server.cluster.truncating import (
    AGAIN_MS,
    ALONE_AGAIN_MS,
    ALONE_MS,
    EVERY_MS,
    FRESH_MS,
    KEPT_BYTES,
    KEPT_MS,
    MARKS_MAX,
    Mark,
    Step,
    Truncation,
)
from fila_server.core.log.kafka import LogRefused

HOUR, MIB = 3_600_000, 1 << 20


def grown(kept_ms: int = HOUR, kept_bytes: int = 100 * MIB, minutes: int = 240) -> tuple[Truncation, int]:
    """Ten records and a mebibyte a minute; and what time it is."""
    made = Truncation(kept_ms, kept_bytes)
    for minute in range(minutes):
        made.read(minute * 60_000, minute * 10, minute * MIB)
    return made, (minutes - 1) * 60_000


def held(truncation: Truncation, now: int, *positions: int) -> None:
    for node, position in enumerate(positions):
        truncation.synced(now, node, position)


def test_by_default_an_hour_and_a_gibibyte_are_kept():
    assert (KEPT_MS, KEPT_BYTES) == (HOUR, 1 << 30)
    assert (Truncation().kept_ms, Truncation().kept_bytes) == (KEPT_MS, KEPT_BYTES)


@pytest.mark.parametrize(
    ("positions", "below"),
    [
        ((2_390, 2_390, 2_390), 1_390),
        ((2_390, 2_390), 1_390),
        ((2_390, 2_000, 50), 1_000),
        ((2_390, 2_005, 50), 1_000),
        ((2_000, 2_390, 50), 1_000),
        ((2_390, 1_000, 50), None),
        ((2_390, 50, 50), None),
    ],
)
def test_two_copies_have_what_is_truncated_and_what_is_kept_behind_it(positions, below):
    """100 MiB are ten records a minute for 100 minutes."""
    truncation, now = grown()
    held(truncation, now, *positions)
    assert truncation.decide(now).below == below


def test_what_is_kept_is_an_hour_where_that_is_more():
    truncation, now = grown(kept_ms=2 * HOUR, kept_bytes=MIB)
    held(truncation, now, 2_390, 2_390)
    assert truncation.decide(now).below == 2_390 - 1_200


def test_who_says_nothing_any_more_does_not_count_nor_does_who_has_no_copy():
    truncation, now = grown()
    held(truncation, now, 2_390, 2_000, -1)
    later = now + FRESH_MS + 1
    truncation.synced(later, 0, 2_390)
    assert truncation.decide(later) == Step()
    truncation.synced(later, 2, 2_390)
    assert truncation.decide(later).below == 1_390


def test_it_is_asked_for_once_a_minute_for_more_than_before_and_later_where_it_was_refused():
    truncation, now = grown()
    held(truncation, now, 2_390, 2_390)
    below = truncation.decide(now).below
    assert below is not None
    truncation.truncated(below)

    def decides(at: int, position: int) -> int | None:
        truncation.read(at, position, position // 10 * MIB)
        held(truncation, at, position, position)
        return truncation.decide(at).below

    assert decides(now + EVERY_MS - 1, 2_500) is None
    assert decides(now + EVERY_MS, 2_600) == 1_600
    truncation.failed(now + EVERY_MS)
    assert decides(now + EVERY_MS + AGAIN_MS - 1, 2_700) is None
    assert decides(now + EVERY_MS + AGAIN_MS, 2_800) is not None
    idle = now + EVERY_MS + 3 * AGAIN_MS
    truncation.truncated(1_000_000)
    assert decides(idle, 2_900) is None


def test_with_one_copy_nothing_is_truncated_and_it_is_said_how_long_that_lasts():
    truncation, now = grown()

    def says(at: int) -> Step:
        held(truncation, at, 2_390, -1)
        return truncation.decide(at)

    assert says(now) == Step()
    assert says(now + ALONE_MS - 1) == Step()
    told = says(now + ALONE_MS)
    assert told.below is None
    assert "for 10 min this node has had the only copy" in told.why
    assert says(now + ALONE_MS + ALONE_AGAIN_MS - 1) == Step()
    assert "for 70 min" in says(now + ALONE_MS + ALONE_AGAIN_MS).why
    truncation.synced(now + ALONE_MS + ALONE_AGAIN_MS, 1, 2_390)
    assert truncation.decide(now + ALONE_MS + ALONE_AGAIN_MS).below == 1_390
    again = now + ALONE_MS + ALONE_AGAIN_MS + FRESH_MS + 1
    assert says(again) == Step()
    assert "for 10 min" in says(again + ALONE_MS).why


def test_a_mark_is_made_by_time_or_by_bytes_and_there_are_so_many():
    truncation = Truncation()
    time, size = truncation.mark_ms, truncation.mark_bytes
    assert (time, size) == (60_000, 64 * MIB)
    assert truncation.read(0, 1, 0)
    assert not truncation.read(time, 1, 0), "the log did not go on"
    assert not truncation.read(time - 1, 2, size - 1)
    assert truncation.read(time, 2, 0)
    assert truncation.read(time, 3, size)
    for number in range(10 * MARKS_MAX):
        truncation.read(number * time, 10 + number, number)
    assert len(truncation.marks) <= MARKS_MAX
    assert truncation.marks[0] == Mark(0, 1, 0)
    assert truncation.marks == sorted(truncation.marks, key=lambda mark: mark.position)


acts = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 3), st.integers(0, 40)),
        st.tuples(st.just("synced"), st.integers(0, 2), st.integers(-1, 60)),
        st.tuples(st.just("wait"), st.integers(1, 3), st.just(0)),
    ),
    max_size=60,
)


@given(acts, st.integers(0, 4), st.integers(0, 60))
def test_whatever_happens_two_fresh_copies_have_what_is_truncated(does, kept_minutes, kept_mib):
    truncation = Truncation(kept_minutes * 60_000, kept_mib * MIB)
    now = position = size = 0
    heard: dict[int, tuple[int, int]] = {}
    log: list[tuple[int, int, int]] = []
    for act, first, second in does:
        if act == "read":
            position, size = position + first, size + second * MIB
            truncation.read(now, position, size)
            log.append((now, position, size))
        elif act == "synced":
            truncation.synced(now, first, min(second, position))
            heard[first] = now, min(second, position)
        else:
            now += first * 60_000
        below = truncation.decide(now).below
        if below is None:
            continue
        have = [at for said, at in heard.values() if said + FRESH_MS >= now and at >= below]
        assert len(have) >= 2
        limit = sorted(have)[-2]
        behind = [entry for entry in log if entry[1] <= limit]
        kept = [entry for entry in log if entry[1] >= below]
        assert behind[-1][0] - kept[0][0] >= kept_minutes * 60_000
        assert behind[-1][2] - kept[0][2] >= kept_mib * MIB
        truncation.truncated(below)


# --- the owner's rounds


class Truncated:
    """A log that does it, or says why not."""

    def __init__(self) -> None:
        self.below: list[int] = []
        self.why = ""

    def truncate(self, below: int) -> None:
        if self.why:
            raise LogRefused(self.why)
        self.below.append(below)


def copy_at(position: int, read_bytes: int = 0) -> Any:
    return SimpleNamespace(position=position, synced=position, read_bytes=read_bytes)


def other(node: int, synced: int, answers: bool = True) -> Any:
    report = Report(node, f"fila-{node}", synced, may_bid=True, wall_ms=0, synced=synced)
    return SimpleNamespace(report=report, answers=answers)


def keeper(folder, log=None) -> LogKeeper:
    return LogKeeper(folder, 1, Truncation(HOUR, 100 * MIB), log or Truncated())


def test_an_owner_truncates_and_says_so(tmp_path):
    log = Truncated()
    keeps = keeper(tmp_path, log)
    keeps.begin(copy_at(0))
    with capture_logs() as lines:
        for minute in range(240):
            at = copy_at(minute * 10, minute * MIB)
            keeps.look(minute * 60_000, at, [other(2, minute * 10), other(3, 5, answers=False)])
    assert log.below[-1] == 1_390
    assert log.below == sorted(set(log.below))
    assert lines[-1]["event"] == "cluster.log_truncated"
    assert lines[-1]["below"] == 1_390


def test_it_is_asked_for_nothing_twice_nor_for_what_a_node_said_that_is_silent(tmp_path):
    log = Truncated()
    keeps = keeper(tmp_path, log)
    for minute in range(240):
        keeps.look(
            minute * 60_000, copy_at(minute * 10, minute * MIB), [other(2, minute * 10, answers=False)]
        )
    assert log.below == []
    for minute in range(240, 260):
        keeps.look(minute * 60_000, copy_at(2_390, 239 * MIB), [other(2, 2_390)])
    assert log.below == [1_390]


def test_brokers_that_refuse_are_told_of_and_asked_again_later(tmp_path):
    log = Truncated()
    log.why = "the log was not truncated: Broker: Topic authorization failed"
    keeps = keeper(tmp_path, log)
    with capture_logs() as lines:
        for minute in range(241):
            keeps.look(minute * 60_000, copy_at(minute * 10, minute * MIB), [other(2, minute * 10)])
    refused = [line for line in lines if line["event"] == "cluster.log_not_truncated"]
    assert 10 <= len(refused) <= 241 // (AGAIN_MS // 60_000) + 1
    assert "authorization failed" in refused[0]["detail"]


def test_a_process_that_begins_anew_knows_what_the_one_before_knew(tmp_path):
    keeps = keeper(tmp_path)
    keeps.begin(copy_at(0))
    for minute in range(200):
        keeps.note(minute * 60_000, copy_at(minute * 10, minute * MIB))
    log = Truncated()
    anew = keeper(tmp_path, log)
    anew.begin(copy_at(1_985))
    for minute in range(200, 240):
        at = copy_at(minute * 10, (minute - 199) * MIB)
        anew.look(minute * 60_000, at, [other(2, minute * 10)])
    assert log.below[-1] == pytest.approx(1_390, abs=20)


@pytest.mark.parametrize("content", [b"", b"{}", b"[[1,2]]", b'[["a",1,2]]', b"\xff", b"[" * 100_000])
def test_a_note_of_the_log_that_cannot_be_read_is_none(tmp_path, content):
    (tmp_path / MARKS).write_bytes(content)
    keeps = keeper(tmp_path)
    keeps.begin(copy_at(5))
    keeps.note(0, copy_at(6, 10))
    assert msgspec.json.decode((tmp_path / MARKS).read_bytes()) == [[0, 6, 10]]


def test_marks_of_a_log_that_is_further_than_the_copy_are_forgotten(tmp_path):
    keeps = keeper(tmp_path)
    for minute in range(10):
        keeps.note(minute * 60_000, copy_at(minute * 10, minute * MIB))
    anew = keeper(tmp_path)
    anew.begin(copy_at(45))
    anew.note(10 * 60_000, copy_at(50, 7))
    assert msgspec.json.decode((tmp_path / MARKS).read_bytes())[-2:] == [
        [4 * 60_000, 40, 4 * MIB],
        [10 * 60_000, 50, 4 * MIB + 7],
    ]
