"""Random pipelines, sent to a server and carried out by a model that fits on a page.

The model knows what each command must answer; the server's tickets and offsets are learned from
its replies and must stay what they were.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.redis.raw_client import ErrorReply, RawClient, Status, command

QUEUES = ("orders", "bills")
CHANNELS = ("mail", "audit")

# Nothing may expire while the test runs, and everything stays readable for seeks.
SETUP = (
    ("CONFIG", "SET", "server.message_timeout", "12h"),
    ("CONFIG", "SET", "server.retention_period", "24h"),
)


Args = tuple[Any, ...]


@dataclass
class Channel:
    pending: list[bytes] = field(default_factory=list)
    leased: set[int] = field(default_factory=set)


@dataclass
class Queue:
    log: list[bytes] = field(default_factory=list)
    seekable_from: int = 0
    """Index in the log; what was purged below it may or may not be retained."""
    channels: dict[str, Channel] = field(default_factory=dict)


class Model:
    """What every command must answer: a value, the prefix of an error, for HMGET the bodies."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}

    def run(self, name: str, *args: Any) -> Any:
        return getattr(self, f"_{name.lower()}")(*args)

    def _setnx(self, queue: str, channel: str) -> Any:
        self.queues.setdefault(queue, Queue()).channels.setdefault(channel, Channel())
        return Status("OK")

    def _set(self, queue: str, channel: str) -> Any:
        return "QAE" if queue in self.queues else self._setnx(queue, channel)

    def _rpush(self, queue: str, *bodies: bytes) -> Any:
        if queue not in self.queues:
            return "QNF"
        self.queues[queue].log += bodies
        for channel in self.queues[queue].channels.values():
            channel.pending += bodies
        return len(bodies)

    def _hmget(self, queue: str, channel: str, count: int) -> Any:
        if count == 0:
            return []
        found = self._find(queue, channel)
        if isinstance(found, str):
            return found
        taken, found.pending = found.pending[:count], found.pending[count:]
        return taken

    def lease(self, args: Args, tickets: set[int]) -> None:
        """The tickets that an HMGET gave out."""
        if tickets:
            found = self._find(args[1], args[2])
            assert isinstance(found, Channel)
            found.leased |= tickets

    def _hdel(self, queue: str, channel: str, *tickets: int) -> Any:
        found = self._find(queue, channel)
        if isinstance(found, str):
            return found
        held = found.leased & set(tickets)
        found.leased -= held
        return len(held)

    def _hmset(self, queue: str, channel: str, _by: str, body: bytes | None) -> Any:
        """Seek to a message, or beyond all of them."""
        found = self._find(queue, channel)
        if isinstance(found, str):
            return found
        log = self.queues[queue].log
        found.leased.clear()
        found.pending = [] if body is None else log[log.index(body) :]
        return 2

    def _srem(self, queue: str, channel: str) -> Any:
        everywhere = channel == "*" and queue in self.queues
        if not everywhere and isinstance(self._find(queue, channel), str):
            return 0
        channels = self.queues[queue].channels
        for emptied in channels.values() if everywhere else (channels[channel],):
            emptied.pending.clear()
        self.queues[queue].seekable_from = len(self.queues[queue].log)
        return 1

    def _del(self, queue: str, channel: str | None = None) -> Any:
        if channel is None:
            return int(self.queues.pop(queue, None) is not None)
        if queue not in self.queues:
            return 0
        return int(self.queues[queue].channels.pop(channel, None) is not None)

    def _find(self, queue: str, channel: str) -> Channel | str:
        if queue not in self.queues:
            return "QNF"
        return self.queues[queue].channels.get(channel, "CNF")


class RandomPipelines:
    """Makes pipelines, sends them, and compares reply by reply."""

    def __init__(self, seed: int, clients: list[RawClient]) -> None:
        self._dice = random.Random(seed)
        self._clients = clients
        self._model = Model()
        self._bodies_made = 0
        self._offsets: dict[bytes, int] = {}
        self._tickets: list[int] = []
        often = [self._push] * 6 + [self._read] * 5 + [self._ack] * 5
        # Where a seek leads is only sure when nothing is purged or deleted in the same pipeline.
        self._calm = [*often, self._seek, self._seek]
        self._stirring = [*often, self._make, self._make, self._make, self._purge, self._delete]

    async def run(self, count: int) -> None:
        """Send `count` pipelines from one client or another; the next one starts when the last was answered."""
        for args in SETUP:
            assert await self._clients[0](*args) == Status("OK")
        for number in range(count):
            makers = self._calm if self._dice.random() < 0.8 else self._stirring
            pipeline = [self._dice.choice(makers)() for _ in range(self._dice.randrange(1, 12))]
            client = self._dice.choice(self._clients)
            client.send(b"".join(self._encoded(args) for args in pipeline))
            for args in pipeline:
                self._check(args, await client.reply(), f"pipeline {number}, {args}")

    # --- commands -------------------------------------------------------------------------

    def _place(self) -> tuple[str, str]:
        return self._dice.choice(QUEUES), self._dice.choice(CHANNELS)

    def _push(self) -> Args:
        first = self._bodies_made
        self._bodies_made += self._dice.choice((1, 1, 1, 2, 7))
        return ("RPUSH", self._place()[0], *[b"%d" % n for n in range(first, self._bodies_made)])

    def _read(self) -> Args:
        return ("HMGET", *self._place(), self._dice.choice((0, 1, 2, 5, 50)))

    def _ack(self) -> Args:
        recent = self._tickets[-40:]
        known = self._dice.sample(recent, min(len(recent), self._dice.randrange(1, 12)))
        return ("HDEL", *self._place(), *(known or [7]), *known[:1])  # one of them twice

    def _seek(self) -> Args:
        queue, channel = self._place()
        log = self._model.queues.get(queue, Queue())
        known = [body for body in log.log[log.seekable_from :] if body in self._offsets]
        body = self._dice.choice(known[-60:]) if known and self._dice.random() < 0.9 else None
        return ("HMSET", queue, channel, "ID", body)

    def _make(self) -> Args:
        return (self._dice.choice(("SET", "SETNX", "SETNX")), *self._place())

    def _purge(self) -> Args:
        queue, channel = self._place()
        return ("SREM", queue, self._dice.choice((channel, "*")))

    def _delete(self) -> Args:
        queue, channel = self._place()
        return self._dice.choice((("DEL", queue), ("DEL", queue, channel)))

    def _encoded(self, args: Args) -> bytes:
        if args[0] == "HMSET":
            return command(*args[:-1], 2**63 if args[-1] is None else self._offsets[args[-1]])
        return command(*args)

    # --- replies --------------------------------------------------------------------------

    def _check(self, args: Args, got: Any, where: str) -> None:
        want = self._model.run(*args)
        if isinstance(want, list):
            assert isinstance(got, list), f"{where}: {got}"
            assert [row[2] for row in got] == want, where
            for offset, ticket, body in got:
                assert self._offsets.setdefault(body, offset) == offset, where
                assert ticket not in self._tickets[-1000:], f"{where}: a ticket was given twice"
                self._tickets.append(ticket)
            self._model.lease(args, {row[1] for row in got})
        elif isinstance(want, str) and not isinstance(want, Status):
            assert isinstance(got, ErrorReply), f"{where}: {got}"
            assert got.split()[0] == want, where
        else:
            assert got == want, where
