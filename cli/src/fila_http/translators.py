"""Processes that read and write JSON beside the loop, and whose turn it is at them.

What is small the loop does itself: a few hundred values take it less than a millisecond. Anything else goes to one of
a few processes (`translation.py` says why to processes), so that the loop answers its other callers meanwhile. They
are started when they are needed first.

One caller has at most half of them at a time, and callers that wait take turns: however many and however large the
bodies of one, the next caller's is read at once.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import Counter, OrderedDict, deque
from typing import Any

import orjson

from fila_http import translation
from fila_http.problems import busy
from fila_http.route import Route
from fila_http.translation import DONE, OUTCOME, READ, REFUSED, TELL, WORK, WRITE, Arguments

LOOP_BYTES = 16 << 10
"""JSON up to here may be read on the loop."""

LOOP_VALUES = 256
"""If it holds no more values than these: what they cost is told by their number."""

LOOP_ANSWER_BYTES = 4 << 10
"""An answer up to here may be written on the loop. The broker's bytes are denser than JSON."""

TRANSLATORS_MIN, TRANSLATORS_MAX = 2, 4
TRANSLATE_S_MAX = 30.0


def is_for_the_loop(body: bytes) -> bool:
    """Whether JSON is so small that reading it holds up nobody: told by its bytes, before it is read."""
    return len(body) <= LOOP_BYTES and body.count(b",") + body.count(b"{") + body.count(b"[") <= LOOP_VALUES


class TranslatorFailed(Exception):
    """A process made a mistake, or ended; its own words are in the text."""


class Translators:
    """A few processes, shared by all callers."""

    def __init__(self, most: int = 0) -> None:
        self.most = most or max(TRANSLATORS_MIN, min(TRANSLATORS_MAX, os.cpu_count() or 1))
        self._turns = Turns(self.most, (self.most + 1) // 2)
        self._idle: list[_Translator] = []
        self._all: set[_Translator] = set()

    async def read(self, holder: str, route: Route, said: Arguments, body: bytes) -> bytes:
        """The request's message, as the broker takes it. Raises Problem."""
        return await self._do(holder, READ, {**said, "route": route.name}, body)

    async def write(self, holder: str, route: Route, answer: bytes) -> bytes:
        """The answer as JSON."""
        return await self._do(holder, WRITE, {"route": route.name}, answer)

    async def tell(self, holder: str, route: Route, response: bytes) -> bytes:
        """The events of one response of a stream."""
        return await self._do(holder, TELL, {"route": route.name}, response)

    async def _do(self, holder: str, kind: int, said: dict[str, Any], body: bytes) -> bytes:
        await self._turns.take(holder)
        translator = None
        try:
            translator = self._idle.pop() if self._idle else await self._start()
            async with asyncio.timeout(TRANSLATE_S_MAX):
                outcome, done = await translator.ask(kind, orjson.dumps(said), body)
            self._idle.append(translator)
        except BaseException as error:
            # Whatever it does now is nobody's any more.
            if translator is not None:
                self._all.discard(translator)
                translator.kill()
            if isinstance(error, TimeoutError):
                raise busy(
                    f"the body was not read within {TRANSLATE_S_MAX:g} s; send a smaller one"
                ) from None
            if isinstance(error, asyncio.IncompleteReadError | ConnectionError):
                raise TranslatorFailed(
                    "the process that reads JSON ended; the next one takes its place"
                ) from error
            raise
        finally:
            self._turns.give_back(holder)
        if outcome == DONE:
            return done
        if outcome == REFUSED:
            raise translation.refused(done)
        raise TranslatorFailed(done.decode("utf-8", "replace"))

    async def _start(self) -> _Translator:
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.to_thread(_launch, theirs)
        started = _Translator(process, *await asyncio.open_connection(sock=ours))
        self._all.add(started)
        return started

    async def close(self) -> None:
        """End them."""
        for each in self._all:
            each.kill()
        await asyncio.gather(*(asyncio.to_thread(each.process.wait) for each in self._all))


def _launch(theirs: socket.socket) -> subprocess.Popen[bytes]:
    # Not by the loop's own way, which forks as gRPC does not like it.
    command = [sys.executable, "-m", translation.__name__]
    return subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno())  # noqa: S603 - our own


class _Translator:
    """One process."""

    def __init__(
        self, process: subprocess.Popen[bytes], outcomes: asyncio.StreamReader, work: asyncio.StreamWriter
    ) -> None:
        self.process = process
        self._outcomes = outcomes
        self._work = work

    async def ask(self, kind: int, said: bytes, body: bytes) -> tuple[int, bytes]:
        """What came of it."""
        self._work.write(WORK.pack(kind, len(said), len(body)) + said)
        self._work.write(body)
        await self._work.drain()
        outcome, size = OUTCOME.unpack(await self._outcomes.readexactly(OUTCOME.size))
        return outcome, await self._outcomes.readexactly(size)

    def kill(self) -> None:
        """End it; it is waited for when the next one starts, or the gateway ends."""
        self._work.transport.abort()
        self.process.kill()


class Turns:
    """So many places, of which one holder has at most a share at a time; holders that wait take turns."""

    def __init__(self, places: int, share: int) -> None:
        self._free = places
        self._share = share
        self._taken: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def take(self, holder: str) -> None:
        """Return when it is this one's turn; it gives its place back."""
        if self._free and self._taken[holder] < self._share and holder not in self._waiting:
            self._give_to(holder)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(holder)
            else:
                self._leave(holder, turn)
            raise

    def give_back(self, holder: str) -> None:
        """A place is free again."""
        self._free += 1
        self._taken[holder] -= 1
        if not self._taken[holder]:
            del self._taken[holder]
        for next_holder in [*self._waiting]:
            if not self._free:
                return
            if self._taken[next_holder] < self._share:
                turn = self._waiting[next_holder].popleft()
                self._give_to(next_holder)
                turn.set_result(None)
                self._waiting.move_to_end(next_holder)
                if not self._waiting[next_holder]:
                    del self._waiting[next_holder]

    def _give_to(self, holder: str) -> None:
        self._free -= 1
        self._taken[holder] += 1

    def _leave(self, holder: str, turn: asyncio.Future[None]) -> None:
        waiting = self._waiting[holder]
        waiting.remove(turn)
        if not waiting:
            del self._waiting[holder]
