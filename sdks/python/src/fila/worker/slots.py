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
        turn: asyncio.Lock,
    ) -> None:
        self._plan = plan
        self._pipeline = pipeline
        self._consumer = consumer
        self._handlers = handlers
        self._jobs = jobs
        self._turn = turn
        self._executor = make_executor(plan)
        self._client_loop = asyncio.get_running_loop()
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
            return await self._consumer.next_batch(self.session, self._loop, self._plan.batch, declares=False)
        message = await self._consumer.next(self.session, self._loop, declares=False)
        return [] if message is None else [message]

    async def _work(self, messages: Sequence[Message]) -> None:
        began_s = time.monotonic()
        job = Job(self._plan, [work_message(message) for message in messages], began_s)
        self._jobs.add(job)
        telemetry = self._pipeline.telemetry
        telemetry.began(len(messages), len(self.session.holding.ready))
        leases = [message.lease_id for message in messages]
        self.session.holding.not_started.update(leases)
        handling = asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._handle(job, messages), self._handlers)
        )
        for message in messages:
            message.on_lost(lambda: _lost(job, messages))
        try:
            waiting: set[asyncio.Future[Any]] = {handling, job.preempted}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            outcomes = _outcomes(handling, job)
            telemetry.handled(
                time.monotonic() - began_s, [outcome.kind for outcome in outcomes if outcome is not None]
            )
            await self._settle(messages, outcomes)
            if not handling.done():
                handling.cancel()
            idle = asyncio.run_coroutine_threadsafe(self._executor.idle(), self._handlers)
            waiting = {handling, asyncio.wrap_future(idle)}
            await asyncio.wait(waiting)
        finally:
            self._jobs.discard(job)
            self.session.holding.not_started.difference_update(leases)

    async def _handle(self, job: Job, messages: Sequence[Message]) -> list[Outcome | None]:
        """Runs on the handlers' loop, so its first step says that no other handler blocks that. None for a message that
        went back because the stream broke before it could be declared."""
        job.task = asyncio.current_task()
        came_back = [message for message in messages if message.must_declare]
        gone = await self._declare(came_back) if came_back else set()
        self.session.holding.not_started.difference_update([message.lease_id for message in messages])
        kept = [work for work, message in zip(job.messages, messages, strict=True) if message not in gone]
        outcomes = iter(await self._pipeline.handle(kept, self._executor) if kept else ())
        return [None if message in gone else next(outcomes) for message in messages]

    async def _declare(self, came_back: Sequence[Message]) -> set[Message]:
        """Say that these are begun, and return those that are ours no longer. One slot after the other, each holding
        the turn until its handler has taken its first step: if that blocks the loop, no other has been declared."""
        await self._turn.acquire()
        try:
            declaring = asyncio.run_coroutine_threadsafe(self.session.declare(came_back), self._client_loop)
            declared: list[Message] = await asyncio.wrap_future(declaring)
        finally:
            self._handlers.call_soon(self._turn.release)
        return {*came_back}.difference(declared)

    async def _settle(self, messages: Sequence[Message], outcomes: Sequence[Outcome | None]) -> None:
        began_s = time.monotonic()
        # All of them first: what is settled in one turn of the loop travels together.
        settlements = [
            (message, outcome, settle(message, outcome))
            for message, outcome in zip(messages, outcomes, strict=True)
            if outcome is not None and not message.lost
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
    if outcome.limited is not None:
        retry_after_s = None if outcome.delay_ms is None else outcome.delay_ms / 1000
        return message.limited(retry_after_s, limit=outcome.limited.limit, error=outcome.error)
    return message.nack(outcome.error, outcome.delay_ms)


def _lost(job: Job, messages: Sequence[Message]) -> None:
    """Stop working on what nobody wants; a batch goes on for the sake of those that are not lost."""
    if all(message.lost for message in messages):
        _log.warning("%s: lost %s (%s)", job.plan.name, messages[0].id, messages[0].lost)
        job.preempt(RELEASE)


def _outcomes(handling: asyncio.Future[list[Outcome | None]], job: Job) -> Sequence[Outcome | None]:
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
