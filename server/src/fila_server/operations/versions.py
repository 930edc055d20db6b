"""Versions of a queue's settings: written in the batch of the change, the last KEPT_MAX of each queue.

    version/<queue>/<number>    a QueueVersion: when, who, why, which paths
    settings/<queue>/<number>   the complete settings

They go with the frames of CREATE_QUEUE, UPDATE_QUEUE and DELETE_QUEUE (core/admin/operation_records.pxd). A queue that
was made before versions were kept has its settings as version 1 once it is changed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence

from fila.v1 import admin_pb2, version_pb2
from fila_server import errors
from fila_server.access.admission import Caller
from fila_server.broker.mirror import DLQ_SUFFIX
from fila_server.core.protocol import commands, seam_frames

KEPT_MAX = 100

Call = Callable[[int, bytes], Awaitable[bytes]]


def created(queue: str, config: admin_pb2.QueueConfig, caller: Caller | None) -> bytes:
    """Goes behind the frame of a CREATE_QUEUE: version 1, and nothing of a queue that had the name before."""
    change = seam_frames.OperationRecordsChange(prefixes=_prefixes(queue))
    _put(change, queue, _version(1, caller, "", ()), config)
    return bytes(change.SerializeToString())


def deleted(queue: str) -> bytes:
    """Goes behind the frame of a DELETE_QUEUE."""
    return bytes(seam_frames.OperationRecordsChange(prefixes=_prefixes(queue)).SerializeToString())


async def updated(
    call: Call,
    request: admin_pb2.UpdateQueueRequest,
    before: admin_pb2.QueueConfig,
    after: admin_pb2.QueueConfig,
    caller: Caller | None,
) -> tuple[bytes, int]:
    """What goes behind the frame of an UPDATE_QUEUE, and the number of its version. Raises VersionStale.

    Between this and the change nobody else may change the queue.
    """
    queue = request.queue
    kept = await newest(call, queue)
    number = kept or 1
    if request.expected_version and request.expected_version != number:
        raise errors.VersionStale(queue, request.expected_version, number)
    change = seam_frames.OperationRecordsChange()
    if not kept:
        _put(change, queue, version_pb2.QueueVersion(number=1), before)
    number += 1
    _put(change, queue, _version(number, caller, request.comment, request.update_mask.paths), after)
    if number > KEPT_MAX:
        for prefix in ("version", "settings"):
            change.records.add(key=_key(prefix, queue, number - KEPT_MAX))
    return bytes(change.SerializeToString()), number


async def newest(call: Call, queue: str) -> int:
    """The number of the newest version; 0 where none was kept yet."""
    rows = await _read(call, queue, "version", 0, 1)
    return version_pb2.QueueVersion.FromString(rows[0]).number if rows else 0


async def listed(
    call: Call, request: version_pb2.ListQueueVersionsRequest
) -> version_pb2.ListQueueVersionsResponse:
    """The versions that are kept, newest first."""
    rows = await _read(call, request.queue, "version", request.before, request.limit or KEPT_MAX)
    return version_pb2.ListQueueVersionsResponse(versions=map(version_pb2.QueueVersion.FromString, rows))


async def one(
    call: Call, queue: str, number: int, current: admin_pb2.QueueConfig
) -> admin_pb2.GetQueueVersionResponse:
    """One version. Raises NotFound."""
    below = number + 1 if number else 0
    reported = [
        version
        for row in await _read(call, queue, "version", below, 1)
        if (version := version_pb2.QueueVersion.FromString(row)).number == number or not number
    ]
    if not reported and number <= 1 and not await newest(call, queue):
        # Made before versions were kept, and not changed since.
        return admin_pb2.GetQueueVersionResponse(version=version_pb2.QueueVersion(number=1), config=current)
    rows = await _read(call, queue, "settings", reported[0].number + 1, 1) if reported else []
    if not rows:
        raise errors.NotFound(
            f'number: queue "{queue}" has no version {number}, or it is not kept any more; '
            "ListQueueVersions tells which there are",
            reason="VERSION_NOT_FOUND",
        )
    config = admin_pb2.QueueConfig.FromString(rows[0])
    return admin_pb2.GetQueueVersionResponse(version=reported[0], config=config)


async def _read(call: Call, queue: str, prefix: str, below: int, most: int) -> list[bytes]:
    page = seam_frames.OperationRecordsPage(
        prefix=_key(prefix, queue), below=_key(prefix, queue, below) if below else b"", most=most
    )
    reply = await call(commands.OPERATION_RECORDS_READ, page.SerializeToString())
    return [record.value for record in seam_frames.OperationRecords.FromString(reply).records]


def _version(
    number: int, caller: Caller | None, comment: str, changed: Sequence[str]
) -> version_pb2.QueueVersion:
    version = version_pb2.QueueVersion(number=number, comment=comment, changed=changed)
    if caller is not None:
        version.principal = caller.name if caller.number is not None else ""
        version.peer = caller.peer
    version.at.FromMilliseconds(time.time_ns() // 1_000_000)
    return version


def _put(
    change: object, queue: str, version: version_pb2.QueueVersion, config: admin_pb2.QueueConfig
) -> None:
    records = change.records  # type: ignore[attr-defined]
    records.add(key=_key("version", queue, version.number), value=version.SerializeToString())
    # The smallest record there can be is not empty: settings have a visibility timeout.
    records.add(key=_key("settings", queue, version.number), value=config.SerializeToString())


def _key(prefix: str, queue: str, number: int | None = None) -> bytes:
    # A queue's name has no slash in it, and 20 digits are enough for any number.
    return f"{prefix}/{queue}/{'' if number is None else f'{number:020d}'}".encode()


def _prefixes(queue: str) -> list[bytes]:
    return [_key(prefix, name) for prefix in ("version", "settings") for name in (queue, queue + DLQ_SUFFIX)]
