"""The process that is forked: `python source.py SOCKET READY MODULE...`; of `package.*` all modules are loaded."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

NUMBER = struct.Struct("i")
LENGTH = struct.Struct("I")


def main(path: str, ready: int, modules: list[str]) -> None:
    """Fork for each who connects, until standard input ends."""
    for name in modules:
        package = name.removesuffix(".*")
        loaded = importlib.import_module(package)
        if package != name:
            for module in pkgutil.walk_packages(loaded.__path__, f"{package}."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(64)
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    os.write(ready, b"!")
    os.close(ready)
    running: dict[int, socket.socket] = {}
    """Who waits for each fork."""
    while True:
        asked: list[Any] = [0, listener, woken, *running.values()]
        found, _, _ = select.select(asked, [], [])
        if 0 in found:
            break
        if woken in found:
            os.read(woken, 4096)
            _reap(running)
        for pid, client in running.items():
            if client in found:  # it says nothing more, so it has gone
                os.kill(pid, signal.SIGKILL)
        if listener in found:
            client, _ = listener.accept()
            _serve(client, listener, running)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    # Who started this may have ended without a word, as pytest-xdist's processes do.
    shutil.rmtree(Path(path).parent, ignore_errors=True)


def _reap(running: dict[int, socket.socket]) -> None:
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with running.pop(pid) as client, contextlib.suppress(OSError):
                client.sendall(NUMBER.pack(status))


def _serve(client: socket.socket, listener: socket.socket, running: dict[int, socket.socket]) -> None:
    head, files, _, _ = socket.recv_fds(client, LENGTH.size, 3)
    if len(files) != 3:
        client.close()
        return
    (length,) = LENGTH.unpack(head)
    text = b""
    while len(text) < length:
        text += (part := client.recv(length - len(text)))
        if not part:
            break
    pid = os.fork()
    if pid == 0:
        _become(text, files)
    for file in files:
        os.close(file)
    running[pid] = client
    with contextlib.suppress(OSError):
        client.sendall(NUMBER.pack(pid))


def _become(text: bytes, files: list[int]) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file, number)
    for opened in list(Path("/proc/self/fd").iterdir()):
        if int(opened.name) > 2:
            with contextlib.suppress(OSError):
                os.close(int(opened.name))
    folder, count, *rest = map(os.fsdecode, text.split(b"\0")[:-1])
    arguments, environ = rest[: int(count)], rest[int(count) :]
    os.environ.clear()
    for each in environ:
        name, _, value = each.partition("=")
        os.environ[name] = value
    os.chdir(folder)
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [each for each in given if each and each not in sys.path]
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        # As Python opens them: by lines where somebody looks, and errors always so.
        before = getattr(sys, name)
        lines = 1 if name == "stderr" or os.isatty(number) else -1
        stream = os.fdopen(number, mode, lines, encoding=before.encoding, errors=before.errors)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    code = 1
    try:
        _run(arguments)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 - told as an interpreter tells it
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _run(arguments: list[str]) -> None:
    """As `python` with these arguments."""
    option, *rest = arguments
    sys.orig_argv[:] = [sys.executable, *arguments]
    sys.path[0] = ""
    if option == "-m":
        module, *sys.argv[1:] = rest
        sys.modules.pop(module, None)  # it begins anew, as the program
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    elif option == "-c":
        code, *sys.argv[1:] = rest
        sys.argv[0] = "-c"
        _be_main(code, "<string>")
    else:
        sys.argv[:] = arguments
        program = Path(option).absolute()
        sys.path[0] = str(program.parent)
        _be_main(program.read_bytes(), str(program), __file__=str(program))


def _be_main(code: str | bytes, name: str, **more: object) -> None:
    module = type(sys)("__main__")
    vars(module).update(more)
    sys.modules["__main__"] = module
    exec(compile(code, name, "exec"), vars(module))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
