"""Who watches what: one question to the broker a second, however many browsers look at its answer.

A `Topic` makes the state of one page; a `Watch` asks it once a second while somebody looks, and for a few seconds more.
A watcher keeps nothing but the number of the state it was sent last: when it has room again it gets the changes since
the state before, or all of the newest if it missed one. So a browser that never reads costs one socket's buffer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import orjson

from fila_console.cells import State
from fila_console.settings import Broker
from fila_console.trouble import Trouble
from fila_console.upstream import Upstream

EVERY_S = 1.0
LINGER_S = 10.0
"""How long a watch goes on after the last who looked, since a page is loaded before its stream is opened."""
WATCHES_MAX = 256
"""An upstream's; the ones nobody has looked at for longest are forgotten, with their hour."""

_log = logging.getLogger("fila.console")


class Topic(Protocol):
    """What makes the state of one page."""

    @property
    def news(self) -> asyncio.Event | None:
        """Set when there is something new to look at; None where only time tells."""

    async def close(self) -> None:
        """Nobody looks any more. It may be looked at again."""

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker. Raises Trouble."""


class Asked:
    """A topic that asks anew each time."""

    @property
    def news(self) -> asyncio.Event | None:
        """Only time tells."""
        return None

    async def close(self) -> None:
        """Nothing is open."""


class Watch:
    """One topic of one upstream."""

    def __init__(self, topic: Topic, upstream: Upstream) -> None:
        self._topic = topic
        self._upstream = upstream
        self.seq = 1
        self.state: State | None = None
        self.trouble: Trouble | None = None
        self.watchers = 0
        self.looked_at_s = 0.0
        self._asked_at_s = 0.0
        self._whole: bytes | None = None
        self._changes: bytes = b""
        self._is_first = True
        self._told = asyncio.Event()
        self._asking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def current(self) -> State:
        """A state not older than a second; it is kept current for a while. Raises Trouble."""
        self._keep_going()
        if (
            self.state is None
            or self.trouble is not None
            or time.monotonic() - self._asked_at_s > EVERY_S * 1.5
        ):
            await self._ask()
        if self.trouble is not None:
            raise self.trouble
        assert self.state is not None
        return self.state

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """As long as this is entered, it goes on."""
        self.watchers += 1
        self._keep_going()
        try:
            yield
        finally:
            self.watchers -= 1
            self.looked_at_s = time.monotonic()

    async def after(self, seq: int, wait_s: float) -> bool:
        """Whether there is something newer than `seq`, waiting for it at most `wait_s` seconds."""
        if self.seq == seq or not self._has_something:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._told.wait()
        return self.seq != seq and self._has_something

    @property
    def _has_something(self) -> bool:
        """False before the first answer, and where a trouble is over and the broker has not answered since."""
        return self.state is not None or self.trouble is not None

    def since(self, seq: int) -> tuple[str, bytes]:
        """What somebody who was told `seq` last is told now: the event's name, and its data."""
        if self.trouble is not None:
            return "failed", orjson.dumps(
                {"title": self.trouble.title, "text": self.trouble.text, "advice": self.trouble.advice}
            )
        if seq == self.seq - 1 and self._changes:
            return "changes", self._changes
        if self._whole is None:
            assert self.state is not None
            self._whole = orjson.dumps(self.state.whole())
        return "whole", self._whole

    def stop(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()

    @property
    def is_over(self) -> bool:
        """The broker does not know the key any more."""
        return self.trouble is not None and self.trouble.logs_out

    def _keep_going(self) -> None:
        self.looked_at_s = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._ask_on()
        finally:
            # Not under a look: what it reads would be gone.
            async with self._asking:
                await self._topic.close()

    async def _ask_on(self) -> None:
        while self.watchers or time.monotonic() - self.looked_at_s < LINGER_S:
            began_s = time.monotonic()
            if began_s - self._asked_at_s >= EVERY_S / 2:
                await self._ask()
            if self.is_over:
                return
            await self._rest(began_s)

    async def _rest(self, began_s: float) -> None:
        """Until the next question: until there is news, or a second where only time tells."""
        news = self._topic.news
        if news is None:
            await asyncio.sleep(max(EVERY_S / 4, EVERY_S - (time.monotonic() - began_s)))
            return
        news.clear()
        # Not on each of many changes; and the ages that are shown grow, news or none.
        await asyncio.sleep(EVERY_S / 4)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EVERY_S):
                await news.wait()

    async def _ask(self) -> None:
        asked_s = time.monotonic()
        async with self._asking:
            if self._asked_at_s > asked_s:
                return  # somebody else asked meanwhile
            try:
                state = await self._topic.look(self._upstream)
                changes = b""
                if self.state is not None and self.trouble is None:
                    changes = orjson.dumps(state.changes_since(self.state))
            except Trouble as trouble:
                self._fail(trouble)
            except Exception:  # noqa: BLE001 - logged whole; the watch, and every later page, must go on
                _log.exception("a page could not be made")
                self._fail(Trouble(500, "The console failed", "Its log says more.", "Load the page again."))
            else:
                self.state, self.trouble = state, None
                self._tell(changes)
            self._asked_at_s = time.monotonic()

    def _fail(self, trouble: Trouble) -> None:
        is_news = not trouble.says_as(self.trouble)
        self.trouble = trouble
        if is_news:
            self._tell(b"")

    def _tell(self, changes: bytes) -> None:
        # After a failure nothing but the whole state will do: two steps on.
        self.seq += 1 if changes else 2
        self._changes = changes
        self._whole = None
        self._told.set()
        self._told = asyncio.Event()


class Watches:
    """Every upstream, and what is watched of each."""

    def __init__(self, ca_file: str, forget_key: Callable[[str, str], None]) -> None:
        self._ca_file = ca_file
        self._forget_key = forget_key
        self._upstreams: dict[tuple[str, str], Upstream] = {}
        self._watches: dict[tuple[str, str], OrderedDict[Any, Watch]] = {}

    def upstream(self, broker: Broker, key: str) -> Upstream:
        """The one of this broker and key."""
        name = (broker.name, key)
        if name not in self._upstreams:
            self._upstreams[name] = Upstream(broker, key, self._ca_file)
        return self._upstreams[name]

    def watch(self, upstream: Upstream, name: tuple[str, ...], make: Callable[[], Topic]) -> Watch:
        """The watch of this name, made if need be."""
        watches = self._watches.setdefault((upstream.broker.name, upstream.key), OrderedDict())
        if name not in watches:
            while len(watches) >= WATCHES_MAX:
                idle = next((each for each, watch in watches.items() if not watch.watchers), None)
                if idle is None:
                    raise Trouble(
                        503, "Too much is watched", f"{WATCHES_MAX} pages are watched with this key."
                    )
                watches.pop(idle).stop()
            watches[name] = Watch(make(), upstream)
        watches.move_to_end(name)
        return watches[name]

    def looked_at(self) -> set[tuple[str, str]]:
        """Brokers' names with keys by which somebody looks, or did a moment ago."""
        recent_s = time.monotonic() - LINGER_S
        return {
            name
            for name, watches in self._watches.items()
            if any(watch.watchers or watch.looked_at_s > recent_s for watch in watches.values())
        }

    def watching(self, kind: str = "") -> int:
        """How many browsers watch; of what is watched by names that begin with `kind` alone, if it is said."""
        return sum(
            watch.watchers
            for watches in self._watches.values()
            for name, watch in watches.items()
            if not kind or name[0] == kind
        )

    async def tidy(self, in_use: set[tuple[str, str]]) -> None:
        """Log out keys the broker refused, and hang up where nobody is logged in any more."""
        for (broker, key), watches in self._watches.items():
            if key and any(watch.is_over for watch in watches.values()):
                self._forget_key(broker, key)
        for name in [name for name in self._upstreams if name[1] and name not in in_use]:
            await self._end(name)

    async def close(self) -> None:
        """End everything."""
        for name in [*self._upstreams]:
            await self._end(name)

    async def _end(self, name: tuple[str, str]) -> None:
        for watch in self._watches.pop(name, {}).values():
            watch.stop()
        await self._upstreams.pop(name).close()
