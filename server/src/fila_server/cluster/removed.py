"""Nodes that an operator removed: they are gone for good, and nobody counts them until they answer again.

    the owner      takes one in at an operator's word, says in its reports who they are, and drops one that answers
    other nodes    have the list of the owner that they heard last

Each node keeps its list in DATA_DIR/removed-nodes. So the next owner knows it, and a process that begins anew.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from fila_server.cluster.reports import Report
from fila_server.config.kinds import Address

REMOVED = "removed-nodes"


class Asked(Protocol):
    """Another node, which is asked how it is (peers.Peer)."""

    report: Report | None
    answers: bool

    @property
    def address(self) -> Address:
        """Where it is asked."""
        ...


class RemovedNodes:
    """One node's list. Any thread may ask."""

    def __init__(self, data_dir: Path) -> None:
        self._file, self._lock = data_dir / REMOVED, threading.Lock()
        self.words: tuple[str, ...] = ()
        """Names and peer addresses; each stands for the node that has it."""
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
            self.words = tuple(msgspec.json.decode(self._file.read_bytes(), type=list[str]))

    def remove(self, name: str, peer_addr: str) -> None:
        """At an operator's word; the owner alone."""
        with self._lock:
            self._keep([*self.words, name, peer_addr])

    def look(self, others: Sequence[Asked], owner: Report | None, *, owns: bool) -> None:
        """How the others are now. `owner` is the one of them that serves, if it is known."""
        if owns:
            back = {word for other in others if other.answers for word in _words(other)}
            with self._lock:
                self._keep(word for word in self.words if word not in back)
        elif owner is not None:
            with self._lock:
                self._keep(owner.removed)

    def counts(self, other: Asked) -> bool:
        """Whether the node is one of the group; one that answers always is."""
        return other.answers or _words(other).isdisjoint(self.words)

    def _keep(self, words: Iterable[str]) -> None:
        kept = tuple(sorted({*words} - {""}))
        if kept == self.words:
            return
        self.words = kept
        beside = self._file.with_name(f"{REMOVED}.new")
        with contextlib.suppress(OSError):  # what it lacks after a restart it hears of the owner
            beside.write_bytes(msgspec.json.encode(kept))
            beside.replace(self._file)


def _words(other: Asked) -> set[str]:
    return {str(other.address), other.report.name if other.report else ""}
