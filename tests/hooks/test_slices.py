"""How much of a turn of the loop scripts may take, and whose script is next, under a told clock."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

import pytest

from fila_server.hooks.slices import SLICE_NS, Slices
from fila_server.hooks.stage import HookStage
from tests.hooks.conftest import FakeFrame, SteppingClock

CROSSING_NS = 1_000_000
BY_TENANT = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end"


class Watch:
    """Counts turns of the loop, and the crossings that began in each."""

    def __init__(self) -> None:
        self.slices = Slices()
        self.begun: list[bytes] = []
        self.by_turn: list[int] = []

    async def frame(self, queue: bytes, crossings: int) -> None:
        for _ in range(crossings):
            await self.slices.may_begin(queue)
            self.begun.append(queue)
            self.slices.ended(CROSSING_NS)

    async def until_done(self, *frames: asyncio.Future[None]) -> None:
        while not all(frame.done() for frame in frames):
            before = len(self.begun)
            await asyncio.sleep(0)
            self.by_turn.append(len(self.begun) - before)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.mark.parametrize("frames", [1, 50])
async def test_however_many_frames_wait_a_turn_of_the_loop_has_one_slice(watch: Watch, frames: int) -> None:
    tasks = [asyncio.ensure_future(watch.frame(b"q%d" % i, 400 // frames)) for i in range(frames)]
    await watch.until_done(*tasks)

    assert len(watch.begun) == 400
    assert max(watch.by_turn) <= SLICE_NS // CROSSING_NS + 1


async def test_a_queue_with_few_frames_waits_for_one_crossing_of_each_other_queue(watch: Watch) -> None:
    crowd = [asyncio.ensure_future(watch.frame(b"crowded", 10)) for _ in range(50)]
    await asyncio.sleep(0)
    quiet = asyncio.ensure_future(watch.frame(b"quiet", 5))
    await watch.until_done(quiet)

    began = [i for i, queue in enumerate(watch.begun) if queue == b"quiet"]
    assert max(b - a for a, b in itertools.pairwise(began)) <= 3
    for task in crowd:
        task.cancel()
    await asyncio.wait(crowd)


async def test_frames_of_one_queue_go_in_the_order_they_came(watch: Watch) -> None:
    order: list[int] = []

    async def frame(number: int) -> None:
        await watch.slices.may_begin(b"q")
        order.append(number)
        watch.slices.ended(CROSSING_NS)

    await asyncio.gather(*(frame(i) for i in range(30)))

    assert order == list(range(30))


async def test_frames_whose_callers_go_away_hold_nobody_up(watch: Watch) -> None:
    await watch.slices.may_begin(b"q")
    waiting = [asyncio.ensure_future(watch.frame(b"q", 1)) for _ in range(10)]
    last = asyncio.ensure_future(watch.frame(b"q", 1))
    await asyncio.sleep(0)
    watch.slices.ended(CROSSING_NS)  # the first of them may begin now, and is cancelled before it does
    for task in waiting:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait_for(last, 5)

    assert watch.begun == [b"q"]
    assert watch.slices.waiting_count == 0


async def test_many_frames_of_a_slow_script_leave_the_loop_its_turns() -> None:
    stage = HookStage(now_ns=SteppingClock(step_ns=500_000), seed=1)
    stage.set_queue("orders", BY_TENANT)
    frames = [FakeFrame([(b"orders", [(b"tenant", b"a")])] * 200) for _ in range(20)]
    routing = [asyncio.ensure_future(stage.route(frame)) for frame in frames]
    turns = 0
    while not all(task.done() for task in routing):
        await asyncio.sleep(0)
        turns += 1

    assert all(len(frame.routings) == 200 for frame in frames)
    # A crossing looks at the clock a few times, so its 64 messages take 1 ms at least: two or three a turn.
    assert turns >= 20 * 200 // 64 // 3


async def test_a_script_that_is_taken_away_while_a_frame_waits_leaves_the_frame_to_the_policy() -> None:
    stage = HookStage(now_ns=SteppingClock(step_ns=3_000_000), seed=1)
    stage.set_queue("orders", BY_TENANT)
    frame = FakeFrame([(b"orders", [(b"tenant", b"a")])] * 500)
    routing = asyncio.ensure_future(stage.route(frame))
    await asyncio.sleep(0)
    stage.remove_queue("orders")
    await routing

    assert len(frame.routings) < 500
