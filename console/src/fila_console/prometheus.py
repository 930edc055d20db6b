"""What a Prometheus is asked: one query over a range of time. The answer is bounded and checked, a failure is in words.

Nothing of an address that it redirects to is followed, and nothing of what it says of its failures is shown.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import h11
import orjson

from fila_console.settings import BadSetting, Source
from fila_console.trouble import Trouble

ANSWER_S_MAX = 5.0
"""From the call to the last byte."""
ANSWER_BYTES_MAX = 4 << 20
ASKED_AT_ONCE_MAX = 4
LINES_MAX = 50
_CHUNK = 64 << 10


class Span(NamedTuple):
    """A range of time in equal steps; seconds since 1970."""

    begin: int
    end: int
    step: int

    @property
    def times(self) -> list[int]:
        """The moments that have a value."""
        return [*range(self.begin, self.end + 1, self.step)]


class Line(NamedTuple):
    """One series over a span; None where nothing was recorded."""

    labels: dict[str, str]
    values: list[float | None]


class Prometheus:
    """One of them."""

    def __init__(self, source: Source, ca_file: str = "") -> None:
        """Raises BadSetting: the file has no authorities."""
        self._source = source
        parts = urlsplit(source.address)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._netloc = parts.netloc
        self._path = f"{parts.path}/api/v1/query_range"
        self._tls = _trusting(ca_file) if parts.scheme == "https" else None
        self._room = asyncio.Semaphore(ASKED_AT_ONCE_MAX)

    async def lines(self, query: str, span: Span) -> list[Line]:
        """What a query tells of a span. Raises Trouble."""
        asked = {"query": query, "start": span.begin, "end": span.end, "step": span.step}
        try:
            async with asyncio.timeout(ANSWER_S_MAX), self._room:
                status, body = await self._post(urlencode(asked).encode())
        except TimeoutError as error:
            raise self._failed(f"It did not answer within {ANSWER_S_MAX:g} s.") from error
        except (OSError, ValueError, EOFError, h11.RemoteProtocolError) as error:
            raise self._failed("Nothing that can be read came from it.") from error
        if 300 <= status < 400:
            raise self._failed(f"It sends elsewhere (status {status}), and the console does not go there.")
        if status != 200:
            raise self._failed(f"It refused the question (status {status}).")
        try:
            return _lines_of(body, span)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError) as error:
            raise self._failed("Its answer is not that of a Prometheus.") from error

    async def _post(self, body: bytes) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        try:
            head = [
                ("host", self._netloc),
                ("content-type", "application/x-www-form-urlencoded"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            talk = h11.Connection(h11.CLIENT)
            request = h11.Request(method="POST", target=self._path, headers=head)
            for event in (request, h11.Data(data=body), h11.EndOfMessage()):
                writer.write(talk.send(event) or b"")
            await writer.drain()
            return await self._told(reader, talk)
        finally:
            writer.close()

    async def _told(self, reader: asyncio.StreamReader, talk: h11.Connection) -> tuple[int, bytes]:
        status, came = 0, bytearray()
        while True:
            event = talk.next_event()
            if event is h11.NEED_DATA:
                talk.receive_data(await reader.read(_CHUNK))
            elif isinstance(event, h11.Response):
                status = event.status_code
                if status != 200:
                    return status, b""
            elif isinstance(event, h11.Data):
                came += event.data
                if len(came) > ANSWER_BYTES_MAX:
                    raise self._failed(f"Its answer is longer than {ANSWER_BYTES_MAX >> 20} MiB.")
            elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
                return status, bytes(came)

    def _failed(self, text: str) -> Trouble:
        return Trouble(
            502,
            f"Prometheus at {self._source.address} was of no help",
            text,
            "See whether it runs there, and whether --prometheus names it.",
        )


def _trusting(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except ssl.SSLError as error:
            raise BadSetting(f"{ca_file} has no certificate that can be read; give one in PEM") from error
    return context


def _lines_of(body: bytes, span: Span) -> list[Line]:
    told = orjson.loads(body)
    if told["status"] != "success" or told["data"]["resultType"] != "matrix":
        raise ValueError
    places = {at: place for place, at in enumerate(span.times)}
    return [_line(each, places) for each in told["data"]["result"][:LINES_MAX]]


def _line(told: dict[str, object], places: dict[int, int]) -> Line:
    labels, points = told["metric"], told["values"]
    if not isinstance(labels, dict) or not isinstance(points, Sequence):
        raise TypeError
    values: list[float | None] = [None] * len(places)
    for at, text in points:
        value = float(text)
        place = places.get(round(at))
        if place is not None and math.isfinite(value):
            values[place] = value
    return Line({str(name): str(value) for name, value in labels.items()}, values)
