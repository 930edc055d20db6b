"""A slot takes messages, has them handled, and settles them. Runs on the client's loop, so that the broker hears from
the worker whatever its handlers do to their own loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Sequence
from typing import Any

from fila.consumer import Consumer
from fila.errors import FilaError, NotSupported
from fila.messages import Message
from fila.worker.executors import Executor, TaskExecutor, ThreadExecutor
from fila.worker.outcome import RELEASE, Outcome
from fila.worker.pipeline import Job, Pipeline
from fila.worker.plan import WorkerPlan
from fila.worker.work import work_message

_log = logging.getLogger("fila.worker")


def make_executor(plan: WorkerPlan) -> Executor:
    """Return a slot's own way of running the handler."""
    if plan.run_in == "task":
        return TaskExecutor(plan)
    if plan.run_in == "thread":
        return ThreadExecutor(plan)
    from fila.worker.processes import ProcessExecutor

    return ProcessExecutor(plan)


class Slot:
    """One of a worker's `concurrency`."""

    def __init__(
        self,
        plan: WorkerPlan,
        pipeline: Pipeline,
        consumer: Consumer[Message],
        handlers: asyncio.AbstractEventLoop,
        jobs: set[Job],
    ) -> None:
        self._plan = plan
        self._pipeline = pipeline
        self._consumer = consumer
        self._handlers = handlers
        self._jobs = jobs
        self._executor = make_executor(plan)
        self.session, self._loop = consumer.join(plan.batch or 1)

    async def run(self) -> None:
        """Work until the consumer is over; raise its error when that ended it."""
        try:
            while messages := await self._next():
                await self._work(messages)
        finally:
            self._consumer.part(self.session, self._loop)
            self._executor.close()

    async def _next(self) -> list[Message]:
        if self._plan.batch is not None:
            return await self._consumer.next_batch(self.session, self._loop, self._plan.batch)
        message = await self._consumer.next(self.session, self._loop)
        return [] if message is None else [message]

    async def _work(self, messages: Sequence[Message]) -> None:
        began_s = time.monotonic()
        job = Job(self._plan, [work_message(message) for message in messages], began_s)
        self._jobs.add(job)
        telemetry = self._pipeline.telemetry
        telemetry.began(len(messages), len(self.session.holding.ready))
        handling = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._handle(job), self._handlers))
        for message in messages:
            message.on_lost(lambda: _lost(job, messages))
        try:
            waiting: set[asyncio.Future[Any]] = {handling, job.preempted}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            outcomes = _outcomes(handling, job)
            telemetry.handled(time.monotonic() - began_s, [outcome.kind for outcome in outcomes])
            await self._settle(messages, outcomes)
            if not handling.done():
                handling.cancel()
            idle = asyncio.run_coroutine_threadsafe(self._executor.idle(), self._handlers)
            waiting = {handling, asyncio.wrap_future(idle)}
            await asyncio.wait(waiting)
        finally:
            self._jobs.discard(job)

    async def _handle(self, job: Job) -> list[Outcome]:
        job.task = asyncio.current_task()
        return await self._pipeline.handle(job.messages, self._executor)

    async def _settle(self, messages: Sequence[Message], outcomes: Sequence[Outcome]) -> None:
        began_s = time.monotonic()
        # All of them first: what is settled in one turn of the loop travels together.
        settlements = [
            (message, outcome, settle(message, outcome))
            for message, outcome in zip(messages, outcomes, strict=True)
            if not message.lost
        ]
        for message, outcome, settlement in settlements:
            if outcome.kind != "ack":
                _log.warning(
                    "%s: %s of %s, attempt %d: %s",
                    self._plan.name, outcome.kind, message.id, message.attempt_count + 1, outcome.error or "-",
                )  # fmt: skip
            try:
                await settlement
            except FilaError as error:
                _log.warning("%s: %s of %s was refused: %s", self._plan.name, outcome.kind, message.id, error)
        self._pipeline.telemetry.settled(time.monotonic() - began_s)


def settle(message: Message, outcome: Outcome) -> Awaitable[None]:
    """Tell the broker. One that is too old to release or reject counts a failed attempt."""
    if outcome.kind == "ack":
        return message.ack()
    with contextlib.suppress(NotSupported):
        if outcome.kind == "release":
            return message.release()
        if outcome.kind == "reject":
            return message.reject(outcome.error)
    return message.nack(outcome.error, outcome.delay_ms)


def _lost(job: Job, messages: Sequence[Message]) -> None:
    """Stop working on what nobody wants; a batch goes on for the sake of those that are not lost."""
    if all(message.lost for message in messages):
        _log.warning("%s: lost %s (%s)", job.plan.name, messages[0].id, messages[0].lost)
        job.preempt(RELEASE)


def _outcomes(handling: asyncio.Future[list[Outcome]], job: Job) -> list[Outcome]:
    count = len(job.messages)
    if job.preempted.done():
        return [job.preempted.result()] * count
    if handling.cancelled():
        return [RELEASE] * count
    error = handling.exception()
    if error is not None:
        _log.error("%s: a mistake around the handler", job.plan.name, exc_info=error)
        return [Outcome("retry", f"a mistake around the handler: {error!r}")] * count
    return handling.result()
