"""Notices a handler that blocks the handlers' loop, and takes its message from it.

A time limit of asyncio needs a loop that turns. So the client's loop, which turns on another thread, looks at the
handlers' one: when it has not turned for a while and the task it is stuck in is over its limit, that task's message
fails. Its neighbours are not to blame: they keep their messages until the loop turns again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable

from fila.worker.outcome import Outcome
from fila.worker.pipeline import Job

LOOK_EVERY_S = 0.1
STUCK_FOR_S = 0.25
"""How long one and the same task must be seen in a loop that does not turn before it is blamed."""

_log = logging.getLogger("fila.worker")


class Stall:
    """A time in which the handlers' loop did not turn, as seen by looking at it now and then."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._since_s = 0.0

    def culprit(self, stuck_in: asyncio.Task[object] | None, now_s: float, jobs: Iterable[Job]) -> Job | None:
        """The job the loop is stuck in, once it was for STUCK_FOR_S and that job is over its limit.

        The first step that a neighbour gets after a long stall is seen too, and the neighbour's time ran out
        meanwhile; but the next look finds another task, or a loop that turns.
        """
        if stuck_in is not self._task:
            self._task, self._since_s = stuck_in, now_s
        if stuck_in is None or now_s - self._since_s < STUCK_FOR_S:
            return None
        for job in jobs:
            limit_s = job.plan.timeout_s
            if job.task is stuck_in and limit_s is not None and not job.preempted.done():
                return job if now_s - job.began_s > limit_s else None
        return None


async def watch_handlers_loop(handlers: asyncio.AbstractEventLoop, jobs: set[Job]) -> None:
    """Look until cancelled."""
    turned = asyncio.Event()
    mine = asyncio.get_running_loop()

    def say_turned() -> None:
        mine.call_soon_threadsafe(turned.set)

    while True:
        turned.clear()
        handlers.call_soon_threadsafe(say_turned)
        stall = Stall()
        while True:
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await turned.wait()
                break
            except TimeoutError:
                _take_from_who_blocks(handlers, jobs, stall)
        await asyncio.sleep(LOOK_EVERY_S)


def _take_from_who_blocks(handlers: asyncio.AbstractEventLoop, jobs: set[Job], stall: Stall) -> None:
    job = stall.culprit(asyncio.current_task(handlers), time.monotonic(), jobs)
    if job is not None:
        said = f"{job.plan.name} blocks the event loop for longer than its limit of {job.plan.timeout_s:g} s"
        _log.error("%s; make it a plain def, which runs in a thread", said)
        job.preempt(Outcome("retry", said))
