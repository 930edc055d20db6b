"""What the server and its queues look like, and their settings: INFO and CONFIG.

Floki answers with an array of one JSON text; a bare INFO is Redis's own text, because client
libraries and monitors ask for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import orjson

from fila.v1 import admin_pb2
from fila_server import errors
from fila_server.core.protocol import commands
from fila_server.edge.redis import sentinel
from fila_server.edge.redis.client import Client
from fila_server.edge.redis.overrides import QUEUE_DEFAULTS, duration_text, read_setting, size_text
from fila_server.edge.redis.reply_bytes import COMPATIBLE_VERSION, OK, encode, error_reply
from fila_server.operations import rules as queue_rules
from fila_server.operations import versions
from fila_server.operations.changes import carry_out_and_report

STATS_AT_ONCE = 32
"""Queues asked about side by side, so that INFO on ten thousand does not fill the mailbox."""

_TEXT_SECTIONS = (b"", b"all", b"default", b"everything")
# CONFIG's name of a per-queue setting, and where QueueConfig has it.
_PATHS = {
    "message_timeout": "visibility_timeout_ms",
    "retention_period": "retention.soft_period_ms",
    "retention_size": "retention.soft_bytes",
    "hard_retention_period": "retention.hard_period_ms",
    "hard_retention_size": "retention.hard_bytes",
}


# --- INFO ---------------------------------------------------------------------------------


def info(client: Client, args: list[bytes]) -> bytes | Awaitable[bytes]:
    """INFO [server | replication | queues | queues.prefix]"""
    section = args[0].lower() if args else b""
    if section in _TEXT_SECTIONS:
        return encode(_text_info(client), 2)
    if section == b"replication":
        return encode(sentinel.sections({"Replication": sentinel.replication(_group(client))}), 2)
    if section == b"server":
        return _json_reply(_server_info(client))
    if (prefix := _queue_prefix(args[0])) is not None:
        return _queues_info(client, prefix)
    return error_reply("IPA", "INFO takes server, replication, queues or queues.<prefix>, or nothing")


def _server_info(client: Client) -> dict[str, Any]:
    server = client.server
    counts = _connections(client)
    return {
        "client_count": counts["connected_clients"],
        "blocked_client_count": counts["blocked_clients"],
        "queue_count": len(_names(client, "")),
        "thread_count": sum(1 for _ in Path("/proc/self/task").iterdir()),
        "clock": server.now(),
    }


def _connections(client: Client) -> dict[str, int]:
    """How many there are and were; a tenant is told of its own."""
    server = client.server
    if client.entry.is_tenant:
        own = sum(client.entry.sees_client(other.entry) for other in server.connections)
        return {"connected_clients": own, "blocked_clients": 0, "total": own, "commands": 0}
    return {
        "connected_clients": server.client_count,
        "blocked_clients": server.blocked_count,
        "total": server.connections_total,
        "commands": server.commands_total,
    }


def _text_info(client: Client) -> str:
    counts = _connections(client)
    server, now = client.server, client.server.now()
    sections: dict[str, dict[str, Any]] = {
        "Server": {
            "redis_version": COMPATIBLE_VERSION, "redis_mode": "standalone", "server_name": "fila",
            "tcp_port": server.address[1], "uptime_in_seconds": int(now - server.started_at_s),
        },
        "Clients": {
            "connected_clients": counts["connected_clients"], "blocked_clients": counts["blocked_clients"],
            "maxclients": server.overrides.settings.max_connections,
        },
        "Persistence": {"loading": 0},
        "Stats": {
            "total_connections_received": counts["total"], "total_commands_processed": counts["commands"],
        },
        "Replication": sentinel.replication(_group(client)),
        "Fila": {"queues": len(_names(client, ""))},
    }  # fmt: skip
    return sentinel.sections(sections)


def _group(client: Client) -> sentinel.Group | None:
    return client.server.group() if client.server.group else None


async def _queues_info(client: Client, prefix: str) -> bytes:
    names = _names(client, prefix)
    found: list[dict[str, Any] | None] = []
    for at in range(0, len(names), STATS_AT_ONCE):
        found += await asyncio.gather(*[_queue_info(client, name) for name in names[at : at + STATS_AT_ONCE]])
    return _json_reply({name: about for name, about in zip(names, found, strict=True) if about is not None})


async def _queue_info(client: Client, queue: str) -> dict[str, Any] | None:
    request = admin_pb2.GetStatsRequest(queue=queue, max_keys=1)
    try:
        reply = await client.broker.call(commands.GET_STATS, request.SerializeToString())
    except errors.NotFound:
        return None  # deleted since we listed it
    stats = admin_pb2.GetStatsResponse.FromString(reply)
    segment_size = client.server.overrides.segment_size(queue) or 1
    return {
        "head": stats.head_offset,
        "tail": stats.tail_offset,
        "channels": {
            channel.name: _channel_info(channel)
            for channel in stats.channels
            if client.entry.sees_channel(queue, channel.name)
        },
        "segments_count": -(-stats.stored_bytes // segment_size),
        "disk_usage": stats.stored_bytes,
    }


def _channel_info(channel: admin_pb2.ChannelInfo) -> dict[str, Any]:
    return {
        "tail": channel.tail_offset,
        "last_touched": channel.created_at.ToNanoseconds() / 1e9,
        "in_flight_count": channel.in_flight,
    }


# --- CONFIG -------------------------------------------------------------------------------


def config(client: Client, args: list[bytes]) -> bytes | Awaitable[bytes]:
    """CONFIG GET server | queues | queues.prefix, CONFIG SET key value"""
    word = args[0].upper()
    if word == b"GET" and len(args) == 2:
        if args[1].lower() == b"server":
            return _json_reply(_server_config(client))
        if (prefix := _queue_prefix(args[1])) is not None:
            return _json_reply({name: _queue_config(client, name) for name in _names(client, prefix)})
        return error_reply("IPA", "CONFIG GET takes server, queues or queues.<prefix>")
    if word == b"SET" and len(args) == 3:
        return _set(client, args[1].decode("utf-8", "replace"), args[2].decode("utf-8", "replace"))
    if word in (b"GET", b"SET"):
        return error_reply(
            "MPA" if len(args) < 3 else "IPA", "usage: CONFIG GET section, CONFIG SET key value"
        )
    return error_reply("ICOM", f"CONFIG has GET and SET, not '{word.decode('utf-8', 'replace')}'")


def _server_config(client: Client) -> dict[str, Any]:
    overrides = client.server.overrides
    settings = overrides.settings
    return {
        "data_directory": client.server.data_dir,
        "bind_address": settings.listen_addr,
        "max_connections": settings.max_connections,
        "maintenance_interval": duration_text(settings.maintenance_interval),
        "monitor_interval": duration_text(settings.monitor_interval),
        "default_queue_config": {name: _text(name, getattr(settings, name)) for name in QUEUE_DEFAULTS},
        "set_by_config_set": overrides.names,
    }


def _queue_config(client: Client, queue: str) -> dict[str, Any]:
    config = client.broker.queue_configs[queue]
    about = {name: _text(name, _value_at(config, path)) for name, path in _PATHS.items()}
    about["segment_size"] = size_text(client.server.overrides.segment_size(queue))
    return {"name": queue, "data_directory": client.server.data_dir, **about}


def _set(client: Client, key: str, text: str) -> Awaitable[bytes]:
    section, _, rest = key.partition(".")
    if section.lower() == "server":
        return _set_server(client, rest.lower().removeprefix("default_queue_config."), text)
    # A queue's name may hold dots, a setting's does not.
    queue, _, name = rest.rpartition(".")
    if section.lower() != "queues" or not queue:
        raise errors.Invalid("key", "must be server.<setting> or queues.<queue>.<setting>")
    return _set_queue(client, queue, name.lower(), text)


async def _set_server(client: Client, name: str, text: str) -> bytes:
    _check(client, name, read_setting(name, text))
    await client.server.overrides.set(name, text, client.entry.caller)
    return OK


async def _set_queue(client: Client, queue: str, name: str, text: str) -> bytes:
    if name not in QUEUE_DEFAULTS:
        raise errors.Invalid(name, f"is not a setting of a queue; there are {', '.join(QUEUE_DEFAULTS)}")
    value = int(read_setting(name, text))
    broker = client.broker
    async with broker.mirror.update_lock:
        current = broker.queue_configs.get(queue)
        if current is None:
            raise errors.QueueNotFound(queue)
        if name == "segment_size":
            await client.server.overrides.set_segment_size(queue, text, client.entry.caller)
            return OK
        _check(client, name, value)
        before = current
        request = admin_pb2.UpdateQueueRequest(queue=queue, config=current)
        request.update_mask.paths.append(_PATHS[name])
        *outer, last = _PATHS[name].split(".")
        setattr(getattr(request.config, outer[0]) if outer else request.config, last, value)
        caller = client.entry.caller
        kept, _ = await versions.updated(broker.call, request, before, request.config, caller)
        await carry_out_and_report(
            broker.call, "UpdateQueue", commands.UPDATE_QUEUE, request, caller, kept=kept
        )
    return OK


def _check(client: Client, name: str, value: int) -> None:
    """The bounds of a queue's times. What was kept by an older broker is not judged again."""
    if name == "message_timeout":
        _check_timeout(client, value)
    elif name.endswith("retention_period") and value > queue_rules.RETENTION_MS_MAX:
        most = duration_text(queue_rules.RETENTION_MS_MAX)
        raise errors.Invalid(name, f"must be at most {most}, got {duration_text(value)}")


def _check_timeout(client: Client, milliseconds: int) -> None:
    """The bounds of a visibility timeout; 0 is no way to say "the default" here."""
    queue_rules.complete(
        admin_pb2.QueueConfig(visibility_timeout_ms=milliseconds or 1),
        client.server.limits,
        default_channel=False,
    )


# --- both ---------------------------------------------------------------------------------


def _queue_prefix(section: bytes) -> str | None:
    """`queues` -> "", `queues.ord` -> "ord", anything else -> None."""
    word, dot, prefix = section.decode("utf-8", "replace").partition(".")
    return prefix if word.lower() == "queues" and (prefix or not dot) else None


def _names(client: Client, prefix: str) -> list[str]:
    return sorted(
        name for name in client.broker.queue_configs if name.startswith(prefix) and client.entry.sees(name)
    )


def _value_at(config: admin_pb2.QueueConfig, path: str) -> int:
    value: Any = config
    for part in path.split("."):
        value = getattr(value, part)
    return int(value)


def _text(name: str, value: int) -> str:
    return size_text(value) if name.endswith("size") else duration_text(value)


def _json_reply(document: dict[str, Any]) -> bytes:
    return encode([orjson.dumps(document)], 2)
