"""The thread on which a synchronous client's event loop runs, and the way into it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from fila.connection import check_not_forked

ResultT = TypeVar("ResultT")


class LoopThread:
    """An event loop that turns until `stop`, whatever the other threads wait for."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        # A daemon: a program that forgets to close its client still ends.
        self._thread = threading.Thread(target=self._turn, name="fila-client", daemon=True)
        self._thread.start()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            # What asked in a thread why nobody answers: the client must not outlive its end by that thread.
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    @property
    def is_left_behind(self) -> bool:
        """Whether this is a forked child: the thread is the parent's, and nothing runs here any more."""
        return os.getpid() != self._pid

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run a coroutine there and wait for its result here. Raises RuntimeError in a forked child."""
        if self.is_left_behind:
            work.close()
            check_not_forked(self._pid)
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a synchronous client cannot be called from its own loop's thread")
        waiting: Future[ResultT] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result()
        except BaseException:
            # Ctrl-C ends the wait, not the work: without this it would go on unseen.
            waiting.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
        """Run a coroutine there, without waiting for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def do(self, work: Callable[[], object]) -> None:
        """Call something there, soon, without waiting. On a stopped loop, or in a forked child: nothing."""
        if not (self.is_left_behind or self._loop.is_closed()):
            self._loop.call_soon_threadsafe(work)

    def stop(self) -> None:
        """Let the loop end and wait for its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
