"""A standby that is told to stop: nobody is at work in its store or its log when these are closed."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from fila_server import main
from fila_server.cluster import node, upkeep
from fila_server.cluster.node import Node
from fila_server.config.cluster import Cluster
from fila_server.config.kinds import Address
from fila_server.config.schema import Config
from fila_server.core.runtime.store_copy import FOLLOWS

WAIT_S = 30
SETTINGS = msgspec.structs.replace(
    Config(), cluster=msgspec.structs.replace(Cluster(), name="orders", peer_addr=Address("127.0.0.1:1"))
)


class Copy:
    """Its round of upkeep lasts until it is broken off."""

    state, position = FOLLOWS, 7

    def __init__(self, said: list[str]) -> None:
        self.said, self.has_begun, self.goes_on = said, threading.Event(), threading.Event()

    def upkeep(self) -> int:
        self.has_begun.set()
        assert self.goes_on.wait(WAIT_S)
        self.said.append("a round of upkeep ends")
        return 1

    def break_off(self, _: bool) -> None:
        self.goes_on.set()

    def close(self) -> None:
        self.said.append("the copy is closed")


class Standby(Node):
    """Over a copy and a log that note what happens to them. While it follows, a signal comes."""

    def __init__(self, cluster: Cluster) -> None:
        self.said: list[str] = []
        copy: Any = Copy(self.said)
        has: dict[str, Any] = {
            "_topic": SimpleNamespace(keep=self._asks_for_its_topic),
            "_keeper": SimpleNamespace(begin=lambda _: None),
            "_clients": SimpleNamespace(ports=(1, 2)),
            "_port": self._noting("other nodes get no answer"),
            "_peers": [self._noting("a node is asked no more")],
            "log": self._noting("the log is closed"),
        }
        self._cluster, self._leaves = cluster, threading.Event()
        self._want, self._upkeep, self._copy = None, None, copy
        self.knows_of_the_end = threading.Event()
        vars(self).update(has)

    def _noting(self, what: str) -> SimpleNamespace:
        return SimpleNamespace(close=lambda: self.said.append(what))

    def _asks_for_its_topic(self, leaves: threading.Event) -> None:
        if leaves.wait(WAIT_S):
            self.knows_of_the_end.set()

    def _follow(self) -> None:
        copy: Any = self.copy
        assert copy.has_begun.wait(WAIT_S)
        signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def handlers():
    """Those of signals are as they were."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_at_a_signal_a_standby_ends_its_threads_and_then_closes_copy_and_log(handlers, monkeypatch):
    standby = Standby(SETTINGS.cluster)
    monkeypatch.setattr(node, "Node", lambda *_: standby)
    monkeypatch.setattr(upkeep, "ROUND_S", 0.001)
    with pytest.raises(SystemExit) as ended:
        main._stand_by(SETTINGS, None)
    assert ended.value.code == 0
    assert standby.said == [
        "other nodes get no answer",
        "a node is asked no more",
        "a round of upkeep ends",
        "the copy is closed",
        "the log is closed",
    ]
    assert standby.knows_of_the_end.wait(WAIT_S)
