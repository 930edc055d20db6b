"""A real broker in a process of its own, that scenarios may stop, kill and start again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
from pathlib import Path

from tests import prepared

START_S_MAX = 60.0
STOP_S_MAX = 15.0


class BrokerFailed(Exception):
    """The broker did not start, or did not stop as asked."""


_PORTS = range(10_000, 32_768)
"""Below those that the kernel gives to connections: none of them takes the port of a broker that is down just now."""


def free_port() -> int:
    """Return a port nobody listens on now; a broker that is started again needs the same one."""
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Broker:
    """One broker and its data directory."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self._folder = folder
        self._settings = settings
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | prepared.Forked | None = None
        self._starts = 0

    @property
    def address(self) -> str:
        """host:port, the same after a restart."""
        return f"127.0.0.1:{self._port}"

    @property
    def data_dir(self) -> Path:
        """Where it keeps its data."""
        return self._folder / "data"

    async def start(self) -> None:
        """Start it and wait until it serves."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._starts += 1
        log = self._folder / f"server-{self._starts}.log"
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FILA_")},
            "FILA_SERVER__LISTEN_ADDR": self.address,
            "FILA_REDIS__ENABLED": "false",
            "FILA_METRICS__LISTEN_ADDR": "",
            "FILA_DATA_DIR": str(self.data_dir),
            "FILA_STORAGE__BALLAST_BYTES": str(1 << 20),
            **self._settings,
        }
        with log.open("wb") as stderr:
            self._process = await asyncio.to_thread(
                prepared.start, environment, self._folder, stderr.fileno()
            )
        for _ in range(int(START_S_MAX / 0.02)):
            if _says_started(log):
                return
            if self._process.poll() is not None:
                break
            await asyncio.sleep(0.02)
        raise BrokerFailed(f"the broker did not start:\n{log.read_text()}")

    async def stop(self) -> None:
        """Ask it to go, and wait until it has gone."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """`kill -9`."""
        await self._end(signal.SIGKILL)

    async def _end(self, number: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(number)
        try:
            await asyncio.to_thread(self._process.wait, STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
            raise BrokerFailed(f"the broker did not stop within {STOP_S_MAX} s") from None


def _says_started(log: Path) -> bool:
    for line in log.read_text().splitlines():
        if line.startswith("{") and json.loads(line).get("event") == "server.started":
            return True
    return False
