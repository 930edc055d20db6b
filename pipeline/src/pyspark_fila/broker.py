"""The few calls of the broker that a read makes: where the log begins and ends, and pieces of it.

One gRPC channel a process and address, kept for the life of the worker: Spark reuses its Python workers from task
to task. Nothing here is kept in an object that Spark pickles.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import grpc

from pyspark_fila.errors import BrokerFailed, OptionInvalid, QueueNotFound
from pyspark_fila.wire import admin_pb2 as pb

MESSAGE_BYTES_MAX = 80 << 20
"""Above the broker's largest payload (64 MiB) with its headers."""
CALL_S_MAX = 30.0
BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)

_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # A broker that vanished without a word is noticed by an unanswered ping.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_REPEATABLE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)

_channels: dict[tuple[int, str], grpc.Channel] = {}


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What a queue's log holds: `oldest <= offset < head`; the two are equal when it is empty."""

    oldest: int
    head: int


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

    def __init__(self, address: str, queue: str, timeout_ms: int) -> None:
        self.address = address
        self.queue = queue
        self._timeout_s = timeout_ms / 1000

    def bounds(self) -> LogBounds:
        """Return where the log begins and ends; every message below `head` can be read."""
        stats = self._call("GetStats", pb.GetStatsRequest(queue=self.queue, max_keys=1), pb.GetStatsResponse)
        return LogBounds(int(stats.tail_offset), int(stats.head_offset))

    def keeping(self) -> Keeping:
        """Return the queue's retention."""
        answer = self._call("GetQueue", pb.GetQueueRequest(queue=self.queue), pb.GetQueueResponse)
        kept = answer.config.retention
        return Keeping(kept.soft_period_ms, kept.soft_bytes, kept.hard_period_ms, kept.hard_bytes)

    def first_from(self, offset: int) -> tuple[int, datetime] | None:
        """Return offset and append time of the first message at or after `offset`, None when there is none."""
        request = pb.ReadLogRequest(queue=self.queue, from_offset=max(offset, 1), max_batch=1)
        for message in self.read(request):
            return message.metadata.offset, message.timestamps.appended_at.ToDatetime(UTC)
        return None

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
            stream = self._method("ReadLog", pb.ReadLogResponse, streaming=True)(request)
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

    def _method(self, name: str, response: Any, *, streaming: bool = False) -> Callable[..., Any]:
        channel = _channel(self.address)
        make = channel.unary_stream if streaming else channel.unary_unary
        call: Callable[..., Any] = make(
            f"/fila.v1.{self.service}/{name}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=response.FromString,
        )
        return call

    def _call(self, name: str, request: Any, response: Any) -> Any:
        attempt, deadline = 0, time.monotonic() + self._timeout_s
        while True:
            try:
                return self._method(name, response)(request, timeout=CALL_S_MAX)
            except grpc.RpcError as error:
                self._pause_or_raise(error, attempt, deadline)
                attempt += 1

    def _pause_or_raise(self, error: grpc.RpcError, attempt: int, deadline: float) -> None:
        """Wait before the next attempt, or raise what the error means to the user."""
        pause_s = BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)]
        if error.code() in self.repeatable and time.monotonic() + pause_s < deadline:
            time.sleep(pause_s)
            return
        raise self._translated(error) from None

    def _translated(self, error: grpc.RpcError) -> Exception:
        code, said = error.code(), error.details()
        if code == grpc.StatusCode.NOT_FOUND:
            return QueueNotFound(f"{self.address} has no such queue: {said}")
        if code == grpc.StatusCode.INVALID_ARGUMENT:
            return OptionInvalid("queue", f"the broker at {self.address} refused it: {said}")
        if code == grpc.StatusCode.UNAVAILABLE:
            return BrokerFailed(
                f"no Fila broker could be reached at {self.address} for {self._timeout_s:g} s; check the option "
                f"address, and that the broker runs: {said}"
            )
        return BrokerFailed(f"the broker at {self.address} answered {code.name}: {said}")


def _channel(address: str) -> grpc.Channel:
    """The process's channel to that broker; a forked child opens its own, since gRPC's threads are not inherited."""
    key = (os.getpid(), address)
    if key not in _channels:
        parts = urlsplit(address) if "://" in address else None
        target = parts.netloc if parts else address
        if parts and parts.scheme == "https":
            _channels[key] = grpc.secure_channel(target, grpc.ssl_channel_credentials(), _CHANNEL_OPTIONS)
        else:
            _channels[key] = grpc.insecure_channel(target, _CHANNEL_OPTIONS)
    return _channels[key]
