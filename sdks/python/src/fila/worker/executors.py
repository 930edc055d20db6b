"""Where a handler runs: as a task of the handlers' loop, in a thread, or in a process of its own.

`run` is awaited on the handlers' loop, by one slot at a time. What outlives a cancelled `run`, as a thread must, is
waited for by `idle` before the slot takes more.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from fila.worker.plan import WorkerPlan
from fila.worker.slot_thread import SlotThread
from fila.worker.work import WorkMessage


class Executor(Protocol):
    """One slot's way of running its handler."""

    async def run(self, payloads: Sequence[Any], messages: Sequence[WorkMessage]) -> Any:
        """Return what the handler returns, or raise what it raises."""

    async def idle(self) -> None:
        """Return when nothing of the last run goes on."""

    def close(self) -> None:
        """Nothing comes any more; what still runs is ended, if it can be."""


def arguments_of(
    plan: WorkerPlan, payloads: Sequence[Any], messages: Sequence[WorkMessage]
) -> tuple[Any, ...]:
    """Return what a handler is called with."""
    if plan.batch is None:
        return (payloads[0], messages[0]) if plan.wants_message else (payloads[0],)
    return (list(payloads), list(messages)) if plan.wants_message else (list(payloads),)


class TaskExecutor:
    """An async handler, awaited."""

    def __init__(self, plan: WorkerPlan) -> None:
        self._plan = plan

    async def run(self, payloads: Sequence[Any], messages: Sequence[WorkMessage]) -> Any:
        return await self._plan.handler(*arguments_of(self._plan, payloads, messages))

    async def idle(self) -> None:
        """A cancelled task is over when its future is."""

    def close(self) -> None:
        """There is nothing to end."""


class ThreadExecutor:
    """A plain handler, in a thread of its slot. A thread can't be ended: it learns from the message's cancellation that
    it is not wanted any more, and its slot stays occupied until it returns."""

    def __init__(self, plan: WorkerPlan) -> None:
        self._plan = plan
        self._thread = SlotThread(f"fila-{plan.name}")
        self._running: Future[Any] | None = None

    async def run(self, payloads: Sequence[Any], messages: Sequence[WorkMessage]) -> Any:
        call = functools.partial(self._plan.handler, *arguments_of(self._plan, payloads, messages))
        self._running = self._thread.submit(functools.partial(contextvars.copy_context().run, call))
        try:
            return await asyncio.shield(asyncio.wrap_future(self._running))
        except asyncio.CancelledError:
            for message in messages:
                message.cancellation.cancel()
            raise

    async def idle(self) -> None:
        if self._running is not None and not self._running.done():
            await asyncio.wait([asyncio.wrap_future(self._running)])

    def close(self) -> None:
        self._thread.close()
