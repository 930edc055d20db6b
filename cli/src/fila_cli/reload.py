"""For development: runs a command line again whenever a source file changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LOOK_EVERY_S = 0.5
SKIPPED = {"__pycache__", "node_modules", "build", "dist"}


def run_reloading(arguments: list[str]) -> int:
    """Run `fila` with these arguments until it is stopped; return its exit code."""
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    while True:
        seen = _times()
        child = subprocess.Popen(  # noqa: S603 - this command line, in a process of its own
            [sys.executable, "-c", "from fila_cli.main import main; main()", *arguments],
            start_new_session=True,
        )
        while not stopped and _times() == seen:
            time.sleep(LOOK_EVERY_S)
        # A program that failed to start stays down until its next change.
        if child.poll() is None:
            child.terminate()
        code = child.wait()
        if stopped:
            return code
        print("fila: a file changed, starting anew", file=sys.stderr)


def _times() -> dict[str, int]:
    found = {}
    for folder, folders, names in os.walk(Path.cwd()):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.startswith(".")]
        for name in names:
            if name.endswith(".py"):
                path = Path(folder, name)
                try:
                    found[str(path)] = path.stat().st_mtime_ns
                except OSError:  # gone between the listing and the look
                    continue
    return found
