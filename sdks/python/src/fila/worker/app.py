"""Handlers for queues, and what runs them.

    app = App("localhost:5555")

    @app.worker("orders", concurrency=20, timeout="30s")
    async def take_order(order: Order) -> None: ...

    app.run()        # or: fila worker module:app

Handlers run on the loop (and thread) that called `run`; the client has a loop of its own on another thread.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from fila.options import OptionFields
from fila.prefetch import Prefetch
from fila.worker.payload import BadHandler, Decode
from fila.worker.pipeline import Middleware
from fila.worker.plan import RetryBy, RunIn, WorkerPlan, make_plan
from fila.worker.service import Service

HandlerT = TypeVar("HandlerT", bound=Callable[..., Any])

SHUTDOWN_GRACE_S = 25.0
"""A little below the 30 s that orchestrators give a process to end."""


class App:
    """A set of handlers, and the broker they work for.

    shutdown_grace_s  how long a stopping worker lets begun messages finish before it cancels and releases them
    options           those of `fila.ClientOptions`, such as `name` and `on_connection`
    """

    def __init__(
        self,
        target: str | None = None,
        *,
        shutdown_grace_s: float = SHUTDOWN_GRACE_S,
        **options: Unpack[OptionFields],
    ) -> None:
        self.target = target
        self.shutdown_grace_s = shutdown_grace_s
        self.options = options
        self.plans: list[WorkerPlan] = []
        self.middlewares: list[Middleware] = []
        self._service: Service | None = None

    def worker(
        self,
        queue: str,
        *,
        channel: str | None = None,
        concurrency: int = 1,
        run_in: RunIn | None = None,
        timeout: str | int | None = None,
        batch: int | None = None,
        decode: Decode | None = None,
        retry: RetryBy | None = None,
        reject: tuple[type[BaseException], ...] = (),
        release: tuple[type[BaseException], ...] = (),
        prefetch: Prefetch | None = None,
        max_lease_renewal_ms: int | None = None,
        trace_parent: bool = False,
    ) -> Callable[[HandlerT], HandlerT]:
        """Register the handler that follows for a queue.

        It takes the payload, decoded as its annotation says (`fila.worker.payload`), and if it has a second parameter
        the `WorkMessage`. What it returns acks; what it raises decides:

        concurrency           how many it works on at once
        run_in                "task" for async handlers; "thread" or "process" for plain ones, unless given "thread"
        timeout               "30s", or milliseconds: longer counts as a failure; None: as long as the lease lasts
        batch                 handle lists of up to so many; it may return a list with None or an exception for each
        decode                bytes to payload, instead of what the annotation says
        retry                 exceptions that are tried again after a delay of their own: {Timeout: "5s"}
        reject                exceptions that make a dead letter at once
        release               exceptions that are no failure: the message goes back, uncounted
        prefetch, max_lease_renewal_ms, channel    as in `FilaClient.consume`
        trace_parent          a message's span is a child of the producer's, in one trace, and not linked to it

        Every other exception is a failure that the queue's policy judges; `Retry`, `Reject`, `Release` and
        `Limited` can be raised too. A payload that can't be decoded is rejected.
        """

        def register(handler: HandlerT) -> HandlerT:
            self.plans.append(
                make_plan(
                    handler,
                    queue=queue,
                    channel=channel,
                    concurrency=concurrency,
                    run_in=run_in,
                    timeout=timeout,
                    batch=batch,
                    decode=decode,
                    retry=retry,
                    reject=reject,
                    release=release,
                    prefetch=prefetch,
                    max_lease_renewal_ms=max_lease_renewal_ms,
                    trace_parent=trace_parent,
                )
            )
            return handler

        return register

    def middleware(self, function: Middleware) -> Middleware:
        """Register `async def around(messages, call_next)`, which runs around every handler: the first registered is
        the outermost. `messages` is a list, of one unless the handler takes batches; `await call_next()` runs what is
        inside, and what it raises decides as if the handler had."""
        self.middlewares.append(function)
        return function

    def run(self) -> None:
        """Work until SIGTERM or SIGINT, then finish what is begun for `shutdown_grace_s`, release what is not finished,
        and give back the rest. A second signal ends the waiting. Raises a FilaError when the broker ends it."""

        async def serve() -> None:
            # Python's own handlers, not the loop's: they run also while a handler blocks the loop.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop())
            await self.serve()

        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            asyncio.run(serve())
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def serve(self) -> None:
        """As `run`, inside an event loop of your own, without signals: `stop` ends it."""
        if not self.plans:
            raise BadHandler("no handler is registered; use @app.worker(queue)")
        self._service = Service(self)
        try:
            await self._service.run()
        finally:
            self._service = None

    def stop(self) -> None:
        """Stop as `run` says; a second call ends the waiting. May be called from any thread, or a signal handler."""
        if self._service is not None:
            self._service.stop()
