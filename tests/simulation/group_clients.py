"""What clients ask of a group's owner, and what they know: each answer is judged when it leaves.

group_world.py says what is judged.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.log.model import SimulatedLog
from fila_server.core.protocol import commands
from tests.core.driven_group import Clock, Node
from tests.simulation.log_replay import Replay

QUEUES = {"strict": admin.DURABILITY_FSYNC, "loose": admin.DURABILITY_OS}


class Wrong(Exception):
    """A promise was broken."""


@dataclass
class Call:
    """One call of a client's, and where it was asked."""

    what: str
    queue: str
    asked_ms: int
    log_had: int
    payloads: list[bytes] = field(default_factory=list)
    leases: list[Held] = field(default_factory=list)
    most: int = 0


@dataclass
class Held:
    """A message as its last delivery told it."""

    payload: bytes
    queue: str
    message_id: str
    lease_id: int
    until_ms: int
    is_settled: bool = False
    is_nacked: bool = False


@dataclass
class Known:
    """What clients know of a message."""

    queue: str
    asked_ms: int
    answered_ms: int | None = None
    offset: int = 0
    is_refused: bool = False
    is_acked: bool = False
    ack_asked: bool = False
    failures: int = 0
    held: Held | None = None


class Clients:
    """They ask whichever node they believe to serve."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock, self.log = Clock(), SimulatedLog()
        self.replay = Replay(self.log)
        self.nodes: list[Node] = []
        self.asked: list[dict[int, Call]] = []
        self.readings: list[list[tuple[Call, Any]]] = [[], [], []]
        self.known: dict[bytes, Known] = {}
        self.made = self.tokens = 0
        self.lost_pulls = self.untold = self.hearing = 0
        self.is_big = self.random.random() < 0.05
        names = (
            "answers",
            "deliveries",
            "emptiness",
            "not now",
            "takeovers",
            "terms over",
            "crashes",
            "logs",
        )
        self.judged = dict.fromkeys(names, 0)

    # ---- what is asked

    def _ask(self, place: int) -> None:
        rnd = self.random
        what = rnd.choices(
            ("enqueue", "lease", "ack", "nack", "stats", "nowhere", "log"), (6, 5, 4, 2, 1, 1, 1)
        )[0]
        call = Call(what, rnd.choice(tuple(QUEUES)), self.wall_ms, len(self.log))
        engine = self.nodes[place].engine
        assert engine is not None
        if what == "log":
            request = admin.ReadLogRequest(queue=call.queue, max_batch=10_000)
            reader: Any = engine.core.log_reader(request.SerializeToString())
            reader.ask()
            self.readings[place].append((call, reader))
            return
        kind, request = getattr(self, f"_{what}")(call)
        self.tokens += 1
        try:
            engine.submit(kind, request, self.tokens)
        except errors.Overloaded:
            self._not_now(call)
        else:
            self.asked[place][self.tokens] = call

    @property
    def wall_ms(self) -> int:
        return self.clock.wall_ns // 1_000_000

    def _enqueue(self, call: Call) -> tuple[int, Any]:
        request = service.EnqueueBatchRequest()
        for _ in range(self.random.choice((1, 1, 1, 4))):
            self.made += 1
            payload = b"<%016x>" % self.made
            call.payloads.append(payload)
            self.known[payload] = Known(call.queue, self.wall_ms)
            if self.is_big and self.random.random() < 0.2:
                payload += bytes(1_000_000)
            request.messages.append(service.EnqueueMessage(queue=call.queue, payload=payload))
        return commands.ENQUEUE_BATCH, request

    def _lease(self, call: Call) -> tuple[int, Any]:
        call.most = self.random.choice((1, 3))
        return commands.LEASE, service.LeaseRequest(queue=call.queue, max_messages=call.most)

    def _settle(self, call: Call) -> list[service.SettleItem]:
        """Of one queue, some that somebody holds; or nothing."""
        held = [
            known.held
            for known in self.known.values()
            if known.held is not None and not known.held.is_settled and known.queue == call.queue
        ]
        call.leases = self.random.sample(held, min(len(held), self.random.choice((1, 2))))
        return [
            service.SettleItem(message_id=lease.message_id, lease_id=lease.lease_id) for lease in call.leases
        ]

    def _ack(self, call: Call) -> tuple[int, Any]:
        request = service.AckBatchRequest(queue=call.queue, items=self._settle(call))
        for lease in call.leases:
            lease.is_settled = self.known[lease.payload].ack_asked = True
        return commands.ACK_BATCH, request

    def _nack(self, call: Call) -> tuple[int, Any]:
        request = service.NackBatchRequest(queue=call.queue, items=self._settle(call))
        for lease in call.leases:
            lease.is_settled = lease.is_nacked = True
            self.known[lease.payload].failures += 1
        return commands.NACK_BATCH, request

    def _stats(self, call: Call) -> tuple[int, Any]:
        return commands.GET_STATS, admin.GetStatsRequest(queue=call.queue)

    def _nowhere(self, call: Call) -> tuple[int, Any]:
        """A refusal that tells what the store holds."""
        return commands.LEASE, service.LeaseRequest(queue="nowhere", max_messages=1)

    # ---- what is answered

    def _hear(self, place: int) -> None:
        node = self.nodes[place]
        assert node.engine is not None
        self.hearing = place
        self._read(place)
        for token, kind, status, payload in node.engine.core.drain():
            if kind != commands.REPLY or token not in self.asked[place]:
                continue
            call = self.asked[place].pop(token)
            if self._says_not_now(call, status, payload):
                self._not_now(call)
                continue
            self.judged["answers"] += 1
            if self.replay.newest_of(node.term) < call.log_had:
                raise Wrong(
                    f"node {place + 1} answered {call.what} of offset {call.log_had} and on, and the log has nothing "
                    f"of its term {node.term} there"
                )
            getattr(self, f"_heard_{call.what}")(call, status, payload)

    def _read(self, place: int) -> None:
        """A log that is read shows all that was answered before it was asked for."""
        waiting, self.readings[place] = self.readings[place], []
        for call, reader in waiting:
            if not reader.is_ready:
                self.readings[place].append((call, reader))
                continue
            try:
                told = admin.ReadLogResponse.FromString(reader.read() or b"")
            except errors.Unavailable:
                continue
            self.judged["logs"] += 1
            if self.replay.newest_of(self.nodes[place].term) < call.log_had:
                raise Wrong(
                    f"node {place + 1} showed the log of {call.queue}, and has nothing in the log behind the call"
                )
            found = {message.payload[:18] for message in told.messages}
            is_whole = sum(len(message.payload) for message in told.messages) < 1_000_000
            for name, known in self.known.items():
                is_done = known.answered_ms is not None and known.answered_ms < call.asked_ms
                is_told = is_whole or known.offset < told.next_offset
                if (
                    is_done
                    and is_told
                    and known.queue == call.queue
                    and not known.ack_asked
                    and name not in found
                ):
                    raise Wrong(f"{name!r} was answered, and the log of {call.queue} does not show it")

    @staticmethod
    def _says_not_now(call: Call, status: int, payload: bytes) -> bool:
        if status:
            return bool(messages.ItemStatus.FromString(payload).reason == "OVERLOADED")
        if call.what != "enqueue":
            return False
        results = service.EnqueueBatchResponse.FromString(payload).results
        return all(result.error.reason == "OVERLOADED" for result in results)

    def _not_now(self, call: Call) -> None:
        self.judged["not now"] += 1
        for payload in call.payloads:
            self.known[payload].is_refused = True

    def _heard_enqueue(self, call: Call, status: int, payload: bytes) -> None:
        if status:
            raise Wrong(f"an enqueue was refused with {status}")
        results = service.EnqueueBatchResponse.FromString(payload).results
        for name, result in zip(call.payloads, results, strict=True):
            known = self.known[name]
            if result.HasField("error"):
                raise Wrong(f"a part of an enqueue was refused: {result.error.reason}")
            if name not in self.replay.payloads:
                raise Wrong(f"{name!r} was answered and is in no record of the log that counts")
            known.answered_ms, known.offset = self.wall_ms, result.offset

    def _heard_lease(self, call: Call, status: int, payload: bytes) -> None:
        if status:
            raise Wrong(f"a lease was refused with {status}")
        told = service.LeaseResponse.FromString(payload).messages
        for message in told:
            self._told(call, message)
        others = [other for asked in self.asked for other in asked.values()]
        if told or self.lost_pulls or sum(other.most for other in others):
            return  # somebody may hold what nobody was told of
        self.judged["emptiness"] += 1
        for name, known in self.known.items():
            is_done = known.answered_ms is not None and known.answered_ms < call.asked_ms
            if is_done and known.queue == call.queue and known.held is None:
                raise Wrong(f"{call.queue} was said to be empty, and {name!r} waits in it")

    def _told(self, call: Call, message: messages.Message) -> None:
        self.judged["deliveries"] += 1
        name = message.payload[:18]
        known = self.known.get(name)
        if known is None or known.queue != call.queue:
            raise Wrong(f"{name!r} was delivered and never enqueued in {call.queue}")
        if known.is_refused or known.is_acked:
            raise Wrong(f"{name!r} was {'refused' if known.is_refused else 'acked'}, and is delivered")
        if name not in self.replay.payloads:
            raise Wrong(f"{name!r} is delivered, and is in no record that counts")
        held = known.held
        if held is not None and not held.is_settled and held.until_ms > self.wall_ms:
            raise Wrong(f"{name!r} is leased twice at once: until {held.until_ms}, and at {self.wall_ms}")
        if held is not None and not held.is_nacked:  # it ran out, or was acked in a call that is lost
            known.failures += 1
        attempts = message.metadata.attempt_count
        self.untold += max(0, attempts - known.failures)
        others = [call for n, asked in enumerate(self.asked) for call in asked.values() if n != self.hearing]
        if self.untold > self.lost_pulls + sum(call.most for call in others):
            raise Wrong(f"{name!r} counts {attempts} attempts, and {known.failures} were told to anybody")
        known.failures = max(known.failures, attempts)
        known.held = Held(
            name,
            call.queue,
            message.id,
            message.metadata.lease_id,
            message.timestamps.lease_expires_at.ToMilliseconds(),
        )

    def _heard_ack(self, call: Call, status: int, payload: bytes) -> None:
        for lease, code in self._settled(call, status, payload):
            if code == 0:
                self.known[lease.payload].is_acked = True

    def _heard_nack(self, call: Call, status: int, payload: bytes) -> None:
        self._settled(call, status, payload)

    def _settled(self, call: Call, status: int, payload: bytes) -> list[tuple[Held, int]]:
        if status:
            return []
        codes = [r.code for r in service.SettleBatchResponse.FromString(payload).results]
        told = list(zip(call.leases, codes, strict=True))
        for lease, code in told:
            if code and lease.until_ms > self.wall_ms:
                raise Wrong(f"{lease.payload!r} was settled under a lease that runs, and refused with {code}")
        return told

    def _heard_stats(self, call: Call, status: int, payload: bytes) -> None:
        """As many as are known to wait, and no more than may."""
        if status:
            raise Wrong(f"stats were refused with {status}")
        depth = admin.GetStatsResponse.FromString(payload).depth
        may = sum(
            known.queue == call.queue and not known.is_acked and not known.is_refused
            for known in self.known.values()
        )
        if depth > may:
            raise Wrong(f"{call.queue} says that it has {depth}, and {may} were enqueued and not acked")

    def _heard_nowhere(self, call: Call, status: int, payload: bytes) -> None:
        if not status:
            raise Wrong("a queue that never was, was leased from")
