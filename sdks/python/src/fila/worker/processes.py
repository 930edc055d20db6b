"""A plain handler in a process of its slot: a process that dies fails its own messages only.

The pools of the standard library break as a whole when one process dies. Here each slot has one process and one
pipe; the next message starts a new process.
"""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from fila.worker.executors import arguments_of
from fila.worker.plan import WorkerPlan
from fila.worker.slot_thread import SlotThread
from fila.worker.work import WorkMessage

_spawn = multiprocessing.get_context("spawn")
"""Never fork: the parent has threads and open connections."""


class ProcessDied(Exception):
    """The process that handled a message is gone."""


class RaisedInProcess(Exception):
    """What a handler raised, where the exception itself can't cross to another process."""


def serve(pipe: Connection, handler: Callable[..., Any]) -> None:
    """The process's whole life: take arguments, answer (True, result) or (False, exception)."""
    # Both may reach the whole group; the parent decides when its processes end, and its end closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            arguments = pipe.recv()
        except EOFError:
            return
        answer: tuple[bool, Any]
        try:
            answer = (True, handler(*arguments))
        except Exception as error:  # noqa: BLE001 - it is the parent that judges it
            answer = (False, error)
        try:
            pipe.send(answer)
        except Exception as failure:  # noqa: BLE001 - whatever pickle says
            said = repr(answer[1])[:1000]
            pipe.send((False, RaisedInProcess(f"{said} can't cross to the worker's process: {failure}")))


class ProcessExecutor:
    """One slot's process."""

    def __init__(self, plan: WorkerPlan) -> None:
        self._plan = plan
        self._thread = SlotThread(f"fila-{plan.name}-pipe")
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._running: Future[Any] | None = None

    async def run(self, payloads: Sequence[Any], messages: Sequence[WorkMessage]) -> Any:
        self._running = self._thread.submit(
            functools.partial(self._round_trip, arguments_of(self._plan, payloads, messages))
        )
        try:
            return await asyncio.shield(asyncio.wrap_future(self._running))
        except asyncio.CancelledError:
            self._kill()
            raise

    def _round_trip(self, arguments: tuple[Any, ...]) -> Any:
        pipe = self._pipe
        if pipe is None or self._process is None or not self._process.is_alive():
            pipe = self._start()
        try:
            pipe.send(arguments)
            went_well, result = pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise ProcessDied(self._how_it_died()) from None
        if not went_well:
            raise result
        return result

    def _start(self) -> Connection:
        ours, theirs = _spawn.Pipe()
        self._process = _spawn.Process(
            target=serve, args=(theirs, self._plan.handler), name=f"fila-{self._plan.name}", daemon=True
        )
        self._process.start()
        theirs.close()
        self._pipe = ours
        return ours

    def _how_it_died(self) -> str:
        process, self._process, self._pipe = self._process, None, None
        if process is None:
            return "the worker's process was ended"
        process.join(1)
        code = process.exitcode
        if code is not None and code < 0:
            return f"the worker's process died of {signal.Signals(-code).name}"
        return f"the worker's process ended with exit code {code}"

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    async def idle(self) -> None:
        if self._running is not None and not self._running.done():
            await asyncio.wait([asyncio.wrap_future(self._running)])

    def close(self) -> None:
        self._kill()
        self._thread.close()
