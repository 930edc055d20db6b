"""Notices a handler that blocks the handlers' loop, and takes its message from it.

A time limit of asyncio needs a loop that turns. So the client's loop, which turns on another thread, looks at the
handlers' one: when it has not turned for a while and the task it is stuck in is over its limit, that task's message
fails. Its neighbours are not to blame: they keep their messages until the loop turns again.
"""

from __future__ import annotations

import asyncio
import logging
import time

from fila.worker.outcome import Outcome
from fila.worker.pipeline import Job

LOOK_EVERY_S = 0.1

_log = logging.getLogger("fila.worker")


async def watch_handlers_loop(handlers: asyncio.AbstractEventLoop, jobs: set[Job]) -> None:
    """Look until cancelled."""
    turned = asyncio.Event()
    mine = asyncio.get_running_loop()

    def say_turned() -> None:
        mine.call_soon_threadsafe(turned.set)

    while True:
        turned.clear()
        handlers.call_soon_threadsafe(say_turned)
        while True:
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await turned.wait()
                break
            except TimeoutError:
                _take_from_who_blocks(handlers, jobs)
        await asyncio.sleep(LOOK_EVERY_S)


def _take_from_who_blocks(handlers: asyncio.AbstractEventLoop, jobs: set[Job]) -> None:
    stuck_in = asyncio.current_task(handlers)
    for job in jobs:
        limit_s = job.plan.timeout_s
        if job.task is not stuck_in or stuck_in is None or limit_s is None or job.preempted.done():
            continue
        if time.monotonic() - job.began_s > limit_s:
            said = f"{job.plan.name} blocks the event loop for longer than its limit of {limit_s:g} s"
            _log.error("%s; make it a plain def, which runs in a thread", said)
            job.preempt(Outcome("retry", said))
