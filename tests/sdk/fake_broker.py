"""A broker of some hundred lines, in the test's own process: behaves as the contract says, and fails on demand.

It keeps everything in dicts and knows no fairness. A test can hold its answers back, break
its streams, make it refuse, and read what frames reached it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.rpc import code_pb2

from fila.v1 import admin_pb2, admin_pb2_grpc, messages_pb2, service_pb2, service_pb2_grpc
from tests.ports import KeptPort
from tests.sdk.fake_session import FakeSession
from tests.sdk.standing_by import StandingBy, end

NOT_FOUND, INVALID, CONFLICT, EXHAUSTED = (
    code_pb2.NOT_FOUND,
    code_pb2.INVALID_ARGUMENT,
    code_pb2.FAILED_PRECONDITION,
    code_pb2.RESOURCE_EXHAUSTED,
)
LEASE_S = 30


@dataclass
class Refusal(Exception):
    """What an item, or a call, is answered with."""

    code: int
    reason: str
    text: str
    retry_after_ms: int = 0
    metadata: dict[str, str] = field(default_factory=dict)

    def status(self) -> messages_pb2.ItemStatus:
        return messages_pb2.ItemStatus(code=self.code, message=self.text, reason=self.reason)


@dataclass
class Queue:
    name: str
    config: admin_pb2.QueueConfig
    ready: deque[messages_pb2.Message] = field(default_factory=deque)
    leased: dict[int, messages_pb2.Message] = field(default_factory=dict)
    log: list[messages_pb2.Message] = field(default_factory=list)
    dedup: dict[str, service_pb2.EnqueueResult] = field(default_factory=dict)
    nacks: list[tuple[str, str, int | None]] = field(default_factory=list)
    feedback: list[service_pb2.LimitFeedback] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    deleted: bool = False
    attempts: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    came_back: dict[str, bool] = field(default_factory=dict)  # True: somebody had begun it
    dead: list[tuple[str, str]] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)
    """Leases that came back uncounted."""

    def put_back(self, message: messages_pb2.Message, *, was_begun: bool) -> None:
        """To its old place: behind what is in front of it, before the rest."""
        message.metadata.lease_id = 0
        self.came_back[message.id] = was_begun or self.came_back.get(message.id, False)
        index = sum(self.places[other.id] < self.places[message.id] for other in self.ready)
        self.ready.insert(index, message)
        self.changed.set()

    def put_last(self, message: messages_pb2.Message) -> None:
        """A new place, behind all others."""
        message.metadata.lease_id = 0
        self.came_back[message.id] = True
        self.places[message.id] = max(self.places.values(), default=0) + 1
        self.ready.append(message)
        self.changed.set()


class FakeBroker(service_pb2_grpc.FilaServiceServicer, admin_pb2_grpc.FilaAdminServicer):
    """Both services; start it with `start`, stop it with `stop`, start it again on the same port."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.config: dict[str, str] = {}
        self.calls: list[str] = []
        self.enqueue_frames: list[int] = []
        self.settle_frames: list[int] = []
        self.settle_calls: list[int] = []
        self.extends: list[int] = []
        self.owner: str | None = None
        """Of a node that stands by: the address that it names, "" for none; None: it serves."""
        self.turned_away: list[str] = []
        self.refusals: deque[Refusal] = deque()
        self.stream_refusal: Refusal | None = None
        """What streams of enqueues are ended with at once."""
        self.farewells: list[Refusal] = []  # each ends a stream that reads or answers a frame next
        self.answering = asyncio.Event()
        self.answering.set()
        self.sessions = 0
        self.acked: list[str] = []
        self.old = False  # older than begun, alive, window, revoked and resume
        self.silent = False  # it hears nothing: `alive` is not answered
        self.grace_s = 5.0
        self.renewal_ms: int | None = None
        """What sessions get instead of what they asked for."""
        self.tracked: dict[int, FakeSession] = {}
        """Sessions that can be resumed, by consumer_id."""
        self.frames: list[service_pb2.ConsumeSessionRequest] = []
        """All that came over sessions but settlements."""
        self.place = KeptPort()
        self._numbers = itertools.count(1)
        self._lease_ids = itertools.count(100)
        self._consumer_ids = itertools.count(1)
        self._server: grpc.aio.Server | None = None
        self._wires: set[asyncio.StreamWriter] = set()

    # The process.

    async def start(self) -> None:
        self._server = grpc.aio.server(
            interceptors=[StandingBy(lambda: self.owner, self.turn_away)],
            options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1)],
        )
        service_pb2_grpc.add_FilaServiceServicer_to_server(self, self._server)
        admin_pb2_grpc.add_FilaAdminServicer_to_server(self, self._server)
        self._inner_port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        self._proxy = await asyncio.start_server(self._carry, "127.0.0.1", self.place.port)

    async def stop(self) -> None:
        assert self._server is not None
        self._proxy.close()
        self.break_connections()
        await self._server.stop(None)

    @property
    def address(self) -> str:
        return self.place.address

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a client's bytes to the gRPC server and back, so that the wire between can be cut."""
        there = await asyncio.open_connection("127.0.0.1", self._inner_port)
        self._wires |= {writer, there[1]}
        try:
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        finally:
            for wire in (writer, there[1]):
                wire.close()
                self._wires.discard(wire)

    def break_connections(self) -> None:
        """Cut every wire."""
        for wire in self._wires:
            wire.transport.abort()

    def add(self, queue: str) -> Queue:
        self.queues[queue] = Queue(queue, admin_pb2.QueueConfig(visibility_timeout_ms=LEASE_S * 1000))
        return self.queues[queue]

    # The rules.

    def queue(self, name: str) -> Queue:
        if name not in self.queues:
            raise Refusal(NOT_FOUND, "QUEUE_NOT_FOUND", f'queue "{name}" does not exist')
        return self.queues[name]

    def store(self, name: str, message: service_pb2.EnqueueMessage) -> service_pb2.EnqueueResult:
        try:
            if self.refusals:
                raise self.refusals.popleft()
            queue = self.queue(name)
            if len(message.payload) > 1 << 20:
                raise Refusal(INVALID, "LIMIT_EXCEEDED", "payload must be at most 1 MiB")
            if known := queue.dedup.get(message.options.dedup_key):
                return known
        except Refusal as refusal:
            return service_pb2.EnqueueResult(error=refusal.status())
        stored = messages_pb2.Message(
            id=f"00000000-0000-7000-8000-{next(self._numbers):012d}",
            headers=message.headers,
            payload=message.payload,
        )
        stored.metadata.queue_id = name
        stored.metadata.channel = "default"
        stored.metadata.fairness_key = message.headers.get("tenant", "default")
        stored.metadata.offset = len(queue.log) + 1
        queue.log.append(stored)
        queue.put_last(stored)
        del queue.came_back[stored.id]
        result = service_pb2.EnqueueResult(message_id=stored.id, offset=stored.metadata.offset)
        if message.options.dedup_key:
            queue.dedup[message.options.dedup_key] = result
        return result

    def deliver(self, queue: Queue, most: int) -> list[messages_pb2.Message]:
        delivered: list[messages_pb2.Message] = []
        while queue.ready and len(delivered) < most:
            message = messages_pb2.Message()
            message.CopyFrom(queue.ready.popleft())
            message.metadata.lease_id = next(self._lease_ids)
            if message.id in queue.came_back and not self.old:
                message.metadata.redelivered = queue.came_back[message.id]
                message.metadata.came_back = not message.metadata.redelivered
            message.timestamps.leased_at.FromSeconds(1_000_000)
            seconds = queue.config.visibility_timeout_ms // 1000
            message.timestamps.lease_expires_at.FromSeconds(1_000_000 + seconds)
            queue.leased[message.metadata.lease_id] = message
            delivered.append(message)
        return delivered

    def expire_later(self, queue: Queue, messages: Iterable[messages_pb2.Message]) -> None:
        """Of leases that no session keeps."""
        for message in messages:
            seconds = queue.config.visibility_timeout_ms / 1000
            asyncio.get_running_loop().call_later(seconds, self.expire, queue, message.metadata.lease_id)

    def expire(self, queue: Queue, lease_id: int) -> None:
        if message := queue.leased.pop(lease_id, None):
            self.fail(queue, message)

    def fail(self, queue: Queue, message: messages_pb2.Message) -> None:
        message.metadata.attempt_count += 1
        queue.attempts[message.id] = message.metadata.attempt_count
        queue.put_last(message)

    def settle(
        self, queue: Queue, lease_id: int, message_id: str = "", nack: service_pb2.SettleItem | None = None
    ) -> messages_pb2.ItemStatus:
        if not lease_id:
            lease_id = next((lease for lease, m in queue.leased.items() if m.id == message_id), 0)
        message = queue.leased.pop(lease_id, None)
        if message is None:
            known = any(m.id == message_id for m in [*queue.ready, *queue.leased.values()])
            if message_id and not known:
                return Refusal(NOT_FOUND, "MESSAGE_NOT_FOUND", f"message {message_id} is not stored").status()
            return Refusal(CONFLICT, "LEASE_LOST", f"lease {lease_id} is over").status()
        if nack is None:
            self.acked.append(message.id)
        elif nack.release:
            queue.returned.append(lease_id)
            queue.put_back(message, was_begun=True)
        elif nack.dead_letter:
            queue.dead.append((message.id, nack.error))
        else:
            queue.feedback.extend(nack.feedback)
            queue.nacks.append((message.id, nack.error, nack.delay_ms if nack.HasField("delay_ms") else None))
            self.fail(queue, message)
        queue.changed.set()
        return messages_pb2.ItemStatus()

    async def abort(self, context: Any, refusal: Refusal) -> None:
        await end(context, refusal.status(), refusal.metadata, refusal.retry_after_ms)

    async def turn_away(self, method: str, context: Any) -> None:
        """As a node does that stands by."""
        self.turned_away.append(method)
        refusal = Refusal(code_pb2.UNAVAILABLE, "NOT_OWNER", "this node stands by")
        refusal.metadata |= {"owner": self.owner} if self.owner else {}
        await self.abort(context, refusal)

    # Producing.

    async def Enqueue(self, request: service_pb2.EnqueueRequest, context: Any) -> service_pb2.EnqueueResponse:
        self.calls.append("Enqueue")
        if self.refusals:
            await self.abort(context, self.refusals.popleft())
        message = service_pb2.EnqueueMessage(
            headers=request.headers, payload=request.payload, options=request.options
        )
        result = self.store(request.queue, message)
        if result.error.code:
            await self.abort(context, Refusal(result.error.code, result.error.reason, result.error.message))
        await self.answering.wait()
        return service_pb2.EnqueueResponse(message_id=result.message_id, offset=result.offset)

    async def EnqueueStream(
        self, requests: AsyncIterator[service_pb2.EnqueueStreamRequest], context: Any
    ) -> AsyncIterator[service_pb2.EnqueueStreamResponse]:
        self.calls.append("EnqueueStream")
        if self.stream_refusal is not None:
            await self.abort(context, self.stream_refusal)
        self.sessions += 1
        try:
            async for request in requests:
                messages = request.batch.messages
                if self.farewells:
                    await self.abort(context, self.farewells.pop())
                self.enqueue_frames.append(len(messages))
                results = [self.store(m.queue or request.batch.queue, m) for m in messages]
                await self.answering.wait()
                if self.farewells:
                    await self.abort(context, self.farewells.pop())
                yield service_pb2.EnqueueStreamResponse(sequence=request.sequence, results=results)
        finally:
            self.sessions -= 1

    # Consuming.

    async def Lease(self, request: service_pb2.LeaseRequest, context: Any) -> service_pb2.LeaseResponse:
        self.calls.append("Lease")
        try:
            queue = self.queue(request.queue)
        except Refusal as refusal:
            await self.abort(context, refusal)
        if not queue.ready and request.wait_ms:
            queue.changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(queue.changed.wait(), request.wait_ms / 1000)
        messages = self.deliver(queue, request.max_messages or 1)
        self.expire_later(queue, messages)
        return service_pb2.LeaseResponse(messages=messages)

    async def ConsumeSession(
        self, requests: AsyncIterator[service_pb2.ConsumeSessionRequest], context: Any
    ) -> AsyncIterator[service_pb2.ConsumeSessionResponse]:
        self.calls.append("ConsumeSession")
        frames = aiter(requests)
        first = await anext(frames)
        self.frames.append(first)
        try:
            queue = self.queue(first.open.queue)
        except Refusal as refusal:
            await self.abort(context, refusal)
        session = FakeSession(self, queue, first.open, next(self._consumer_ids))
        self.sessions += 1
        listener = asyncio.create_task(session.listen(frames))
        try:
            yield session.opened()
            while True:
                if queue.deleted:
                    text = f'queue "{queue.name}" was deleted'
                    await self.abort(context, Refusal(NOT_FOUND, "QUEUE_NOT_FOUND", text))
                queue.changed.clear()
                session.answered.clear()
                while session.answers:
                    yield session.answers.popleft()
                if session.over:
                    return
                if delivered := self.deliver(queue, session.room):
                    session.took(delivered)
                    yield service_pb2.ConsumeSessionResponse(
                        delivery=service_pb2.ConsumeSessionResponse.Delivery(messages=delivered)
                    )
                    continue
                waits = [asyncio.create_task(e.wait()) for e in (queue.changed, session.answered)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
        finally:
            listener.cancel()
            self.sessions -= 1
            session.stream_ended()

    async def AckBatch(
        self, request: service_pb2.AckBatchRequest, context: Any
    ) -> service_pb2.SettleBatchResponse:
        self.settle_calls.append(len(request.items))
        return await self.settle_batch(request.queue, request.items, context, nack=False)

    async def NackBatch(
        self, request: service_pb2.NackBatchRequest, context: Any
    ) -> service_pb2.SettleBatchResponse:
        self.settle_calls.append(len(request.items))
        return await self.settle_batch(request.queue, request.items, context, nack=True)

    async def settle_batch(
        self, name: str, items: Iterable[service_pb2.SettleItem], context: Any, *, nack: bool
    ) -> service_pb2.SettleBatchResponse:
        await self.answering.wait()
        try:
            queue = self.queue(name)
        except Refusal as refusal:
            await self.abort(context, refusal)
        results = [
            self.settle(queue, item.lease_id, item.message_id, item if nack else None) for item in items
        ]
        return service_pb2.SettleBatchResponse(results=results)

    async def ExtendLease(
        self, request: service_pb2.ExtendLeaseRequest, context: Any
    ) -> service_pb2.ExtendLeaseResponse:
        if request.lease_id not in self.queue(request.queue).leased:
            await self.abort(context, Refusal(CONFLICT, "LEASE_LOST", "the lease is over"))
        self.extends.append(request.extend_ms)
        answer = service_pb2.ExtendLeaseResponse()
        answer.lease_expires_at.FromMilliseconds(1_000_000_000 + request.extend_ms)
        return answer

    # Admin.

    async def CreateQueue(
        self, request: admin_pb2.CreateQueueRequest, context: Any
    ) -> admin_pb2.CreateQueueResponse:
        self.calls.append("CreateQueue")
        if request.name in self.queues:
            await self.abort(
                context, Refusal(code_pb2.ALREADY_EXISTS, "QUEUE_EXISTS", f'queue "{request.name}" exists')
            )
        queue = self.add(request.name)
        queue.config.MergeFrom(request.config)
        return admin_pb2.CreateQueueResponse(queue_id=request.name)

    async def GetQueue(self, request: admin_pb2.GetQueueRequest, context: Any) -> admin_pb2.GetQueueResponse:
        return admin_pb2.GetQueueResponse(queue=request.queue, config=self.queue(request.queue).config)

    async def UpdateQueue(
        self, request: admin_pb2.UpdateQueueRequest, context: Any
    ) -> admin_pb2.UpdateQueueResponse:
        queue = self.queue(request.queue)
        request.update_mask.MergeMessage(request.config, queue.config)
        return admin_pb2.UpdateQueueResponse(config=queue.config)

    async def DeleteQueue(
        self, request: admin_pb2.DeleteQueueRequest, context: Any
    ) -> admin_pb2.DeleteQueueResponse:
        self.calls.append("DeleteQueue")
        queue = self.queues.pop(request.queue)
        queue.deleted = True
        queue.changed.set()
        return admin_pb2.DeleteQueueResponse()

    async def ListQueues(
        self, request: admin_pb2.ListQueuesRequest, context: Any
    ) -> admin_pb2.ListQueuesResponse:
        self.calls.append("ListQueues")
        if self.refusals:
            await self.abort(context, self.refusals.popleft())
        infos = [
            admin_pb2.QueueInfo(name=name, depth=len(queue.ready), in_flight=len(queue.leased))
            for name, queue in sorted(self.queues.items())
        ]
        return admin_pb2.ListQueuesResponse(queues=infos)

    async def GetStats(self, request: admin_pb2.GetStatsRequest, context: Any) -> admin_pb2.GetStatsResponse:
        try:
            queue = self.queue(request.queue)
        except Refusal as refusal:
            await self.abort(context, refusal)
        return admin_pb2.GetStatsResponse(depth=len(queue.ready), in_flight=len(queue.leased))

    async def PeekMessages(
        self, request: admin_pb2.PeekMessagesRequest, context: Any
    ) -> admin_pb2.PeekMessagesResponse:
        ready = [m for m in self.queue(request.queue).ready if m.metadata.offset > request.after_offset]
        return admin_pb2.PeekMessagesResponse(messages=ready[: request.max_messages or 1])

    async def PurgeQueue(
        self, request: admin_pb2.PurgeQueueRequest, context: Any
    ) -> admin_pb2.PurgeQueueResponse:
        queue = self.queue(request.queue)
        purged = len(queue.ready)
        queue.ready.clear()
        return admin_pb2.PurgeQueueResponse(purged=purged)

    async def SetConfig(
        self, request: admin_pb2.SetConfigRequest, context: Any
    ) -> admin_pb2.SetConfigResponse:
        self.config[request.key] = request.value
        return admin_pb2.SetConfigResponse()

    async def GetConfig(
        self, request: admin_pb2.GetConfigRequest, context: Any
    ) -> admin_pb2.GetConfigResponse:
        if request.key not in self.config:
            await self.abort(context, Refusal(NOT_FOUND, "CONFIG_KEY_NOT_FOUND", "not set"))
        return admin_pb2.GetConfigResponse(value=self.config[request.key])

    async def ListConfig(
        self, request: admin_pb2.ListConfigRequest, context: Any
    ) -> admin_pb2.ListConfigResponse:
        entries = [
            admin_pb2.ConfigEntry(key=key, value=value)
            for key, value in sorted(self.config.items())
            if key.startswith(request.prefix)
        ]
        return admin_pb2.ListConfigResponse(entries=entries, total_count=len(entries))

    async def ReadLog(
        self, request: admin_pb2.ReadLogRequest, context: Any
    ) -> AsyncIterator[admin_pb2.ReadLogResponse]:
        self.calls.append(f"ReadLog {request.from_offset}")
        for message in self.queue(request.queue).log:
            offset = message.metadata.offset
            if offset >= request.from_offset and (not request.to_offset or offset < request.to_offset):
                if self.refusals and offset == 3:
                    await self.abort(context, self.refusals.popleft())
                yield admin_pb2.ReadLogResponse(messages=[message], next_offset=offset + 1)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
