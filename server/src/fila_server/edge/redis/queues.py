"""Commands that make, move, empty and delete queues and channels: SET SETNX DEL SREM HMSET.

A queue made here has only the channel that was named, and drops messages after a day unless
`[redis]` or CONFIG SET says otherwise: that is what Floki's users are used to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from fila.v1 import admin_pb2
from fila_server import errors
from fila_server.config.schema import Redis
from fila_server.core.protocol import commands
from fila_server.edge.redis.client import Client
from fila_server.edge.redis.reply_bytes import OK, error_reply, integer
from fila_server.operations import rules as queue_rules
from fila_server.operations import versions
from fila_server.operations.changes import carry_out_and_report

U64_MAX = 2**64 - 1
SECONDS_MAX = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())
"""Later than this is no moment, but milliseconds given as seconds."""


def queue_name(arg: bytes) -> str:
    """Return a queue's name, checked."""
    name = arg.decode("utf-8", "replace")
    queue_rules.check_name("queue", name)
    return name


def channel_name(arg: bytes) -> str:
    """Return a channel's name, checked: an empty one must not come to mean `default`."""
    name = arg.decode("utf-8", "replace")
    queue_rules.check_name("channel", name, bytes_max=queue_rules.NAME_BYTES_MAX)
    return name


def set_(client: Client, args: list[bytes]) -> Awaitable[bytes]:
    """SET queue channel [NX]"""
    if len(args) == 3 and args[2].upper() != b"NX":
        raise errors.Invalid("option", "must be NX: SET takes no other")
    queue, channel = queue_name(args[0]), channel_name(args[1])
    if len(args) == 3:
        return _ensure_channel(client, queue, channel)
    return _create_queue(client, queue, channel)


def setnx(client: Client, args: list[bytes]) -> Awaitable[bytes]:
    """SETNX queue channel"""
    return _ensure_channel(client, queue_name(args[0]), channel_name(args[1]))


async def _create_queue(client: Client, queue: str, channel: str) -> bytes:
    queue_rules.check_new_name("queue", queue)
    config = queue_rules.complete(new_queue_config(client.server.overrides.settings), client.server.limits,
                                  default_channel=False)  # fmt: skip
    config.channels.append(channel)
    request = admin_pb2.CreateQueueRequest(name=queue, config=config)
    kept = versions.created(queue, config, client.entry.caller)
    await _carry_out(client, "CreateQueue", commands.CREATE_QUEUE, request, kept)
    return OK


async def _ensure_channel(client: Client, queue: str, channel: str) -> bytes:
    """Make what is missing of the two; what is there already is as good."""
    if queue not in client.broker.queue_configs:
        try:
            return await _create_queue(client, queue, channel)
        except errors.QueueExists:
            pass  # somebody else made it meanwhile
    request = admin_pb2.CreateChannelRequest(queue=queue, channel=channel, head=True)
    with contextlib.suppress(errors.ChannelExists):
        await _carry_out(client, "CreateChannel", commands.CREATE_CHANNEL, request)
    return OK


def new_queue_config(settings: Redis) -> admin_pb2.QueueConfig:
    """Return the settings of a queue made over Redis, its channel still to be named."""
    # An expired ticket goes to the next reader at that moment, as in Floki, not after a backoff.
    at_once = admin_pb2.RetryPolicy(kind=admin_pb2.RetryPolicy.KIND_FIXED, base_ms=1)
    return admin_pb2.QueueConfig(
        visibility_timeout_ms=settings.message_timeout,
        retry=at_once,
        retention=admin_pb2.Retention(
            soft_period_ms=settings.retention_period,
            soft_bytes=settings.retention_size,
            hard_period_ms=settings.hard_retention_period,
            hard_bytes=settings.hard_retention_size,
        ),
    )


async def _whether_found(work: Awaitable[bytes]) -> bytes:
    try:
        await work
    except errors.NotFound:
        return integer(0)
    return integer(1)


def del_(client: Client, args: list[bytes]) -> Awaitable[bytes]:
    """DEL queue [channel]"""
    queue = queue_name(args[0])
    if len(args) == 1:
        return _delete_queue(client, queue)
    request = admin_pb2.DeleteChannelRequest(queue=queue, channel=channel_name(args[1]))
    return _whether_found(_carry_out(client, "DeleteChannel", commands.DELETE_CHANNEL, request))


async def _delete_queue(client: Client, queue: str) -> bytes:
    request = admin_pb2.DeleteQueueRequest(queue=queue)
    kept = versions.deleted(queue)
    return await _whether_found(_carry_out(client, "DeleteQueue", commands.DELETE_QUEUE, request, kept))


def srem(client: Client, args: list[bytes]) -> Awaitable[bytes]:
    """SREM queue channel|*"""
    queue = queue_name(args[0])
    if args[1] == b"*":
        everything = admin_pb2.PurgeQueueRequest(queue=queue)
        return _whether_found(_carry_out(client, "PurgeQueue", commands.PURGE_QUEUE, everything))
    request = admin_pb2.PurgeChannelRequest(queue=queue, channel=channel_name(args[1]))
    return _whether_found(_carry_out(client, "PurgeChannel", commands.PURGE_CHANNEL, request))


def hmset(client: Client, args: list[bytes]) -> bytes | Awaitable[bytes]:
    """HMSET queue channel TS|ID value"""
    request = admin_pb2.SeekChannelRequest(queue=queue_name(args[0]), channel=channel_name(args[1]))
    match args[2].upper():
        case b"ID":
            request.offset = _offset(args[3])
        case b"TS":
            request.time.CopyFrom(_moment(args[3]))
        case _:
            return error_reply("IPA", "the position must be given as TS <unix seconds> or ID <offset>")
    return _seek(client, request)


async def _seek(client: Client, request: admin_pb2.SeekChannelRequest) -> bytes:
    await _carry_out(client, "SeekChannel", commands.SEEK_CHANNEL, request)
    return integer(2)


async def _carry_out(client: Client, act: str, kind: int, request: Any, kept: bytes = b"") -> bytes:
    return await carry_out_and_report(client.broker.call, act, kind, request, client.entry.caller, kept=kept)


def _offset(text: bytes) -> int:
    if not (text.isdigit() and len(text) <= 20 and int(text) <= U64_MAX):
        raise errors.Invalid("ID", f"must be an integer from 0 to {U64_MAX}")
    return int(text)


def _moment(text: bytes) -> Timestamp:
    """Unix seconds with any fraction, exactly; what lies before 1970 is the oldest there is."""
    try:
        seconds = Decimal(text.decode()) if len(text) <= 40 else None
    except (InvalidOperation, UnicodeDecodeError):
        seconds = None
    if seconds is None or not seconds.is_finite():
        raise errors.Invalid("TS", "must be unix seconds; fractions are allowed")
    if seconds > SECONDS_MAX:
        raise errors.Invalid("TS", "lies after the year 9999: it takes seconds, not milliseconds")
    if seconds <= 0:
        return Timestamp()
    whole = int(seconds)
    return Timestamp(seconds=whole, nanos=int((seconds - whole) * 10**9))
