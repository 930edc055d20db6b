"""The metrics page: a few lines of HTTP on the loop, and Prometheus's text format written in slices.

On the loop and not in a thread: while two Python threads are busy, each waits for the other's five milliseconds, and
hooks and calls would feel every scrape. So a page of 10,000 series is written a millisecond at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

import structlog
from prometheus_client import PlatformCollector, ProcessCollector
from prometheus_client.registry import CollectorRegistry

from fila_server import errors
from fila_server.telemetry.catalog import Metric
from fila_server.telemetry.series import Attributes, Histogram, Series
from fila_server.telemetry.snapshot import Snapshot
from fila_server.version import commit, version

log = structlog.get_logger("fila_server.telemetry")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HEAD_BYTES_MAX = 16 * 1024
HEAD_S_MAX = 5.0
SEND_S_MAX = 30.0
READY_S_MAX = 2.0
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


Check = Callable[[str, bytes | None], None]
"""Gets (a scraper's address, its key or None) and raises where it may not read."""


def _bearer(head: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"authorization" and value.strip()[:7].lower() == b"bearer ":
            return value.strip()[7:].strip()
    return None


class MetricsPage:
    """`GET /metrics` on an address of its own."""

    def __init__(
        self,
        snapshot: Callable[[], Awaitable[Snapshot]],
        series: Callable[[Snapshot], Iterator[Series]],
        check: Check = lambda _address, _key: None,
    ) -> None:
        self._check = check
        self._snapshot = snapshot
        self._series = series
        self._server: asyncio.Server | None = None
        self._scrapes = 0
        self.serves = False
        """True while clients are answered: what /readyz says first."""

    async def start(self, host: str, port: int) -> None:
        """Hold the port. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES_MAX)

    @property
    def port(self) -> int:
        """The port that is held."""
        assert self._server is not None, "started before it is asked"
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Take no more scrapes; one in hand ends with the loop."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_S_MAX)
            peer = writer.get_extra_info("peername")
            writer.write(await self._answer(head, peer[0] if peer else ""))
            await asyncio.wait_for(writer.drain(), SEND_S_MAX)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a scraper that went away, or never was one
        finally:
            writer.close()

    async def _answer(self, head: bytes, address: str = "127.0.0.1") -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", b"only GET\n", extra="Allow: GET, HEAD\r\n")
        if path == b"/healthz":
            return _response("200 OK", b"alive\n")
        if path == b"/readyz":
            why_not = await self._why_not_ready()
            return (
                _response("503 Service Unavailable", f"{why_not}\n".encode())
                if why_not
                else _response("200 OK", b"ready\n")
            )
        if path != b"/metrics":
            return _response("404 Not Found", b"there are /metrics, /healthz and /readyz\n")
        try:
            self._check(address, _bearer(head))
        except errors.FilaServerError as error:
            return _response("401 Unauthorized", f"{error}\n".encode(), extra="WWW-Authenticate: Bearer\r\n")
        if self._scrapes >= SCRAPES_MAX:
            return _response("503 Service Unavailable", b"too many scrapes at a time; try again\n")
        self._scrapes += 1
        try:
            body = await self._page()
        except (errors.FilaServerError, TimeoutError) as error:
            why = str(error) or "the scheduler does not answer"
            return _response("503 Service Unavailable", f"{why}\n".encode())
        finally:
            self._scrapes -= 1
        return _response(
            "200 OK", b"" if method == b"HEAD" else body, content_type=CONTENT_TYPE, length=len(body)
        )

    async def _why_not_ready(self) -> str:
        """Why no messages should be sent here now; empty when they should."""
        if not self.serves:
            return "starting or stopping"
        try:
            await asyncio.wait_for(self._snapshot(), READY_S_MAX)
        except (errors.FilaServerError, TimeoutError) as error:
            return str(error) or "the scheduler does not answer"
        return ""

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


def _response(
    status: str,
    body: bytes,
    *,
    content_type: str = "text/plain; charset=utf-8",
    length: int = -1,
    extra: str = "",
) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {length if length >= 0 else len(body)}\r\n{extra}Connection: close\r\n\r\n"
    )
    return head.encode() + body
