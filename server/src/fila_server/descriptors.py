"""File descriptors: as many as the system gives, and always some for the store.

Every connection takes one, and so does every file the store opens. When none is left, the store cannot
switch its log, and the server has to end. So connections are never given the last ones:

    0 ......................................... limit
    [ store, listeners | connections            | KEEP_FREE | spare ]

Connections beyond that are refused one by one, but for those of grpc's own server, which accepts in its own
threads and cannot be told to stop. So while descriptors are short the kernel drops what knocks at any
listener, clients try again by themselves, and the spare descriptors are given up, for nobody but the store
is left to take them. A look every LOOK_S is enough, because a twelfth of all has to be taken within that
time to get past it; where ten twelfths are free beside those, one in ten times LOOK_S is.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
import socket
from collections.abc import Callable, Collection
from pathlib import Path

import structlog

log = structlog.get_logger("fila_server.descriptors")

SPARE = 32
"""Descriptors that are held only to be given up."""

KEEP_FREE_MIN = 32
KEEP_FREE_SHARE = 12
"""One in so many is left free, besides."""

LIMIT_ADVISED = 4096
"""With fewer the start is warned about: a thousand consumers and the store's files need about as many."""

LOOK_S = 0.05
TAKEN_A_LOOK = 1_000
"""I/O threads take fewer connections meanwhile: 20,000 a second."""
LOOK_S_MAX = 5.0

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_BPF_RETURN_CONSTANT = 0x06


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16), ("if_true", ctypes.c_uint8), ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )  # fmt: skip


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def raise_limit() -> int:
    """Raise the soft limit to the hard one; return it. Call before anything is opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = int(Path("/proc/sys/fs/nr_open").read_text())
    if soft < hard:
        with contextlib.suppress(OSError, ValueError):  # then the soft one holds
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit < LIMIT_ADVISED:
        log.warning(
            "server.few_descriptors",
            limit=limit,
            detail=f"raise the limit of open files to {LIMIT_ADVISED} or more (ulimit -Hn, LimitNOFILE): beyond "
            "it connections are refused",
        )
    return limit


def count_open() -> int:
    """How many descriptors this process has open."""
    # Newer kernels say it as the directory's size, without a walk.
    return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))  # noqa: PTH116, PTH208


class Descriptors:
    """Keeps some free. Belongs to the loop's thread."""

    def __init__(
        self,
        limit: int,
        *,
        count: Callable[[], int] = count_open,
        shut: Callable[[socket.socket, bool], None] | None = None,
    ) -> None:
        self._limit = limit
        self._count = count
        self._shut = shut or _shut
        self._keep_free = max(KEEP_FREE_MIN, limit // KEEP_FREE_SHARE)
        self._listeners: list[socket.socket] = []
        self._spare: list[int] = []
        self._is_short = False
        self._timer: asyncio.TimerHandle | None = None
        self._take_spare()

    @property
    def first_kept(self) -> int:
        """The first that is kept for the store: the system gives out the lowest that is free."""
        return self._limit - self._keep_free - SPARE

    def may_be_kept(self, descriptor: int) -> bool:
        """Whether a connection with this descriptor may stay."""
        return not self._is_short and descriptor < self.first_kept

    def guard(self, ports: Collection[int]) -> None:
        """Take hold of all sockets of this process that listen on these ports."""
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are all it has
            with contextlib.suppress(OSError):
                listener = _socket_of(int(name))
                is_inet = listener.family in (socket.AF_INET, socket.AF_INET6)
                if (
                    is_inet
                    and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                    and listener.getsockname()[1] in ports
                ):
                    self._listeners.append(listener)
                else:
                    listener.close()

    def start(self) -> None:
        """Look from now on: every LOOK_S where descriptors may be short by then, and less often where many are free."""
        self._timer = asyncio.get_running_loop().call_later(self.wait_s(self.look()), self.start)

    def wait_s(self, free: int) -> float:
        """How long no look is needed after one that found so many free."""
        looks = (free - self._keep_free) / min(self._keep_free, TAKEN_A_LOOK)
        return min(LOOK_S * max(1.0, looks), LOOK_S_MAX)

    def stop(self) -> None:
        """Look no more, and let go of everything."""
        if self._timer is not None:
            self._timer.cancel()
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._give_up_spare()

    def look(self) -> int:
        """Shut the listeners when few are left, open them when enough are. Returns how many are free."""
        free = self._limit - self._count()
        if not self._is_short and free < self._keep_free:
            self._is_short = True
            for listener in self._listeners:
                self._shut(listener, True)
            self._give_up_spare()
            log.warning(
                "server.descriptors_short",
                limit=self._limit,
                free=free,
                detail="no connection is taken until some are closed; raise the limit of open files "
                "(ulimit -Hn, LimitNOFILE)",
            )
        elif self._is_short and free > self._keep_free + 2 * SPARE:
            self._is_short = False
            self._take_spare()
            for listener in self._listeners:
                self._shut(listener, False)
            log.info("server.descriptors_enough", limit=self._limit, free=free)
        return free

    def _take_spare(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._spare) < SPARE:
                self._spare.append(os.open("/dev/null", os.O_RDONLY))

    def _give_up_spare(self) -> None:
        for descriptor in self._spare:
            os.close(descriptor)
        self._spare.clear()


def _socket_of(descriptor: int) -> socket.socket:
    """Another hold of the same socket. Raises OSError when it is none; a pipe that stayed open twice would never end
    for who reads it."""
    held = os.dup(descriptor)
    try:
        return socket.socket(fileno=held)
    except OSError:
        os.close(held)
        raise


def _shut(listener: socket.socket, is_shut: bool) -> None:
    """Have the kernel drop every packet to a listener, or none: connections that stand are not concerned."""
    try:
        if is_shut:
            drop = _Instruction(_BPF_RETURN_CONSTANT, 0, 0, 0)
            listener.setsockopt(
                socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(_Program(1, ctypes.pointer(drop)))
            )
        else:
            listener.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
    except OSError as error:
        log.warning("server.listener_not_shut", error=str(error), detail="connections are still taken")
