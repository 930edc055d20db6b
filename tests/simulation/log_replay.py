"""What a log makes of nothing: its effective records applied to plain dictionaries, by code of its own.

A pass's bytes are a RocksDB batch: a number, a count, then puts and deletes, each with its family. Nothing of the
server's store is used here.
"""

from __future__ import annotations

import re
from pathlib import Path

from fila_server.core.log.model import SimulatedLog
from fila_server.core.log.reading import LogReading
from fila_server.core.log.record import decode
from tests.log import twin
from tests.native.storeprobe import StoreProbe

FAMILIES = 16
META = 0
OF_A_NODE = (b"format", b"applied")
"""Records of META that the log does not have."""
PUT, DELETE, RANGE, DELETE_HERE, PUT_HERE, RANGE_HERE = 0x1, 0x0, 0xF, 0x4, 0x5, 0xE
NAMED = re.compile(rb"<[0-9a-f]{16}>")


class Replay:
    """Reads on whenever it is asked, and keeps what the log says."""

    def __init__(self, log: SimulatedLog) -> None:
        self.log, self.rule = log, LogReading()
        self.position = 0
        self.pieces = b""
        self.rows: list[dict[bytes, bytes]] = [{} for _ in range(FAMILIES)]
        self.newest: dict[tuple[int, int], int] = {}
        self._payloads: set[bytes] = set()

    def _read_on(self) -> None:
        while self.position < len(self.log):
            content = self.log.content(self.position)
            taken = self.rule.take(self.position, content)
            self.position += 1
            if taken == twin.NOTHING:
                continue
            if taken == twin.HALT:
                raise AssertionError(f"the replay halts: {self.rule.why}")
            if taken == twin.TERM:
                self.pieces = b""
                continue
            self.newest[self.rule.state()["term"]] = self.position - 1
            if taken == twin.BARRED:
                continue
            self.pieces += decode(content)[1]["body"]
            if taken != twin.PIECE:
                self._apply(self.pieces)
                self.pieces = b""

    @property
    def payloads(self) -> set[bytes]:
        """Those of the simulation's messages that a record which counts has."""
        self._read_on()
        return self._payloads

    @property
    def term(self) -> tuple[int, int]:
        self._read_on()
        return self.rule.state()["term"]

    def newest_of(self, term: tuple[int, int]) -> int:
        """The offset of the term's newest record that counts; -1: it has none."""
        self._read_on()
        return self.newest.get(term, -1)

    def families(self) -> dict[int, dict[bytes, bytes]]:
        self._read_on()
        return dict(enumerate(self.rows))

    def _apply(self, batch: bytes) -> None:
        at, count = 12, int.from_bytes(batch[8:12], "little")
        self._payloads.update(NAMED.findall(batch))

        def number() -> int:
            nonlocal at
            found = shift = 0
            while True:
                byte = batch[at]
                at += 1
                found |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    return found

        def text() -> bytes:
            nonlocal at
            length = number()
            at += length
            return batch[at - length : at]

        seen = 0
        while at < len(batch):
            tag = batch[at]
            at += 1
            family = number() if tag in (DELETE_HERE, PUT_HERE, RANGE_HERE) else 0
            rows = self.rows[family]
            seen += 1
            if tag in (PUT, PUT_HERE):
                key = text()
                rows[key] = text()
            elif tag in (DELETE, DELETE_HERE):
                rows.pop(text(), None)
            elif tag in (RANGE, RANGE_HERE):
                first, end = text(), text()
                for key in [key for key in rows if first <= key < end]:
                    del rows[key]
            else:
                raise AssertionError(f"a batch has an entry of kind {tag}")
        if seen != count:
            raise AssertionError(f"a batch says that it has {count} entries, and has {seen}")


def dumped(directory: Path) -> dict[int, dict[bytes, bytes]]:
    """All that a store holds, but for what is a node's own."""
    probe = StoreProbe(str(directory), is_copy=True)
    try:
        found = {family: dict(probe.scan(family)) for family in range(FAMILIES)}
    finally:
        probe.close()
    for key in OF_A_NODE:
        found[META].pop(key, None)
    return found
