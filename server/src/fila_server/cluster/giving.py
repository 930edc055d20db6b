"""A node gives its copy to another one: a checkpoint of its store (backup/control.py), file by file.

One at a time, in pieces, at most BYTES_A_SECOND: the owner's passes and a standby's applying go on. The thread is that
of the connection; it holds one piece in memory. A node that takes too slowly is cut off, since the checkpoint keeps
files that the store has left behind.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog

from fila_server import errors
from fila_server.backup.control import make_checkpoint, remove_checkpoint
from fila_server.backup.sums import files_of
from fila_server.cluster.copy_lines import PIECE_BYTES, File, Offer, Sum
from fila_server.cluster.peers import Lines

log = structlog.get_logger("fila_server.cluster.giving")

GIVING = "giving"
"""In the data directory: the checkpoint that another node is taking."""
BYTES_A_SECOND = 64 << 20
SLOWEST_BYTES_A_SECOND = 1 << 20
SLOW_S_MAX = 60.0
"""For so long it may be slower than that."""
PIECE_S_MAX = 20.0
"""For one piece, or for nothing."""


def pause_s(sent: int, after_s: float, bytes_a_second: int = BYTES_A_SECOND) -> float | None:
    """How long to wait before the next piece, when so much was sent in so long; None: it is too slow to go on."""
    if after_s > SLOW_S_MAX + sent / SLOWEST_BYTES_A_SECOND:
        return None
    return max(0.0, sent / bytes_a_second - after_s)


class Giver:
    """One node's copy, for others."""

    def __init__(
        self,
        data_dir: Path,
        spare_bytes: int,
        describe: Callable[[], Offer],
        checkpoint: Callable[[str], None],
    ) -> None:
        """`describe` says what this node has, or why it gives nothing; `checkpoint` makes one at a path."""
        self._data_dir, self._spare_bytes = data_dir, spare_bytes
        self._describe, self._checkpoint = describe, checkpoint
        self._giving = threading.Lock()

    def give(self, lines: Lines, node: str) -> None:
        """To this node, over a connection at whose other end it is. Raises OSError where the connection ends."""
        lines.connection.settimeout(PIECE_S_MAX)
        if not self._giving.acquire(blocking=False):
            lines.write(Offer(refused="it is giving its copy to another node just now"))
            return
        try:
            self._give(lines, node)
        finally:
            self._giving.release()

    def _give(self, lines: Lines, node: str) -> None:
        offer, begun_s = self._describe(), time.monotonic()
        place = self._data_dir / GIVING
        try:
            if not offer.refused:
                make_checkpoint(self._data_dir, GIVING, self._checkpoint, self._spare_bytes)
                files = files_of(place, self._data_dir)
                sizes = {name: file.stat().st_size for name, file in files.items()}
                offer.files, offer.bytes = len(files), sum(sizes.values())
        except (errors.StartError, OSError) as error:
            offer = Offer(refused=f"its checkpoint failed: {error}")
        try:
            lines.write(offer)
            if offer.refused:
                log.info("cluster.copy_not_given", to=node, detail=offer.refused)
                return
            sent = 0
            for name, file in files.items():
                lines.write(File(name, sizes[name]))
                reported = hashlib.sha256()
                for piece in _pieces(file, sizes[name]):
                    reported.update(piece)
                    lines.connection.sendall(piece)
                    sent += len(piece)
                    wait_s = pause_s(sent, time.monotonic() - begun_s)
                    if wait_s is None:
                        raise TimeoutError("it takes too slowly")
                    time.sleep(wait_s)
                lines.write(Sum(reported.hexdigest()))
            took_ms = int((time.monotonic() - begun_s) * 1000)
            log.info("cluster.copy_given", to=node, bytes=sent, took_ms=took_ms)
        except OSError as error:
            log.warning("cluster.copy_not_given", to=node, detail=f"the connection ended: {error}")
            raise
        finally:
            remove_checkpoint(place)


def _pieces(file: Path, size: int) -> Iterator[bytes]:
    reading = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        while size:
            piece = os.read(reading, min(PIECE_BYTES, size))
            if not piece:
                raise OSError(f"{file} ends early")
            size -= len(piece)
            yield piece
    finally:
        os.close(reading)
