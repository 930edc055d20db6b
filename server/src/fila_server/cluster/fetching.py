"""A node takes another one's copy: every file is summed while it comes, synced, and read once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from fila_server import errors
from fila_server.backup.copying import check_room, write_pieces
from fila_server.backup.sums import is_kept
from fila_server.cluster.copy_lines import PIECE_BYTES, File, Offer, Sum
from fila_server.cluster.peers import Lines
from fila_server.opening import STORE

T = TypeVar("T", bound=msgspec.Struct)
OFFER_S_MAX = 120.0
"""The other node makes a checkpoint until then, which copies its newest log."""
PIECE_S_MAX = 20.0


class NotTaken(Exception):
    """No whole copy came. `is_own`: another node would not help."""

    def __init__(self, why: str, *, is_own: bool = False) -> None:
        super().__init__(why)
        self.is_own = is_own


def read_offer(lines: Lines) -> Offer:
    """What the other node has. Raises NotTaken."""
    lines.connection.settimeout(OFFER_S_MAX)
    offer = _said(lines, Offer)
    if offer.refused:
        raise NotTaken(offer.refused)
    return offer


def judge(offer: Offer, *, cluster: str, format_max: int, log_format_max: int, needed: int) -> None:
    """Whether it is of use here. Raises NotTaken."""
    if offer.cluster != cluster:
        raise NotTaken(
            f"its copy is of the cluster {offer.cluster or 'of no name'}, and this node is of {cluster}: look at "
            "cluster.peers and cluster.name"
        )
    if offer.format > format_max:
        raise NotTaken(
            f"its copy has format {offer.format}, and this server knows up to {format_max}: upgrade this node"
        )
    if offer.log_format > log_format_max:
        raise NotTaken(
            f"the group writes format {offer.log_format} of the log, and this server reads up to {log_format_max}: "
            "upgrade this node"
        )
    if offer.position < needed:
        raise NotTaken(
            f"its copy ends at offset {offer.position}, and {needed} is needed: the log begins behind it"
        )


def receive(lines: Lines, offer: Offer, place: Path, spare_bytes: int, tick: Callable[[], None]) -> None:
    """All files of the offer, into `place`; `tick` is called for each piece. Raises NotTaken."""
    try:
        check_room(place, offer.bytes + spare_bytes)
        lines.connection.settimeout(PIECE_S_MAX)
        left, names = offer.bytes, set[str]()
        for _ in range(offer.files):
            file = _said(lines, File)
            left -= file.size
            if file.name in names or not _is_of_copy(file.name) or file.size < 0 or left < 0:
                raise NotTaken(f"it sends {file.name[:100]!r}, which its copy cannot have")
            names.add(file.name)
            found = write_pieces(place / file.name, _pieces(lines, file.size, tick))
            if _said(lines, Sum).sha256 != found:
                raise NotTaken(f"{file.name} is not what it sent: its SHA-256 is another")
        if f"{STORE}/CURRENT" not in names or "format" not in names:
            raise NotTaken("its copy is not whole: files are missing")
    except errors.StartError as error:
        raise NotTaken(str(error), is_own=True) from None
    except OSError as error:
        raise NotTaken(
            f"this node cannot write it: {error.filename or place}: {error.strerror}. Make room, or look at the disk",
            is_own=True,
        ) from None


def _is_of_copy(name: str) -> bool:
    return name == "format" or (name.startswith(f"{STORE}/") and is_kept(name))


def _pieces(lines: Lines, size: int, tick: Callable[[], None]) -> Iterator[bytes]:
    while size:
        try:
            piece = lines.read_piece(min(size, PIECE_BYTES))
        except OSError as error:
            raise _ended(error) from None
        size -= len(piece)
        tick()
        yield piece


def _said(lines: Lines, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(lines.read(), type=kind)
    except OSError as error:
        raise _ended(error) from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise NotTaken(f"it says what no node says: {error}") from None


def _ended(error: OSError) -> NotTaken:
    return NotTaken(
        f"the connection ended before the copy was whole: {error.strerror or str(error) or 'it closed it'}"
    )
