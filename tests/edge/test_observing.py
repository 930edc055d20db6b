"""What happens by itself is told once when it begins and once when it ends, from the core's numbers of two moments."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from fila_server import errors
from fila_server.broker.speed import Speeds
from fila_server.operations import observing
from fila_server.operations.observing import LOOK_EVERY_S, STARVED_S, Observer
from fila_server.telemetry.snapshot import Channel, Key, Queue, QueueCounts, Snapshot, Totals

Told = list[tuple[str, dict[str, Any]]]
NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    found: Told = []
    monkeypatch.setattr(observing, "emit", lambda kind, **about: found.append((kind, about)))
    return found


def totals(**more: int) -> Totals:
    return Totals(**(dict.fromkeys(Totals.__struct_fields__, 0) | more))


def snapshot(*, keys: list[Key] | None = None, dead: int = 0, consumers: int = 0, **about: int) -> Snapshot:
    counts = QueueCounts(**(dict.fromkeys(QueueCounts.__struct_fields__, 0) | {"dead_lettered": dead}))
    given: dict[str, Any] = dict.fromkeys(Channel.__struct_fields__, 0)
    channel = Channel(**(given | {"name": b"default", "consumers": consumers, "waited_ms": NOTHING}))
    rest: dict[str, Any] = dict.fromkeys(Queue.__struct_fields__, 0)
    queue = Queue(**(rest | {"name": b"orders", "counts": counts, "latency": [], "channels": [channel]}))
    empty: dict[str, Any] = dict.fromkeys(Snapshot.__struct_fields__, 0)
    lists: dict[str, Any] = {name: [] for name in ("refused", "sync_us", "batch", "limits")}
    lists["sums"] = None
    return Snapshot(**(empty | lists | {"totals": totals(**about), "queues": [queue], "keys": keys or []}))


def key(*, pending: int = 5, throttle: float = 0, held: float = 0, served: float = 0, due: float = 0) -> Key:
    sums = (0.0, 0.0, throttle, 0.0, held, served, due)
    given: dict[str, Any] = dict.fromkeys(Key.__struct_fields__, 0)
    names = {"queue": b"orders", "channel": b"default", "fairness_key": b"acme"}
    return Key(**(given | names | {"pending": pending, "totals": sums}))


def look_on(observer: Observer, seconds: float, keys: Any, began_s: float = 0.0) -> float:
    """Look as often as in a server; `keys` makes a key of the seconds that went by. Returns when that ended."""
    at_s = began_s
    while at_s <= began_s + seconds:
        observer.look(snapshot(keys=[keys(at_s)]), at_s)
        at_s += LOOK_EVERY_S
    return at_s


def kinds(told: Told) -> list[str]:
    return [kind for kind, _ in told]


# --- keys ------------------------------------------------------------------------------------


def test_a_key_under_half_its_due_for_a_minute_starves_and_is_released_when_it_is_served(told: Told):
    observer = Observer()

    at_s = look_on(observer, STARVED_S, lambda s: key(due=1000 * s, served=400 * s))
    assert kinds(told) == ["key.starved"]
    assert told[0][1] | {"queue": "orders", "fairness_key": "acme", "level": "warning"} == told[0][1]

    look_on(observer, 90, lambda s: key(due=1000 * s, served=400 * at_s + 1000 * (s - at_s)), at_s)
    assert kinds(told) == ["key.starved", "key.released"]


def test_half_of_its_due_is_no_starving_and_less_than_a_minute_neither(told: Told):
    look_on(Observer(), 3 * STARVED_S, lambda s: key(due=1000 * s, served=501 * s))
    look_on(Observer(), 0.8 * STARVED_S, lambda s: key(due=1000 * s))

    assert told == []


@pytest.mark.parametrize("why", ["held", "throttle"])
def test_who_is_held_back_on_purpose_does_not_starve(told: Told, why: str):
    look_on(Observer(), 2 * STARVED_S, lambda s: key(due=1000 * s, **{why: 10 * s}))

    assert "key.starved" not in kinds(told)


def test_a_key_with_nothing_pending_does_not_starve(told: Told):
    look_on(Observer(), 2 * STARVED_S, lambda s: key(pending=0, due=1000 * s))

    assert told == []


def test_a_throttled_key_is_told_once_and_released_once(told: Told):
    observer = Observer()

    at_s = look_on(observer, 20, lambda s: key(throttle=100 * s))
    look_on(observer, 20, lambda _: key(throttle=100 * (at_s - LOOK_EVERY_S)), at_s)

    assert kinds(told) == ["key.throttled", "key.released"]


# --- the disk, damage, dead letters, consumers -----------------------------------------------


def test_each_level_of_the_disk_is_told_when_it_is_reached(told: Told):
    observer = Observer()
    for at_s, level in enumerate([0, 1, 1, 2, 0]):
        observer.look(snapshot(disk_level=level, disk_free_bytes=7), float(at_s))

    assert [(kind, about["level"]) for kind, about in told] == [
        ("disk.low", "warning"),
        ("disk.critical", "warning"),
        ("disk.roomy", "info"),
    ]


def test_a_lost_range_is_an_error_with_how_many_messages_went_with_it(told: Told):
    observer = Observer()
    observer.look(snapshot(), 0.0)
    observer.look(snapshot(lost_ranges=2, lost_messages=9), 2.0)
    observer.look(snapshot(lost_ranges=2, lost_messages=9), 4.0)

    assert told == [("store.range_lost", {"level": "error", "count": 2, "lost_messages": 9})]


def test_dead_letters_are_those_made_since_the_last_look_and_none_of_before_the_first(told: Told):
    observer = Observer()
    for at_s, dead in enumerate([40, 40, 43, 2]):
        observer.look(snapshot(dead=dead), float(at_s))

    # A queue that was deleted and made again counts from zero.
    assert [(kind, about["count"]) for kind, about in told] == [("dead_letters.made", 3)]


def test_consumers_that_came_and_left_are_counted(told: Told):
    observer = Observer()
    for at_s, consumers in enumerate([0, 3, 1]):
        observer.look(snapshot(consumers=consumers), float(at_s))

    assert [(kind, about["count"]) for kind, about in told] == [("consumer.joined", 3), ("consumer.left", 2)]


async def test_the_core_is_asked_again_once_something_stirred_or_it_did_not_answer(told: Told):
    asked: list[int] = []
    slept: list[float] = []
    further: list[int] = []
    stirs = iter([5, 5, 5] + [6] * 20)

    async def ask() -> bytes:
        asked.append(len(slept))
        if len(asked) == 1:
            raise errors.Overloaded("busy")
        return msgspec.msgpack.encode(snapshot())

    async def sleep(wait_s: float) -> None:
        slept.append(wait_s)
        if len(slept) == 14:
            raise asyncio.CancelledError

    async def look_further(found: Snapshot, now_s: float, wall_ms: int) -> None:
        further.append(int(now_s / LOOK_EVERY_S))

    with pytest.raises(asyncio.CancelledError):
        await observing.observe(
            ask, lambda: next(stirs), lambda: 2.0 * len(slept), Speeds(), look_further, lambda: 0, sleep
        )

    assert asked == [0, 1, 3]
    assert further == [1, 3, 8, 13], "what time brings is looked for every ten seconds"
    assert slept == [LOOK_EVERY_S] * 14
