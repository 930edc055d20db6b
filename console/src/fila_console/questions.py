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
REST = 20
"""A broker that needs longer for an answer is asked so many times less often: an open page costs it a small part of a
core, however much there is to look at."""

AnswerT = TypeVar("AnswerT")


class Question(Generic[AnswerT]):
    """One question, asked again and again, and its newest answer."""

    def __init__(self, every_s: float, rest: int = REST) -> None:
        self._every_s = every_s
        self._rest = rest
        self._task: asyncio.Task[tuple[AnswerT, float, float]] | None = None
        self._due_s = -math.inf
        self.answer: AnswerT | None = None
        self.at_s = -math.inf
        """When the newest answer was asked for."""

    async def ask(self, question: Callable[[], Coroutine[Any, Any, AnswerT]]) -> AnswerT | None:
        """The newest answer, None before the first; it is asked for anew once its time has come. Raises Trouble."""
        if self._task is None and time.monotonic() >= self._due_s:
            self._task = asyncio.create_task(_timed(question))
            # Takes the exception: else asyncio logs one that nobody awaits any more, as when the page was closed.
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
        if (task := self._task) is not None:
            await asyncio.wait({task}, timeout=WAIT_S)
            # Meanwhile the page may have been closed, and asked for again.
            if task.done() and self._task is task:
                self._task = None
                self.answer, self.at_s, took_s = task.result()
                self._due_s = self.at_s + max(self._every_s, self._rest * took_s)
        return self.answer

    async def first(self, question: Callable[[], Coroutine[Any, Any, AnswerT]]) -> AnswerT:
        """As `ask`, and waits for the first answer. Raises Trouble."""
        while (answer := await self.ask(question)) is None:
            pass
        return answer

    def close(self) -> None:
        """Nobody waits for it any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


async def _timed(question: Callable[[], Coroutine[Any, Any, AnswerT]]) -> tuple[AnswerT, float, float]:
    """An answer, when it was asked for, and how many seconds it took."""
    asked_at_s = time.monotonic()
    answer = await question()
    return answer, asked_at_s, time.monotonic() - asked_at_s
