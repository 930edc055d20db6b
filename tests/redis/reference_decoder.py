"""What a stream of bytes from a Redis client asks for, found slowly: the judge of decoder.pyx.

It sees the whole stream at once and makes one event a command:

    ("push", queue, payload)  ("push_many", queue, payloads)  ("lease", queue, channel, count, wait_ms)
    ("acks", queue, channel, tickets)  ("command", args)  ("reply", prefix)  ("close", text)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fila.v1 import service_pb2
from tests.native import decoderprobe as codec
from tests.redis.reference_words import UnbalancedQuotes, split_line

ARGUMENTS_MAX = 1024 * 1024
BULK_BYTES_MAX = 512 * 1024 * 1024
LINE_BYTES_MAX = 64 * 1024

_NAME = re.compile(rb"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_INT = re.compile(rb"-?[0-9]{1,19}")
_SECONDS = re.compile(rb"[0-9.eE+-]+")

Event = tuple[Any, ...]


class _Incomplete(Exception):
    pass


class _Broken(Exception):
    pass


def events_of_stream(stream: bytes, payload_max: int, messages_max: int, bytes_max: int) -> list[Event]:
    """Return every event of a whole stream; an incomplete last command gives none."""
    events: list[Event] = []
    at = 0
    try:
        while at < len(stream):
            if stream[at : at + 1] == b"*":
                args, at, too_large = _read_array(
                    stream, at, payload_max, max(payload_max, bytes_max) + 65536
                )
            else:
                args, at = _read_line(stream, at)
                too_large = False
            if too_large:
                events.append(("reply", "IPA"))
            elif args:
                events.append(_event(args, messages_max, bytes_max))
    except _Incomplete:
        pass
    except _Broken:
        events.append(("close", "ERR Protocol error"))
    return events


def _read_array(
    stream: bytes, start: int, payload_max: int, command_max: int
) -> tuple[list[bytes], int, bool]:
    count, at = _read_header(stream, start)
    if not 0 <= count <= ARGUMENTS_MAX:
        raise _Broken
    args = []
    too_large = False
    for _ in range(count):
        if at == len(stream):
            raise _Incomplete
        if stream[at : at + 1] != b"$":
            raise _Broken
        size, at = _read_header(stream, at)
        if not 0 <= size <= BULK_BYTES_MAX:
            raise _Broken
        too_large = too_large or size > payload_max or at - start + size > command_max
        if len(stream) < at + size + 2:
            raise _Incomplete
        if not too_large and stream[at + size : at + size + 2] != b"\r\n":
            raise _Broken
        args.append(stream[at : at + size])
        at += size + 2
    return args, at, too_large


def _read_header(stream: bytes, at: int) -> tuple[int, int]:
    rest = stream[at + 1 : at + 40]
    match = re.match(rb"(-?)([0-9]{1,31})\r\n", rest)
    if match is not None:
        number = int(match[2])
        # -0 is a negative length too: nobody means it.
        return (-number - 1 if match[1] else number), at + 1 + match.end()
    if (
        re.fullmatch(rb"-?[0-9]{0,31}\r?", rest)
        and len(rest) <= 32
        and re.fullmatch(rb"-?|-?[0-9]+\r?", rest)
    ):
        raise _Incomplete
    raise _Broken


def _read_line(stream: bytes, at: int) -> tuple[list[bytes], int]:
    end = stream.find(b"\n", at)
    if end < 0:
        if len(stream) - at > LINE_BYTES_MAX:
            raise _Broken
        raise _Incomplete
    if end + 1 - at > LINE_BYTES_MAX:
        raise _Broken
    try:
        return split_line(stream[at : end + 1]), end + 1
    except UnbalancedQuotes:
        raise _Broken from None


def _event(args: list[bytes], messages_max: int, bytes_max: int) -> Event:
    name = args[0].upper()
    if name == b"RPUSH":
        return _push(args, messages_max, bytes_max)
    if name == b"HMGET":
        return _lease(args)
    if name == b"HDEL":
        return _acks(args)
    return ("command", tuple(args[:64]), len(args))


def _push(args: list[bytes], messages_max: int, bytes_max: int) -> Event:
    if len(args) < 3:
        return ("reply", "MPA")
    if not _is_name(args[1], 255):
        return ("reply", "IPA")
    if len(args) == 3:
        return ("push", args[1], args[2])
    frame = service_pb2.EnqueueBatchRequest(queue=args[1].decode())
    for payload in args[2:]:
        frame.messages.add(payload=payload)
    if len(args) - 2 > messages_max or frame.ByteSize() > bytes_max:
        return ("reply", "IPA")
    return ("push_many", args[1], tuple(args[2:]))


def _lease(args: list[bytes]) -> Event:
    if len(args) < 4:
        return ("reply", "MPA")
    if len(args) > 5 or not _is_name(args[1], 255) or not _is_name(args[2], 251):
        return ("reply", "IPA")
    count = _int64(args[3])
    seconds = _seconds(args[4]) if len(args) == 5 else 0.0
    if count is None or count < 0 or seconds is None or seconds > 86_400:
        return ("reply", "IPA")
    if count == 0:
        return ("reply", "*0")
    wait_ms = 0 if seconds == 0 else max(1, int(seconds * 1000))
    return ("lease", args[1], args[2], min(count, 10_000), wait_ms)


def _acks(args: list[bytes]) -> Event:
    if len(args) < 4:
        return ("reply", "MPA")
    tickets = tuple(_int64(arg) for arg in args[3:])
    if not _is_name(args[1], 255) or not _is_name(args[2], 251) or None in tickets:
        return ("reply", "IPA")
    return ("acks", args[1], args[2], tickets)


def _is_name(text: bytes, bytes_max: int) -> bool:
    return len(text) <= bytes_max and _NAME.fullmatch(text) is not None


def _int64(text: bytes) -> int | None:
    # Leading zeros are fine as long as the whole stays short.
    if _INT.fullmatch(text) is None and re.fullmatch(rb"[0-9]{20}", text) is None:
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None


def _seconds(text: bytes) -> float | None:
    if _SECONDS.fullmatch(text) is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if seconds >= 0 else None


def events_of_items(items: list[codec.Item]) -> Iterator[Event]:
    """Say what the decoder found in the reference's words."""
    for kind, body, number in items:
        if kind in (codec.PUSHES, codec.PUSH_MANY):
            request = service_pb2.EnqueueBatchRequest.FromString(body)
            assert len(request.messages) == number
            pushed = [((m.queue or request.queue).encode(), m.payload) for m in request.messages]
            if kind == codec.PUSHES:
                yield from (("push", queue, payload) for queue, payload in pushed)
            else:
                yield ("push_many", request.queue.encode(), tuple(payload for _, payload in pushed))
        elif kind == codec.LEASE:
            lease = service_pb2.LeaseRequest.FromString(body)
            assert lease.wait_ms == number
            yield ("lease", lease.queue.encode(), lease.channel.encode(), lease.max_messages, lease.wait_ms)
        elif kind == codec.ACKS:
            frames = [service_pb2.AckBatchRequest.FromString(frame) for frame in body]
            assert sum(map(len, body)) == number
            ids = [item.lease_id for frame in frames for item in frame.items]
            signed = tuple(lease_id - 2**64 if lease_id >= 2**63 else lease_id for lease_id in ids)
            yield ("acks", frames[0].queue.encode(), frames[0].channel.encode(), signed)
        elif kind == codec.COMMAND:
            yield ("command", tuple(body), number)
        elif kind == codec.REPLY:
            yield ("reply", body.split()[0].decode().removeprefix("-"))
        else:
            yield ("close", body[1:].split(b":")[0].decode())
