"""The last hour, as it was recorded: differences between snapshots, gaps where there was none, and what fits."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from fila.v1 import watch_pb2 as pb
from fila_server.operations.series import POINTS, STEP_S, RecentSeries, record
from fila_server.telemetry.snapshot import Channel, Key, Queue, QueueCounts, Snapshot, Totals

PLACE = ("q", "default")
WALL_MS = 1_700_000_000_000


def snapshot(
    enqueued: int = 0,
    leased: int = 0,
    delivered: int = 0,
    ready: int = 0,
    keys: dict[str, tuple[int, float]] | None = None,
    queues: int = 1,
    left_out: int = 0,
) -> Snapshot:
    """`keys`: what arrived and what was served of each."""
    counts = QueueCounts(*([enqueued] + [0] * (len(QueueCounts.__struct_fields__) - 1)))
    waited = (10.0 * delivered, 0.0, 0.0, 0.0, 0.0)
    channel = Channel(
        b"default", ready, 0, 0, 0, 0, 0, 0, 0, leased, delivered, 0, 0, 0.0, waited, 0, 5, 0, 0, 0
    )
    rows = [
        Key(
            b"q",
            b"default",
            name.encode(),
            0,
            0.0,
            0.0,
            1,
            0,
            1,
            0,
            (0.0,) * 5 + (served * 1000, 0.0),
            arrived,
        )
        for name, (arrived, served) in (keys or {}).items()
    ]
    listed = [
        Queue(b"q" if i == 0 else b"q%d" % i, 0, 0, 0, 0, 5, 0, 1, 0, 0, 0, counts, [], 0, [channel])
        for i in range(queues)
    ]
    totals = Totals(*[0] * len(Totals.__struct_fields__))
    return Snapshot(1, totals, [], [], 0, [], 0, queues + left_out, left_out, listed, rows, [], 1000)


class Clock:
    def __init__(self, recent: RecentSeries) -> None:
        self.recent = recent
        self.now_s = 1000.0

    def take(self, told: Snapshot, rows: list[pb.KeyState] | None = None) -> None:
        self.recent.take(told, {PLACE: rows or []}, self.now_s, WALL_MS + int(self.now_s * 1000))
        self.now_s += STEP_S

    def still(self, steps: int) -> None:
        for _ in range(steps):
            self.recent.still(self.now_s, WALL_MS + int(self.now_s * 1000))
            self.now_s += STEP_S


@pytest.fixture
def clock() -> Clock:
    return Clock(RecentSeries())


async def points(clock: Clock, *keys: str, whole: bool = True) -> pb.GetSeriesResponse:
    return await clock.recent.report(PLACE, keys, whole=whole)


async def test_a_point_is_what_happened_within_its_ten_seconds(clock: Clock) -> None:
    clock.take(snapshot(enqueued=100, leased=60, delivered=50))
    clock.take(snapshot(enqueued=130, leased=72, delivered=60, ready=70))

    told = await points(clock)

    assert len(told.points) == POINTS
    assert [point.recorded for point in told.points[-3:]] == [False, False, True]
    last = told.points[-1]
    assert (last.arrived, last.leased, last.delivered, last.depth, last.oldest_age_ms) == (30, 12, 10, 70, 5)
    assert last.waits.no_consumer_ms == 100
    assert told.first_at.ToMilliseconds() == WALL_MS + 1_010_000 - 359 * 10_000


async def test_a_start_and_a_missed_step_are_gaps_and_never_a_spike(clock: Clock) -> None:
    clock.take(snapshot(enqueued=1_000_000))
    clock.take(snapshot(enqueued=1_000_010))
    clock.now_s += STEP_S
    clock.take(snapshot(enqueued=1_000_900))
    clock.take(snapshot(enqueued=1_000_905))

    told = await points(clock)

    recorded = [point.arrived if point.recorded else None for point in told.points[-5:]]
    assert recorded == [None, 10, None, None, 5]


async def test_while_nothing_stirs_the_last_point_goes_on_with_the_age_of_what_waits(clock: Clock) -> None:
    for waited in (0, 100):
        clock.take(snapshot(enqueued=10, delivered=waited, ready=4))
    clock.still(3)

    told = await points(clock)

    assert [point.depth for point in told.points[-5:]] == [0, 4, 4, 4, 4]
    assert [point.oldest_age_ms for point in told.points[-4:]] == [5, 10_005, 20_005, 30_005]
    assert [point.waits.no_consumer_ms for point in told.points[-4:]] == [1_000] * 4


async def test_the_point_after_a_stillness_tells_of_its_own_ten_seconds(clock: Clock) -> None:
    for delivered in (0, 100):
        clock.take(snapshot(enqueued=10, delivered=delivered))
    clock.still(2)
    clock.take(snapshot(enqueued=17, delivered=400))

    told = await points(clock)

    assert [point.arrived for point in told.points[-4:]] == [0, 0, 0, 7]
    # 1,000 ms a step since the second snapshot, of the 3,000 that the last one tells of.
    assert [point.waits.no_consumer_ms for point in told.points[-4:]] == [1_000] * 4


async def test_what_the_core_waited_less_than_was_reckoned_is_no_new_beginning(clock: Clock) -> None:
    for delivered in (0, 100):
        clock.take(snapshot(enqueued=10, delivered=delivered))
    clock.still(5)
    clock.take(snapshot(enqueued=11, delivered=101))

    last = (await points(clock)).points[-1]
    assert (last.arrived, last.waits.no_consumer_ms) == (1, 0)


async def test_keys_stand_still_too_and_an_hour_of_it_leaves_nothing_served(clock: Clock) -> None:
    clock.take(snapshot(keys={"a": (0, 0.0)}))
    clock.take(snapshot(keys={"a": (5, 9.0)}))
    clock.take(snapshot(keys={"a": (5, 9.0)}))
    clock.still(3)
    told = await points(clock, "a")
    (key,) = told.keys
    assert [point.served for point in key.points[-5:]] == [9.0, 0.0, 0.0, 0.0, 0.0]
    clock.still(POINTS)
    told = await points(clock, "a")
    assert all(point.recorded and not point.served for point in told.keys[0].points)


async def test_the_core_is_not_asked_while_nothing_stirs(clock: Clock) -> None:
    asked: list[int] = []
    slept: list[float] = []
    stirs = iter([1, 1, 1, 1, 2, 2, 2])

    async def call(kind: int, frame: bytes) -> bytes:
        asked.append(len(slept))
        return msgspec.msgpack.encode(snapshot())

    async def sleep(wait_s: float) -> None:
        slept.append(wait_s)
        clock.now_s += STEP_S
        if len(slept) > 7:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await record(clock.recent, call, lambda: next(stirs), lambda: clock.now_s, lambda: WALL_MS, sleep)

    assert asked == [1, 2, 5, 6], "two of each stillness, and none of what follows"


async def test_a_queue_that_is_new_counts_from_zero_and_one_made_again_does_not_count_below_it(
    clock: Clock,
) -> None:
    clock.take(snapshot(enqueued=5, queues=1))
    clock.take(snapshot(enqueued=7, queues=2))
    told = await clock.recent.report(("q1", "default"), ())
    assert told.points[-1].arrived == 7
    clock.take(snapshot(enqueued=3, queues=2))
    assert (await points(clock)).points[-1].arrived == 3


async def test_where_a_snapshot_leaves_queues_out_one_that_comes_in_begins_with_a_gap(clock: Clock) -> None:
    clock.take(snapshot(enqueued=5, left_out=9))
    clock.take(snapshot(enqueued=7_000, queues=2, left_out=8))
    told = await clock.recent.report(("q1", "default"), ())
    assert not told.points[-1].recorded


async def test_keys_are_told_by_what_they_were_served_most_first(clock: Clock) -> None:
    clock.take(snapshot(keys={"a": (10, 1.0), "b": (10, 1.0)}))
    clock.take(snapshot(keys={"a": (14, 3.0), "b": (10, 9.0)}))

    told = await points(clock, "a", "nobody")

    assert list(told.recorded_keys) == ["b", "a"]
    (key,) = told.keys
    assert (key.points[-1].arrived, key.points[-1].served, key.points[-1].pending) == (4, 2, 1)
    assert not key.points[-2].recorded


async def test_a_key_that_was_asked_for_is_looked_at_for_an_hour(clock: Clock) -> None:
    clock.recent.ask_for(PLACE, ["quiet"], clock.now_s)
    clock.take(snapshot())
    assert clock.recent.to_look_at(clock.now_s) == {PLACE: ["quiet"]}
    clock.take(snapshot(), rows=[pb.KeyState(fairness_key="quiet", arrived_total=1)])
    clock.take(snapshot(), rows=[pb.KeyState(fairness_key="quiet", arrived_total=4, ready=3)])

    (key,) = (await points(clock, "quiet")).keys

    assert (key.points[-1].arrived, key.points[-1].pending) == (3, 3)
    assert clock.recent.to_look_at(clock.now_s + 3601) == {}


async def test_a_tenant_is_told_its_own_key_and_nothing_else(clock: Clock) -> None:
    clock.take(snapshot(enqueued=1, keys={"acme": (1, 1.0), "rival": (1, 1.0)}))
    clock.take(snapshot(enqueued=9, keys={"acme": (2, 2.0), "rival": (1, 1.0)}))
    told = await points(clock, "acme", whole=False)
    assert (len(told.points), len(told.recorded_keys), told.keys[0].points[-1].served) == (0, 0, 1)
    assert b"rival" not in told.SerializeToString()


async def test_an_hour_goes_round_and_forgets_what_is_older(clock: Clock) -> None:
    for count in range(POINTS + 20):
        clock.take(snapshot(enqueued=count * 2, keys={"a": (count, float(count))}))
    told = await points(clock, "a")
    assert sum(point.arrived for point in told.points) == POINTS * 2
    assert sum(point.arrived for point in told.keys[0].points) == POINTS


async def test_all_that_is_kept_stays_within_its_bytes_the_oldest_go_first() -> None:
    clock = Clock(RecentSeries(bytes_max=200_000))
    for count in range(40):
        names = {f"key{count}-{i}": (1, 1.0) for i in range(30)}
        for step in (0, 1):
            clock.take(snapshot(enqueued=count, keys=dict.fromkeys(names, (1 + step, 1.0 + step))))
        assert clock.recent.size <= 200_000
    told = await points(clock)
    assert told.points[-1].recorded
    assert told.recorded_keys
    assert all(name.startswith(("key39", "key38")) for name in told.recorded_keys)


def test_the_snapshot_reads_what_an_older_core_wrote() -> None:
    row = msgspec.msgpack.encode([b"q", b"c", b"k", 1, 0.0, 0.0, 1, 0, 1, 0, [0.0] * 7])
    assert msgspec.msgpack.Decoder(Key).decode(row).arrived == 0
