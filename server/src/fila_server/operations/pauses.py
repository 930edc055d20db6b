"""Since when a queue, a channel or a fairness key is paused, by whom and why: a record in the batch of the change.

    pause/<queue>/queue                 of the queue
    pause/<queue>/channel/<channel>     of one of its channels
    pause/<queue>/key/<key>             of one of its fairness keys

It goes with its queue, and when that is resumed. One who pauses what is paused may give another reason; since when and
by whom stays.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import msgspec

from fila.v1 import events_pb2
from fila_server.access.admission import Caller
from fila_server.core.protocol import commands, seam_frames

PAGE = 1000

Call = Callable[[int, bytes], Awaitable[bytes]]
Names = Callable[[str], bool]
"""Whether the caller may know that it was this principal."""


class Paused(msgspec.Struct, frozen=True, omit_defaults=True):
    """One pause."""

    since_ms: int
    by: str = ""
    """A key's name where keys are asked for, otherwise an address."""
    comment: str = ""
    """Why, as people said it."""


def of_queue(queue: str) -> bytes:
    """The name of its record. A queue's name has no slash in it."""
    return f"pause/{queue}/queue".encode()


def of_channel(queue: str, channel: str) -> bytes:
    """The same of one of its channels."""
    return f"pause/{queue}/channel/{channel}".encode()


def of_key(queue: str, fairness_key: str) -> bytes:
    """The same of one of its fairness keys."""
    return f"pause/{queue}/key/{fairness_key}".encode()


async def changed(
    call: Call, name: bytes, caller: Caller, now_ms: int, *, is_paused: bool, comment: str = ""
) -> bytes:
    """What goes behind the frame of a change that pauses or resumes."""
    if not is_paused:
        return _put(name, b"")
    before = await read(call, name)
    if before is None:
        return begun(name, caller, now_ms, comment)
    if comment and comment != before.comment:
        return _put(name, msgspec.json.encode(msgspec.structs.replace(before, comment=comment)))
    return b""


def begun(name: bytes, caller: Caller, now_ms: int, comment: str = "") -> bytes:
    """Goes behind the frame that pauses what was not paused."""
    by = caller.name if caller.number is not None else caller.peer
    return _put(name, msgspec.json.encode(Paused(now_ms, by, comment)))


def forgotten(queue: str) -> bytes:
    """Goes behind the frame that makes or deletes a queue."""
    prefix = f"pause/{queue}/".encode()
    return bytes(seam_frames.OperationRecordsChange(prefixes=[prefix]).SerializeToString())


async def read(call: Call, name: bytes) -> Paused | None:
    """What is recorded; None where it is not paused, or was before there were records."""
    # Keys that go on behind this name stand above it.
    page = seam_frames.OperationRecordsPage(prefix=name, below=name + b"\0", most=1)
    reply = await call(commands.OPERATION_RECORDS_READ, page.SerializeToString())
    for record in seam_frames.OperationRecords.FromString(reply).records:
        if record.key == name:
            return msgspec.json.decode(record.value, type=Paused)
    return None


async def tell_of_keys(
    call: Call, queue: str, policies: Iterable[events_pb2.KeyPolicy], names: Names
) -> None:
    """Complete what was set for keys by the pauses of those that are paused; these are read in pages."""
    paused = {of_key(queue, policy.fairness_key): policy for policy in policies if policy.paused}
    if len(paused) == 1:
        [(name, policy)] = paused.items()
        tell(policy.pause, await read(call, name), names)
        return
    prefix = of_key(queue, "")
    below = b""
    while paused:
        page = seam_frames.OperationRecordsPage(prefix=prefix, below=below, most=PAGE)
        records = seam_frames.OperationRecords.FromString(
            await call(commands.OPERATION_RECORDS_READ, page.SerializeToString())
        ).records
        for record in records:
            if (of := paused.get(record.key)) is not None:
                tell(of.pause, msgspec.json.decode(record.value, type=Paused), names)
        if not records or records[-1].key <= min(paused):
            return
        below = records[-1].key


def tell(pause: events_pb2.Pause, paused: Paused | None, names: Names) -> None:
    """Fill in what is known of a pause; by whom only for those who may know."""
    pause.SetInParent()
    if paused is not None:
        pause.since.FromMilliseconds(paused.since_ms)
        pause.by = paused.by if names(paused.by) else ""
        pause.comment = paused.comment


def _put(name: bytes, value: bytes) -> bytes:
    change = seam_frames.OperationRecordsChange()
    change.records.add(key=name, value=value)
    return bytes(change.SerializeToString())
