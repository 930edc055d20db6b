"""What was lost or damaged, until an admin acknowledges it: kept over restarts.

    trouble/lost, trouble/damaged    since when, when it grew last, how much

An admin acknowledges with the runtime config value ACKNOWLEDGED, a moment: what grew last before it is told no more. So
the acknowledgement has an audit record and an event, as every such value.
"""

from __future__ import annotations

import asyncio

import msgspec

from fila_server.broker.calls import Broker
from fila_server.core.protocol import commands, seam_frames
from fila_server.events import EVENTS_KEPT, RING
from fila_server.operations.trouble_facts import ACKNOWLEDGED, Found, acknowledged_ms
from fila_server.telemetry.snapshot import Snapshot

_LOST, _DAMAGED = b"trouble/lost", b"trouble/damaged"


class _Kept(msgspec.Struct, omit_defaults=True):
    """Loss or damage as it is recorded; `last_ms` is when it grew last."""

    since_ms: int
    last_ms: int
    ranges: int = 0
    messages: int = 0


class Damage:
    """What was lost or damaged, until an admin acknowledges it; kept over restarts."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._kept: dict[bytes, _Kept] = {}
        self._counted = (0, 0)
        self._is_read = False
        self._writing: set[asyncio.Task[bytes]] = set()

    async def look(self, snapshot: Snapshot, wall_ms: int) -> tuple[Found | None, Found | None]:
        """What is lost, and what is damaged."""
        if not self._is_read:
            await self._read()
            self._note_damage()
            self._is_read = True
        totals = snapshot.totals
        ranges, messages = totals.lost_ranges - self._counted[0], totals.lost_messages - self._counted[1]
        if ranges > 0 or messages > 0:
            self._counted = (totals.lost_ranges, totals.lost_messages)
            self._note(_LOST, wall_ms, ranges, messages)
        until_ms = acknowledged_ms(self._broker.runtime_config.get(ACKNOWLEDGED, ""))
        lost, damaged = (self._found(name, until_ms) for name in (_LOST, _DAMAGED))
        return lost, damaged if lost is None else None

    def _found(self, name: bytes, until_ms: int) -> Found | None:
        kept = self._kept.get(name)
        if kept is None or kept.last_ms <= until_ms:
            return None
        return Found(kept.since_ms, kept.ranges, kept.messages)

    def _note_damage(self) -> None:
        for event in RING.after(0, EVENTS_KEPT)[0]:
            if event.kind == "store.damage_found":
                self._note(_DAMAGED, event.at_ms)

    def _note(self, name: bytes, at_ms: int, ranges: int = 0, messages: int = 0) -> None:
        """Add to what was found, unless that is acknowledged: then it is a new one."""
        until_ms = acknowledged_ms(self._broker.runtime_config.get(ACKNOWLEDGED, ""))
        before = self._kept.get(name)
        if before is None or before.last_ms <= until_ms:
            before = _Kept(at_ms, at_ms)
        kept = _Kept(before.since_ms, at_ms, before.ranges + ranges, before.messages + messages)
        self._kept[name] = kept
        change = seam_frames.OperationRecordsChange()
        change.records.add(key=name, value=msgspec.json.encode(kept))
        # Not waited for: a disk that fails may take no write for long.
        task = asyncio.ensure_future(
            self._broker.call(commands.OPERATION_RECORDS_CHANGE, change.SerializeToString())
        )
        self._writing.add(task)
        task.add_done_callback(self._wrote)

    def _wrote(self, task: asyncio.Task[bytes]) -> None:
        self._writing.discard(task)
        if not task.cancelled():
            task.exception()  # what was found is told as long as this process runs

    async def _read(self) -> None:
        page = seam_frames.OperationRecordsPage(prefix=b"trouble/", most=10)
        reply = await self._broker.call(commands.OPERATION_RECORDS_READ, page.SerializeToString())
        for record in seam_frames.OperationRecords.FromString(reply).records:
            self._kept[bytes(record.key)] = msgspec.json.decode(record.value, type=_Kept)
