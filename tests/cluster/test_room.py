"""When a standby takes nothing more of the log for its disk, and what it says then."""

from __future__ import annotations

import pytest

from fila_server.cluster import room
from fila_server.cluster.room import LOOK_S, Room
from fila_server.core.runtime.store_copy import CRITICAL, LOW, ROOMY

MIB = 1 << 20


class Copy:
    """A disk whose level a test chooses."""

    def __init__(self) -> None:
        self.level, self.looks = ROOMY, 0

    def look_at_disk(self) -> tuple[int, int]:
        self.looks += 1
        return self.level, 1_000 - self.level


@pytest.fixture
def said(monkeypatch):
    found: list[tuple[str, int]] = []
    monkeypatch.setattr(room, "emit", lambda kind, free_bytes, **_: found.append((kind, free_bytes)))
    return found


@pytest.fixture
def looks(said):
    """Asks a new look each time."""
    now_s = 0.0

    def now() -> float:
        return now_s

    copy, asked = Copy(), Room(256 * MIB, now)

    def look(level: int, *, is_served: bool = True) -> str:
        nonlocal now_s
        now_s += 2 * LOOK_S
        copy.level = level
        return asked.why_none(copy, is_served=is_served)

    return look


def test_below_the_floor_nothing_is_taken_and_it_goes_on_by_itself(looks, said):
    assert looks(ROOMY) == ""
    assert said == []
    why = looks(LOW)
    assert "has less than 256 MiB free (storage.min_free_bytes)" in why
    assert "Make room on it" in why
    assert looks(LOW) == why
    assert "Make room on it" in looks(CRITICAL)
    assert looks(ROOMY) == ""
    assert said == [("disk.low", 999), ("disk.critical", 998), ("disk.roomy", 1_000)]


def test_where_nobody_serves_a_disk_that_is_low_is_room_enough_and_one_that_is_full_is_not(looks):
    assert looks(LOW, is_served=False) == ""
    assert looks(LOW, is_served=True)
    assert looks(CRITICAL, is_served=False)


def test_the_disk_is_looked_at_ten_times_a_second_and_known_meanwhile(said):
    copy, asked = Copy(), Room(256 * MIB, lambda: 5.0)
    assert asked.disk.free_bytes == -1
    for _ in range(3):
        copy.level = LOW
        assert asked.why_none(copy, is_served=True)
    assert copy.looks == 1
    assert asked.disk == (LOW, 999)
    assert said == [("disk.low", 999)]
