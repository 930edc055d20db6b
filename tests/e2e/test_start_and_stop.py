"""The process: what it says when it cannot start, and how it goes when it is told to."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path

import grpc
import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer, StartServer, launch

STARTS_AFRESH = True

pytestmark = pytest.mark.e2e


def _fails(server: RunningServer) -> tuple[int, str]:
    """Exit code, and the one line for people; log lines are JSON."""
    try:
        code = server.process.wait(15)
    except subprocess.TimeoutExpired:
        server.process.kill()
        raise
    lines = [line for line in server.log_file.read_text().splitlines() if not line.startswith("{")]
    assert len(lines) == 1, lines
    return code, lines[0]


SECOND_SIGTERM = {
    "while the first is taken in": """
import os, signal
set_handler = signal.signal
def told(number, handler):
    if handler is signal.SIG_IGN:
        os.kill(os.getpid(), signal.SIGTERM)
    return set_handler(number, handler)
signal.signal = told
""",
    "when the loop is closed": """
import atexit, os, signal
atexit.register(os.kill, os.getpid(), signal.SIGTERM)
""",
}
"""What a server runs before its own program, to be told a second time at this moment of its stop."""


@pytest.mark.parametrize("moment", SECOND_SIGTERM)
def test_a_second_signal_changes_nothing_at_any_moment_of_a_stop(
    tmp_path: Path, start_server: StartServer, moment: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SECOND_SIGTERM[moment])
    server = start_server(PYTHONPATH=str(tmp_path))

    assert server.stop() == 0
    assert server.event("server.stopped") is not None


def test_a_taken_port_is_exit_1_and_names_the_setting(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        address = f"127.0.0.1:{holder.getsockname()[1]}"

        code, line = _fails(
            launch(tmp_path / "data", tmp_path / "log", True, FILA_SERVER__LISTEN_ADDR=address)
        )

    assert code == 1
    assert f"cannot listen on {address}" in line
    assert "change server.listen_addr" in line


def test_a_data_directory_in_use_is_exit_1_and_the_other_server_goes_on(
    tmp_path: Path, start_server: StartServer
) -> None:
    first = start_server()

    code, line = _fails(launch(first.data_dir, tmp_path / "second.log", True))

    assert code == 1
    assert f"is in use by process {first.process.pid}; stop that server, or" in line
    first.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="still-there"), timeout=5)


def test_a_data_directory_that_is_a_file_is_exit_1(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    code, line = _fails(launch(tmp_path / "data", tmp_path / "log", True))

    assert code == 1
    assert "cannot write to data directory" in line


def test_a_newer_format_is_exit_1_and_changes_nothing(tmp_path: Path, start_server: StartServer) -> None:
    first = start_server()
    assert first.stop() == 0
    (first.data_dir / "format").write_text("fila 99\n")

    code, line = _fails(launch(first.data_dir, tmp_path / "second.log", True))

    assert code == 1
    assert "has format 99" in line
    assert (first.data_dir / "format").read_text() == "fila 99\n"


def test_damage_is_exit_1_where_it_shall_stop_the_start_and_reported_where_not(
    tmp_path: Path, start_server: StartServer
) -> None:
    first = start_server()
    first.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    for _ in range(20):
        first.service.Enqueue(service_pb2.EnqueueRequest(queue="orders", payload=bytes(5_000)))
    first.stop(signal.SIGKILL)
    _flip_a_byte(max((first.data_dir / "rocksdb").glob("*.log"), key=lambda log: log.stat().st_size))

    code, line = _fails(launch(first.data_dir, tmp_path / "second.log", True, FILA_STORAGE__ON_DAMAGE="stop"))
    assert code == 1
    assert "damage" in line
    assert "on_damage" in line

    third = start_server(first.data_dir)
    depth = third.admin.GetStats(admin_pb2.GetStatsRequest(queue="orders")).depth
    assert 0 < depth < 20
    assert any("lost" in str(said) or "damage" in str(said) for said in third.log)


def _flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def test_a_mistyped_setting_is_exit_2(tmp_path: Path) -> None:
    code, line = _fails(launch(tmp_path / "data", tmp_path / "log", True, FILA_SCHEDULER__QUANTUM="lots"))

    assert code == 2
    assert "scheduler.quantum must be a whole number" in line


def test_a_certificate_that_is_not_there_is_exit_2_before_a_store_is_made(tmp_path: Path) -> None:
    missing = {
        "FILA_TLS__CERT_FILE": str(tmp_path / "none.pem"),
        "FILA_TLS__KEY_FILE": str(tmp_path / "none.key"),
    }
    code, line = _fails(launch(tmp_path / "data", tmp_path / "log", True, **missing))

    assert code == 2
    assert f"tls.cert_file: {tmp_path / 'none.pem'} cannot be read" in line
    assert not (tmp_path / "data" / "rocksdb").exists()


def test_a_server_open_to_everyone_says_so(start_server: StartServer) -> None:
    warned = start_server(FILA_SERVER__LISTEN_ADDR="0.0.0.0:0", FILA_SERVER__ALLOW_ANONYMOUS="true").event(
        "server.unprotected"
    )

    assert warned is not None
    assert warned["level"] == "warning"
    assert warned["setting"] == "server.listen_addr"


def test_a_server_that_serves_its_own_machine_only_does_not_warn(start_server: StartServer) -> None:
    assert start_server(FILA_SERVER__LISTEN_ADDR="0.0.0.0:0").event("server.unprotected") is None


def test_a_server_on_loopback_does_not_warn(start_server: StartServer) -> None:
    assert start_server().event("server.unprotected") is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_stop_ends_consumers_and_exits_0(start_server: StartServer, number: signal.Signals) -> None:
    server = start_server()
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    consumer = server.service.Consume(service_pb2.ConsumeRequest(queue="orders"))
    server.service.Enqueue(service_pb2.EnqueueRequest(queue="orders", payload=b"x"))
    next(consumer)
    pull = server.service.Lease.future(service_pb2.LeaseRequest(queue="orders", wait_ms=60_000))
    time.sleep(0.1)
    started_s = time.monotonic()

    server.process.send_signal(number)
    with pytest.raises(grpc.RpcError) as stream_ended:
        next(consumer)
    with pytest.raises(grpc.RpcError) as pull_ended:
        pull.result()

    assert stream_ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert pull_ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert server.stop(number) == 0
    assert time.monotonic() - started_s < 10
    assert server.event("server.stopped") is not None


def test_what_was_stored_is_there_after_a_polite_restart(start_server: StartServer) -> None:
    first = start_server()
    first.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    stored = first.service.Enqueue(service_pb2.EnqueueRequest(queue="orders", payload=b"kept"))
    assert first.stop() == 0

    second = start_server(first.data_dir)
    [message] = second.service.Lease(service_pb2.LeaseRequest(queue="orders")).messages

    assert (message.id, message.payload) == (stored.message_id, b"kept")
