"""Backups of a server that runs, and what a server finds that is started on one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer, StartServer, launch

pytestmark = [pytest.mark.e2e]

LARGE = bytes(8_192)
"""Beyond `blob_min_bytes`: such payloads have files of their own."""


def command(*arguments: str | Path) -> subprocess.Popen[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    return subprocess.Popen(
        [sys.executable, "-m", "fila_server.main", *map(str, arguments)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(*arguments: str | Path, expect: int = 0) -> str:
    """Run it to its end; what it said where it has to."""
    process = command(*arguments)
    out, err = process.communicate(timeout=60)
    assert process.returncode == expect, err
    return err if expect else out


def backed_up(server: RunningServer, target: Path) -> Path:
    ran("backup", "--data-dir", server.data_dir, target)
    return target


def restored(backup: Path, data_dir: Path) -> Path:
    ran("restore", "--data-dir", data_dir, backup)
    return data_dir


def pending(server: RunningServer, queue: str) -> dict[str, bytes]:
    """All that is pending, by id, leased for long."""
    found: dict[str, bytes] = {}
    while True:
        reply = server.service.Lease(
            service_pb2.LeaseRequest(queue=queue, max_messages=1000),
            timeout=10,
        )
        if not reply.messages:
            return found
        found |= {message.id: message.payload for message in reply.messages}


def comes_true(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_backup_under_load_holds_all_that_was_answered_before_it(start_server: StartServer, tmp_path: Path):
    server = start_server()
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    answered: list[tuple[str, bytes]] = []
    stop = threading.Event()

    def produce() -> None:
        service = server.service
        while not stop.is_set():
            payload = str(len(answered)).encode() + LARGE * (len(answered) % 3)
            reply = service.Enqueue(service_pb2.EnqueueRequest(queue="orders", payload=payload))
            answered.append((reply.message_id, payload))

    producer = threading.Thread(target=produce)
    producer.start()
    comes_true(lambda: len(answered) > 300)
    before = list(answered)
    backup = backed_up(server, tmp_path / "backup")
    meanwhile = len(answered) - len(before)
    stop.set()
    producer.join()
    assert server.stop() == 0

    second = start_server(restored(backup, tmp_path / "restored"))

    found = pending(second, "orders")
    assert found.items() >= dict(before).items()
    assert found.items() <= dict(answered).items()
    assert meanwhile > 0, "nothing was enqueued while the backup was taken"
    assert second.event("store.damage_found") is None


def test_the_server_that_was_backed_up_keeps_nothing_of_it(start_server: StartServer, tmp_path: Path):
    server = start_server()

    backed_up(server, tmp_path / "one")
    backed_up(server, tmp_path / "two")

    comes_true(lambda: not (server.data_dir / "checkpoint").exists())
    made = [line for line in server.log if line["event"] == "checkpoint.made"]
    assert [line["peer"] for line in made] == [f"uid:{os.getuid()}"] * 2
    assert (server.data_dir / "control").stat().st_mode & 0o777 == 0o600
    assert server.stop() == 0
    assert not (server.data_dir / "control").exists()


def test_a_backup_without_a_server_is_the_same(start_server: StartServer, tmp_path: Path):
    server = start_server()
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    stored = server.service.Enqueue(service_pb2.EnqueueRequest(queue="orders", payload=LARGE))
    server.stop(signal.SIGKILL)

    backup = backed_up(server, tmp_path / "backup")
    second = start_server(restored(backup, tmp_path / "restored"))

    assert pending(second, "orders") == {stored.message_id: LARGE}


def test_keys_and_rights_come_back_with_a_backup(start_server: StartServer, tmp_path: Path):
    server = start_server(FILA_AUTH__ENABLED="true")
    key = (server.data_dir / "bootstrap-key").read_text().strip()
    asked = [("authorization", f"Bearer {key}")]
    backup = backed_up(server, tmp_path / "backup")
    server.stop()

    second = start_server(restored(backup, tmp_path / "restored"), FILA_AUTH__ENABLED="true")
    auth = second.admin

    auth.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"), metadata=asked)
    with pytest.raises(grpc.RpcError) as refused:
        auth.CreateQueue(admin_pb2.CreateQueueRequest(name="others"))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert not (second.data_dir / "bootstrap-key").exists()


def test_a_program_that_is_killed_while_it_copies_leaves_no_backup_and_no_checkpoint(
    start_server: StartServer, tmp_path: Path
):
    server = start_server()
    dies = (
        "import sys, time; from pathlib import Path; from fila_server.backup import taking\n"
        "def stands_still(*_):\n    print('copying', flush=True); time.sleep(60)\n"
        "taking.copy_file = stands_still\n"
        "taking.take_backup(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", dies, str(server.data_dir), str(tmp_path / "backup")], stdout=subprocess.PIPE
    )
    assert program.stdout is not None
    program.stdout.readline()
    assert (server.data_dir / "checkpoint/CURRENT").exists()
    refused = ran("backup", "--data-dir", server.data_dir, tmp_path / "second", expect=1)
    assert "another backup is being taken" in refused

    program.kill()
    program.wait()

    comes_true(lambda: not (server.data_dir / "checkpoint").exists())
    refused = ran("restore", "--data-dir", tmp_path / "restored", tmp_path / "backup", expect=1)
    assert "is no whole backup" in refused
    backed_up(server, tmp_path / "third")


def test_a_server_that_was_killed_during_a_backup_clears_up_at_its_next_start(
    start_server: StartServer, tmp_path: Path
):
    server = start_server()
    server.stop(signal.SIGKILL)
    (server.data_dir / "checkpoint").mkdir()
    (server.data_dir / "checkpoint/000001.log").write_text("left")
    assert (server.data_dir / "control").exists()

    second = start_server(server.data_dir)

    assert not (server.data_dir / "checkpoint").exists()
    backed_up(second, tmp_path / "backup")


def test_a_server_does_not_begin_an_empty_store_where_a_restore_was_killed(tmp_path: Path):
    (tmp_path / "data/restoring/rocksdb").mkdir(parents=True)

    server = launch(tmp_path / "data", tmp_path / "log")

    assert server.process.wait(20) == 1
    assert "is restored in part" in server.log_file.read_text()


def test_a_running_servers_directory_is_not_restored_into(start_server: StartServer, tmp_path: Path):
    server = start_server()
    backup = backed_up(server, tmp_path / "backup")

    refused = ran("restore", "--data-dir", server.data_dir, backup, expect=1)

    assert "is in use" in refused
    assert not (server.data_dir / "restoring").exists()
