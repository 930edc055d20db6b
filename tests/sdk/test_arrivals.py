"""Who of the loops that wait for messages is woken, and when."""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from fila import Message
from fila.arrivals import Arrivals
from fila.consumer import Consumer


class Loops:
    """Loops that wait, and count how often they looked; `quick` ones take all there is, others one message."""

    def __init__(self, count: int, *, quick: bool) -> None:
        self.ready: deque[int] = deque()
        self.arrivals = Arrivals(self.ready)
        self.looks = [0] * count
        self.taken = [0] * count
        self.tasks = [asyncio.create_task(self._loop(number, quick=quick)) for number in range(count)]

    async def _loop(self, number: int, *, quick: bool) -> None:
        while True:
            await self.arrivals.wait()
            self.looks[number] += 1
            while self.ready:
                self.ready.popleft()
                self.taken[number] += 1
                if not quick:
                    await asyncio.sleep(3600)
            self.arrivals.none_left()

    def deliver(self, count: int) -> None:
        self.ready.extend(range(count))
        self.arrivals.came()


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_quick_loop_is_woken_alone() -> None:
    loops = Loops(16, quick=True)
    await turns()

    loops.deliver(500)
    await turns()

    assert sorted(loops.looks) == [0] * 15 + [1]


async def test_what_the_first_loop_leaves_wakes_as_many_as_there_are_messages() -> None:
    loops = Loops(16, quick=False)
    await turns()

    loops.deliver(5)
    await turns()

    assert sorted(loops.taken) == [0] * 11 + [1] * 5


@pytest.mark.parametrize("woken_before", [False, True], ids=["not yet woken", "already woken"])
async def test_a_loop_that_is_cancelled_leaves_its_message_to_another(woken_before: bool) -> None:
    loops = Loops(2, quick=False)
    await turns()

    if not woken_before:
        loops.tasks[0].cancel()
    loops.deliver(1)
    loops.tasks[0].cancel()
    await turns()

    assert loops.taken == [0, 1]


async def test_a_loop_that_asks_after_messages_came_does_not_wait() -> None:
    arrivals = Arrivals([1])
    arrivals.came()

    await asyncio.wait_for(arrivals.wait(), 5)


async def test_when_what_loops_may_do_has_changed_all_of_them_look() -> None:
    loops = Loops(3, quick=True)
    await turns()

    loops.arrivals.wake_all()
    await turns()

    assert loops.looks == [1, 1, 1]


def session_of(arrivals: Arrivals, *, is_heard: bool = True) -> Any:
    return SimpleNamespace(
        holding=SimpleNamespace(arrivals=arrivals),
        is_heard=is_heard,
        failure=None,
        leaving=False,
        task=asyncio.get_running_loop().create_future(),
    )


async def test_messages_that_other_loops_got_keep_a_loop_from_being_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = asyncio.get_running_loop()
    passed_s, time_s = [0.0], clock.time
    monkeypatch.setattr(clock, "time", lambda: time_s() + passed_s[0])
    arrivals = Arrivals([])
    session = session_of(arrivals)
    other = asyncio.create_task(arrivals.wait())
    await turns()
    consumer: Consumer[Message] = Consumer(lambda: session, 10.0)
    idle = asyncio.create_task(consumer._more(session))
    await turns()

    passed_s[0] += 9
    arrivals.came()
    await other
    arrivals.none_left()
    passed_s[0] += 9
    await turns()
    assert not idle.done(), "9 s ago something came"

    passed_s[0] += 9
    assert not await idle


async def test_an_outage_does_not_make_a_loop_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = asyncio.get_running_loop()
    passed_s, time_s = [0.0], clock.time
    monkeypatch.setattr(clock, "time", lambda: time_s() + passed_s[0])
    session = session_of(Arrivals([]), is_heard=False)
    consumer: Consumer[Message] = Consumer(lambda: session, 10.0)
    idle = asyncio.create_task(consumer._more(session))
    await turns()

    passed_s[0] += 60
    await turns()
    assert not idle.done(), "there has been no broker to hear from"

    session.is_heard = True
    passed_s[0] += 9
    await turns()
    assert not idle.done(), "it may be back for a moment only"

    passed_s[0] += 2
    assert not await idle
