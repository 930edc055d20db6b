"""Which format the group writes. A build reads some formats, and a group writes the oldest until an operator raises it.

A takeover says in which format its owner will write (core/log/record.pxd). A copy reads up to the format that it knows
the group to write, and halts at a takeover of a newer one. A node whose build reads that format notes it on its disk
first, and lets the copy read on. So the note of a copy is never older than what the copy holds, and a build that does
not read the copy's format does not open it.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from fila_server import errors
from fila_server.backup.copying import sync_directory, write_file
from fila_server.core.runtime.store_copy import NEWER, StoreCopy

FIRST = 1
READS = 1
"""The newest format of the log that this build reads. Raise it with a change of what a record holds, or of what the
records of a store mean. What such a change writes has to wait until the group writes that format."""
NOTE = "log-format"


class Note(msgspec.Struct):
    """What DATA_DIR/log-format holds."""

    format: int = FIRST
    wanted: int = 0
    """To this one an operator raised a group that has no other node."""


class WrittenFormat:
    """One node's knowledge of it. The thread that follows changes it."""

    def __init__(self, data_dir: Path) -> None:
        """Raises errors.StoreError where this build does not read what the group writes."""
        self._file = data_dir / NOTE
        self.deposes = -1
        """The term of which this node's last takeover was."""
        try:
            self._note = msgspec.json.decode(self._file.read_bytes(), type=Note)
        except FileNotFoundError:
            self._note = Note()
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise errors.StoreError(
                f"{self._file} cannot be read: {error}. Move the data directory away, and start the node with an empty "
                "one: it takes another node's copy"
            ) from None
        if self._note.format > READS:
            raise errors.StoreError(
                f"the group of the copy in {data_dir} writes format {self._note.format} of the log, and this "
                f"fila-server reads up to {READS}: start the newer version that the other nodes have"
            )

    @property
    def format(self) -> int:
        """What the group writes, as far as this node has read the log."""
        return self._note.format

    @property
    def wanted(self) -> int:
        """What a node that is alone is to write once it serves again; 0: what is written."""
        return min(self._note.wanted, READS)

    def want(self, log_format: int) -> None:
        """At an operator's word, of a node that is alone. Raises OSError."""
        self._keep(Note(self.format, log_format))

    def at_least(self, log_format: int) -> None:
        """A copy of another node comes, which may hold it. Raises OSError."""
        if log_format > self.format:
            self._keep(Note(log_format))

    def forget(self) -> None:
        """The node has no copy, and begins with nothing."""
        self._note = Note()
        self._file.unlink(missing_ok=True)

    def goes_on(self, copy: StoreCopy) -> bool:
        """Whether a copy that has halted reads on, as what it met is a newer format that this build reads. Raises
        errors.StoreError."""
        if copy.halted[0] != NEWER or self.format >= READS:
            return False
        try:
            self._keep(Note(self.format + 1))
        except OSError as error:
            raise errors.StoreError(
                f"{self._file} cannot be written: {error.strerror}. Look at the disk of the data directory"
            ) from None
        copy.goes_on(self.format)
        return True

    def bid(self, copy: StoreCopy, wall_ms: int, raised: int, *, is_moved: bool) -> bool:
        """Append a takeover; False: the log takes nothing just now. Its owner will write what an operator `raised` it
        to, or else what is written."""
        self.deposes = copy.term[0]
        nonce, log_format = secrets.randbits(64), max(raised, self.format)
        return copy.bid(nonce, wall_ms, log_format=log_format, is_moved=is_moved)

    def _keep(self, note: Note) -> None:
        beside = self._file.with_name(f"{NOTE}.new")
        beside.unlink(missing_ok=True)
        write_file(beside, msgspec.json.encode(note).decode())
        beside.replace(self._file)
        sync_directory(self._file.parent)
        self._note = note
