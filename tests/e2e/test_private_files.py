"""What the server writes is its user's alone, with any umask of the shell and any maker of the directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.v1 import admin_pb2, service_pb2

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]


@pytest.fixture(autouse=True)
def _a_shell_like_most() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(directory: Path) -> dict[str, str]:
    """What is in the directory, at any depth, and lets anybody but its owner in."""
    return {
        str(path.relative_to(directory)): f"{stat.S_IMODE(path.stat().st_mode):04o}"
        for path in directory.rglob("*")
        if path.stat().st_mode & 0o077
    }


def store_some(server) -> None:
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    server.service.Enqueue(service_pb2.EnqueueRequest(queue="orders", payload=b"secret"))


def test_files_in_a_directory_that_others_made_are_closed_to_them_and_the_log_says_what_is_open(
    start_server, tmp_path
):
    folder = tmp_path / "volume"
    folder.mkdir()
    folder.chmod(0o755)
    server = start_server(folder, FILA_AUTH__ENABLED="true")

    assert open_to_others(folder) == {}
    assert (folder / "bootstrap-key").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o755, "a volume's mode is its maker's"
    told = server.event("store.open_to_others")
    assert (told["level"], told["mode"], told["directory"]) == ("warning", "0755", str(folder))
    assert "look into" in told["detail"]
    assert "chmod 0700" in told["detail"]
    server.stop()
    assert open_to_others(folder) == {}


def test_a_directory_that_others_may_write_to_is_told_as_that(start_server, tmp_path):
    folder = tmp_path / "volume"
    folder.mkdir()
    folder.chmod(0o777)

    assert "replace files in" in start_server(folder).event("store.open_to_others")["detail"]


def test_a_store_that_was_open_to_others_is_closed_at_the_next_start(start_server, tmp_path):
    folder = tmp_path / "data"
    first = start_server(folder)
    store_some(first)
    first.stop()
    store = folder / "rocksdb"
    for path in store.iterdir():
        path.chmod(0o644)
    store.chmod(0o755)
    again = start_server(folder)

    assert store.stat().st_mode & 0o777 == 0o700
    assert again.event("store.closed_to_others")["mode"] == "0755"
    assert again.event("store.open_to_others") is None
    assert again.admin.GetStats(admin_pb2.GetStatsRequest(queue="orders")).depth == 1


def test_a_directory_of_the_servers_own_is_nobody_elses(start_server, tmp_path):
    server = start_server(tmp_path / "new" / "data")
    store_some(server)
    server.stop()

    assert (tmp_path / "new" / "data").stat().st_mode & 0o777 == 0o700
    assert open_to_others(tmp_path / "new" / "data") == {}
    assert server.event("store.open_to_others") is None
