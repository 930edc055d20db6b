"""A walk over all keys of a large queue serves all who ask for a while; a small queue is walked each time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fila.v1 import admin_pb2, events_pb2
from fila_server import errors
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.statistics import KEPT_KEYS_MAX, Statistics
from fila_server.operations.waiting_longest import WaitingLongest
from fila_server.operations.walks import FOUND_MAX, KEYS_MIN, Counters, Walks

STATS = admin_pb2.GetStatsRequest(queue="orders", max_keys=10)
LARGE = 1_000_000


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


class Core:
    """One queue with so many keys, the first of which wait as long as told."""

    def __init__(self, keys: int) -> None:
        self.keys = keys
        self.enqueued = keys
        self.depth = keys
        self.waits = {("default", "acme"): 5_000, ("default", "globex"): 3_000, ("audit", "acme"): 9_000}
        self.walks = 0
        self.is_gone = False
        self.capacity = 64
        self.queue_configs = {"orders": None}

    async def call(self, kind: int, frame: bytes) -> bytes:
        if self.is_gone:
            raise errors.QueueNotFound("orders")
        if kind == commands.WAITING_LONGEST_PAGE:
            return self._late(seam_frames.WaitingLongestPage.FromString(frame))
        asked = seam_frames.StatsAsked.FromString(frame)
        stats = admin_pb2.GetStatsResponse(
            depth=self.depth, enqueued_total=self.enqueued, oldest_age_ms=9_000
        )
        if not asked.without_keys:
            self.walks += 1
            stats.active_fairness_keys = self.keys
            stats.per_key_stats.add(key="acme", pending_count=7, oldest_age_ms=5_000)
        return stats.SerializeToString()

    def _late(self, page: Any) -> bytes:
        """The table in two parts."""
        self.walks += not page.cursor
        only = page.channel.decode()
        part = [*self.waits.items()][page.cursor :: 2]
        part = [each for each in part if only in ("", each[0][0])]
        rows = [
            events_pb2.LateKey(queue="orders", channel=channel, fairness_key=key, waiting_ms=ms)
            for (channel, key), ms in part
            if ms > page.above_ms
        ]
        counts = {"default": self.keys // 2, "audit": 1}
        waiting = [
            {"channel": channel.encode(), "count": count}
            for channel, count in counts.items()
            if only in ("", channel)
        ]
        return bytes(
            seam_frames.WaitingLongestKeys(
                keys=[row.SerializeToString() for row in rows],
                cursor=0 if page.cursor else 1,
                waiting=waiting,
                capacity=self.capacity,
            ).SerializeToString()
        )


def counters(enqueued: int = 1, depth: int = 1) -> Counters:
    return Counters(enqueued, 0, 0, 0, 0, 0, depth, 0, 0)


@pytest.mark.parametrize(
    ("keys", "moves", "age_s", "is_known"),
    [
        (LARGE, False, 59.0, True),
        (LARGE, False, 61.0, False),
        (LARGE, True, 19.0, True),
        (LARGE, True, 21.0, False),
        (10 * LARGE, True, 21.0, False),
        (LARGE // 10, True, 1.9, True),
        (LARGE // 10, True, 2.1, False),
        (KEYS_MIN - 1, False, 0.0, False),
    ],
)
def test_what_was_found_is_told_longer_the_larger_the_queue_and_while_nothing_moves(
    keys, moves, age_s, is_known
):
    clock = Clock()
    walks: Walks[str] = Walks(clock)
    walks.keep("orders", "found", keys, counters())
    clock.s += age_s

    told = walks.known("orders", counters(enqueued=1 + moves))

    assert told == (("found", round(1000 * age_s)) if is_known else None)
    assert ("orders" in walks) == (keys >= KEYS_MIN)


def test_one_that_was_made_again_or_is_empty_is_walked_anew_and_the_oldest_is_forgotten():
    walks: Walks[str] = Walks(Clock())
    walks.keep("orders", "found", LARGE, counters(enqueued=9))

    assert walks.known("orders", counters(enqueued=8)) is None
    assert walks.known("orders", counters(enqueued=9, depth=0)) is None
    assert walks.known("orders", counters(enqueued=9)) is not None
    for number in range(FOUND_MAX):
        walks.keep(number, "found", LARGE, counters())
    assert "orders" not in walks
    walks.keep(0, "found", 1, counters())
    assert 0 not in walks, "it has grown small"


async def test_statistics_of_a_large_queue_are_counted_now_and_their_keys_a_moment_ago():
    core, clock = Core(LARGE), Clock()
    statistics = Statistics(core, Walks(clock))  # type: ignore[arg-type]
    first = admin_pb2.GetStatsResponse.FromString(await statistics.of(STATS))
    core.enqueued, core.depth = LARGE + 3, LARGE + 3
    clock.s += 2.0

    told = admin_pb2.GetStatsResponse.FromString(await statistics.of(STATS))

    assert (told.depth, told.enqueued_total, core.walks) == (LARGE + 3, LARGE + 3, 1)
    assert (told.active_fairness_keys, told.oldest_age_ms) == (LARGE, 9_000)
    assert [(key.key, key.oldest_age_ms) for key in first.per_key_stats] == [("acme", 5_000)]
    assert [(key.key, key.oldest_age_ms) for key in told.per_key_stats] == [("acme", 7_000)]
    other = admin_pb2.GetStatsRequest(queue="orders", channel="audit", max_keys=10)
    await statistics.of(other)
    assert core.walks == 2, "another channel's are others"
    core.is_gone = True
    with pytest.raises(errors.QueueNotFound):
        await statistics.of(STATS)


async def test_statistics_of_a_small_queue_and_long_lists_are_of_now():
    small = Core(KEYS_MIN - 1)
    statistics = Statistics(small)  # type: ignore[arg-type]
    for _ in range(3):
        await statistics.of(STATS)
    assert small.walks == 3
    large = Core(LARGE)
    statistics = Statistics(large)  # type: ignore[arg-type]
    for _ in range(3):
        await statistics.of(admin_pb2.GetStatsRequest(queue="orders", max_keys=KEPT_KEYS_MAX + 1))
    assert large.walks == 3


async def test_who_waits_longest_in_a_large_queue_is_told_of_one_walk_with_the_time_that_passed():
    core, clock = Core(LARGE), Clock()
    waiting = WaitingLongest(core, Walks(clock))  # type: ignore[arg-type]
    first = await waiting.list(events_pb2.ListLateRequest(max_keys=2))
    clock.s += 1.0

    told = await waiting.list(events_pb2.ListLateRequest(max_keys=1))

    assert [(key.channel, key.waiting_ms) for key in first.keys] == [("audit", 9_000), ("default", 5_000)]
    assert [(key.channel, key.waiting_ms) for key in told.keys] == [("audit", 10_000)]
    assert (told.waiting_keys, core.walks) == (first.waiting_keys, 1)
    assert [key.waiting_ms for key in first.keys] == [9_000, 5_000], "what was told stays as it was"
    await waiting.list(events_pb2.ListLateRequest(max_keys=3))
    assert core.walks == 2, "more are asked for than were kept"


async def test_callers_that_ask_for_few_and_for_many_share_a_walk():
    core, clock = Core(LARGE), Clock()
    waiting = WaitingLongest(core, Walks(clock))  # type: ignore[arg-type]
    few, many = events_pb2.ListLateRequest(max_keys=1), events_pb2.ListLateRequest(max_keys=200)
    await waiting.list(many)
    for walks in (2, 3):
        clock.s += 61.0
        told = await waiting.list(few)
        await waiting.list(many)
        assert (len(told.keys), core.walks) == (1, walks)
    clock.s += 61.0
    await waiting.list(events_pb2.ListLateRequest(max_keys=1_000))
    clock.s += 61.0
    await waiting.list(few)
    await waiting.list(events_pb2.ListLateRequest(max_keys=256))
    assert core.walks == 5
    await waiting.list(events_pb2.ListLateRequest(max_keys=257))
    assert core.walks == 6, "one that asked for very many makes no later walk dearer"


async def test_a_caller_that_may_know_of_one_channel_is_told_of_all_that_waits_there():
    core = Core(LARGE)
    waiting = WaitingLongest(core, Walks(Clock()))  # type: ignore[arg-type]

    told = await waiting.list(
        events_pb2.ListLateRequest(max_keys=1), lambda _queue, channel: channel in ("", "default")
    )

    assert [(key.channel, key.fairness_key) for key in told.keys] == [("default", "acme")]
    assert told.waiting_keys == 2 * (LARGE // 2)


async def test_what_waited_before_a_walk_began_anew_is_told_to_nobody():
    core = Core(LARGE)
    waiting = WaitingLongest(core, Walks(Clock()))  # type: ignore[arg-type]
    call = core.call

    async def grows(kind: int, frame: bytes) -> bytes:
        reply = await call(kind, frame)
        if kind == commands.WAITING_LONGEST_PAGE and core.capacity == 64:
            core.capacity = 128
            del core.waits["audit", "acme"]
        return reply

    core.waits = {("audit", "acme"): 9_000, ("default", "acme"): 5_000, ("default", "globex"): 3_000}
    core.call = grows  # type: ignore[method-assign]

    told = await waiting.list(events_pb2.ListLateRequest(max_keys=2))

    assert [(key.channel, key.fairness_key) for key in told.keys] == [
        ("default", "acme"),
        ("default", "globex"),
    ]


async def test_a_queue_that_was_emptied_or_made_again_since_its_first_walk_is_walked_anew():
    core, clock = Core(LARGE), Clock()
    waiting = WaitingLongest(core, Walks(clock))  # type: ignore[arg-type]
    await waiting.list(events_pb2.ListLateRequest(max_keys=2))
    core.enqueued = core.depth = 1
    core.waits = {("default", "new"): 10}
    clock.s += 1.0

    told = await waiting.list(events_pb2.ListLateRequest(max_keys=2))

    assert [key.fairness_key for key in told.keys] == ["new"]
    walks: Walks[str] = Walks(clock)
    walks.keep("orders", "found", LARGE, counters(enqueued=9, depth=LARGE))
    assert walks.known("orders", counters(enqueued=10, depth=1)) is None, "purged"


class ManyQueues:
    """A core of many small queues, and of one that turns out to be large."""

    def __init__(self, waits: dict[str, dict[str, int]]) -> None:
        self.waits = waits
        self.queue_configs = dict.fromkeys(waits)
        self.told = 0
        """Rows."""

    async def call(self, kind: int, frame: bytes) -> bytes:
        if kind == commands.GET_STATS:
            return bytes(admin_pb2.GetStatsResponse(enqueued_total=1, depth=1).SerializeToString())
        page = seam_frames.WaitingLongestPage.FromString(frame)
        queue = page.queue.decode()
        waits = self.waits[queue]
        longest = sorted((-ms, key) for key, ms in waits.items() if ms > page.above_ms or not page.above_ms)
        rows = [
            events_pb2.LateKey(queue=queue, channel="default", fairness_key=key, waiting_ms=-ms)
            for ms, key in longest[: page.most]
        ]
        self.told += len(rows)
        count = LARGE if "large" in queue else len(waits)
        return bytes(
            seam_frames.WaitingLongestKeys(
                keys=[row.SerializeToString() for row in rows],
                waiting=[{"channel": b"default", "count": count}],
                capacity=64,
            ).SerializeToString()
        )


@pytest.mark.parametrize("seed", range(5))
async def test_of_many_queues_those_are_told_that_wait_longest_of_all(seed):
    draw = random.Random(seed)
    keys = {
        f"queue-{number:04}": {f"k{key}": draw.randrange(1, 10_000) for key in range(25)}
        for number in range(400)
    }
    keys["queue-0200-large"] = {f"k{key}": draw.randrange(1, 10_000) for key in range(60)}
    core = ManyQueues(keys)
    waiting = WaitingLongest(core, Walks(Clock()))  # type: ignore[arg-type]

    told = [await waiting.list(events_pb2.ListLateRequest(max_keys=30)) for _ in range(2)]

    longest = sorted((ms for waits in keys.values() for ms in waits.values()), reverse=True)[:30]
    for each in told:
        assert [key.waiting_ms for key in each.keys] == longest
        assert all(keys[key.queue][key.fairness_key] == key.waiting_ms for key in each.keys)
        assert each.waiting_keys == 400 * 25 + LARGE
    assert core.told < 2 * 2_500, "of a small queue no row is told that could not be among them"
