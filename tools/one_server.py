"""A server for one tool: of a module that runs it its own way, on a port that the system chose, gone afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

START_S_MAX = 30.0
STOP_S_MAX = 30.0


@contextlib.contextmanager
def serving(module: str, *arguments: str, python: Path = Path(sys.executable), **more: str) -> Iterator[int]:
    """Run `python -m module` with a data directory of its own and `more` of an environment; the gRPC port. Exits where
    it does not start."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
        environ |= {
            "FILA_SERVER__LISTEN_ADDR": "127.0.0.1:0",
            "FILA_REDIS__ENABLED": "false",
            "FILA_METRICS__LISTEN_ADDR": "",
            "FILA_DATA_DIR": str(Path(folder) / "data"),
        } | more
        with log.open("wb") as stderr:
            server = subprocess.Popen([python, "-m", module, *arguments], env=environ, stderr=stderr)
        try:
            yield _port(server, log)
        finally:
            server.terminate()
            server.wait(STOP_S_MAX)


def _port(server: subprocess.Popen[bytes], log: Path) -> int:
    ends = time.monotonic() + START_S_MAX
    while time.monotonic() < ends and server.poll() is None:
        for line in log.read_text().splitlines():
            if line.startswith("{") and (said := json.loads(line))["event"] == "server.started":
                return int(said["grpc"].rpartition(":")[2])
        time.sleep(0.05)
    sys.exit(f"the server did not start:\n{log.read_text()}")
