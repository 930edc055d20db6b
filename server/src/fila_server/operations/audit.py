"""What admins did: who, from where, what to which queue. Durable with the change, bounded, told to the log too.

A record travels with the command as its field 14, and the core writes it in the batch of the change when the command
succeeds (core/life/answers.pyx); so there is no change without its record, and no record without its change. Values
and scripts appear as digests: they may be secrets. `emit` is the one way out for everything that happens here, for
the log and for whoever listens.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import structlog

from fila_server.access.door import Caller

log = structlog.get_logger("fila_server.operations")

RECENT_MAX = 1_000
TEXT_CHARS_MAX = 200
_TAG = b"\x72"  # field 14, behind what the client sent, so that what it may have put there does not count

_READS = frozenset(
    (
        "GetQueue",
        "GetConfig",
        "ListConfig",
        "ListConsumers",
        "ExplainKey",
        "GetStats",
        "ListQueues",
        "ListChannels",
    )
)
_HIDDEN_FIELDS = frozenset(("value", "on_enqueue_script", "on_failure_script"))

Call = Callable[[int, bytes], Awaitable[bytes]]
Listener = Callable[[str, dict[str, Any]], None]

recent: deque[tuple[str, dict[str, Any]]] = deque(maxlen=RECENT_MAX)
"""What was emitted last: (event, its fields)."""

_listeners: list[Listener] = []


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One act. `details` are the request's fields, digests where a value may be secret."""

    act: str
    principal: str
    peer: str
    key_id: str = ""
    queue: str = ""
    details: dict[str, str] = {}


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener` with each event; the returned function takes that back."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def emit(event: str, **fields: Any) -> None:
    """Tell the log, the bounded record of late, and everybody who listens. Fields hold no secrets."""
    log.info(event, **fields)
    entry = {"at_ms": time.time_ns() // 1_000_000, **fields}
    recent.append((event, entry))
    for listener in _listeners:
        listener(event, entry)


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
    seam_frames.KeptChange to be written with the change, behind a request that was made here.
    """
    frame = request.SerializeToString() if frame is None else frame
    frame += kept
    if act in _READS or caller is None:
        return await call(kind, frame)
    told = record(act, request, caller)
    return await call(kind, frame + field(told))


def encode(told: Record) -> bytes:
    """A record as it is stored."""
    return msgspec.json.encode(told)


def field(told: Record) -> bytes:
    """A record as field 14 of a frame."""
    encoded = encode(told)
    return _TAG + _varint(len(encoded)) + encoded


def record(act: str, request: Any, caller: Caller) -> Record:
    """Return the record of an act."""
    details = {}
    queue = ""
    for descriptor, value in request.ListFields():
        if descriptor.name in ("queue", "name", "dlq_queue") and isinstance(value, str) and not queue:
            queue = value
        else:
            details[descriptor.name] = _shown(descriptor.name, value)
    return Record(
        act=act, principal=caller.name, peer=caller.peer, key_id=caller.key_id, queue=queue, details=details
    )


def _shown(name: str, value: Any) -> str:
    if name in _HIDDEN_FIELDS:
        return digest(str(value))
    if hasattr(value, "ListFields"):
        parts = (f"{inner.name}={_shown(inner.name, each)}" for inner, each in value.ListFields())
        return _shortened(", ".join(parts))
    if hasattr(value, "items"):
        return _shortened(f"{len(value)} entries {digest(repr(sorted(value.items())))}")
    return _shortened(str(value))


def digest(text: str) -> str:
    """What stands for a text that may be secret: enough to see that two are the same."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _shortened(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else text[: TEXT_CHARS_MAX - 3] + "..."


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
