"""A real fila-server in a process of its own, and the calls that the tests make of it."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import grpc

from fila.v1 import admin_pb2, admin_pb2_grpc, auth_pb2_grpc, service_pb2, service_pb2_grpc

START_S_MAX = 30.0


@functools.cache
def _prepared(root: Path) -> Any:
    """By its path: `tests` is this folder here."""
    spec = importlib.util.spec_from_file_location("fila_prepared", root / "tests/prepared.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class BrokerProcess:
    """One server; `start` after `kill` finds its data again, on another port."""

    def __init__(self, root: Path, folder: Path, *, key: str = "", ca_file: Path | None = None) -> None:
        """`key`, `ca_file`: the admin's key and the authority, for a broker that is started with keys and TLS."""
        self._root = root
        self._folder = folder
        self._process: Any = None
        self._channel: grpc.Channel | None = None
        self._starts = 0
        self._key, self._ca_file = key, ca_file
        self.address = ""

    def start(self, address: str = "127.0.0.1:0", **more: str) -> None:
        self._starts += 1
        log_file = self._folder / f"server-{self._starts}.log"
        environ = {
            "FILA_SERVER__LISTEN_ADDR": address,
            "FILA_REDIS__LISTEN_ADDR": "127.0.0.1:0",
            "FILA_METRICS__LISTEN_ADDR": "",
            "FILA_DATA_DIR": str(self._folder / "data"),
            "FILA_STORAGE__BALLAST_BYTES": str(1 << 20),
            "PATH": os.environ["PATH"],
            **more,
        }
        with log_file.open("wb") as stderr:
            self._process = _prepared(self._root).start(
                environ, self._folder, stderr.fileno(), python=str(self._root / ".venv/bin/python")
            )
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline and self._process.poll() is None:
            lines = [json.loads(line) for line in log_file.read_text().splitlines() if line.startswith("{")]
            started = [line for line in lines if line["event"] == "server.started"]
            if started:
                self.address = started[0]["grpc"]
                self._channel = self._opened()
                return
            time.sleep(0.02)
        self.kill()
        raise AssertionError(f"the server did not start:\n{log_file.read_text()}")

    def _opened(self) -> grpc.Channel:
        if self._ca_file is None:
            return grpc.insecure_channel(self.address)
        trusted = grpc.ssl_channel_credentials(self._ca_file.read_bytes())
        as_admin = grpc.access_token_call_credentials(self._key)
        return grpc.secure_channel(self.address, grpc.composite_channel_credentials(trusted, as_admin))

    def stop(self) -> None:
        """A clean stop, which closes a history's files."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(20) == 0

    def kill(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def service(self) -> Any:
        return service_pb2_grpc.FilaServiceStub(self._channel)

    @property
    def admin(self) -> Any:
        return admin_pb2_grpc.FilaAdminStub(self._channel)

    @property
    def auth(self) -> Any:
        return auth_pb2_grpc.FilaAuthStub(self._channel)

    def create(self, queue: str, *, soft_period_ms: int = 3_600_000, hard_bytes: int = 0) -> None:
        retention = admin_pb2.Retention(soft_period_ms=soft_period_ms, hard_bytes=hard_bytes)
        config = admin_pb2.QueueConfig(fairness_key_header="tenant", retention=retention)
        self.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue, config=config))

    def fill(self, queue: str, count: int, *, first: int = 0, payload: bytes = b"") -> None:
        """Enqueue `count` messages; number n has the payload `n` (then `payload`) and the tenant `t{n % 3}`."""
        for begin in range(first, first + count, 500):
            numbers = range(begin, min(begin + 500, first + count))
            messages = [
                service_pb2.EnqueueMessage(
                    queue=queue,
                    headers={"tenant": f"t{n % 3}", "n": str(n)},
                    payload=str(n).encode() + payload,
                )
                for n in numbers
            ]
            self.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(messages=messages))

    def stats(self, queue: str) -> Any:
        return self.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue))
