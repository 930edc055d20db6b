"""From messages to outcomes: decode, middleware, handler, and what its end means. Runs on the handlers' loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fila.worker.executors import Executor
from fila.worker.outcome import ACK, Outcome, Retry, text_of
from fila.worker.plan import WorkerPlan
from fila.worker.telemetry import WorkerTelemetry
from fila.worker.timeouts import Timeouts
from fila.worker.work import WorkMessage

CallNext = Callable[[], Awaitable[Any]]
Middleware = Callable[[Sequence[WorkMessage], CallNext], Awaitable[Any]]


class Pipeline:
    """What happens to the messages of one registered handler."""

    def __init__(self, plan: WorkerPlan, middleware: Sequence[Middleware], timeouts: Timeouts) -> None:
        self.telemetry = WorkerTelemetry(plan)
        self._plan = plan
        self._middleware = middleware
        self._timeouts = timeouts

    async def handle(self, messages: Sequence[WorkMessage], executor: Executor) -> list[Outcome]:
        """Return one outcome a message, in order. What can't be decoded is rejected and fails no other."""
        outcomes: list[Outcome] = [ACK] * len(messages)
        readable: list[int] = []
        payloads: list[Any] = []
        for index, message in enumerate(messages):
            try:
                payloads.append(self._plan.decode(message.payload))
            except Exception as error:  # noqa: BLE001 - whatever the decoder says of these bytes
                outcomes[index] = Outcome("reject", f"the payload can't be read: {text_of(error)}")
            else:
                readable.append(index)
        if readable:
            kept = [messages[index] for index in readable]
            with self.telemetry.span(kept):
                told = await self._call(payloads, kept, executor)
            for index, outcome in zip(readable, told, strict=True):
                outcomes[index] = outcome
        return outcomes

    async def _call(
        self, payloads: Sequence[Any], messages: Sequence[WorkMessage], executor: Executor
    ) -> list[Outcome]:
        call: CallNext = functools.partial(executor.run, payloads, messages)
        for middleware in reversed(self._middleware):
            call = functools.partial(middleware, messages, call)
        plan = self._plan
        limit: asyncio.Timeout | None = None
        try:
            async with self._timeouts.start(plan.timeout_s) as limit:
                result = await call()
            return self._outcomes_of(result, len(messages))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - that is what verdicts are for
            self.telemetry.failed(error)
            if limit is not None and limit.expired() and isinstance(error, TimeoutError):
                return [Outcome("retry", f"{plan.name} took longer than {plan.timeout_s:g} s")] * len(
                    messages
                )
            return [plan.verdicts.of(error)] * len(messages)

    def _outcomes_of(self, result: Any, count: int) -> list[Outcome]:
        """What a handler returned: of a batch perhaps a list, with None or an exception for each message."""
        if self._plan.batch is None or result is None:
            return [ACK] * count
        if isinstance(result, str | bytes) or not isinstance(result, Sequence) or len(result) != count:
            wrong = f"{self._plan.name} must return None, or a list of {count} with None or an exception each"
            raise Retry(f"{wrong}; it returned {result!r:.100}")
        return [ACK if error is None else self._plan.verdicts.of(error) for error in result]


class Job:
    """Messages of one slot that are being handled now."""

    def __init__(self, plan: WorkerPlan, messages: Sequence[WorkMessage], began_s: float) -> None:
        self.plan = plan
        self.messages = messages
        self.began_s = began_s
        self.task: asyncio.Task[Any] | None = None
        """The task on the handlers' loop, once it runs."""
        self.preempted: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        """Done when somebody else decided what becomes of all of them."""

    def preempt(self, outcome: Outcome) -> None:
        """Wait for the handler no longer."""
        if not self.preempted.done():
            self.preempted.set_result(outcome)
