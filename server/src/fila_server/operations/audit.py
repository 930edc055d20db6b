"""What admins did: who, from where, what to which queue. Durable with the change, bounded, told to the log too.

A record travels behind the command's request (seam_frames.Audited), and the core writes it in the batch of the change
when the command succeeds (core/lifecycle/answers.pyx). So there is no change without its record, and no record without
its change. Values and scripts appear as digests: they may be secrets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from fila_server.access.admission import Caller
from fila_server.access.rights import pattern_of
from fila_server.core.protocol import seam_frames

TEXT_CHARS_MAX = 200

_READS = frozenset(
    (
        "GetQueue",
        "GetConfig",
        "ListConfig",
        "ListConsumers",
        "ExplainKey",
        "GetMessage",
        "GetStats",
        "ListQueues",
        "ListChannels",
        "ListLimits",
        "GetClusterStatus",
    )
)
_HIDDEN_FIELDS = frozenset(("value", "payload", "on_enqueue_script", "on_failure_script"))

Call = Callable[[int, bytes], Awaitable[bytes]]


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One act. `details` are the request's fields, digests where a value may be secret."""

    act: str
    principal: str
    peer: str
    key_id: str = ""
    queue: str = ""
    details: dict[str, str] = {}
    claimed_address: str = ""


async def carry_out(
    call: Call,
    act: str,
    kind: int,
    request: Any,
    caller: Caller | None,
    frame: bytes | None = None,
    *,
    kept: bytes = b"",
) -> bytes:
    """Send a command with the record of its act behind it. One that only reads goes as it is. The log is told by
    changes.py.

    `frame` is the request's bytes where they are there already; `caller` None is the broker itself. `kept` is a
    seam_frames.OperationRecordsChange to be written with the change, behind a request that was made here.
    """
    frame = request.SerializeToString() if frame is None else frame
    frame += kept
    if act in _READS or caller is None:
        return await call(kind, frame)
    reported = record(act, request, caller)
    return await call(kind, frame + field(reported))


def encode(reported: Record) -> bytes:
    """A record as it is stored."""
    return msgspec.json.encode(reported)


def field(reported: Record) -> bytes:
    """A record as it stands behind what the client sent, so that what it may have put there does not count."""
    audited: bytes = seam_frames.Audited(audit=encode(reported)).SerializeToString()
    return audited


def record(act: str, request: Any, caller: Caller) -> Record:
    """Return the record of an act."""
    details = {}
    queue = ""
    for descriptor, value in request.ListFields():
        if descriptor.name in ("queue", "name", "dlq_queue") and isinstance(value, str) and not queue:
            queue = value
        else:
            details[descriptor.name] = _shown(descriptor, value)
    return Record(
        act=act,
        principal=caller.name,
        peer=caller.peer,
        key_id=caller.key_id,
        queue=queue,
        details=details,
        claimed_address=caller.claimed_address,
    )


def _shown(field: Any, value: Any) -> str:
    """A field's value as people read it; nothing of what may be secret."""
    if field.name in _HIDDEN_FIELDS:
        return digest(str(value))
    if hasattr(value, "items"):
        return _shortened(f"{len(value)} entries {digest(repr(sorted(value.items())))}")
    if field.is_repeated:
        return _shortened(", ".join(_one(field, each) for each in value))
    return _shortened(_one(field, value))


def _one(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        found = field.enum_type.values_by_number.get(value)
        return str(value) if found is None else found.name
    if field.message_type is None:
        return str(value).lower() if isinstance(value, bool) else str(value)
    if field.message_type.name == "Permission":
        right = _one(field.message_type.fields_by_name["right"], value.right)
        return f"{right.removeprefix('RIGHT_').lower()} {pattern_of(value.queue, value.channel)}".rstrip()
    if field.message_type.name == "FieldMask":
        return ", ".join(value.paths)
    if hasattr(value, "ToJsonString"):
        return str(value.ToJsonString())
    return ", ".join(f"{inner.name}={_shown(inner, each)}" for inner, each in value.ListFields())


def words_of(message: Any) -> str:
    """A message's fields in one line."""
    return _shortened(
        ", ".join(f"{field.name}={_shown(field, value)}" for field, value in message.ListFields())
    )


def digest(text: str) -> str:
    """What stands for a text that may be secret: enough to see that two are the same."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _shortened(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else text[: TEXT_CHARS_MAX - 3] + "..."
