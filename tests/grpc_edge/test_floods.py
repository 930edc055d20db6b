"""Whatever one connection does to HTTP/2, it is ended or bounded, and a client beside it is served meanwhile."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import RunningServer
from tests.grpc_edge.polite import served_meanwhile
from tests.grpc_edge.raw_http2 import (
    ACK,
    CANCEL,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    NO_ERROR,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Frame,
    RawClient,
    frame,
    headers,
    literal,
    message,
)  # fmt: skip
from tests.waiting import GIVE_UP_S

pytestmark = pytest.mark.e2e

ENQUEUE = "/fila.v1.FilaService/Enqueue"
BLOCK = headers(ENQUEUE)
MAX_CONCURRENT = struct.pack(">HI", 3, 100)


def opened(stream: int) -> bytes:
    return frame(HEADERS, END_HEADERS, stream, BLOCK)


def streams(count: int) -> range:
    return range(1, 2 * count, 2)


FLOODS = {
    "resets": b"".join(
        opened(stream) + frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)) for stream in streams(20_000)
    ),
    "resets we are made to send": b"".join(
        opened(stream) + frame(WINDOW_UPDATE, 0, stream, b"\x7f\xff\xff\xff") for stream in streams(20_000)
    ),
    "continuations": frame(HEADERS, 0, 1, BLOCK)
    + frame(CONTINUATION, 0, 1, literal(b"x-a", b"y" * 100)) * 20_000,
    "pings": frame(PING, 0, 0, b"12345678") * 20_000,
    "settings": frame(SETTINGS, 0, 0, MAX_CONCURRENT) * 100_000,
    "settings of many entries": frame(SETTINGS, 0, 0, MAX_CONCURRENT * 1000),
    "empty data": opened(1) + frame(DATA, 0, 1) * 100_000,
    "window updates": frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 100_000,
    "priorities": opened(1) + frame(PRIORITY, 0, 1, bytes(4) + b"\x10") * 100_000,
}


FLOOD_LOOKS = 20_000
"""The connection ends before, and a server that does not get to it is waited for."""


@pytest.fixture(autouse=True)
def served(server: RunningServer) -> Iterator[None]:
    with served_meanwhile(server.channel()):
        yield


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_its_connection(server: RunningServer, name: str) -> None:
    with RawClient(server.addresses["grpc"]) as client:
        frames = client.pour(FLOODS[name], FLOOD_LOOKS)
        assert client.is_closed or any(one.kind == GOAWAY and one.number != NO_ERROR for one in frames)


@pytest.mark.parametrize("name", ["pings", "empty data", "window updates", "resets we are made to send"])
def test_what_we_count_ourselves_is_told_to_calm_down(server: RunningServer, name: str) -> None:
    with RawClient(server.addresses["grpc"]) as client:
        frames = client.pour(FLOODS[name][: 4 << 20], FLOOD_LOOKS)
        codes = [one.number for one in frames if one.kind == GOAWAY]
        assert codes[:1] in ([], [ENHANCE_YOUR_CALM])  # it may be lost behind what the client went on to send
        assert codes or client.is_closed


def test_ten_thousand_streams_are_taken_and_no_more(server: RunningServer) -> None:
    """They wait for their messages; the others are refused in a way that a client may try again."""
    with RawClient(server.addresses["grpc"]) as client:
        frames = client.pour(b"".join(opened(stream) for stream in streams(20_000)))
        refused = [one for one in frames if one.kind == RST_STREAM]
        assert len(refused) in (0, 10_000)
        assert refused or client.is_closed or any(one.kind == GOAWAY for one in frames)


def test_a_large_list_of_small_fields_is_refused(server: RunningServer) -> None:
    fields = literal(b"x-a", b"y" * 100) * 140  # 18.9 kB as they are counted
    with RawClient(server.addresses["grpc"]) as client:
        block = [frame(CONTINUATION, END_HEADERS if part == 6 else 0, 1, fields) for part in range(7)]
        frames = client.pour(frame(HEADERS, 0, 1, BLOCK) + b"".join(block))
        assert any(one.stream == 1 and one.kind in (HEADERS, RST_STREAM) for one in frames)


def test_headers_that_are_begun_and_never_ended_lose_their_connection(server: RunningServer) -> None:
    with RawClient(server.addresses["grpc"]) as client:
        # What it answers to SETTINGS may not stand inside a header block.
        client.until(lambda one: one.kind == SETTINGS and bool(one.flags & ACK))
        client.send(frame(HEADERS, 0, 1, BLOCK))
        goaway = client.until(lambda one: one.kind == GOAWAY, wait_s=30)
        assert goaway.number == ENHANCE_YOUR_CALM


def test_a_client_that_never_says_what_it_wants_loses_its_connection(server: RunningServer) -> None:
    import socket

    host, _, port = server.addresses["grpc"].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=15) as silent:
        while silent.recv(4096):
            pass


def test_a_length_that_is_announced_takes_no_memory(server: RunningServer) -> None:
    """Of 64 MiB each, on two thousand streams, of which not a byte comes."""
    announced = b"\0" + struct.pack(">I", 64 << 20) + b"x"
    before = resident_bytes(server)
    with RawClient(server.addresses["grpc"]) as client:
        client.pour(b"".join(opened(stream) + frame(DATA, 0, stream, announced) for stream in streams(2000)))
        assert resident_bytes(server) - before < 64 << 20


def test_a_message_that_is_too_long_is_refused_by_its_prefix(server: RunningServer) -> None:
    with RawClient(server.addresses["grpc"]) as client:
        client.send(opened(1) + frame(DATA, 0, 1, b"\0\xff\xff\xff\xff"))
        client.until(lambda one: one.kind == HEADERS and one.stream == 1)


def test_a_client_that_reads_no_pongs_does_not_fill_the_memory(server: RunningServer) -> None:
    before = resident_bytes(server)
    with RawClient(server.addresses["grpc"]) as client:
        client.send(opened(1) + frame(DATA, 0, 1, message(b"\x0a\x01q")))
        for _ in range(50):
            client.send(frame(SETTINGS, 0, 0) * 1000)
        assert resident_bytes(server) - before < 64 << 20


def resident_bytes(server: RunningServer) -> int:
    with open(f"/proc/{server.process.pid}/statm") as statm:  # noqa: PTH123 - a file of the system's
        return int(statm.read().split()[1]) * 4096


HELD_BYTES = 3900
NAMED_TIMES = 16


@pytest.mark.parametrize("path", ["/grpc.health.v1.Health/Check", "/fila.v1.FilaAdmin/GetStats", "GET"])
def test_a_header_that_was_sent_once_is_not_kept_by_every_call_that_names_it(
    server: RunningServer, path: str
) -> None:
    """One byte of a header block names 3.9 kB that came before: a megabyte would be half a gigabyte."""
    block = headers(path) if path != "GET" else headers("/", (b":method", b"GET"), without=b":method")
    indexed = b"\x40\x03x-a\x7f" + varint(HELD_BYTES - 127) + b"y" * HELD_BYTES
    calls = [frame(HEADERS, END_HEADERS, 1, block + indexed)]
    calls += [
        frame(HEADERS, END_HEADERS, stream, block + b"\xbe" * NAMED_TIMES) for stream in streams(6000)[1:]
    ]
    before = resident_bytes(server)
    with RawClient(server.addresses["grpc"]) as client:
        client.pour(b"".join(calls))
        assert resident_bytes(server) - before < 256 << 20


def varint(number: int) -> bytes:
    """HPACK's, of what does not fit into the first byte."""
    return bytes([number % 128 | 0x80]) + varint(number // 128) if number >= 128 else bytes([number])


def test_calls_of_the_health_service_that_stay_open_take_no_places_from_others(server: RunningServer) -> None:
    check = frame(HEADERS, END_HEADERS, 1, headers("/grpc.health.v1.Health/Check"))
    refused: list[int] = []

    def all_are_refused(answer: Frame) -> bool:
        if answer.kind == HEADERS and answer.flags & END_STREAM:
            refused.append(answer.stream)
        return len(refused) == 400

    def is_pong(answer: Frame) -> bool:
        all_are_refused(answer)
        return answer.kind == PING and bool(answer.flags & ACK)

    with RawClient(server.addresses["grpc"]) as greedy, RawClient(server.addresses["grpc"]) as other:
        for stream in streams(500):
            greedy.begin(stream, "/grpc.health.v1.Health/Check")
        greedy.until(all_are_refused, wait_s=GIVE_UP_S)
        greedy.send(frame(PING, 0, 0, b"12345678"))  # its answer comes behind whatever else is refused
        greedy.until(is_pong, wait_s=GIVE_UP_S)
        assert len(refused) == 400, "a connection has a hundred of them"
        other.send(check + frame(DATA, END_STREAM, 1, message(b"")))
        other.until(lambda one: one.kind == DATA and one.stream == 1)


def test_answers_of_the_health_service_that_nobody_reads_are_bounded(server: RunningServer) -> None:
    """With a window of nothing an answer stays, and with it all that is kept of its call."""
    check = headers("/grpc.health.v1.Health/Check")
    refused = 0
    with RawClient(server.addresses["grpc"], {INITIAL_WINDOW_SIZE: 0}) as client:
        for stream in streams(150):
            client.send(frame(HEADERS, END_HEADERS, stream, check))
            client.send(frame(DATA, END_STREAM, stream, message(b"")))
            answer = client.until(lambda one: one.kind == HEADERS)
            refused += bool(answer.flags & END_STREAM)
    assert refused == 50, "a connection has a hundred of them"


@pytest.mark.parametrize(
    "sent", [b"\0" + struct.pack(">I", 1 << 20), message(b"") + message(b"x")], ids=["large", "two"]
)
def test_of_a_caller_that_asks_for_health_no_more_than_a_name_is_taken(
    server: RunningServer, sent: bytes
) -> None:
    """Who shows no key would else hold what honest clients' large messages need."""
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, "/grpc.health.v1.Health/Watch")
        client.send(frame(DATA, 0, 1, sent))
        client.until(lambda one: one.kind == HEADERS and one.stream == 1 and bool(one.flags & END_STREAM))
