"""The thread that keeps a standby's disk small ends before an owner's engine has one itself."""

from __future__ import annotations

import threading
from typing import Any

from fila_server.cluster import upkeep
from fila_server.cluster.upkeep import Upkeep

WAIT_S = 30


class Copy:
    """Its round lasts until it is broken off."""

    def __init__(self) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self.said: list[str] = []

    def upkeep(self) -> int:
        self.said.append("begins")
        self.begun.set()
        assert self.goes_on.wait(WAIT_S)
        self.said.append("ends")
        return 1

    def break_off(self, is_broken_off: bool) -> None:
        self.said.append(f"breaks off: {is_broken_off}")
        self.goes_on.set()


def test_a_round_is_cut_short_and_none_comes_behind_it(monkeypatch):
    monkeypatch.setattr(upkeep, "ROUND_S", 0.001)
    copy: Any = Copy()
    keeps = Upkeep(copy)
    assert copy.begun.wait(WAIT_S)
    keeps.end()
    assert copy.said == ["begins", "breaks off: True", "ends", "breaks off: False"]
