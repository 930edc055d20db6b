"""A thread that runs one call at a time. A daemon: a handler that never returns must not keep a stopped worker alive,
as the threads of concurrent.futures would."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_Call = tuple["Future[Any]", Callable[[], Any]]


class SlotThread:
    """Started with its first call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Run this after what was submitted before."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        future: Future[Any] = Future()
        self._calls.put((future, call))
        return future

    def _run(self) -> None:
        while (work := self._calls.get()) is not None:
            future, call = work
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - sys.exit() in a handler is one of them
                future.set_exception(error)

    def close(self) -> None:
        """End after the call under way."""
        self._calls.put(None)
