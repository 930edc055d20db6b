"""A client with HTTP/2 and no gRPC is told so in HTTP, in an answer that any client reads."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.e2e.conftest import RunningServer
from tests.grpc_edge.raw_http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    NO_ERROR,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Frame,
    RawClient,
    frame,
    headers,
    literal,
)  # fmt: skip

pytestmark = pytest.mark.e2e

ENQUEUE = "/fila.v1.FilaService/Enqueue"


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("kind", "status"), [("text/html", "415"), ("application/grpcx", "415")])
def test_what_is_not_grpc_is_told_so_in_http(server: RunningServer, kind: str, status: str) -> None:
    curl = shutil.which("curl")
    assert curl
    found = subprocess.run(
        [curl, "-s", "-o", "/dev/null", "-w", "%{http_code}", "--http2-prior-knowledge", "-X", "POST",
         "-H", f"content-type: {kind}", f"http://{server.addresses['grpc']}{ENQUEUE}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stdout == status


def is_text(found: Frame) -> bool:
    return found.kind == DATA and found.stream == 1


def test_its_answer_comes_when_its_request_has_ended(server: RunningServer) -> None:
    seen: list[Frame] = []

    def is_pong(found: Frame) -> bool:
        seen.append(found)
        return found.kind == PING and bool(found.flags & ACK)

    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, ENQUEUE, without=b"content-type")
        client.send(frame(DATA, 0, 1, b"x" * 1000) + frame(PING, 0, 0, bytes(8)))
        client.until(is_pong)
        assert not [found for found in seen if found.kind in (HEADERS, RST_STREAM)], "it is not over yet"
        client.send(frame(DATA, END_STREAM, 1))
        told = client.until(is_text)
        assert b"application/grpc" in told.payload
        assert told.flags & END_STREAM


def test_what_does_not_end_is_answered_all_the_same(server: RunningServer) -> None:
    with RawClient(server.addresses["grpc"]) as client:
        client.until(
            lambda found: found.kind == SETTINGS and not found.flags & ACK
        )  # how large the window is
        client.begin(1, ENQUEUE, without=b"content-type")
        client.send(frame(DATA, 0, 1, bytes(16_000)) * 40)
        client.until(lambda found: found.kind == WINDOW_UPDATE and found.stream == 1)
        client.send(frame(DATA, 0, 1, bytes(16_000)) * 30)
        assert client.until(is_text).flags & END_STREAM
        assert client.until(lambda found: found.kind == RST_STREAM and found.stream == 1).number == NO_ERROR


@pytest.mark.parametrize(("method", "has_text"), [(b"GET", True), (b"HEAD", False)])
def test_what_is_no_post_is_told_so(server: RunningServer, method: bytes, has_text: bool) -> None:
    with RawClient(server.addresses["grpc"]) as client:
        block = literal(b":method", method) + headers("/", without=b":method")
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, block))
        if has_text:
            assert b"POST" in client.until(is_text).payload
        else:
            answer = client.until(lambda found: found.kind == HEADERS and found.stream == 1)
            assert answer.flags & END_STREAM
