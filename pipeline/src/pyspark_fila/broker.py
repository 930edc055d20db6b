"""The few calls of the broker that a read makes: where the log begins and ends, and pieces of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import grpc

from pyspark_fila.connection import Connection
from pyspark_fila.errors import BrokerFailed, OptionInvalid, QueueNotFound
from pyspark_fila.wire import admin_pb2 as pb

CALL_S_MAX = 30.0
BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)
_REPEATABLE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What a queue's log holds: `oldest <= offset < head`; the two are equal when it is empty."""

    oldest: int
    head: int
    creation: str = ""
    """Tells this queue from each other one, also of its name; empty where the broker does not tell."""
    stored_bytes: int = 0
    """Of headers and payloads that are kept."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long the queue's settings keep a message: whole milliseconds and bytes, 0 where there is no such rule."""

    soft_period_ms: int
    soft_bytes: int
    hard_period_ms: int
    hard_bytes: int


class BrokerLog:
    """One queue's log at one broker; every method may block for `timeout_ms` and a call."""

    service = "FilaAdmin"
    repeatable: tuple[Any, ...] = _REPEATABLE

    def __init__(self, connection: Connection, queue: str) -> None:
        self.queue = queue
        self.address = connection.address
        self._connection = connection
        self._timeout_s = connection.timeout_ms / 1000

    def bounds(self) -> LogBounds:
        """Return which queue it is, and where its log begins and ends; every message below `head` can be read."""
        stats = self._stats()
        return LogBounds(
            int(stats.tail_offset), int(stats.head_offset), str(stats.creation_id), int(stats.stored_bytes)
        )

    def keeping(self) -> Keeping:
        """Return the queue's retention."""
        kept = self._stats().retention
        return Keeping(kept.soft_period_ms, kept.soft_bytes, kept.hard_period_ms, kept.hard_bytes)

    def first_from(self, offset: int) -> tuple[int, datetime] | None:
        """Return offset and append time of the first message at or after `offset`, None when there is none."""
        message = self._message_from(offset)
        return (message.metadata.offset, message.timestamps.appended_at.ToDatetime(UTC)) if message else None

    def size_at(self, offset: int) -> int:
        """Return how many bytes the first message at or after `offset` has, headers included; 0 when there is none."""
        message = self._message_from(offset)
        return int(message.ByteSize()) if message else 0

    def _message_from(self, offset: int) -> Any:
        request = pb.ReadLogRequest(queue=self.queue, from_offset=max(offset, 1), max_batch=1)
        return next(self.read(request), None)

    def offset_at(self, moment: datetime, bounds: LogBounds) -> int:
        """Return the first offset whose message was appended at `moment` or later; the head when none was.

        Append times never decrease within a queue, so some twenty looks find it in any log.
        """
        low, high = bounds.oldest, bounds.head
        while low < high:
            middle = (low + high) // 2
            found = self.first_from(middle)
            if found is None or found[0] >= high or found[1] >= moment:
                high = middle
            else:
                low = found[0] + 1
        return low

    def read(self, request: Any) -> Iterator[Any]:
        """Loop over the messages of a ReadLogRequest; see `responses`."""
        for response in self.responses(request):
            yield from response.messages

    def responses(self, request: Any) -> Iterator[Any]:
        """Loop over the responses of a ReadLogRequest, going on behind the last one when the stream breaks."""
        attempt, deadline = 0, time.monotonic() + self._timeout_s
        while True:
            stream = self._begun("ReadLog", request, pb.ReadLogResponse, streaming=True)
            try:
                for response in stream:
                    attempt, deadline = 0, time.monotonic() + self._timeout_s
                    request.from_offset = response.next_offset
                    yield response
                return
            except grpc.RpcError as error:
                self._pause_or_raise(error, attempt, deadline)
                attempt += 1
            finally:
                stream.cancel()

    def queue_names(self) -> list[str]:
        """Return the names of all queues that this key may see, in their order."""
        answer = self._call("ListQueues", pb.ListQueuesRequest(), pb.ListQueuesResponse)
        return [queue.name for queue in answer.queues]

    def channel_exists(self, channel: str) -> bool:
        """Return whether the queue has that channel."""
        answer = self._call("ListChannels", pb.ListChannelsRequest(queue=self.queue), pb.ListChannelsResponse)
        return any(info.name == channel for info in answer.channels)

    def create_channel(self, channel: str, offset: int) -> None:
        """Make a channel that has everything from `offset` on pending, and so keeps it in the log."""
        request = pb.CreateChannelRequest(queue=self.queue, channel=channel, offset=offset)
        self._call("CreateChannel", request, pb.CreateChannelResponse)

    def seek_channel(self, channel: str, offset: int) -> None:
        """Let the channel be done with everything below `offset`."""
        request = pb.SeekChannelRequest(queue=self.queue, channel=channel, offset=offset)
        self._call("SeekChannel", request, pb.SeekChannelResponse)

    def _stats(self) -> Any:
        # Any right on the queue is enough for this call, so a key for reading needs no other.
        return self._call("GetStats", pb.GetStatsRequest(queue=self.queue, max_keys=1), pb.GetStatsResponse)

    def _method(self, name: str, response: Any, *, streaming: bool = False) -> Callable[..., Any]:
        channel = self._connection.channel()
        make = channel.unary_stream if streaming else channel.unary_unary
        call: Callable[..., Any] = make(
            f"/fila.v1.{self.service}/{name}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=response.FromString,
        )
        return call

    def _begun(self, name: str, request: Any, response: Any, *, streaming: bool = False, **more: Any) -> Any:
        call = self._method(name, response, streaming=streaming)
        return call(request, metadata=self._connection.metadata(), **more)

    def _call(self, name: str, request: Any, response: Any) -> Any:
        attempt, deadline = 0, time.monotonic() + self._timeout_s
        while True:
            try:
                return self._begun(name, request, response, timeout=CALL_S_MAX)
            except grpc.RpcError as error:
                self._pause_or_raise(error, attempt, deadline)
                attempt += 1

    def _pause_or_raise(self, error: grpc.RpcError, attempt: int, deadline: float) -> None:
        """Wait before the next attempt, or raise what the error means to the user: at once where the attempt would
        fail for ever, as it does with the wrong certificate."""
        if error.code() == grpc.StatusCode.UNAVAILABLE and (why := self._connection.wrong_setting()):
            raise BrokerFailed(f"{why} (options address, caFile, certFile, keyFile and serverName)") from None
        pause_s = BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)]
        if error.code() in self.repeatable and time.monotonic() + pause_s < deadline:
            time.sleep(pause_s)
            return
        raise self._translated(error) from None

    def _translated(self, error: grpc.RpcError) -> Exception:
        code, said = error.code(), error.details()
        if code == grpc.StatusCode.NOT_FOUND:
            hidden = ", or shows it to this key as missing, which has no right on it"
            by_key = hidden if self._connection.metadata() else ""
            return QueueNotFound(f"{self.address} has no such queue{by_key}: {said}")
        if code == grpc.StatusCode.INVALID_ARGUMENT:
            return OptionInvalid("queue", f"the broker at {self.address} refused it: {said}")
        if code == grpc.StatusCode.UNAUTHENTICATED:
            return BrokerFailed(
                f"the broker at {self.address} does not accept the key (option token or tokenFile, or FILA_API_KEY "
                f"of each machine): {said}"
            )
        if code == grpc.StatusCode.PERMISSION_DENIED:
            return BrokerFailed(f"the key lacks a right at the broker at {self.address}: {said}")
        if code == grpc.StatusCode.UNAVAILABLE:
            return BrokerFailed(
                f"no Fila broker could be reached at {self.address} for {self._timeout_s:g} s; check the option "
                f"address, and that the broker runs: {said}"
            )
        return BrokerFailed(f"the broker at {self.address} answered {code.name}: {said}")
