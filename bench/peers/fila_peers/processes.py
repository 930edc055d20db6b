"""Processes of ours: started in a group of their own, watched with all their children, stopped by their ids.

Whatever ends a run, `stop_all` stops what was started: an interrupted comparison leaves no broker behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from .errors import PeerFailed

_STOP_TIMEOUT_S = 20.0
_LOG_LINES_SHOWN = 5

_running: list[Started] = []


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and its children have used so far, and hold now."""

    cpu_s: float
    written_bytes: int
    resident_bytes: int
    thread_cpu_s: Mapping[tuple[int, int], float]
    """By process and thread id."""


class Started:
    """One process and its children."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path) -> None:
        self.log_path = log
        with log.open("ab") as file:
            try:
                # A group of its own: a Ctrl-C ends the run, which then stops the broker in order.
                self._process = subprocess.Popen(
                    command,
                    env={**os.environ, **env},
                    stdout=file,
                    stderr=file,
                    cwd=cwd,
                    start_new_session=True,
                )
            except OSError as error:
                raise PeerFailed(f"{command[0]} cannot be started: {error}") from None
        self._command = Path(command[0]).name
        _running.append(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_open(self, ports: Sequence[int], timeout_s: float) -> None:
        """Raise PeerFailed if the process ends before it listens, or does not listen in time."""
        began = time.monotonic()
        while not all(is_open(port) for port in ports):
            if (code := self._process.poll()) is not None:
                raise PeerFailed(f"{self._command} exited with {code} before it listened: {self.log_tail()}")
            if time.monotonic() - began > timeout_s:
                raise PeerFailed(f"{self._command} does not listen after {timeout_s:g} s: {self.log_tail()}")
            time.sleep(0.01)

    def family(self) -> list[psutil.Process]:
        """The process and its children, without those that just ended."""
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self.pid)
            return [parent, *parent.children(recursive=True)]
        return []

    def usage(self) -> Usage:
        cpu_s, written, resident, threads = 0.0, 0, 0, {}
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied), process.oneshot():
                times = process.cpu_times()
                cpu_s += times.user + times.system
                resident += process.memory_info().rss
                written += process.io_counters().write_bytes
                for thread in process.threads():
                    threads[process.pid, thread.id] = thread.user_time + thread.system_time
        return Usage(cpu_s, written, resident, threads)

    def wait(self, timeout_s: float) -> int:
        """The exit code of a program that ends by itself."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise PeerFailed(
                f"{self._command} has not ended after {timeout_s:g} s: {self.log_tail()}"
            ) from None
        finally:
            self.stop()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process and all of its children; those that don't end in time are killed."""
        family = self.family()
        for process in family if how == signal.SIGKILL else family[:1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(how)
        _, alive = psutil.wait_procs(family, timeout=_STOP_TIMEOUT_S)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(alive, timeout=_STOP_TIMEOUT_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        if self in _running:
            _running.remove(self)

    def log_tail(self) -> str:
        lines = self.log_path.read_text(errors="replace").strip().splitlines()
        return " | ".join(lines[-_LOG_LINES_SHOWN:]) or "(it logged nothing)"


def stop_all() -> None:
    """Stop whatever still runs, the last first."""
    for started in reversed(list(_running)):
        started.stop()
