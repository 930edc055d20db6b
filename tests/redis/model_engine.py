"""A broker core in its slowest, most obvious form, behind the real seam: submit, eventfd, drain.

One list a channel, one dict of leases, time told by the test. It knows queues, channels, leases,
seeks and purges, as the Redis edge needs them; no fairness, no throttles, no disk.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from google.protobuf.message import Message as Protobuf

from fila.v1 import admin_pb2, messages_pb2, service_pb2
from fila_server import commands, errors, seam_frames
from fila_server.broker.interfaces import LogReader
from fila_server.broker.notices import QUEUE_EXPIRED
from fila_server.core.doors.rights_table import Rights
from fila_server.hooks.stage import ParsedFrame

ENQUEUES = frozenset((commands.ENQUEUE, commands.ENQUEUE_BATCH, commands.ENQUEUE_ATOMIC))


@dataclass
class Channel:
    pending: list[int] = field(default_factory=list)
    leases: dict[int, tuple[int, int]] = field(default_factory=dict)  # lease_id -> (offset, expires at)
    attempts: dict[int, int] = field(default_factory=dict)


@dataclass
class Queue:
    config: admin_pb2.QueueConfig
    log: dict[int, bytes] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    head: int = 1


@dataclass
class Waiter:
    token: int
    request: service_pb2.LeaseRequest
    until_ms: int


class ModelEngine:
    """Carries out every frame at the moment it is submitted; a read without messages waits in `waiters`."""

    def __init__(self) -> None:
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK)
        self.queues: dict[str, Queue] = {}
        self.values: dict[str, str] = {}
        self.waiters: list[Waiter] = []
        self.now_ms = 0
        self.submitted: list[tuple[int, bytes]] = []
        self.refuse_next: list[errors.FilaServerError] = []
        self.held_kinds: frozenset[int] = frozenset()
        """Commands whose answers are kept back, as during an fsync; `release_answers` sends them."""
        self._next_lease = 2**63 - 2  # so that tickets cross from positive to negative early
        self._outbox: list[tuple[int, int, int, bytes]] = []
        self._held: list[tuple[int, int, int, bytes]] = []
        self._handlers: dict[int, Callable[[bytes], Protobuf]] = {
            commands.ENQUEUE: self._enqueue,
            commands.ENQUEUE_BATCH: self._enqueue_batch,
            commands.ENQUEUE_ATOMIC: self._enqueue_atomic,
            commands.ACK_BATCH: self._ack_batch,
            commands.CREATE_QUEUE: self._create_queue,
            commands.UPDATE_QUEUE: self._update_queue,
            commands.DELETE_QUEUE: self._delete_queue,
            commands.GET_QUEUE: self._get_queue,
            commands.LIST_QUEUES: self._list_queues,
            commands.PURGE_QUEUE: self._purge_queue,
            commands.GET_STATS: self._get_stats,
            commands.SET_CONFIG: self._set_config,
            commands.LIST_CONFIG: self._list_config,
            commands.CREATE_CHANNEL: self._create_channel,
            commands.DELETE_CHANNEL: self._delete_channel,
            commands.SEEK_CHANNEL: self._seek,
            commands.PURGE_CHANNEL: self._purge_channel,
            commands.KEPT_READ: lambda _frame: admin_pb2.DeleteQueueResponse(),  # nothing is kept
        }

    # --- the seam -------------------------------------------------------------------------

    rights = Rights()

    def submit(self, kind: int, token: int, frame: bytes, caller: int | None = None, now_ns: int = 0) -> None:
        if self.refuse_next:
            raise self.refuse_next.pop(0)
        self.submitted.append((kind, frame))
        if kind == commands.CANCEL and frame == b"over":
            for waiter in [waiter for waiter in self.waiters if waiter.token == token]:
                self.waiters.remove(waiter)
                self._say(commands.LEASE, token, errors.OK, b"")
            return
        if kind == commands.CANCEL:
            self.waiters = [waiter for waiter in self.waiters if waiter.token != token]
            self._give_back(frame)
            return
        try:
            if kind == commands.LEASE:
                self._lease(token, frame)
            else:
                self._say(kind, token, errors.OK, self._handlers[kind](frame).SerializeToString())
        except errors.FilaServerError as error:
            self._say(kind, token, error.status, _status(error).SerializeToString())
        self._serve_waiters()

    def parse(self, kind: int, frame: bytes, caller: int | None = None, now_ns: int = 0) -> ParsedFrame:
        return cast("ParsedFrame", (kind, frame))

    def submit_parsed(self, token: int, parsed: ParsedFrame) -> None:
        kind, frame = cast("tuple[int, bytes]", parsed)
        self.submit(kind, token, frame)

    def drain(self) -> list[tuple[int, int, int, bytes]]:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.wake_fd)
        said, self._outbox = self._outbox, []
        return said

    def log_reader(self, request: bytes) -> LogReader:
        raise AssertionError("nobody reads the log over Redis")

    def open_report(self) -> dict[str, int]:
        return {}

    def start(self) -> None:
        pass

    def stop(self) -> None:
        os.close(self.wake_fd)

    # --- for tests ------------------------------------------------------------------------

    def advance(self, milliseconds: int) -> None:
        """Let time pass: leases end, waits are over."""
        self.now_ms += milliseconds
        for queue in self.queues.values():
            for channel in queue.channels.values():
                for lease_id, (offset, expires_ms) in list(channel.leases.items()):
                    if expires_ms <= self.now_ms:
                        del channel.leases[lease_id]
                        channel.pending.append(offset)
        self._serve_waiters()
        for waiter in [waiter for waiter in self.waiters if waiter.until_ms <= self.now_ms]:
            self.waiters.remove(waiter)
            self._say(commands.LEASE, waiter.token, errors.OK, b"")

    def hold_answers(self, *kinds: int) -> None:
        """Keep the answers of these commands back from now on; of enqueues, when none is named."""
        self.held_kinds = frozenset(kinds) or ENQUEUES

    def release_answers(self) -> None:
        """Send every answer that was kept back."""
        self.held_kinds = frozenset()
        self._outbox += self._held
        self._held = []
        os.eventfd_write(self.wake_fd, 1)

    # --- inside ---------------------------------------------------------------------------

    def _say(self, kind: int, token: int, status: int, payload: bytes) -> None:
        outbox = self._held if kind in self.held_kinds else self._outbox
        outbox.append((token, commands.REPLY, status, payload))
        os.eventfd_write(self.wake_fd, 1)

    def _queue(self, name: str) -> Queue:
        if name not in self.queues:
            raise errors.QueueNotFound(name)
        return self.queues[name]

    def _channel(self, queue: str, channel: str) -> Channel:
        channels = self._queue(queue).channels
        if channel not in channels:
            raise errors.ChannelNotFound(queue, channel)
        return channels[channel]

    def _append(self, queue: Queue, payload: bytes) -> int:
        offset = queue.head
        queue.head += 1
        queue.log[offset] = payload
        for channel in queue.channels.values():
            channel.pending.append(offset)
        return offset

    def _enqueue(self, frame: bytes) -> Protobuf:
        request = service_pb2.EnqueueRequest.FromString(frame)
        offset = self._append(self._queue(request.queue), request.payload)
        return service_pb2.EnqueueResponse(message_id=f"{offset:036}", offset=offset)

    def _enqueue_batch(self, frame: bytes) -> Protobuf:
        request = service_pb2.EnqueueBatchRequest.FromString(frame)
        response = service_pb2.EnqueueBatchResponse()
        for message in request.messages:
            result = response.results.add()
            try:
                result.offset = self._append(self._queue(message.queue or request.queue), message.payload)
            except errors.FilaServerError as error:
                result.error.CopyFrom(_status(error))
        return response

    def _enqueue_atomic(self, frame: bytes) -> Protobuf:
        request = service_pb2.EnqueueBatchRequest.FromString(frame)
        queue = self._queue(request.queue)
        response = service_pb2.EnqueueBatchResponse()
        for message in request.messages:
            response.results.add(offset=self._append(queue, message.payload))
        return response

    def _lease(self, token: int, frame: bytes) -> None:
        request = service_pb2.LeaseRequest.FromString(frame)
        response = self._pull(request)
        if response.messages or not request.wait_ms:
            self._say(commands.LEASE, token, errors.OK, response.SerializeToString())
        else:
            self.waiters.append(Waiter(token, request, self.now_ms + request.wait_ms))

    def _pull(self, request: service_pb2.LeaseRequest) -> service_pb2.LeaseResponse:
        channel = self._channel(request.queue, request.channel)
        queue = self._queue(request.queue)
        response = service_pb2.LeaseResponse()
        while channel.pending and len(response.messages) < (request.max_messages or 1):
            offset = channel.pending.pop(0)
            self._next_lease += 1
            channel.leases[self._next_lease] = (offset, self.now_ms + queue.config.visibility_timeout_ms)
            metadata = messages_pb2.MessageMetadata(offset=offset, lease_id=self._next_lease)
            response.messages.add(id=f"{offset:036}", payload=queue.log[offset], metadata=metadata)
        return response

    def _give_back(self, frame: bytes) -> None:
        for lease_id in service_pb2.Settle.FromString(frame).lease_ids:
            for queue in self.queues.values():
                for channel in queue.channels.values():
                    if lease_id in channel.leases:
                        channel.pending.insert(0, channel.leases.pop(lease_id)[0])
        self._serve_waiters()

    def _serve_waiters(self) -> None:
        for waiter in list(self.waiters):
            try:
                response = self._pull(waiter.request)
            except errors.FilaServerError as error:
                self.waiters.remove(waiter)
                payload = _status(error).SerializeToString()
                self._say(commands.LEASE, waiter.token, error.status, payload)
                continue
            if response.messages:
                self.waiters.remove(waiter)
                self._say(commands.LEASE, waiter.token, errors.OK, response.SerializeToString())

    def _ack_batch(self, frame: bytes) -> Protobuf:
        request = service_pb2.AckBatchRequest.FromString(frame)
        channel = self._channel(request.queue, request.channel)
        response = service_pb2.SettleBatchResponse()
        for item in request.items:
            result = response.results.add()
            if channel.leases.pop(item.lease_id, None) is None:
                result.CopyFrom(_status(errors.LeaseLost("", item.lease_id)))
        return response

    def _create_queue(self, frame: bytes) -> Protobuf:
        request = admin_pb2.CreateQueueRequest.FromString(frame)
        if request.name in self.queues:
            raise errors.QueueExists(request.name)
        queue = self.queues[request.name] = Queue(request.config)
        queue.channels = {name: Channel() for name in request.config.channels}
        self.queues.setdefault(f"{request.name}.dlq", Queue(admin_pb2.QueueConfig()))
        return admin_pb2.CreateQueueResponse(queue_id=request.name)

    def _update_queue(self, frame: bytes) -> Protobuf:
        request = admin_pb2.UpdateQueueRequest.FromString(frame)
        self._queue(request.queue).config = request.config
        return admin_pb2.UpdateQueueResponse(config=request.config)

    def _delete_queue(self, frame: bytes) -> Protobuf:
        name = admin_pb2.DeleteQueueRequest.FromString(frame).queue
        self._queue(name)
        del self.queues[name]
        self.queues.pop(f"{name}.dlq", None)
        return admin_pb2.DeleteQueueResponse()

    def _get_queue(self, frame: bytes) -> Protobuf:
        name = admin_pb2.GetQueueRequest.FromString(frame).queue
        return admin_pb2.GetQueueResponse(queue=name, config=self._queue(name).config)

    def _list_queues(self, _frame: bytes) -> Protobuf:
        return admin_pb2.ListQueuesResponse(
            queues=[admin_pb2.QueueInfo(name=name) for name in sorted(self.queues)]
        )

    def _purge_queue(self, frame: bytes) -> Protobuf:
        queue = self._queue(admin_pb2.PurgeQueueRequest.FromString(frame).queue)
        purged: set[int] = set()
        for channel in queue.channels.values():
            purged.update(channel.pending)
            channel.pending.clear()
        return admin_pb2.PurgeQueueResponse(purged=len(purged))

    def _purge_channel(self, frame: bytes) -> Protobuf:
        request = admin_pb2.PurgeChannelRequest.FromString(frame)
        channel = self._channel(request.queue, request.channel)
        purged = len(channel.pending)
        channel.pending.clear()
        return admin_pb2.PurgeChannelResponse(purged=purged)

    def _get_stats(self, frame: bytes) -> Protobuf:
        queue = self._queue(admin_pb2.GetStatsRequest.FromString(frame).queue)
        tails = {name: self._tail(queue, channel) for name, channel in queue.channels.items()}
        response = admin_pb2.GetStatsResponse(
            head_offset=queue.head,
            tail_offset=min(tails.values(), default=queue.head),
            stored_bytes=sum(map(len, queue.log.values())),
        )
        for name, channel in sorted(queue.channels.items()):
            response.channels.add(name=name, tail_offset=tails[name], in_flight=len(channel.leases))
        return response

    def _tail(self, queue: Queue, channel: Channel) -> int:
        leased = [offset for offset, _ in channel.leases.values()]
        return min(channel.pending + leased, default=queue.head)

    def expire_queue(self, name: str) -> None:
        """It was idle for as long as it may be."""
        del self.queues[name]
        notice = seam_frames.Notice(what=QUEUE_EXPIRED, queue=name.encode())
        self._outbox.append((0, commands.NOTICE, 0, notice.SerializeToString()))
        os.eventfd_write(self.wake_fd, 1)

    def _set_config(self, frame: bytes) -> Protobuf:
        request = admin_pb2.SetConfigRequest.FromString(frame)
        self.values[request.key] = request.value
        return admin_pb2.SetConfigResponse()

    def _list_config(self, _frame: bytes) -> Protobuf:
        entries: list[Any] = [
            admin_pb2.ConfigEntry(key=key, value=value) for key, value in sorted(self.values.items()) if value
        ]
        return admin_pb2.ListConfigResponse(entries=entries, total_count=len(entries))

    def _create_channel(self, frame: bytes) -> Protobuf:
        request = admin_pb2.CreateChannelRequest.FromString(frame)
        queue = self._queue(request.queue)
        if request.channel in queue.channels:
            raise errors.ChannelExists(request.queue, request.channel)
        queue.channels[request.channel] = Channel()
        return admin_pb2.CreateChannelResponse(start_offset=queue.head)

    def _delete_channel(self, frame: bytes) -> Protobuf:
        request = admin_pb2.DeleteChannelRequest.FromString(frame)
        self._channel(request.queue, request.channel)
        del self._queue(request.queue).channels[request.channel]
        return admin_pb2.DeleteChannelResponse()

    def _seek(self, frame: bytes) -> Protobuf:
        request = admin_pb2.SeekChannelRequest.FromString(frame)
        channel = self._channel(request.queue, request.channel)
        # Everything was appended at second 0 of this model's time.
        wanted = (
            request.offset
            if request.WhichOneof("target") == "offset"
            else min(request.time.seconds, 1) * 2**63
        )
        channel.leases.clear()
        channel.pending = [offset for offset in self._queue(request.queue).log if offset >= wanted]
        return admin_pb2.SeekChannelResponse(offset=wanted)


def _status(error: errors.FilaServerError) -> messages_pb2.ItemStatus:
    return messages_pb2.ItemStatus(code=error.status, message=error.message, reason=error.reason)
