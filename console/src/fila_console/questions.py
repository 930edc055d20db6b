"""A question that may take the broker long, such as one about each of a million keys: pages do not wait for it.

A page is made with what was told last, and is made anew a second later. Only the first time there is nothing to show.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

WAIT_S = 0.15
"""For an answer that is under way. Most come sooner, and are in the page at once."""

AnswerT = TypeVar("AnswerT")


class Question(Generic[AnswerT]):
    """One question, asked again and again, and its newest answer."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._task: asyncio.Task[AnswerT] | None = None
        self._asked_at_s = -math.inf
        self.answer: AnswerT | None = None
        self.at_s = -math.inf
        """When the newest answer was asked for."""

    async def ask(self, question: Callable[[], Coroutine[Any, Any, AnswerT]]) -> AnswerT | None:
        """The newest answer, None before the first; it is asked for anew once its time has come. Raises Trouble."""
        if self._task is None and time.monotonic() - self.at_s >= self._every_s:
            self._asked_at_s = time.monotonic()
            self._task = asyncio.create_task(question())
            # Where nobody comes back for it, a failure is no news.
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=WAIT_S)
            if self._task.done():
                task, self._task = self._task, None
                self.answer = task.result()
                self.at_s = self._asked_at_s
        return self.answer

    def close(self) -> None:
        """Nobody waits for it any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
