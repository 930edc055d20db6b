"""Who watches is told everything, then differences; one look a second serves all who watch, and none is taken else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from fila.v1 import watch_pb2 as pb
from fila_server import errors
from fila_server.core.admin.metrics import QUEUE_COUNTERS, SUMS, TOTALS
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations import watch_stats
from fila_server.operations.watch_stats import StatsWatch, Watcher

BACKLOG, LATE = pb.WatchStatsRequest.ORDER_BACKLOG, pb.WatchStatsRequest.ORDER_LATE
ORDERS = ("orders", "default")


class FakeBroker:
    """A core whose keys are told by the test."""

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}
        self.totals: dict[str, Any] = {}
        self.pages: list[Any] = []
        self.gone = False
        self.drains: list[Callable[[], object]] = []
        self._asked = asyncio.Event()

    async def until_asked(self, count: int) -> None:
        """Return once so many pages were asked for."""
        while len(self.pages) < count:
            self._asked.clear()
            await asyncio.wait_for(self._asked.wait(), 5)

    def at_drain(self, close: Callable[[], object]) -> Callable[[], None]:
        self.drains.append(close)
        return lambda: self.drains.remove(close)

    async def call(self, kind: int, frame: bytes) -> bytes:
        assert kind == commands.WATCH_ROWS
        page = seam_frames.WatchPage.FromString(frame)
        self.pages.append(page)
        self._asked.set()
        if self.gone:
            raise errors.QueueNotFound(page.queue.decode())
        named = {key.decode(): self.keys.get(key.decode(), 0) for key in page.keys}
        told = {**(self.keys if page.orders else {}), **named}
        rows = [
            pb.KeyState(
                fairness_key=key, ready=count, waits=pb.WaitCauses(), nobody_consumes=True
            ).SerializeToString()
            for key, count in told.items()
        ]
        state = pb.QueueState(queue="orders", channel="default", ready=sum(self.keys.values()), **self.totals)
        answer = seam_frames.WatchedRows(keys=rows, channel=state.SerializeToString(), capacity=64)
        return bytes(answer.SerializeToString())


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
def stats(broker: FakeBroker) -> StatsWatch:
    return StatsWatch(broker, now_s=lambda: 0.0)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_stats, "LOOK_EVERY_S", 0)


def watcher(*, top: int = 2, order: int = BACKLOG, keys: tuple[str, ...] = (), tenant: str = "") -> Watcher:
    return Watcher((ORDERS,), order, top, keys, tenant=tenant)


def every_key(_queue: str) -> bool:
    return True


def everything(_queue: str, _channel: str) -> bool:
    return True


async def next_of(stream: AsyncIterator[bytes]) -> pb.WatchStatsResponse:
    return pb.WatchStatsResponse.FromString(await asyncio.wait_for(anext(stream), 30))


async def test_the_first_tells_all_and_the_next_what_changed(broker: FakeBroker, stats: StatsWatch) -> None:
    broker.keys = {"a": 1, "b": 2, "c": 3}
    stream = stats.watch(watcher(), everything, every_key)
    first = await next_of(stream)
    broker.keys["b"] = 9

    second = await next_of(stream)

    assert (first.full, first.sequence, list(first.channels[0].leading)) == (True, 1, ["c", "b"])
    assert {key.fairness_key for key in first.channels[0].keys} == {"b", "c"}
    assert (second.full, second.sequence, list(second.channels[0].leading)) == (False, 2, ["b", "c"])
    assert [(key.fairness_key, key.ready) for key in second.channels[0].keys] == [("b", 9)]
    await stream.aclose()


async def test_rates_tell_apart_what_was_served_what_failed_and_what_returned(broker: FakeBroker) -> None:
    now_s = iter(float(2 * look) for look in range(1, 100))
    stats = StatsWatch(broker, now_s=lambda: next(now_s))  # type: ignore[arg-type]
    broker.totals = {"enqueued_total": 10, "acked_total": 5}
    stream = stats.watch(watcher(), everything, every_key)
    first = await next_of(stream)
    broker.totals = {
        "enqueued_total": 30, "delivered_total": 16, "acked_total": 11, "failed_total": 4, "returned_total": 2,
    }  # fmt: skip

    second = await next_of(stream)

    assert first.channels[0].state.acked_per_second == 0
    told = second.channels[0].state
    assert (told.arriving_per_second, told.delivered_per_second) == (10, 8)
    assert (told.acked_per_second, told.failed_per_second, told.returned_per_second) == (3, 2, 1)
    await stream.aclose()


async def test_all_who_watch_a_queue_share_one_look_and_nobody_left_means_none(
    broker: FakeBroker, stats: StatsWatch
) -> None:
    broker.keys = {"a": 1}
    streams = [stats.watch(watcher(keys=(f"mine{i}",)), everything, every_key) for i in range(20)]
    for stream in streams:
        await next_of(stream)
    looks = len(broker.pages)
    broker.keys["a"] = 2
    await asyncio.gather(*map(next_of, streams))

    assert len(broker.pages) - looks < 20, "one for each turn of the clock, not one a watcher"
    assert {key.decode() for key in broker.pages[-1].keys} == {f"mine{i}" for i in range(20)}
    for stream in streams:
        await stream.aclose()
    looks = len(broker.pages)
    for _ in range(10):
        await asyncio.sleep(0)
    assert (len(broker.pages), stats.watchers, broker.drains) == (looks, 0, [])


async def test_one_that_does_not_read_is_told_the_difference_to_the_newest(
    broker: FakeBroker, stats: StatsWatch
) -> None:
    broker.keys = {"a": 1}
    stream = stats.watch(watcher(), everything, every_key)
    await next_of(stream)
    for count in range(2, 50):
        broker.keys["a"] = count
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)

    told = await next_of(stream)

    assert (told.sequence, told.channels[0].keys[0].ready) == (2, 49)
    await stream.aclose()


async def test_named_keys_are_told_though_they_lead_nowhere(broker: FakeBroker, stats: StatsWatch) -> None:
    broker.keys = {"a": 5, "b": 1}
    stream = stats.watch(watcher(top=1, keys=("b", "nobody")), everything, every_key)
    told = await next_of(stream)

    assert list(told.channels[0].leading) == ["a"]
    assert {key.fairness_key: key.ready for key in told.channels[0].keys} == {"a": 5, "b": 1, "nobody": 0}
    await stream.aclose()


async def test_a_queue_in_which_nothing_moves_is_gone_through_once(
    broker: FakeBroker, stats: StatsWatch
) -> None:
    """What a round of slices found is what another one would find; keys that lead are still looked at by name."""
    broker.keys = {"a": 1}
    stream = stats.watch(watcher(), everything, every_key)
    await next_of(stream)
    await broker.until_asked(3 * watch_stats.COME_ROUND_LOOKS)

    assert all(page.cells for page in broker.pages[: watch_stats.COME_ROUND_LOOKS])
    assert broker.pages[-1].cells == 0
    broker.keys["b"] = 2
    await next_of(stream)
    await broker.until_asked(len(broker.pages) + 1)
    assert broker.pages[-1].cells
    await stream.aclose()


def test_slices_of_a_table_come_round_in_time_and_no_faster() -> None:
    for capacity in (64, 1 << 16, 1 << 20, 1 << 21):
        look = watch_stats.Look(capacity=capacity)
        a_second = watch_stats._cells(look) * (1 + watch_stats._slices_beside(look))
        least = capacity / watch_stats.COME_ROUND_LOOKS
        assert least <= a_second <= max(least * 1.01 + 8, watch_stats.CELLS_MIN)


async def test_a_tenant_is_told_its_own_key_and_no_number_of_the_queue(
    broker: FakeBroker, stats: StatsWatch
) -> None:
    broker.keys = {"acme": 5, "rival": 700}
    stream = stats.watch(watcher(top=0, keys=("acme",), tenant="acme"), everything, every_key)
    told = await next_of(stream)

    assert told.channels[0].state == pb.QueueState(queue="orders", channel="default")
    assert [key.fairness_key for key in told.channels[0].keys] == ["acme"]
    assert not told.channels[0].keys[0].nobody_consumes
    assert b"rival" not in told.SerializeToString()
    await stream.aclose()


async def test_a_queue_that_is_deleted_meanwhile_is_told_as_gone_and_one_that_never_was_is_refused(
    broker: FakeBroker, stats: StatsWatch
) -> None:
    stream = stats.watch(watcher(), everything, every_key)
    await next_of(stream)
    broker.gone = True
    told = await next_of(stream)
    assert [(gone.queue, gone.channel) for gone in told.gone] == [ORDERS]
    await stream.aclose()

    with pytest.raises(errors.QueueNotFound):
        await anext(stats.watch(watcher(), everything, every_key))
    assert stats.watchers == 0


async def test_a_right_that_is_lost_hides_the_queue(broker: FakeBroker, stats: StatsWatch) -> None:
    seen = True
    stream = stats.watch(watcher(), lambda _queue, _channel: seen, every_key)
    await next_of(stream)
    seen = False
    told = await next_of(stream)
    assert [gone.queue for gone in told.gone] == ["orders"]
    await stream.aclose()


async def test_a_stop_of_the_broker_ends_the_stream(broker: FakeBroker, stats: StatsWatch) -> None:
    stream = stats.watch(watcher(), everything, every_key)
    await next_of(stream)
    for close in list(broker.drains):
        close()
    assert [told async for told in stream] == []
    assert stats.watchers == 0


async def test_watchers_and_the_keys_they_name_are_bounded(
    broker: FakeBroker, stats: StatsWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_stats, "WATCHERS_MAX", 1)
    monkeypatch.setattr(watch_stats, "NAMED_MAX", 3)
    with pytest.raises(errors.LimitExceeded, match="must be at most 3; name fewer"):
        await anext(stats.watch(watcher(keys=("a", "b", "c", "d")), everything, every_key))
    stream = stats.watch(watcher(), everything, every_key)
    await next_of(stream)
    with pytest.raises(errors.Overloaded, match="1 watch already"):
        await anext(stats.watch(watcher(), everything, every_key))
    await stream.aclose()


# All queues.


class ManyQueues(FakeBroker):
    """A core with queues, each with a depth and letters, of which it tells the first `told` one by one."""

    def __init__(self, depths: dict[str, int], letters: dict[str, int] | None = None) -> None:
        super().__init__()
        self.depths, self.letters = depths, letters or {}
        self.left_out = 0

    async def call(self, kind: int, frame: bytes) -> bytes:
        assert kind == commands.METRICS
        assert seam_frames.MetricsAsked.FromString(frame).without_keys
        self.pages.append(frame)
        self._asked.set()
        numbers = dict.fromkeys(QUEUE_COUNTERS, 0)
        queues = [
            [name.encode(), depth, 0, 0, 0, 0, 0, 1, 0, 0, 0, list(numbers.values()), [0] * 32, 0, [
                [b"default", depth, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, [0.0] * 5, 0, 7 * depth, 0, 0, 0]
            ]]
            for name, depth in (*self.depths.items(), *((f"{name}.dlq", many) for name, many in self.letters.items()))
        ]  # fmt: skip
        sums = dict.fromkeys(SUMS, 0) | {
            "queues": len(self.depths) + self.left_out,
            "waiting": sum(self.depths.values()) + self.left_out,
            "dead_letters": sum(self.letters.values()),
        }
        return msgspec.msgpack.encode(
            [1, [0] * len(TOTALS), [], [0] * 32, 0, [0] * 32, 0, len(queues), self.left_out, queues, [], [], 1000,
             list(sums.values())]
        )  # fmt: skip


def of_all(top: int = 2_000) -> Watcher:
    return Watcher((), BACKLOG, top, ())


def told_queues(told: pb.WatchStatsResponse) -> list[str]:
    return [channel.state.queue for channel in told.channels]


async def test_of_all_queues_those_are_told_in_which_most_waits_and_their_letters() -> None:
    broker = ManyQueues({"small": 1, "empty": 0, "large": 9, "poisoned": 0}, {"poisoned": 3, "small": 2})
    stream = StatsWatch(broker).watch(of_all(3), everything)  # type: ignore[arg-type]
    told = await next_of(stream)

    assert told_queues(told) == ["large", "small", "small.dlq", "poisoned", "poisoned.dlq"]
    assert (told.sums.queues, told.sums.waiting, told.sums.dead_letters) == (4, 10, 5)
    assert not told.sums.partial
    await stream.aclose()


async def test_sums_are_the_brokers_where_it_has_more_queues_than_it_tells() -> None:
    broker = ManyQueues({"orders": 4})
    broker.left_out = 18_000
    stream = StatsWatch(broker).watch(of_all(0), everything)  # type: ignore[arg-type]
    told = await next_of(stream)

    assert told_queues(told) == []
    assert (told.sums.queues, told.sums.waiting, told.sums.partial) == (18_001, 18_004, False)
    await stream.aclose()


async def test_who_sees_a_part_is_told_sums_of_that_part_and_its_queues_though_others_are_larger() -> None:
    broker = ManyQueues({f"other{i}": 100 + i for i in range(50)} | {"mine": 2}, {"mine": 1, "other1": 5})
    broker.left_out = 1

    def sees(queue: str, _channel: str) -> bool:
        return queue.startswith("mine")

    stream = StatsWatch(broker).watch(of_all(1), sees, sees_all=lambda: False)  # type: ignore[arg-type]
    told = await next_of(stream)

    assert told_queues(told) == ["mine", "mine.dlq"]
    assert (told.sums.queues, told.sums.waiting, told.sums.dead_letters) == (1, 2, 1)
    assert (told.sums.oldest_age_ms, told.sums.partial) == (14, True)
    await stream.aclose()


async def test_two_thousand_queues_are_looked_at_every_four_seconds_and_few_each_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_stats, "LOOK_EVERY_S", 1.0)
    for queues, looks in ((2_000, 3), (400, 9)):
        broker = ManyQueues({f"q{i}": 1 for i in range(queues)})
        clock = [100.0]
        stats = StatsWatch(broker, now_s=lambda clock=clock: clock[0])  # type: ignore[arg-type, misc]
        stats._all.watchers.add(of_all(1))
        for _ in range(9):
            if clock[0] >= stats._all_due_s:
                await stats._look_at_all()
            clock[0] += 1.0
        assert len(broker.pages) == looks


async def test_one_who_wants_fewer_queues_does_not_take_them_from_another() -> None:
    broker = ManyQueues({"a": 3, "b": 2, "c": 1})
    stats = StatsWatch(broker)  # type: ignore[arg-type]
    few, many = stats.watch(of_all(1), everything), stats.watch(of_all(), everything)

    assert told_queues(await next_of(few)) == ["a"]
    assert told_queues(await next_of(many)) == ["a", "b", "c"]
    await few.aclose()
    await many.aclose()
