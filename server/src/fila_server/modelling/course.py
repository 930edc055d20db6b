"""The core on another course: recorded arrivals and consumers at their times, under another policy.

Messages arrive as they were recorded, consumers come with the room that they had, and each delivery is held and ends as
it was recorded; where it was delivered for the first time, as others of its key. Nothing waits for a disk. Acks and
nacks are the model's own, so what they said of leases is left out: a nack's own delay, what a consumer gave back, a
session that goes on after a broken connection. So are its ids: what a sender took back by them is delivered here.

Streams that were there at the last recorded delivery stay until as many messages were delivered as were recorded. Else
a course with slower consumers would leave out those who wait longest.
"""

from __future__ import annotations

import heapq
import itertools
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fila.v1 import admin_pb2, messages_pb2, service_pb2
from fila_server.core.protocol import commands
from fila_server.core.replay.replay import Model
from fila_server.history_files import columns, replaying
from fila_server.modelling.handling import Handling, How
from fila_server.modelling.policy import Policy, PolicyRefused
from fila_server.modelling.routings import without_keys
from fila_server.modelling.scripts import Scripts
from fila_server.modelling.served import Served, Tenants

MS = 1_000_000
PASSES_MAX = 100_000
"""Of a clock that stands still: the core always comes to rest sooner."""

ENQUEUES = (*range(commands.ENQUEUE, commands.ENQUEUE_ATOMIC + 1), commands.FIRE)
SINK_CALLS = range(commands.OPEN_SINK, commands.MOVE_STAGED + 1)
AS_RECORDED = frozenset(
    [
        *(commands.LISTENED, commands.DELETE_QUEUE, commands.PURGE_QUEUE, commands.CREATE_CHANNEL),
        *(commands.DELETE_CHANNEL, commands.SEEK_CHANNEL, commands.PURGE_CHANNEL, commands.REDRIVE_MOVE),
        commands.SKIP_MESSAGE,
        commands.SCHEDULE_CHANGE,
    ]
)
OF_CONSUMERS = frozenset(
    [
        *(commands.LEASE, commands.CANCEL, commands.CONSUME_OPEN, commands.SESSION_OPEN),
        *(commands.SESSION, commands.CONSUMER_CLOSE),
    ]
)


class NotModelled(Exception):
    """The recording holds what a model cannot follow; the text says what."""


@dataclass(frozen=True)
class Came:
    """What came of one course."""

    served: list[dict[str, Any]]
    refused: int
    """Calls that the core refused: enqueues into a full queue, settles of leases that had ended."""
    drawn: int
    """Deliveries whose handling was not recorded, and was drawn from others of the key."""
    unknown: int
    """Of these, those without anything to draw from: they stay in flight."""
    script_failures: int
    waited_before: int
    """First in, first out: deliveries of messages that waited when the recording began: they kept their turn."""


def run(
    inputs: Iterable[pa.Table],
    decisions: Iterable[pa.Table],
    policy: Policy,
    seed: int,
    slowness: float = 1.0,
) -> Came:
    """Run one course over one segment, once a process; `slowness` as Handling has it. Raises NoBase, NotModelled,
    NotReplayable, PolicyRefused."""
    handling = Handling(seed, slowness)
    tenants = Tenants() if policy.fifo else None
    for part in decisions:
        handling.take(part)
        if tenants is not None:
            tenants.take(part)
    folder = tempfile.mkdtemp(prefix="fila-model-")
    parts = iter(inputs)
    try:
        core, rest = replaying.begin(parts, Path(folder), Model, seed)
        try:
            course = _Course(core, policy, handling, Served(tenants), seed)
            passes = replaying.WholePasses(itertools.chain([rest], parts))
            for part in passes:
                course.take(part)
            course.take(passes.pending)
            return course.end()
        finally:
            core.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Course:
    def __init__(self, core: Model, policy: Policy, handling: Handling, served: Served, seed: int) -> None:
        self.core = core
        self.policy = policy
        self.handling = handling
        self.scripts = Scripts(policy, core.headers, seed)
        self.served = served
        self.mono_ns, self.wall_ns = core.clocks
        self.began_ns = self.mono_ns
        self.delivered = 0
        self.has_stayed = False
        self.wanted_ns: int | None = self.mono_ns
        self.pass_ns = self.mono_ns
        self.pass_wall_ns = self.wall_ns
        self.numbers = itertools.count(1)
        self.tokens: dict[int, int] = {}
        """The model's own by recorded ones: of streams and of pulls that wait."""
        self.streams: dict[int, int] = {}
        """By the model's token, the command that opened it."""
        self.due: list[tuple[int, int, str, str, How, str, int]] = []
        self.answers: dict[int, tuple[int, bytes]] = {}
        self.asked: int | None = None
        self.refused = 0
        self._settings()

    # --- what was recorded --------------------------------------------------------------------

    def take(self, part: pa.Table) -> None:
        """Offer inputs of whole passes, each at its time."""
        pending = False
        for kind, number, at_us, token, a, b, data in _rows(part):
            if kind == "pass":
                if pending:
                    self._settle_down()
                    pending = False
                if number > self.handling.last_pass:
                    self._stay()
                self.pass_ns = max(a, self.pass_ns)
                self.pass_wall_ns = at_us * 1000
            elif kind == "load":
                if data:
                    self.core.remember(token, a, b, data)
            else:
                if not pending:
                    self._until(self.pass_ns)
                    self._at(self.pass_ns)
                self._offer(a, token, b, data)
                pending = True
        if pending:
            self._settle_down()

    def end(self) -> Came:
        """Let the time go by to the last recorded pass, or until as much was delivered."""
        self._until(self.pass_ns)
        self._stay()
        self._count(cut=True)
        return Came(
            self.served.rows(),
            self.refused,
            self.handling.drawn,
            self.handling.unknown,
            self.scripts.failures,
            self.served.of_others,
        )

    # --- time ---------------------------------------------------------------------------------

    def _at(self, mono_ns: int) -> None:
        """Go to this moment; the wall clock keeps the distance that it had in the recording."""
        self.mono_ns = max(mono_ns, self.mono_ns)
        self.wall_ns = self.pass_wall_ns + self.mono_ns - self.pass_ns

    def _until(self, mono_ns: int, enough: int | None = None) -> None:
        """Everything that is due by this moment, or until so many deliveries are enough; so an ack comes before the
        pull of the same moment."""
        while enough is None or self.delivered < enough:
            due = [at for at in (self.wanted_ns, self.due[0][0] if self.due else None) if at is not None]
            if not due or min(due) > mono_ns:
                return
            self._at(min(due))
            self._settle()
            self._settle_down()

    def _stay(self) -> None:
        """Let the time go by until as many messages were delivered as were recorded, at most as long again; once. No
        stream is taken for silent meanwhile: that is counted where the edge listens."""
        if self.has_stayed:
            return
        self.has_stayed = True
        if self.streams:
            self._until(2 * self.mono_ns - self.began_ns, enough=self.handling.delivered)

    def _settle_down(self) -> None:
        """Passes until nothing more comes of this moment."""
        for _ in range(PASSES_MAX):
            self.wanted_ns = self.core.run_pass(self.mono_ns, self.wall_ns)
            busy = self.core.commit() | bool(self.core.load())
            found = self.core.drain()
            for token, kind, status, payload in found:
                self._answered(token, kind, status, payload)
            self._count()
            if not (busy or found or (self.wanted_ns is not None and self.wanted_ns <= self.mono_ns)):
                return
        raise NotModelled(f"the core does not come to rest at {self.wall_ns // MS} ms on the wall clock")

    def _count(self, *, cut: bool = False) -> None:
        recording = self.core.recording
        assert recording is not None
        if cut:
            recording.end_block()
        while (block := recording.take()) is not None:
            made = columns.tables(block).get(columns.DECISIONS)
            if made is not None:
                # The block's memory is the core's again: what is kept of it must be a copy.
                self.served.take(_copied(made))
            block.give_back()

    # --- consumers ----------------------------------------------------------------------------

    def _answered(self, token: int, kind: int, status: int, payload: bytes) -> None:
        if kind == commands.EVENT:
            self._submit(commands.DECIDE, self.scripts.decision(payload), token)
            return
        if kind == commands.END:
            self.streams.pop(token, None)
            return
        opened = self.streams.get(token)
        if opened is None:
            if token == self.asked:
                self.answers[token] = (status, payload)
            elif kind == commands.REPLY and status:
                self.refused += 1
            return
        if kind == commands.REPLY and status:
            del self.streams[token]
            return
        if opened == commands.LEASE:
            del self.streams[token]
            self._delivered(service_pb2.LeaseResponse.FromString(payload).messages)
        elif kind == commands.DELIVERY:
            if opened == commands.CONSUME_OPEN:
                consumed = service_pb2.ConsumeResponse.FromString(payload)
                one = [consumed.message] if consumed.HasField("message") else []
                self._delivered([*one, *consumed.messages])
            else:
                self._delivered(service_pb2.ConsumeSessionResponse.FromString(payload).delivery.messages)
            self._submit(commands.WRITTEN, b"", token)

    def _delivered(self, messages: Iterable[messages_pb2.Message]) -> None:
        for message in messages:
            self.delivered += 1
            reported = message.metadata
            queue, channel = reported.queue_id, reported.channel
            handled = self.handling.of(
                queue, channel, reported.fairness_key, reported.offset, reported.attempt_count
            )
            if handled is None:
                continue
            held_ms, how = handled
            if how == How.EXPIRED:
                continue
            due_ns = self.mono_ns + held_ms * MS
            expires_ns = message.timestamps.lease_expires_at.ToNanoseconds()
            if self.wall_ns + held_ms * MS >= expires_ns:  # its consumer had it extended
                extend = service_pb2.ExtendLeaseRequest(
                    queue=queue,
                    channel=channel,
                    message_id=message.id,
                    lease_id=reported.lease_id,
                    extend_ms=held_ms + 1_000,
                )
                self._submit(commands.EXTEND_LEASE, extend.SerializeToString())
            place = next(self.numbers)
            heapq.heappush(self.due, (due_ns, place, queue, channel, how, message.id, reported.lease_id))

    def _settle(self) -> None:
        """Ack and nack what is due by now, batch by batch."""
        batches: dict[tuple[str, str, How], list[service_pb2.SettleItem]] = defaultdict(list)
        while self.due and self.due[0][0] <= self.mono_ns:
            _, _, queue, channel, how, message_id, lease_id = heapq.heappop(self.due)
            item = service_pb2.SettleItem(message_id=message_id, lease_id=lease_id)
            if how == How.REJECTED:
                item.dead_letter = True
            batches[queue, channel, how].append(item)
        for (queue, channel, how), items in batches.items():
            for at in range(0, len(items), 1_000):
                named: dict[str, Any] = {"queue": queue, "channel": channel, "items": items[at : at + 1_000]}
                if how == How.ACKED:
                    self._submit(commands.ACK_BATCH, service_pb2.AckBatchRequest(**named).SerializeToString())
                else:
                    self._submit(
                        commands.NACK_BATCH, service_pb2.NackBatchRequest(**named).SerializeToString()
                    )

    # --- commands -----------------------------------------------------------------------------

    def _submit(self, kind: int, request: bytes, token: int | None = None) -> int:
        number = next(self.numbers) if token is None else token
        self.core.submit(kind, number, request)
        return number

    def _call(self, kind: int, request: Any) -> bytes:
        """Ask the core at this moment, and wait for its answer."""
        self.asked = self._submit(kind, request.SerializeToString())
        self._settle_down()
        status, payload = self.answers.pop(self.asked)
        if status:
            said = messages_pb2.ItemStatus.FromString(payload)
            raise PolicyRefused(f"the core refused the policy: {said.message or said.reason}")
        return payload

    def _offer(self, kind: int, token: int, length: int, data: bytes) -> None:
        """One recorded command, as the model takes it; what reads, and what settles, is left out."""
        if kind in ENQUEUES:
            data = without_keys(data) if self.policy.fifo else data
            request = self.core.request(length, data) if self.scripts.routes else b""
            if request and self.scripts.concerns(kind, request):
                parsed = self.core.parse(kind, request)
                self.scripts.route(parsed)
                self.core.submit_parsed(next(self.numbers), parsed)
            else:
                self.core.offer(kind, next(self.numbers), length, data)
        elif kind in SINK_CALLS:
            raise NotModelled(
                "a sink wrote to the recorded broker, and a model does not follow sinks; take a recording without one"
            )
        elif kind in OF_CONSUMERS:
            self._consumer(kind, token, self.core.request(length, data))
        elif kind in AS_RECORDED:
            self._submit(kind, self.core.request(length, data))
        else:
            self._administer(kind, self.core.request(length, data))

    def _consumer(self, kind: int, token: int, request: bytes) -> None:
        if kind in (commands.LEASE, commands.CONSUME_OPEN, commands.SESSION_OPEN):
            own = self.tokens[token] = next(self.numbers)
            self.streams[own] = kind
            if kind == commands.SESSION_OPEN:
                opening = service_pb2.ConsumeSessionRequest.FromString(request)
                opening.open.ClearField("resume")
                request = opening.SerializeToString()
            self._submit(kind, request, own)
            return
        own_token = self.tokens.get(token)
        if own_token is None or own_token not in self.streams:
            return
        if kind == commands.SESSION:
            frame = service_pb2.ConsumeSessionRequest.FromString(request)
            if frame.WhichOneof("request") not in ("credit", "window", "alive", "close"):
                frame = service_pb2.ConsumeSessionRequest(alive={})
            elif frame.HasField("window"):
                frame.window.ClearField("give_back")
            self._submit(kind, frame.SerializeToString(), own_token)
        else:
            self._submit(kind, b"" if kind == commands.CANCEL else request, own_token)
            del self.tokens[token]

    # --- settings -----------------------------------------------------------------------------

    def _settings(self) -> None:
        """Before anything comes: limits, then the queues that the recording began with."""
        for bucket, limit in self.policy.limits.items():
            value = "" if limit is None else f"{limit[0]:g},{limit[1]:g}"
            self._call(commands.SET_CONFIG, admin_pb2.SetConfigRequest(key=f"throttle.{bucket}", value=value))
        listed = admin_pb2.ListQueuesResponse.FromString(
            self._call(commands.LIST_QUEUES, admin_pb2.ListQueuesRequest())
        )
        for queue in listed.queues:
            got = admin_pb2.GetQueueResponse.FromString(
                self._call(commands.GET_QUEUE, admin_pb2.GetQueueRequest(queue=queue.name))
            )
            config = self.policy.config(queue.name, got.config)
            self.scripts.queue_is(queue.name, config)
            if self.policy.fifo or queue.name in self.policy.queues:
                self._call(
                    commands.UPDATE_QUEUE, admin_pb2.UpdateQueueRequest(queue=queue.name, config=config)
                )

    def _administer(self, kind: int, request: bytes) -> None:
        if kind == commands.CREATE_QUEUE:
            making = admin_pb2.CreateQueueRequest.FromString(request)
            making.config.CopyFrom(self.policy.config(making.name, making.config))
            self.scripts.queue_is(making.name, making.config)
            self._submit(kind, making.SerializeToString())
        elif kind == commands.UPDATE_QUEUE:
            changing = admin_pb2.UpdateQueueRequest.FromString(request)
            changing.config.CopyFrom(self.policy.config(changing.queue, changing.config))
            self.scripts.queue_is(changing.queue, changing.config)
            self._submit(kind, changing.SerializeToString())
        elif kind == commands.SET_CONFIG:
            setting = admin_pb2.SetConfigRequest.FromString(request)
            self.scripts.config_is(setting.key, setting.value)
            if not self.policy.limits_config(setting.key):
                self._submit(kind, request)
        elif kind == commands.SET_KEY_POLICY and not self.policy.fifo:
            of_key = admin_pb2.SetKeyPolicyRequest.FromString(request)
            if self.policy.sets(of_key.queue, "weights"):
                of_key.ClearField("weight")
            self._submit(kind, of_key.SerializeToString())


def _rows(part: pa.Table) -> Iterator[tuple[str, int, int, int, int, int, bytes]]:
    """Passes, commands and loads, with the number of their pass and whole bytes."""
    if pc.any(part.column("goes_on")).as_py():
        part = pa.Table.from_pylist(list(replaying.in_whole(part.to_pylist())), schema=part.schema)
    part = part.filter(pc.is_in(part.column("kind"), pa.array(["pass", "command", "load"])))
    at_us = pc.cast(part.column("at"), pa.int64()).to_pylist()
    kinds, numbers, *others = (
        part.column(name).to_pylist() for name in ("kind", "pass", "token", "a", "b", "data")
    )
    return zip(kinds, numbers, at_us, *others, strict=True)


def _copied(table: pa.Table) -> pa.Table:
    data = pa.BufferOutputStream()
    with pa.ipc.new_stream(data, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(data.getvalue()).read_all()
