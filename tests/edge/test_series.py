"""The last hour, as it was recorded: differences between snapshots, gaps where there was none, and what fits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from fila.v1 import watch_pb2 as pb
from fila_server.operations.hour_file import NAME, SAVE_EVERY_S, HourFile
from fila_server.operations.hour_of_one import POINTS, STEP_S
from fila_server.operations.series import RecentSeries, record
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


async def test_the_channel_without_a_point_for_longest_makes_room_also_after_a_restart() -> None:
    one = Clock(RecentSeries())
    for enqueued in (1, 2):
        one.take(snapshot(enqueued=enqueued))
    room = 3 * one.recent.size
    clock = Clock(RecentSeries(bytes_max=room))

    def take_twice(*names: str) -> None:
        listed = snapshot(queues=len(names)).queues
        queues = [replace(queue, name=name.encode()) for queue, name in zip(listed, names, strict=True)]
        for _ in range(2):
            clock.take(replace(snapshot(), queues=queues, left_out=1))

    async def recorded() -> list[str]:
        return [each.queue for each in await clock.recent.saved(room)]

    take_twice("a", "b", "c")
    take_twice("c", "a")
    take_twice("a")
    take_twice("d")
    assert await recorded() == ["c", "a", "d"]
    began = Clock(RecentSeries(bytes_max=room))
    saved = await clock.recent.saved(room)
    wall_ms = clock.recent.at_ms
    began.recent.restore(saved[::-1], wall_ms, wall_ms, began.now_s, wall_ms)
    clock = began
    clock.now_s += STEP_S
    take_twice("e")
    assert await recorded() == ["a", "d", "e"]


def test_the_snapshot_reads_what_an_older_core_wrote() -> None:
    row = msgspec.msgpack.encode([b"q", b"c", b"k", 1, 0.0, 0.0, 1, 0, 1, 0, [0.0] * 7])
    assert msgspec.msgpack.Decoder(Key).decode(row).arrived == 0


# Over a restart.


async def again(recent: RecentSeries, folder: Path, later_s: float = 30.0) -> RecentSeries:
    """What a broker knows that starts so much later, by another clock of its own."""
    await HourFile(recent, str(folder)).save()
    began = RecentSeries()
    await HourFile(began, str(folder)).load(77.0, recent.at_ms + int(later_s * 1000))
    return began


async def test_an_hour_survives_a_restart_with_a_gap_where_nobody_recorded(tmp_path: Path) -> None:
    recent = RecentSeries()
    clock = Clock(recent)
    for step in range(4):
        clock.take(snapshot(enqueued=step * step, ready=step, keys={"acme": (step, float(step))}))
    before = await recent.report(PLACE, ["acme"])
    began = await again(recent, tmp_path)
    after = await began.report(PLACE, ["acme"])

    assert [point.arrived for point in before.points if point.recorded] == [1, 3, 5]
    assert list(after.points) == list(before.points)
    assert list(after.keys) == list(before.keys)
    assert after.recorded_keys == before.recorded_keys
    assert after.first_at == before.first_at
    clock = Clock(began)
    clock.now_s = 80.0
    clock.take(snapshot(enqueued=100, ready=9))
    clock.take(snapshot(enqueued=107, ready=9))
    points = (await began.report(PLACE, [])).points

    assert [point.arrived for point in points if point.recorded] == [1, 3, 5, 7]
    recorded = [point.recorded for point in points]
    assert recorded[-5:] == [False, False, False, False, True], "from the stop to the second snapshot"
    assert recorded[-8:-5] == [True, True, True]


async def test_ten_seconds_in_which_nothing_happened_survive_too_and_cost_eight_bytes(tmp_path: Path) -> None:
    recent = RecentSeries()
    clock = Clock(recent)
    for step in range(3):
        clock.take(snapshot(enqueued=step, ready=2))
    hour = HourFile(recent, str(tmp_path))
    await hour.keep(SAVE_EVERY_S, True)
    packed = (tmp_path / NAME).read_bytes()
    clock.still(6)
    await hour.keep(2 * SAVE_EVERY_S, False)
    now = (tmp_path / NAME).read_bytes()
    began = RecentSeries()
    await HourFile(began, str(tmp_path)).load(500.0, recent.at_ms)

    assert (packed[:12], packed[20:]) == (now[:12], now[20:])
    assert packed[12:20] != now[12:20]
    told, of_before = (await began.report(PLACE, [])), (await recent.report(PLACE, []))
    assert [point.depth for point in told.points if point.recorded] == [2] * 8
    assert list(told.points) == list(of_before.points)


async def test_the_file_is_written_once_a_minute_at_most(tmp_path: Path) -> None:
    recent = RecentSeries()
    clock = Clock(recent)
    hour = HourFile(recent, str(tmp_path))
    clock.take(snapshot())
    await hour.keep(SAVE_EVERY_S, True)
    first = (tmp_path / NAME).stat().st_mtime_ns
    clock.take(snapshot(enqueued=1))
    await hour.keep(2 * SAVE_EVERY_S - 0.1, True)
    assert (tmp_path / NAME).stat().st_mtime_ns == first
    await hour.keep(2 * SAVE_EVERY_S, True)
    assert (tmp_path / NAME).stat().st_mtime_ns > first


@pytest.mark.parametrize("later_s", [-30.0, 3600.0])
async def test_an_hour_that_is_over_or_of_a_clock_that_went_back_is_passed_over(
    tmp_path: Path, later_s: float
) -> None:
    recent = RecentSeries()
    clock = Clock(recent)
    for step in range(3):
        clock.take(snapshot(enqueued=step))
    began = await again(recent, tmp_path, later_s)

    assert not any(point.recorded for point in (await began.report(PLACE, [])).points)


@pytest.mark.parametrize("content", [b"", b"fila-hour-1\n", b"fila-hour-9\n12345678", b"\0" * 100, None])
async def test_a_file_that_cannot_be_read_is_passed_over(tmp_path: Path, content: bytes | None) -> None:
    recent = RecentSeries()
    Clock(recent).take(snapshot())
    await HourFile(recent, str(tmp_path)).save()
    cut = (tmp_path / NAME).read_bytes()[:-5]
    (tmp_path / NAME).write_bytes(cut if content is None else content)
    began = RecentSeries()
    await HourFile(began, str(tmp_path)).load(77.0, recent.at_ms)

    assert began.step == -1


async def test_what_is_kept_is_bounded_and_channels_come_before_keys() -> None:
    recent = RecentSeries()
    clock = Clock(recent)
    for step in range(3):
        clock.take(snapshot(enqueued=step, queues=5, keys={"a": (step, 1.0 * step), "b": (step, 9.0 * step)}))
    one = recent.size
    kept = await recent.saved(one)
    fewer = await recent.saved(one - 1)
    channels = await recent.saved(200_000)

    assert [each.fairness_key for each in kept] == [None] * 5 + ["b", "a"]
    assert [each.fairness_key for each in fewer] == [None] * 5 + ["b"]
    assert all(each.fairness_key is None for each in channels[:5])
