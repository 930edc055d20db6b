"""Telemetry as serving.py sees it: start what the configuration asks for, stop it without waiting for anybody."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import structlog

from fila_server import errors
from fila_server.config.kinds import Address, AddressOrOff
from fila_server.core.threads.spans import SpanTap
from fila_server.telemetry.group import GroupReader
from fila_server.telemetry.probes import DRAINING, LoadingPage, bound
from fila_server.telemetry.series import (
    BackupReader,
    EdgeReader,
    HookReader,
    OtherKeys,
    QuotaReader,
    ScheduleReader,
    Series,
    TroubleReader,
    all_series,
)
from fila_server.telemetry.snapshot import Snapshot
from fila_server.telemetry.source import SnapshotSource

if TYPE_CHECKING:
    from fila_server.telemetry.otlp import OtlpExport
    from fila_server.telemetry.prometheus import Check, MetricsPage
    from fila_server.telemetry.spans import SpanExport

log = structlog.get_logger("fila_server.telemetry")

STOP_S_MAX = 1.0
"""How long a stop waits for the last export; the drain has its own ten seconds to keep."""


class Telemetry:
    """The metrics page and the OTLP exports, as far as they are configured."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[bytes]],
        hooks: HookReader = tuple,
        quotas: QuotaReader = tuple,
        troubles: TroubleReader = tuple,
        backup: BackupReader = lambda: None,
        schedules: ScheduleReader = tuple,
        edge: EdgeReader = lambda: None,
        group: GroupReader | None = None,
    ) -> None:
        """`ask` sends METRICS to the core and gives the answer. Call on the loop."""
        self._hooks = hooks
        self._quotas = quotas
        self._troubles = troubles
        self._backup = backup
        self._schedules = schedules
        self._edge = edge
        self._group = group
        self._source = SnapshotSource(ask, hooks, quotas, troubles, backup, schedules, edge, group)
        self._page: MetricsPage | None = None
        self._exports: list[OtlpExport | SpanExport] = []

    async def start_page(
        self,
        address: AddressOrOff,
        check: Check = lambda _address, _key: None,
        loading: LoadingPage | None = None,
        allowed_hosts: Sequence[str] = (),
    ) -> int:
        """Hold the port of the metrics page, which `loading` may hold already; 0 when it is turned off. It may be asked
        for by addresses, localhost, its own name and `allowed_hosts`."""
        if not address:
            return 0
        from fila_server.telemetry.prometheus import MetricsPage  # what nobody asks for is not loaded

        # The page and OTLP differ in when they look, so each adds up its own "other" keys.
        others = OtherKeys()

        def series(snapshot: Snapshot) -> Iterator[Series]:
            readings = self._hooks(), self._quotas(), self._troubles()
            group = self._group() if self._group else None
            return all_series(
                snapshot, others, *readings, self._backup(), self._schedules(), self._edge(), group
            )

        try:
            sockets = loading.hand_over() if loading is not None else bound(address)
        except OSError as error:
            raise errors.PortTaken.of("metrics.listen_addr", address, error) from error
        names = (Address(address).host.lower(), *allowed_hosts)
        self._page = MetricsPage(self._source.snapshot, series, check, names)
        await self._page.start(sockets)
        return self._page.port

    def say_ready(self) -> None:
        """/readyz answers 200 from now on, as long as the core does."""
        if self._page is not None:
            self._page.why_not_ready = ""

    def say_draining(self) -> None:
        """/readyz answers 503 from now on."""
        if self._page is not None:
            self._page.why_not_ready = DRAINING

    def start_export(self, *, endpoint: str, service_name: str, interval_ms: int) -> None:
        """Begin to send, unless there is nowhere to send to."""
        if not endpoint:
            return
        from fila_server.telemetry.otlp import OtlpExport  # a quarter of a second nobody else should pay

        export = OtlpExport(
            self._source.series_from_thread,
            endpoint=endpoint,
            service_name=service_name,
            interval_ms=interval_ms,
        )
        self._exports.append(export)
        log.info("telemetry.exporting", endpoint=endpoint, interval_ms=interval_ms)

    def start_spans(self, tap: SpanTap | None, *, endpoint: str, service_name: str) -> None:
        """Begin to send the core's spans, where it makes any."""
        if tap is None:
            return
        from fila_server.telemetry.spans import SpanExport, exporter_to

        export = SpanExport(tap, exporter_to(endpoint), service_name=service_name, endpoint=endpoint)
        export.start()
        self._exports.append(export)
        log.info("telemetry.exporting_spans", endpoint=endpoint)

    async def stop_exports(self) -> None:
        """Send a last time and close; a collector that does not answer is left behind."""
        stopping = [asyncio.ensure_future(self._stop(export)) for export in self._exports]
        if stopping:
            late = (await asyncio.wait(stopping, timeout=STOP_S_MAX))[1]
            for task in late:
                task.cancel()

    def stop_page(self) -> None:
        """Close the page: the last that the server does."""
        if self._page is not None:
            self._page.stop()

    async def _stop(self, export: OtlpExport | SpanExport) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()

        def done() -> None:
            with contextlib.suppress(RuntimeError):  # later than STOP_S_MAX the loop may be closed
                loop.call_soon_threadsafe(stopped.set)

        export.stop(done)
        await stopped.wait()
