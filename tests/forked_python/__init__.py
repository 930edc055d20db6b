"""Python processes of tests, each forked from one that has imported what they take.

    subprocess.run([forked_python.program(), "-c", CODE, *arguments])       as with sys.executable

A `fila` that says one sentence spends nine tenths of its time on imports: gRPC, protobuf, the commands. So each process
of pytest has one that imports all of that once, and forks for each command, console, gateway or replay. `program()`
is a small program (client.c) that asks it for a fork, and is seen through as a process of its own: files, folder,
environment, signals, exit code.

What is started so is Python with `-c CODE`, `-m MODULE` or a file. A test whose subject is the process itself, its
start, its terminal or its memory, takes sys.executable, as the long runs (FILA_SOAK) do throughout.

It knows nothing of the other tests: the pipeline's load it by its path, and have Spark start its workers so.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent
LOADED = (
    "fila_cli.*",
    "fila_console.*",
    "fila_http.*",
    "fila.sync",
    "fila.worker",
    "fila_server.history_files.verifying",
    "grpc.aio",
    "jinja2",
    "starlette.applications",
    "uvicorn",
)
"""What the broker's own tests take; of `package.*` all modules."""


@functools.cache
def program(modules: tuple[str, ...] = LOADED) -> str:
    """What to start in place of sys.executable, which it is in the long runs and where there is no C compiler."""
    if os.environ.get("FILA_SOAK") or shutil.which("cc") is None:
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="fila-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    built, socket = folder / "python", folder / "socket"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-o", str(built), str(_HERE / "client.c")], check=True)
    ready, told = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, ready)
        with contextlib.ExitStack() as given:
            given.callback(os.close, told)
            # It ends with this process: the other end of its standard input closes then.
            source = subprocess.Popen(
                [sys.executable, str(_HERE / "source.py"), str(socket), str(told), *modules],
                env={name: value for name, value in os.environ.items() if not name.startswith("FILA_")},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[told],
            )
        if os.read(ready, 1) != b"!":
            raise RuntimeError("the process that is to be forked did not start")
    atexit.register(_end, source)
    return str(built)


def _end(source: subprocess.Popen[bytes]) -> None:
    source.stdin.close()
    source.wait()
