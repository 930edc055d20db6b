"""One fila-server for one benchmark: own port, own temporary data directory, gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Self

_READY_TIMEOUT_S = 60
_STOP_TIMEOUT_S = 20


class ServerFailed(Exception):
    """The server did not start or stop as it should; the last lines of its log are in the text."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """`with Server(...) as server:` a running broker; `restart()` keeps its data."""

    def __init__(
        self,
        *,
        durability: str = "fsync",
        redis: bool = False,
        metrics: bool = False,
        program: Path | None = None,
        **settings: str | int,
    ) -> None:
        """`program` is the fila-server to start, where it is not this tree's.

        `settings` are further configuration keys, written `section__key`.
        """
        self._directory = Path(tempfile.mkdtemp(prefix="fila-bench-"))
        self.port = free_port()
        self.redis_port = free_port() if redis else 0
        self.metrics_port = free_port() if metrics else 0
        self.address = f"127.0.0.1:{self.port}"
        self.log_path = self._directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._program = program
        self._environment = {
            **os.environ,
            "FILA_SERVER__LISTEN_ADDR": self.address,
            "FILA_SERVER__DATA_DIR": str(self._directory / "data"),
            "FILA_STORAGE__DURABILITY": durability,
            "FILA_REDIS__ENABLED": "true" if redis else "false",
            "FILA_REDIS__BIND_ADDRESS": f"127.0.0.1:{self.redis_port}",
            "FILA_METRICS__LISTEN_ADDR": f"127.0.0.1:{self.metrics_port}" if metrics else "",
        }
        self.configure(**settings)

    def configure(self, **settings: str | int) -> None:
        """Further configuration keys, written `section__key`; they count from the next start on."""
        self._environment |= {f"FILA_{key.upper()}": str(value) for key, value in settings.items()}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def pid(self) -> int:
        assert self._process is not None, "asked for the pid of a server that was not started"
        return self._process.pid

    @property
    def data_dir(self) -> Path:
        return self._directory / "data"

    def start(self) -> float:
        """Start and wait until it answers; return the seconds that took."""
        began = time.monotonic()
        ours = os.environ.get("FILA_BENCH_SERVER", str(Path(sys.executable).with_name("fila-server")))
        command = [str(self._program)] if self._program else ours.split()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=log, cwd=self._directory
            )
        while not self._answers():
            if self._process.poll() is not None:
                raise ServerFailed(f"fila-server exited with {self._process.returncode}: {self.log_tail()}")
            if time.monotonic() - began > _READY_TIMEOUT_S:
                raise ServerFailed(f"fila-server is silent on {self.address} after {_READY_TIMEOUT_S} s")
            time.sleep(0.005)
        return time.monotonic() - began

    def stop(self, *, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise ServerFailed(
                f"fila-server did not stop within {_STOP_TIMEOUT_S} s: {self.log_tail()}"
            ) from None

    def restart(self, *, how: signal.Signals = signal.SIGTERM) -> float:
        self.stop(how=how)
        return self.start()

    def resident_bytes(self) -> int:
        return self._status_kib("VmRSS") * 1024

    def peak_resident_bytes(self) -> int:
        return self._status_kib("VmHWM") * 1024

    def cpu_s(self) -> float:
        """User and system time so far, all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metrics_page(self) -> str:
        """What Prometheus would read now; the server must have been started with `metrics`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as page:
            return str(page.read().decode())

    def disk_bytes(self) -> int:
        return sum(path.stat().st_blocks * 512 for path in self.data_dir.rglob("*") if path.is_file())

    def log_tail(self, lines: int = 3) -> str:
        text = self.log_path.read_text(errors="replace").strip().splitlines()
        return " | ".join(text[-lines:]) or "(it logged nothing)"

    def _status_kib(self, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
        raise ServerFailed(f"/proc has no {name} for the server")

    def _answers(self) -> bool:
        ports = [port for port in (self.port, self.redis_port, self.metrics_port) if port]
        return all(is_open(port) for port in ports)


def is_open(port: int) -> bool:
    """Whether somebody listens there, on this machine."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
