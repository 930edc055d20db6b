"""Queues in numbers, as the broker tells them: one stream, merged into what is so now.

The broker looks once a second for all who watch a queue, and tells what changed; here that is put together again, so
that a page can ask for the whole at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from fila.answers import KeyState
from fila.watched import QueueState, QueueSums, StatsChange
from fila_console.trouble import Trouble

FIRST_S_MAX = 5.0

Place = tuple[str, str]
"""A queue and a channel."""


class Told(Protocol):
    """Where the changes come from. Raises Trouble."""

    def __call__(self) -> AsyncIterator[StatsChange]:
        """Begin to tell, everything first."""


class Feed:
    """What one stream has told so far."""

    def __init__(self, told: Told, named: Sequence[str] = ()) -> None:
        """`named` are keys that are told whether they lead or not."""
        self._told = told
        self._named = named
        self._task: asyncio.Task[None] | None = None
        self._trouble: Trouble | None = None
        self._first = asyncio.Event()
        self.news = asyncio.Event()
        """Set with each change; a waiter for the next clears it."""
        self.channels: dict[Place, QueueState] = {}
        self.keys: dict[Place, dict[str, KeyState]] = {}
        self.leading: dict[Place, list[str]] = {}
        self.sums: QueueSums | None = None
        """Of all queues, where all are followed."""

    async def ready(self) -> None:
        """Return once it has been told everything, and is being told what changes. Raises Trouble."""
        if self._task is None or self._task.done():
            self._trouble = None
            self._first.clear()
            self._task = asyncio.create_task(self._follow())
        waiting = asyncio.create_task(self._first.wait())
        await asyncio.wait((waiting, self._task), timeout=FIRST_S_MAX, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble
        if not self._first.is_set():
            # The next who asks begins with a stream of its own.
            self._task.cancel()
            raise Trouble(
                503, "The broker does not answer", "Its numbers did not come.", "This page goes on by itself."
            )

    async def close(self) -> None:
        """End the stream."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self) -> None:
        try:
            async for change in self._told():
                self._take(change)
                self._first.set()
                self.news.set()
        except Trouble as trouble:
            self._trouble = trouble
        finally:
            self.news.set()

    def _take(self, change: StatsChange) -> None:
        if change.full:
            self.channels.clear()
            self.keys.clear()
            self.leading.clear()
            self.sums = None
        if change.sums is not None:
            self.sums = change.sums
        for gone in change.gone:
            place = (gone.queue, gone.channel)
            for kept in (self.channels, self.keys, self.leading):
                kept.pop(place, None)
        for channel in change.channels:
            place = (channel.state.queue, channel.state.channel)
            self.channels[place] = channel.state
            self.leading[place] = channel.leading
            keys = self.keys.setdefault(place, {})
            keys |= {each.fairness_key: each for each in channel.keys}
            # One that leads no more is told no more: what was told of it last is not so any longer.
            self.keys[place] = {key: keys[key] for key in (*channel.leading, *self._named) if key in keys}


class FeedTopic:
    """What topics that look at a feed have in common (watches.py: Topic). Their first look opens it."""

    def __init__(self) -> None:
        self._feed: Feed | None = None

    @property
    def news(self) -> asyncio.Event | None:
        """Set when the numbers changed."""
        return self._feed.news if self._feed is not None else None

    async def close(self) -> None:
        """End the stream of numbers; a further look opens another."""
        if self._feed is not None:
            await self._feed.close()
            self._feed = None
