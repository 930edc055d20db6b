"""The floods again, encrypted: what ends a connection is the same, and its handshake is bounded, too.

Two of them in `make test`, all in `make soak` (FILA_SOAK).
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from tests.e2e.conftest import RunningServer, launch, wait_until_started
from tests.grpc_edge.polite import served_meanwhile
from tests.grpc_edge.raw_http2 import (
    ACK,
    DATA,
    ENHANCE_YOUR_CALM,
    GOAWAY,
    HEADERS,
    NO_ERROR,
    SETTINGS,
    RawClient,
    frame,
)
from tests.grpc_edge.test_floods import BLOCK, ENQUEUE, FLOOD_LOOKS, FLOODS

pytestmark = [pytest.mark.e2e, pytest.mark.needs("openssl")]

IN_SOAK = bool(os.environ.get("FILA_SOAK"))
HERE = list(FLOODS) if IN_SOAK else ["resets", "empty data"]


@dataclass
class Encrypted:
    running: RunningServer
    certificate: Path

    def connect(self) -> RawClient:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.certificate)
        context.set_alpn_protocols(["h2"])
        return RawClient(self.running.addresses["grpc"], tls=context)

    def channel(self) -> grpc.Channel:
        credentials = grpc.ssl_channel_credentials(self.certificate.read_bytes())
        options = [("grpc.use_local_subchannel_pool", 1)]
        self.running.channels.append(
            grpc.secure_channel(self.running.addresses["grpc"], credentials, options=options)
        )
        return self.running.channels[-1]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    folder = tmp_path_factory.mktemp("encrypted")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=floods", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", folder / "server.key", "-out", folder / "server.pem",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    running = wait_until_started(
        launch(
            folder / "data", folder / "server.log", FILA_STORAGE__DURABILITY="os",
            FILA_TLS__CERT_FILE=str(folder / "server.pem"), FILA_TLS__KEY_FILE=str(folder / "server.key"),
        )
    )  # fmt: skip
    yield Encrypted(running, folder / "server.pem")
    assert running.stop() == 0, running.log_file.read_text()


@pytest.fixture(autouse=True)
def served(server: Encrypted) -> Iterator[None]:
    with served_meanwhile(server.channel()):
        yield


@pytest.mark.parametrize("name", HERE)
def test_a_flood_ends_its_connection(server: Encrypted, name: str) -> None:
    with server.connect() as client:
        frames = client.pour(FLOODS[name], FLOOD_LOOKS)
        assert client.is_closed or any(one.kind == GOAWAY and one.number != NO_ERROR for one in frames)


def test_who_begins_a_handshake_or_headers_and_never_ends_them_loses_the_connection(
    server: Encrypted,
) -> None:
    host, _, port = server.running.addresses["grpc"].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as silent, server.connect() as slow:
        silent.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        slow.until(lambda one: one.kind == SETTINGS and bool(one.flags & ACK))
        slow.send(frame(HEADERS, 0, 1, BLOCK))
        while silent.recv(4096):
            pass
        assert slow.until(lambda one: one.kind == GOAWAY, wait_s=30).number == ENHANCE_YOUR_CALM


if IN_SOAK:  # it takes a minute, and is waited for in nobody's `make test`

    def test_a_request_that_does_not_come_or_does_not_go_on_is_ended_after_a_minute(
        server: Encrypted,
    ) -> None:
        with server.connect() as client:
            for stream in (1, 3):
                client.begin(stream, ENQUEUE)
            client.send(frame(DATA, 0, 3, b"\0\0\0\0\x0aabc"))
            ended = [client.until(lambda one: one.kind == HEADERS, wait_s=90).stream for _ in range(2)]
            assert sorted(ended) == [1, 3]
