"""The metrics page: a few lines of HTTP on the loop, and Prometheus's text format written in slices.

On the loop and not in a thread: while two Python threads are busy, each waits for the other's five milliseconds, and
hooks and calls would feel every scrape. So a page of 10,000 series is written a millisecond at a time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

import structlog
from prometheus_client import PlatformCollector, ProcessCollector
from prometheus_client.registry import CollectorRegistry

from fila_server import errors
from fila_server.telemetry.catalog import Metric
from fila_server.telemetry.group import GroupStatus
from fila_server.telemetry.probes import (
    CONTENT_TYPE,
    HEAD_BYTES_MAX,
    STARTING,
    asked_for,
    response,
    unavailable,
)
from fila_server.telemetry.series import Attributes, Disk, Histogram, Series, group_series, standby_series
from fila_server.telemetry.snapshot import Snapshot
from fila_server.version import commit, version

log = structlog.get_logger("fila_server.telemetry")

HEAD_S_MAX = 5.0
SEND_S_MAX = 30.0
READY_S_MAX = 2.0
SILENT = "the scheduler does not answer"
CRITICAL = 2
"""A disk's level, as in fila.storage.disk_level."""
SCRAPES_MAX = 4
"""Pages in hand at a time; a further scraper is told to come back."""
SLICE_NS = 1_000_000
LINES_A_SLICE = 100
"""Lines between two looks at the clock."""


def lines_of(series: Series) -> Iterator[str]:
    """One metric in the text format."""
    metric = series.metric
    if not series.points and not series.histograms:
        return
    name = metric.prometheus_name
    yield f"# HELP {name} {_help(metric)}\n# TYPE {name} {metric.kind}\n"
    for attributes, value in series.points:
        yield f"{name}{_labels(attributes)} {_number(value)}\n"
    for attributes, histogram in series.histograms:
        yield from _histogram_lines(name, attributes, histogram)


def _histogram_lines(name: str, attributes: Attributes, histogram: Histogram) -> Iterator[str]:
    below = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        below += count
        le = "+Inf" if bound == float("inf") else _number(bound)
        yield f"{name}_bucket{_labels(attributes | {'le': le})} {below}\n"
    yield f"{name}_sum{_labels(attributes)} {_number(histogram.total)}\n"
    yield f"{name}_count{_labels(attributes)} {below}\n"


def _help(metric: Metric) -> str:
    return metric.description.replace("\\", r"\\").replace("\n", r"\n")


def _labels(attributes: Attributes) -> str:
    if not attributes:
        return ""
    inner = ",".join(f'{name.replace(".", "_")}="{_escaped(value)}"' for name, value in attributes.items())
    return f"{{{inner}}}"


def _escaped(value: str) -> str:
    if "\\" not in value and '"' not in value and "\n" not in value:
        return value
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def process_lines() -> Iterator[str]:
    """CPU, memory and file descriptors of the server, under the names everybody's dashboards know."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    for family in registry.collect():
        total = "_total" if family.type == "counter" else ""
        yield f"# HELP {family.name}{total} {family.documentation}\n# TYPE {family.name}{total} {family.type}\n"
        for sample in family.samples:
            yield f"{sample.name}{_labels(dict(sample.labels))} {_number(sample.value)}\n"


def build_lines() -> Iterator[str]:
    """What runs, as a metric whose labels say it: dashboards show where versions changed."""
    yield "# HELP fila_build_info What runs; always 1.\n# TYPE fila_build_info gauge\n"
    yield f"fila_build_info{_labels({'version': version(), 'commit': commit()})} 1\n"


def group_page(group: GroupStatus, disk: Disk, backup_age_s: float | None) -> bytes:
    """The page of a node that stands by: there is no core to ask."""
    both = (*group_series(group), *standby_series(disk, backup_age_s))
    lines = (line for series in both for line in lines_of(series))
    return "".join((*lines, *process_lines(), *build_lines())).encode("utf-8", "backslashreplace")


Check = Callable[[str, bytes | None], None]
"""Gets (a scraper's address, its key or None) and raises where it may not read."""


def _given(head: bytes, header: bytes) -> list[bytes]:
    """What a request says in a header, once for each time that it says it."""
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return [value.strip() for name, _, value in lines if name.strip().lower() == header]


def _bearer(head: bytes) -> bytes | None:
    given = _given(head, b"authorization")
    return given[0][7:].strip() if given and given[0][:7].lower() == b"bearer " else None


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]+))(?::\d*)?")


def _host(given: bytes) -> str:
    """The name or address in a Host header, in lower case, without port and brackets; "" where it is none."""
    read = _HOST.fullmatch(given.decode("ascii", "replace").lower())
    return (read[1] or read[2]) if read else ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class MetricsPage:
    """`GET /metrics` on an address of its own."""

    def __init__(
        self,
        snapshot: Callable[[], Awaitable[Snapshot]],
        series: Callable[[Snapshot], Iterator[Series]],
        check: Check = lambda _address, _key: None,
        names: Iterable[str] = (),
    ) -> None:
        """`names` are those by which the page may be asked for, besides addresses."""
        self._names = {"localhost", *names}
        self._check = check
        self._snapshot = snapshot
        self._series = series
        self._servers: list[asyncio.Server] = []
        self._scrapes = 0
        self.why_not_ready = STARTING
        """What /readyz says until clients are answered, and from when they no longer are; empty meanwhile."""

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Answer on sockets that listen."""
        for each in sockets:
            server = await asyncio.start_server(self._serve, sock=each, limit=HEAD_BYTES_MAX)
            self._servers.append(server)

    @property
    def port(self) -> int:
        """The port that is held."""
        return int(self._servers[0].sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Take no more scrapes; one in hand ends with the loop."""
        for each in self._servers:
            each.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_S_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
            peer = writer.get_extra_info("peername")
            writer.write(await self._answer(head, peer[0] if peer else ""))
            async with asyncio.timeout(SEND_S_MAX):
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a scraper that went away, or never was one
        finally:
            writer.close()

    async def _answer(self, head: bytes, address: str = "127.0.0.1") -> bytes:
        method, path = asked_for(head)
        if method not in (b"GET", b"HEAD"):
            return response("405 Method Not Allowed", b"only GET\n", extra="Allow: GET, HEAD\r\n")
        if path == b"/healthz":
            return response("200 OK", b"alive\n")
        if path in (b"/readyz", b"/ownerz"):
            return await self._readiness()
        if path != b"/metrics":
            return response("404 Not Found", b"there are /metrics, /healthz, /readyz and /ownerz\n")
        if wrong := self._not_called(head):
            return response("421 Misdirected Request", wrong.encode())
        try:
            self._check(address, _bearer(head))
        except errors.FilaServerError as error:
            if isinstance(error, errors.Unauthenticated) and error.before_reported is not None:
                await error.before_reported()
            return response("401 Unauthorized", f"{error}\n".encode(), extra="WWW-Authenticate: Bearer\r\n")
        if self._scrapes >= SCRAPES_MAX:
            return unavailable("too many scrapes at a time; try again")
        self._scrapes += 1
        try:
            body = await self._page()
        except (errors.FilaServerError, TimeoutError) as error:
            return unavailable(str(error) or SILENT)
        finally:
            self._scrapes -= 1
        return response(
            "200 OK", b"" if method == b"HEAD" else body, content_type=CONTENT_TYPE, length=len(body)
        )

    def _not_called(self, head: bytes) -> str:
        """Why a request is not for this page; empty where it is. A page of another site, whose name somebody points at
        this machine, is asked for by that name (DNS rebinding); a scraper without a Host is no browser."""
        for host in map(_host, _given(head, b"host")):
            if not _is_address(host) and host not in self._names:
                return (
                    f"this page is not called {host[:100]!r}. Ask by an address or localhost, or put the name into "
                    "metrics.allowed_hosts\n"
                )
        return ""

    async def _readiness(self) -> bytes:
        """Whether messages should be sent here now. A disk that is low refuses enqueues alone, and consumers, who make
        room, are to come; a critical one refuses their acks too."""
        if self.why_not_ready:
            return unavailable(self.why_not_ready)
        try:
            async with asyncio.timeout(READY_S_MAX):
                snapshot = await self._snapshot()
        except (errors.FilaServerError, TimeoutError) as error:
            return unavailable(str(error) or SILENT)
        level = snapshot.totals.disk_level
        if level >= CRITICAL:
            return unavailable("the disk is critical: every write is refused")
        low = "; the disk is low: enqueues are refused, acks and deliveries go on" if level else ""
        return response("200 OK", f"ready{low}\n".encode())

    async def _page(self) -> bytes:
        snapshot = await self._snapshot()
        parts: list[str] = []
        ends_ns = time.monotonic_ns() + SLICE_NS
        for line in self._lines(snapshot):
            parts.append(line)
            if len(parts) % LINES_A_SLICE == 0 and time.monotonic_ns() > ends_ns:
                await asyncio.sleep(0)
                ends_ns = time.monotonic_ns() + SLICE_NS
        return "".join(parts).encode("utf-8", "backslashreplace")

    def _lines(self, snapshot: Snapshot) -> Iterator[str]:
        for series in self._series(snapshot):
            yield from lines_of(series)
        yield from process_lines()
        yield from build_lines()
