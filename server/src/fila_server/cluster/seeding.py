"""A node without a copy that it can go on with gets one from another node, by the rule of sources.py.

The copy is whole, synced and opened once before it is put in place (directories.py), so a node that is ended on the way
has what it had. A damaged copy stays where it is until then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from fila_server import errors
from fila_server.cluster import fetching, written
from fila_server.cluster.copy_lines import COPY, Offer
from fila_server.cluster.directories import Directories
from fila_server.cluster.fetching import NotTaken
from fila_server.cluster.peers import CONNECTS_S_MAX, Stranger, Trust, connected
from fila_server.cluster.reports import Report
from fila_server.cluster.sources import Act, Lack, Search, Seen, Step
from fila_server.config.cluster import Cluster
from fila_server.config.kinds import Address
from fila_server.core.log.kafka import LogRefused
from fila_server.core.runtime.store_copy import FORMAT, StoreCopy

log = structlog.get_logger("fila_server.cluster.seeding")

TURN_S = 0.05
LOG_LOOK_S = 1.0
LOG_WAIT_MS = 1_000


class HasEnds(Protocol):
    """As much of a log as tells where it begins."""

    def ends(self, wait_ms: int = ...) -> tuple[int, int]:
        """The offset of the first record there is, and of the next that comes. Raises LogRefused."""
        ...


class Asked(Protocol):
    """Another node, which is asked how it is (peers.Peer)."""

    report: Report | None
    is_asked: bool
    answers: bool

    @property
    def address(self) -> Address:
        """Where it is asked."""
        ...


@dataclass(frozen=True)
class Want:
    """Why a copy is wanted."""

    lack: Lack
    why: str = ""
    needed: int = -1
    """The least position that is of use."""

    @classmethod
    def damaged(cls, what: str) -> Want:
        """What a broker alone would do about it is no use here."""
        return cls(Lack.DAMAGED, f"{Lack.DAMAGED.value}: {what.partition(';')[0]}")


class Seeding:
    """One node's way to a copy, from which it may be told each moment to end."""

    def __init__(
        self,
        cluster: Cluster,
        trust: Trust,
        group: bytes,
        directories: Directories,
        spare_bytes: int,
        log_end: HasEnds,
        open_copy: Callable[[Path], StoreCopy],
        written_format: written.WrittenFormat,
    ) -> None:
        self._cluster, self._trust, self._group, self._directories = cluster, trust, group.hex(), directories
        self._spare_bytes, self._log, self._open_copy = spare_bytes, log_end, open_copy
        self._written = written_format
        self.why = ""
        """What it waits for."""

    def run(self, want: Want, peers: Callable[[], Sequence[Asked]], tick: Callable[[], None]) -> StoreCopy:
        """The copy that the node goes on with, which may be an empty one at the beginning of the log. `peers` are those
        that the group has just now, and `tick` is called again and again meanwhile. Raises StartError where the
        directory is another process's, or cannot be used."""
        log.info("cluster.copy_wanted", node=self._cluster.node, detail=want.why or want.lack.value)
        with self._directories.locked():
            self._directories.clear_up()
            self._search(want, peers, tick)
        self.why = ""
        return self._open_copy(self._directories.data_dir)

    def _search(self, want: Want, peers: Callable[[], Sequence[Asked]], tick: Callable[[], None]) -> None:
        search, looked_s = Search(_now_ms(), want.lack, want.needed), float("-inf")
        self.why = want.why or want.lack.value
        while True:
            if time.monotonic() - looked_s >= LOG_LOOK_S:
                looked_s = time.monotonic()
                start = self._log_start()
                if start is not None:
                    search.log_begins(start)
            step = search.decide(_now_ms(), [_seen(peer) for peer in peers()])
            if step.act is Act.READ:
                log.info("cluster.log_is_read", node=self._cluster.node, detail="no other node gives a copy")
                return
            if step.act is Act.TAKE:
                assert step.source is not None
                if self._take(step.source, search, tick):
                    return
            else:
                self._say(step)
            tick()
            time.sleep(TURN_S)

    def _say(self, step: Step) -> None:
        if step.why and step.why != self.why:
            self.why = step.why
            if step.is_halt:
                log.error("cluster.halted", node=self._cluster.node, detail=step.why)
            else:
                log.warning("cluster.waits", node=self._cluster.node, detail=step.why)

    def _log_start(self) -> int | None:
        try:
            return self._log.ends(LOG_WAIT_MS)[0]
        except LogRefused:
            return None

    def _take(self, source: Seen, search: Search, tick: Callable[[], None]) -> bool:
        begun_s, had_copy = time.monotonic(), self._directories.has_copy
        log.info("cluster.copy_begun", node=self._cluster.node, source=source.name)
        try:
            offer, position = self._fetched(source, search.needed, tick)
        except NotTaken as failed:
            search.failed(_now_ms(), source.address, f"{source.name}: {failed}", is_own=failed.is_own)
            log.warning(
                "cluster.copy_failed", node=self._cluster.node, source=source.name, detail=str(failed)
            )
            return False
        took_ms = int((time.monotonic() - begun_s) * 1000)
        log.info(
            "cluster.copy_taken",
            node=self._cluster.node,
            source=source.name,
            position=position,
            bytes=offer.bytes,
            took_ms=took_ms,
            set_aside=had_copy,
        )
        return True

    def _fetched(self, source: Seen, needed: int, tick: Callable[[], None]) -> tuple[Offer, int]:
        """A copy in place, and up to where it has the log. Raises NotTaken."""
        directories = self._directories
        try:
            lines = connected(Address(source.address), self._cluster, self._trust, COPY, CONNECTS_S_MAX)
        except (OSError, Stranger, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise NotTaken(f"it does not answer: {error}") from None
        with lines.connection:
            offer = fetching.read_offer(lines)
            fetching.judge(
                offer,
                cluster=self._group,
                format_max=FORMAT,
                log_format_max=written.READS,
                needed=needed,
            )
            try:
                directories.begin(offer.bytes + self._spare_bytes)
            except OSError as error:
                raise _own(error) from None
            fetching.receive(lines, offer, directories.seeding, self._spare_bytes, tick)
        position = self._tried(needed)
        try:
            self._written.at_least(offer.log_format)
            directories.finish()
            directories.put_in_place()
        except OSError as error:
            raise _own(error) from None
        return offer, position

    def _tried(self, needed: int) -> int:
        """Its position, once it was opened as any copy is. Raises NotTaken."""
        try:
            copy = self._open_copy(self._directories.seeding)
        except errors.StartError as error:
            raise NotTaken(f"its copy cannot be opened: {error}") from None
        position = copy.position
        copy.close()
        if position < needed:
            raise NotTaken(f"its copy ends at offset {position}, and {needed} is needed")
        return position


def _seen(peer: Asked) -> Seen:
    report = peer.report
    if report is None or not peer.answers:
        name = report.name if report else ""
        return Seen(str(peer.address), is_asked=peer.is_asked, answers=False, name=name)
    return Seen(
        str(peer.address),
        gives=report.gives,
        owns=report.owns,
        position=report.position,
        name=report.name,
    )


def _own(error: OSError) -> NotTaken:
    return NotTaken(
        f"this node cannot put it in place: {error.filename}: {error.strerror}. Look at the disk of the data directory",
        is_own=True,
    )


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
