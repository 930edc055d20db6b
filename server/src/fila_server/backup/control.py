"""DATA_DIR/control: the socket by which a program of the same user asks a running server for a checkpoint.

    fila-server backup                                        the server
      "checkpoint\\n"                                    ──►
                                                               DATA_DIR/checkpoint is made: links, and the log
      {"ok": true} or {"error": "..."}                   ◄──
      copies, then closes the connection                 ──►  removes DATA_DIR/checkpoint

Who may open files of the data directory may open the socket: no key is asked for, and no port is opened. The
connection holds the checkpoint: a program that is killed leaves none behind. Nor does a server that was killed: the
next start removes it (opening.py).

A standby of a group answers, too, on a thread of its own. Once it owns the server's end takes its place, while a
checkpoint that is being copied stays where it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import structlog

from fila_server import errors
from fila_server.events import emit
from fila_server.opening import CHECKPOINT, STORE

log = structlog.get_logger("fila_server.backup")

SOCKET = "control"
_ASK = b"checkpoint\n"
_ASK_S_MAX = 10.0
ANSWER_S_MAX = 120.0
"""A checkpoint copies the newest log, 300 MB at most; on a disk that takes longer something is wrong."""


_HELD: set[Path] = set()
"""Data directories of this process in which a checkpoint is made, or being copied."""


class Answer(msgspec.Struct):
    """What the server says, as one line of JSON."""

    ok: bool = False
    error: str = ""


class Control:
    """The server's end. One checkpoint at a time; all of it belongs to the loop's thread."""

    def __init__(
        self,
        data_dir: Path,
        make: Callable[[str], None],
        spare_bytes: int,
        tell: Callable[..., None] = emit,
    ) -> None:
        """`make` makes a checkpoint at a path and may block; `spare_bytes` must stay free on the disk beside it."""
        self._data_dir = data_dir
        self._tell = tell
        self._make = make
        self._spare_bytes = spare_bytes
        self._making: asyncio.Future[Path] | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. Where no socket can be made the server goes on without: only online backups need it."""
        try:
            listening = _bound(self._data_dir)
            self._server = await asyncio.start_unix_server(self._serve, sock=listening)
        except OSError as error:
            log.warning("control.unavailable", detail=f"{self._data_dir / SOCKET}: {error.strerror or error}")

    async def stop(self) -> None:
        """Take no more, and wait for a checkpoint that is being made; one that is being copied stays for its copier."""
        if self._server is None:
            return
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        (self._data_dir / SOCKET).unlink(missing_ok=True)

    async def hand_over(self) -> None:
        """Take no more; once this returns no checkpoint is being made, and another Control may take this place."""
        if self._server is None:
            return
        self._server.close()
        (self._data_dir / SOCKET).unlink(missing_ok=True)
        if self._making is not None:
            await asyncio.wait([self._making])

    async def copied(self) -> None:
        """Wait for clients that copy a checkpoint."""
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, TimeoutError, ValueError):
            pass  # the client is gone, or speaks something else
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_ASK_S_MAX):
            asked = await reader.readline()
        if asked != _ASK:
            writer.write(_line(Answer(error="the server is asked for something it does not know")))
            return
        if self._data_dir in _HELD:
            writer.write(_line(Answer(error="another backup is being taken; wait for its end")))
            return
        _HELD.add(self._data_dir)
        try:
            await self._hold(reader, writer)
        finally:
            _HELD.discard(self._data_dir)

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = self._data_dir / CHECKPOINT
        began_s = time.monotonic()
        self._making = making = asyncio.ensure_future(
            asyncio.to_thread(make_checkpoint, self._data_dir, CHECKPOINT, self._make, self._spare_bytes)
        )
        try:
            await asyncio.shield(making)
        except errors.StartError as error:
            await asyncio.to_thread(remove_checkpoint, place)
            writer.write(_line(Answer(error=str(error))))
            self._tell("checkpoint.refused", peer=_who(writer), level="warning", detail=str(error))
            return
        except asyncio.CancelledError:
            await asyncio.wait([making])  # the store may not be closed under it
            raise
        self._tell("checkpoint.made", peer=_who(writer), took_ms=int((time.monotonic() - began_s) * 1000))
        writer.write(_line(Answer(ok=True)))
        with contextlib.suppress(OSError):
            while await reader.read(4096):  # until the connection's end; nothing is to be said any more
                pass
        await asyncio.to_thread(remove_checkpoint, place)
        self._tell("checkpoint.removed", held_ms=int((time.monotonic() - began_s) * 1000))


def _log(kind: str, *, level: str = "info", **about: object) -> None:
    """What happens is told to the log alone where events are another thread's."""
    getattr(log, level)(kind, **about)


class ControlThread:
    """A Control where no loop runs yet, from now until `end`."""

    def __init__(self, data_dir: Path, make: Callable[[str], None], spare_bytes: int) -> None:
        self._control = Control(data_dir, make, spare_bytes, _log)
        self._loop, self._over, self._is_free = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
        threading.Thread(target=self._run, name="fila-control", daemon=True).start()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._is_free.set()
            self._loop.close()

    async def _serve(self) -> None:
        await self._control.start()
        await self._over.wait()
        await self._control.hand_over()
        self._is_free.set()
        await self._control.copied()

    def end(self) -> None:
        """Another Control may take its place once this returns. Who copies a checkpoint goes on."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended before
            self._loop.call_soon_threadsafe(self._over.set)
        self._is_free.wait()


def make_checkpoint(data_dir: Path, name: str, make: Callable[[str], None], spare_bytes: int) -> Path:
    """Have `make` make it in `data_dir`, in place of one that was left there; it blocks on the disk.

    `spare_bytes` stay free. Raises StartError.
    """
    place = data_dir / name
    remove_checkpoint(place)
    logs = sum(file.stat().st_size for file in (data_dir / STORE).glob("*.log"))
    free = shutil.disk_usage(data_dir).free
    if free < logs + spare_bytes:
        raise errors.StartError(
            f"a checkpoint takes up to {(logs >> 20) + 1} MiB beside the data, and {free >> 20} MiB are free, of "
            f"which {spare_bytes >> 20} are kept for messages; make room on the disk of the data directory"
        )
    make(str(place))
    return place


def remove_checkpoint(place: Path) -> None:
    """Remove it, and what is left of one that was not finished."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(place.with_name(place.name + ".tmp"), ignore_errors=True)


@contextlib.contextmanager
def asked_for_checkpoint(data_dir: Path) -> Iterator[Path]:
    """Ask the server that holds `data_dir`; the checkpoint is there until the block ends. Raises StartError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking, _short(data_dir) as at:
        asking.settimeout(ANSWER_S_MAX)
        try:
            asking.connect(at)
            asking.sendall(_ASK)
            with asking.makefile("rb") as answers:
                answer = msgspec.json.decode(answers.readline(), type=Answer)
        except (OSError, msgspec.DecodeError) as error:
            why = getattr(error, "strerror", "") or "it ended the connection"
            raise errors.StartError(
                f"the server that holds {data_dir} does not answer on {data_dir / SOCKET} ({why}): it is starting or "
                "stopping, is another user's, or is older than this program. Try again, or stop it first"
            ) from None
        if not answer.ok:
            raise errors.StartError(f"the server that holds {data_dir} refuses: {answer.error}")
        try:
            yield data_dir / CHECKPOINT
        finally:
            with contextlib.suppress(OSError):
                asking.shutdown(socket.SHUT_WR)
                asking.recv(1)  # ends once the checkpoint is removed: then the next backup may begin


def _who(writer: asyncio.StreamWriter) -> str:
    """Name the user of the program that asks, as the kernel knows it."""
    asking = writer.get_extra_info("socket")
    _, user, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return f"uid:{user}"


def _bound(data_dir: Path) -> socket.socket:
    """Return a listening socket that only this user may open."""
    (data_dir / SOCKET).unlink(missing_ok=True)  # a server that was killed left it; we hold its lock
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        os.fchmod(listening.fileno(), 0o600)  # before it has a name: it is never open to others
        with _short(data_dir) as at:
            listening.bind(at)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


@contextlib.contextmanager
def _short(data_dir: Path) -> Iterator[str]:
    """Give the socket's name by way of an open directory: a path of its own may have 107 bytes, no more."""
    descriptor = os.open(data_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


def _line(answer: Answer) -> bytes:
    return msgspec.json.encode(answer) + b"\n"
