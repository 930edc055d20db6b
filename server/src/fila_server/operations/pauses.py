"""Since when a queue or a fairness key is paused, and by whom: a record in the batch of the change.

    pause/<queue>/queue         of the queue
    pause/<queue>/key/<key>     of one of its fairness keys

It goes with its queue, and when that is resumed. One who pauses what is paused changes nothing of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from fila_server.access.admission import Caller
from fila_server.core.protocol import commands, seam_frames

Call = Callable[[int, bytes], Awaitable[bytes]]


class Paused(msgspec.Struct, frozen=True, omit_defaults=True):
    """One pause."""

    since_ms: int
    by: str = ""
    """A key's name where keys are asked for, otherwise an address."""


async def changed(
    call: Call, queue: str, fairness_key: str | None, caller: Caller, now_ms: int, *, is_paused: bool
) -> bytes:
    """What goes behind the frame of a change that pauses or resumes; without a key the queue."""
    change = seam_frames.OperationRecordsChange()
    if not is_paused:
        change.records.add(key=_name(queue, fairness_key))
    elif await read(call, queue, fairness_key) is None:
        return begun(queue, fairness_key, caller, now_ms)
    return bytes(change.SerializeToString())


def begun(queue: str, fairness_key: str | None, caller: Caller, now_ms: int) -> bytes:
    """Goes behind the frame that pauses what was not paused."""
    by = caller.name if caller.number is not None else caller.peer
    change = seam_frames.OperationRecordsChange()
    change.records.add(key=_name(queue, fairness_key), value=msgspec.json.encode(Paused(now_ms, by)))
    return bytes(change.SerializeToString())


def forgotten(queue: str) -> bytes:
    """Goes behind the frame that makes or deletes a queue."""
    prefix = f"pause/{queue}/".encode()
    return bytes(seam_frames.OperationRecordsChange(prefixes=[prefix]).SerializeToString())


async def read(call: Call, queue: str, fairness_key: str | None) -> Paused | None:
    """What is recorded; None where it is not paused, or was before there were records."""
    name = _name(queue, fairness_key)
    # Keys that go on behind this name stand above it.
    page = seam_frames.OperationRecordsPage(prefix=name, below=name + b"\0", most=1)
    reply = await call(commands.OPERATION_RECORDS_READ, page.SerializeToString())
    for record in seam_frames.OperationRecords.FromString(reply).records:
        if record.key == name:
            return msgspec.json.decode(record.value, type=Paused)
    return None


def _name(queue: str, fairness_key: str | None) -> bytes:
    # A queue's name has no slash in it.
    return (
        f"pause/{queue}/queue".encode()
        if fairness_key is None
        else f"pause/{queue}/key/{fairness_key}".encode()
    )
