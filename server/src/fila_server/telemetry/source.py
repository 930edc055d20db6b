"""Where exporters get their snapshots: one METRICS command to the core, shared by those that ask together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from fila_server import errors
from fila_server.telemetry.group import GroupReader
from fila_server.telemetry.series import (
    BackupReader,
    EdgeReader,
    EdgeReading,
    HookReader,
    HookReading,
    OtherKeys,
    QuotaReader,
    QuotaReading,
    ScheduleReader,
    ScheduleReading,
    Series,
    TroubleReader,
    TroubleReading,
    all_series,
)
from fila_server.telemetry.snapshot import Snapshot, decode

SNAPSHOT_S_MAX = 5.0
"""A scheduler that does not answer for so long has other troubles than its metrics."""
OVERLOADED_RETRY_S = 0.02


class SnapshotSource:
    """Reads the core. Every method but `series_from_thread` belongs to the loop's thread."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[bytes]],
        hooks: HookReader,
        quotas: QuotaReader = tuple,
        troubles: TroubleReader = tuple,
        backup: BackupReader = lambda: None,
        schedules: ScheduleReader = tuple,
        edge: EdgeReader = lambda: None,
        group: GroupReader | None = None,
    ) -> None:
        self._ask = ask
        self._group = group
        self._hooks = hooks
        self._quotas = quotas
        self._troubles = troubles
        self._backup = backup
        self._schedules = schedules
        self._edge = edge
        self._others = OtherKeys()
        self._loop = asyncio.get_running_loop()
        self._asking: asyncio.Task[bytes] | None = None

    async def snapshot(self) -> Snapshot:
        """Return the core's numbers of now. Raises errors.FilaServerError or TimeoutError."""
        return decode(await self._packed())

    def series_from_thread(self) -> list[Series]:
        """Return every point, for another thread; none when the core does not answer, because it is stopping."""
        asked = asyncio.run_coroutine_threadsafe(self._reading(), self._loop)
        try:
            packed, hooks, quotas, troubles, schedules, edge = asked.result(SNAPSHOT_S_MAX + 1)
        except (errors.FilaServerError, TimeoutError, asyncio.CancelledError):
            asked.cancel()
            return []
        # Here and not on the loop, which has better things to do for these milliseconds.
        backup_age_s = self._backup()
        return list(
            all_series(
                decode(packed),
                self._others,
                hooks,
                quotas,
                troubles,
                backup_age_s,
                schedules,
                edge,
                self._group() if self._group else None,
            )
        )

    async def _reading(
        self,
    ) -> tuple[
        bytes,
        Sequence[HookReading],
        Sequence[QuotaReading],
        Sequence[TroubleReading],
        Sequence[ScheduleReading],
        EdgeReading | None,
    ]:
        packed = await self._packed()
        return packed, self._hooks(), self._quotas(), self._troubles(), self._schedules(), self._edge()

    async def _packed(self) -> bytes:
        """Ask the core, or wait with those who asked already."""
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask_again())
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    async def _ask_again(self) -> bytes:
        """Metrics of an overloaded broker are the ones people want to see, so a full mailbox is tried again."""
        async with asyncio.timeout(SNAPSHOT_S_MAX):
            while True:
                try:
                    return await self._ask()
                except errors.Overloaded:
                    await asyncio.sleep(OVERLOADED_RETRY_S)

    def _asked(self, asking: asyncio.Task[bytes]) -> None:
        self._asking = None
        if not asking.cancelled():
            asking.exception()  # those that waited have it; without any, no warning
