"""What is told of a port where no broker answers, and what the environment says of where it is and whom to trust."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Self

import grpc
import pytest

from fila import FilaClient, Unavailable
from fila.connection import Connection
from fila.diagnosis import diagnosis
from fila.options import ClientOptions
from fila.tls import with_environment

OPTIONS = ClientOptions()


class Port:
    """Answers every connection with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.target = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.target = "127.0.0.1:{1}".format(*self._server.sockets[0].getsockname())
        return self

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(64)
        writer.write(self.answer)
        writer.close()

    async def __aexit__(self, *_: object) -> None:
        self._server.close()


@pytest.fixture
async def redis() -> AsyncIterator[Port]:
    async with Port(b"-ERR unknown command 'PRI'\r\n") as port:
        yield port


@pytest.mark.parametrize("by_tls", [False, True])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"-ERR unknown command 'PRI'\r\n", "speaks the Redis protocol; the client wants the gRPC port"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is a web server, such as the metrics page"),
    ],
)
async def test_another_of_filas_ports_is_named(answer, said, by_tls):
    async with Port(answer) as port:
        told = await asyncio.to_thread(diagnosis, port.target, OPTIONS, by_tls=by_tls, judges=True)

    assert told.startswith(f"{port.target} {said}")


async def test_a_broker_that_only_starts_late_has_nothing_wrong():
    async with Port(b"") as port:
        assert not await asyncio.to_thread(diagnosis, port.target, OPTIONS, by_tls=False, judges=True)
    assert not await asyncio.to_thread(diagnosis, port.target, OPTIONS, by_tls=False, judges=True)


async def test_a_first_connection_to_another_port_fails_at_once(redis: Port):
    async with asyncio.timeout(5):
        with pytest.raises(Unavailable, match="speaks the Redis protocol"):
            await FilaClient.connect(redis.target, connect_timeout_s=60)


async def test_a_connection_that_has_worked_logs_what_is_wrong_and_goes_on(redis: Port, caplog):
    caplog.set_level(logging.WARNING, "fila")
    connection = Connection(redis.target, ClientOptions(retry_for_s=0.5))
    connection._has_stood = True  # as if something else listened there since
    client = FilaClient(connection)

    with pytest.raises(Unavailable, match="no Fila broker answers"):
        await client.list_queues()
    await client.close()

    assert any("speaks the Redis protocol" in record.message for record in caplog.records)


async def test_without_a_target_the_environment_says_where_the_broker_is(redis: Port, monkeypatch):
    monkeypatch.setenv("FILA_ADDR", f"http://{redis.target}")

    with pytest.raises(Unavailable, match=f"{redis.target} speaks the Redis protocol"):
        await FilaClient.connect()


def test_the_environments_files_are_used_where_the_program_names_none(monkeypatch):
    monkeypatch.setenv("FILA_CA_FILE", "/ca")
    monkeypatch.setenv("FILA_CERT_FILE", "/cert")
    monkeypatch.setenv("FILA_KEY_FILE", "/key")

    found = with_environment(OPTIONS)
    given = with_environment(ClientOptions(ca_file="/mine", cert_file="/c", key_file="/k"))

    assert (found.ca_file, found.cert_file, found.key_file) == ("/ca", "/cert", "/key")
    assert (given.ca_file, given.cert_file, given.key_file) == ("/mine", "/c", "/k")


async def test_a_connection_reads_the_environments_files(monkeypatch, tmp_path):
    (tmp_path / "ca").write_text("no certificate")
    monkeypatch.setenv("FILA_CA_FILE", str(tmp_path / "ca"))

    with pytest.raises(ValueError, match="ca holds no certificate in PEM form"):
        await FilaClient.connect("https://127.0.0.1:1")


async def test_a_broker_of_the_programs_own_without_tls_is_reached_whatever_the_environment_trusts(
    monkeypatch,
):
    monkeypatch.setenv("FILA_CA_FILE", "/nowhere")
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    client = await FilaClient.connect(f"http://127.0.0.1:{port}")

    await client.close()
    await server.stop(None)
