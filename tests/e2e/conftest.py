"""A real fila-server in a process of its own, on ports the system chose."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from fila import FilaClient
from fila.v1 import admin_pb2_grpc, service_pb2_grpc
from tests import prepared
from tests.e2e.command_line import CommandLine

START_S_MAX = float(os.environ.get("FILA_TESTS_START_S_MAX") or 50.0)
STOP_S_MAX = 30.0
SMALL_BALLAST = str(1 << 20)
"""Pytest keeps the folders of its last runs: hundreds of ballasts of the usual size would fill the disk."""


@dataclass
class RunningServer:
    """One server; `log` holds what it said so far, a dict a line."""

    process: subprocess.Popen[bytes] | prepared.Forked
    log_file: Path
    data_dir: Path
    addresses: dict[str, str] = field(default_factory=dict)
    channels: list[grpc.Channel] = field(default_factory=list)

    @property
    def log(self) -> list[dict[str, Any]]:
        lines = self.log_file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def event(self, name: str) -> dict[str, Any] | None:
        return next((line for line in self.log if line["event"] == name), None)

    def channel(self) -> grpc.Channel:
        """A connection of its own."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        self.channels.append(grpc.insecure_channel(self.addresses["grpc"], options=options))
        return self.channels[-1]

    @property
    def service(self) -> Any:
        return service_pb2_grpc.FilaServiceStub(self.channel())

    @property
    def admin(self) -> Any:
        return admin_pb2_grpc.FilaAdminStub(self.channel())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to go, and return its exit code."""
        for channel in self.channels:
            channel.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_S_MAX)


StartServer = Callable[..., RunningServer]


def launch(
    data_dir: Path,
    log_file: Path,
    afresh: bool = False,
    /,
    *,
    open_files: str = "",
    within: Sequence[str] = (),
    **environ: str,
) -> RunningServer:
    """Start a server without waiting for it; `open_files` are options of ulimit. It is forked, unless `afresh`."""
    limited = ["sh", "-c", f'ulimit {open_files} && exec "$@"', "sh"] if open_files else within
    given = {
        "FILA_SERVER__LISTEN_ADDR": "127.0.0.1:0",
        "FILA_REDIS__LISTEN_ADDR": "127.0.0.1:0",
        "FILA_METRICS__LISTEN_ADDR": "",
        "FILA_DATA_DIR": str(data_dir),
        "FILA_STORAGE__BALLAST_BYTES": SMALL_BALLAST,
        **environ,
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    # The whole suite runs with one thread, and with several.
    if "FILA_SERVER__IO_THREADS" in os.environ:
        given["FILA_SERVER__IO_THREADS"] = os.environ["FILA_SERVER__IO_THREADS"]
    with log_file.open("wb") as stderr:
        process = prepared.start(
            inherited | given, log_file.parent, stderr.fileno(), within=limited, afresh=afresh
        )
    return RunningServer(process, log_file, data_dir)


def wait_until_started(server: RunningServer) -> RunningServer:
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        started = server.event("server.started")
        if started is not None:
            server.addresses = {name: started[name] for name in ("grpc", "redis") if name in started}
            return server
        if server.process.poll() is not None:
            break
        time.sleep(0.02)
    server.process.kill()
    pytest.fail(f"the server did not start:\n{server.log_file.read_text()}")


@pytest.fixture
def start_server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StartServer]:
    """Start servers that end with the test. `data_dir` to use one again, settings as FILA_ names.

    They are forked (tests/prepared.py) but in a module that says `STARTS_AFRESH = True`, whose subject is the start.
    """
    servers: list[RunningServer] = []
    afresh = getattr(request.module, "STARTS_AFRESH", False)

    def start(data_dir: Path | None = None, open_files: str = "", **environ: str) -> RunningServer:
        log_file = tmp_path / f"server-{len(servers)}.log"
        folder = data_dir or tmp_path / "data"
        servers.append(launch(folder, log_file, afresh, open_files=open_files, **environ))
        return wait_until_started(servers[-1])

    yield start
    for server in servers:
        for channel in server.channels:
            channel.close()
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for a module's tests, which take queues of their own."""
    folder = tmp_path_factory.mktemp("server")
    running = wait_until_started(launch(folder / "data", folder / "server.log"))
    yield running
    assert running.stop() == 0, running.log_file.read_text()


@pytest.fixture
def queue(server: RunningServer, request: pytest.FixtureRequest) -> str:
    """A queue of the test's own, named after it."""
    from fila.v1 import admin_pb2

    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name))
    return name


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[FilaClient]:
    """A client of the module's server, patient enough for a slow machine."""
    async with FilaClient.connect(server.addresses["grpc"], call_timeout_s=30) as client:
        yield client


@pytest.fixture
def fila(server: RunningServer) -> CommandLine:
    """The command line `fila`, at the module's server."""
    return CommandLine(server.addresses["grpc"])
