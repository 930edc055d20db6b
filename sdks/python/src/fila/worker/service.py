"""A running app: its client, its slots, and its end.

serving ──stop──► draining ──all done, or shutdown_grace_s, or stop──► releasing ──► closed
                  nothing new is taken, the buffer is back at the broker
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

from fila.client import FilaClient
from fila.options import OptionFields
from fila.sync.loop_thread import LoopThread
from fila.worker.blocked import watch_handlers_loop
from fila.worker.outcome import RELEASE
from fila.worker.pipeline import Job, Middleware, Pipeline
from fila.worker.plan import WorkerPlan
from fila.worker.slots import Slot
from fila.worker.timeouts import Timeouts

RELEASE_S = 2.0
"""How long releasing what is not finished may take."""

_log = logging.getLogger("fila.worker")


class Registered(Protocol):
    """What is to run, and for which broker: what an `App` holds."""

    target: str | None
    options: OptionFields
    plans: list[WorkerPlan]
    middlewares: list[Middleware]
    shutdown_grace_s: float


class Service:
    """One `App.run`."""

    def __init__(self, app: Registered) -> None:
        self._app = app
        self._handlers = asyncio.get_running_loop()
        self._thread = LoopThread()
        self._stops = 0
        self._stop_asked: asyncio.Event | None = None
        self._hurry: asyncio.Event | None = None
        self._jobs: set[Job] = set()
        self._turn = asyncio.Lock()  # of the handlers' loop: whose messages that came back are declared

    async def run(self) -> None:
        """Serve until it is stopped."""
        serving = asyncio.wrap_future(self._thread.start(self._serve()))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.stop()
            await serving
            raise
        finally:
            self._thread.stop()

    def stop(self) -> None:
        """Drain; a second time, release."""
        self._stops += 1
        self._thread.do(self._note_stop)

    def _note_stop(self) -> None:
        if self._stop_asked is not None and self._hurry is not None:
            self._stop_asked.set()
            if self._stops > 1:
                self._hurry.set()

    # On the client's loop.

    async def _serve(self) -> None:
        self._stop_asked, self._hurry = asyncio.Event(), asyncio.Event()
        if self._stops:
            return
        app = self._app
        async with FilaClient.connect(app.target, **app.options) as client:
            timeouts = Timeouts()
            slots: list[Slot] = []
            for plan in app.plans:
                consumer = client.consume(
                    plan.queue,
                    channel=plan.channel,
                    prefetch=plan.prefetch,
                    max_lease_renewal_ms=plan.max_lease_renewal_ms,
                )
                pipeline = Pipeline(plan, app.middlewares, timeouts)
                slots += [
                    Slot(plan, pipeline, consumer, self._handlers, self._jobs, self._turn)
                    for _ in range(plan.concurrency)
                ]
                _log.info("%s works for %s, %d at once", plan.name, plan.queue, plan.concurrency)
            running = [asyncio.create_task(slot.run()) for slot in slots]
            watch = asyncio.create_task(watch_handlers_loop(self._handlers, self._jobs))
            stop = asyncio.create_task(self._stop_asked.wait())
            try:
                await asyncio.wait([*running, stop], return_when=asyncio.FIRST_COMPLETED)
                await self._drain(slots, running)
            finally:
                watch.cancel()
                stop.cancel()
            for task in running:
                if task.done() and not task.cancelled():
                    task.result()  # what ended a slot ends the app

    async def _drain(self, slots: list[Slot], running: list[asyncio.Task[None]]) -> None:
        assert self._hurry is not None
        for slot in slots:
            slot.session.drain()
        grace_s = self._app.shutdown_grace_s
        _log.info("stopping: %d begun, up to %g s to finish them", len(self._jobs), grace_s)
        finished = asyncio.gather(*running, return_exceptions=True)
        hurry = asyncio.create_task(self._hurry.wait())
        waiting: set[asyncio.Future[Any]] = {finished, hurry}
        await asyncio.wait(waiting, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if self._jobs:
            _log.warning("stopping: %d are not finished, and go back uncounted", len(self._jobs))
            for job in [*self._jobs]:
                job.preempt(RELEASE)
            await asyncio.wait([finished], timeout=RELEASE_S)
        for task in running:
            task.cancel()  # a thread that can't be ended holds its slot; its message is back already
        await asyncio.wait([finished])
