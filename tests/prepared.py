"""Servers of tests, each forked from one process that has imported what a server is made of.

Most of what a start costs is to load a thousand modules. So each process of pytest has one that loads them once, and
forks for each server. The fork gets environment, folder and files as a new process would, runs `main()` of
fila_server/main.py, and is seen through what `subprocess.Popen` has: pid, poll, wait, send_signal.

A server starts from nothing where that is the subject, where something is to be preloaded into it, and in the long
runs (FILA_SOAK).

It knows nothing of the other tests, and is started by its path: the pipeline's tests have an interpreter of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

REQUEST_BYTES_MAX = 1 << 17
STATUS = struct.Struct("i")
READY_S_MAX = 120.0


class Forked:
    """A server's process, with what tests use of Popen."""

    def __init__(self, pid: int, status: int) -> None:
        """`status` is a pipe: the exit code comes through it, as Popen has it."""
        self.pid = pid
        self.returncode: int | None = None
        self._status = status
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        with self._lock:
            if self.returncode is None and select.select([self._status], [], [], 0)[0]:
                said = os.read(self._status, STATUS.size)
                os.close(self._status)
                # Nothing: the source has gone, and took it along.
                self.returncode = STATUS.unpack(said)[0] if said else -signal.SIGKILL
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired."""
        # Another thread may read from the pipe and close it meanwhile.
        with self._lock:
            waiting = -1 if self.returncode is not None else os.dup(self._status)
        if waiting >= 0:
            try:
                select.select([waiting], [], [], timeout)
            finally:
                os.close(waiting)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("fila-server", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class _Source:
    """The process that is forked, as those see it who want a server."""

    def __init__(self, python: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
        with theirs:
            self._process = subprocess.Popen(
                [python, __file__, str(theirs.fileno())],
                env=environ,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._socket = ours
        self._lock = threading.Lock()
        ours.settimeout(READY_S_MAX)
        atexit.register(self.end)

    def fork(self, environ: Mapping[str, str], folder: Path, stderr: int) -> Forked:
        reading, writing = os.pipe()
        try:
            request = json.dumps({"environ": dict(environ), "folder": str(folder)}).encode()
            with self._lock:
                socket.send_fds(self._socket, [request], [stderr, writing])
                pid = int(self._socket.recv(64))
        finally:
            os.close(writing)
        return Forked(pid, reading)

    def end(self) -> None:
        self._socket.close()
        self._process.wait()


_sources: dict[str, _Source] = {}


def start(
    environ: Mapping[str, str],
    folder: Path,
    stderr: int,
    *,
    python: str = sys.executable,
    within: Sequence[str] = (),
    afresh: bool = False,
) -> subprocess.Popen[bytes] | Forked:
    """Start a server: forked, unless it is to be a new process, or one that `within` starts."""
    if within or afresh or not _is_to_be_forked(environ):
        return subprocess.Popen(
            [*within, python, "-m", "fila_server.main"],
            env=environ,
            cwd=folder,
            stderr=stderr,
            stdout=subprocess.DEVNULL,
        )
    if python not in _sources:
        _sources[python] = _Source(python)
    return _sources[python].fork(environ, folder, stderr)


def _is_to_be_forked(environ: Mapping[str, str]) -> bool:
    return not ({"LD_PRELOAD", "PYTHONPATH"} & environ.keys() or os.environ.get("FILA_SOAK"))


# --- in the process that is forked ------------------------------------------------------------


def serve_forks(requests: socket.socket) -> None:
    """Until the other end closes; whatever runs then is killed, since nobody could end it any more."""
    import uvloop  # noqa: F401

    import fila_server.main
    import fila_server.serving
    import fila_server.telemetry.prometheus  # noqa: F401
    from fila_server.start_checks import COMPILED

    # A start loads these by name: a hundred libraries, two thirds of what a forked start would take of the CPU.
    for module in COMPILED:
        importlib.import_module(module)
    gc.freeze()
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(running)
        if requests.fileno() not in ready:
            continue
        request, passed, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 2)
        if not request:
            break
        stderr, status = passed
        pid = os.fork()
        if pid == 0:
            _become_a_server(json.loads(request), stderr)
        os.close(stderr)
        running[pid] = status
        requests.send(str(pid).encode())
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _reap(running: dict[int, int]) -> None:
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            pipe = running.pop(pid)
            with contextlib.suppress(BrokenPipeError):
                os.write(pipe, STATUS.pack(os.waitstatus_to_exitcode(status)))
            os.close(pipe)


def _become_a_server(request: dict[str, object], stderr: int) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(stderr, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for opened in list(Path("/proc/self/fd").iterdir()):
        if int(opened.name) > 2:
            with contextlib.suppress(OSError):
                os.close(int(opened.name))
    os.environ.clear()
    os.environ.update(request["environ"])  # type: ignore[call-overload]
    os.chdir(str(request["folder"]))
    # A node of a group that is deposed starts itself anew, as the command that it was.
    sys.orig_argv[:] = [sys.executable, "-m", "fila_server.main"]
    from fila_server.events import RING
    from fila_server.main import main

    # All that a module keeps of the moment in which it was imported: events' positions grow over restarts.
    RING._next = RING._first = time.time_ns() // 1_000_000 * 1_000
    code = 1
    try:
        main(args=[], prog_name="fila-server")
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - told as an interpreter tells it
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    serve_forks(socket.socket(fileno=int(sys.argv[1])))
