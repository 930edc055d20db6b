"""Files that are removed under a running server, syncs that fail: it ends, with one line that says why."""

from __future__ import annotations

import shutil

import grpc
import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.crash import powercut
from tests.e2e.conftest import RunningServer, StartServer

pytestmark = [pytest.mark.crash, pytest.mark.slow]

END_S_MAX = 10


def _line(server: RunningServer) -> str:
    (line,) = [line for line in server.log_file.read_text().splitlines() if not line.startswith("{")]
    return line


def _enqueue(server: RunningServer) -> None:
    server.service.Enqueue(service_pb2.EnqueueRequest(queue="q", payload=b"x"), timeout=5)


@pytest.mark.parametrize("what", ["", "rocksdb/*.log"], ids=["the directory", "the log"])
def test_a_server_whose_files_are_removed_ends_and_says_so(start_server: StartServer, what: str) -> None:
    server = start_server()
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q"))
    _enqueue(server)

    if what:
        for path in server.data_dir.glob(what):
            path.unlink()
    else:
        shutil.rmtree(server.data_dir)

    assert server.process.wait(END_S_MAX) == 1
    assert "was removed from the data directory" in _line(server)
    assert "restore a copy, then start again" in _line(server)


def test_a_sync_that_fails_ends_the_server_with_the_error_of_that_sync(start_server: StartServer) -> None:
    data_dir = start_server().data_dir.with_name("watched")
    server = start_server(data_dir, **powercut.environment(data_dir))
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q"))
    _enqueue(server)

    powercut.fail_syncs(data_dir)

    with pytest.raises(grpc.RpcError):
        _enqueue(server)
    assert server.process.wait(END_S_MAX) == 1
    assert "refused to write or sync (" in _line(server)
    assert "nput/output error" in _line(server)
