"""A node of a group, from its start until it owns: it follows the log, asks the others how they are, and bids.

A node that owns is opened as any broker is, with its copy for a store (opening.py). When its term is over the process
executes itself, and what it knew of that term is gone with its memory.
"""

from __future__ import annotations

import hashlib
import os
import queue
import secrets
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import structlog

from fila_server import errors
from fila_server.cluster import kafka_settings
from fila_server.cluster.peers import Peer, PeerPort, Report, Trust
from fila_server.cluster.standby_ports import StandbyPorts
from fila_server.cluster.watching import PROBE_MS, Bidden, Heard, Hindered, Missed, Read, Watch
from fila_server.config.cluster import redis_addr
from fila_server.config.kinds import Address
from fila_server.config.schema import Config
from fila_server.core.log.kafka import KafkaLog, LogRefused
from fila_server.core.runtime.store_copy import FOLLOWS, HALTS, OWNS, RESIGNS, StoreCopy
from fila_server.edge.redis.sentinel import Group, Member
from fila_server.opening import open_owner

if TYPE_CHECKING:
    from fila_server.core.runtime.scheduler_thread import Engine

log = structlog.get_logger("fila_server.cluster.node")

FOLLOW_MS = 50
SYNC_S = 1.0
LOOK_S = 1.0
"""A log that says nothing for so long is read once more at its end: does it still answer?"""
HALTED_LOOK_S = 1.0
ANEW_S = 1.0
"""Before a process begins anew for a fault, which may be there still."""


def node_number(name: str) -> int:
    """What records know a node by."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") >> 1


def group_id(name: str) -> bytes:
    """What takeovers know a group by."""
    return hashlib.sha256(b"group " + name.encode()).digest()[:16]


class Node:
    """This process, as its group sees it."""

    def __init__(self, settings: Config) -> None:
        """Open the log, the copy and the port for other nodes. Raises StartError."""
        cluster = settings.cluster
        self._settings, self._cluster, self.number = settings, cluster, node_number(cluster.node)
        trust = Trust.of(cluster)
        self._watch = Watch(self.number, cluster.clock_skew_max_ms)
        self._events: queue.SimpleQueue[Heard | Missed] = queue.SimpleQueue()
        self._answers, self._answered_ms = 0, _now_ms()
        self._why = ""
        self._is_leaving = self._serves = False
        library, given = kafka_settings.judged(cluster.log.brokers, cluster.log.topic, cluster.kafka)
        client_addr = cluster.advertised_addr or settings.server.listen_addr
        self._client_addr = str(client_addr) if Address(client_addr).port else ""
        redis = settings.redis
        self._redis_addr = (
            redis_addr(cluster, redis.listen_addr, client_addr) if redis.enabled else None
        ) or ""
        try:
            self.log = KafkaLog(library, cluster.log.topic, given, appends=True)
        except LogRefused as refused:
            raise errors.StartError(f"cluster.log: {cluster.log}: {refused}") from None
        Path(settings.server.data_dir).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.copy = StoreCopy(
            settings.server.data_dir,
            settings.engine_settings(),
            self.log,
            node=self.number,
            cluster=group_id(cluster.name),
            name=str(cluster.node),
        )
        self._port = PeerPort(cluster, trust, self.report)
        self._peers = [Peer(address, cluster, trust, self._events.put) for address in cluster.other_nodes]
        self._clients = StandbyPorts(settings, self.group)

    def report(self) -> Report:
        """How this node is."""
        owns = self.copy.state == OWNS
        seen = self._watch.report(_now_ms())
        return Report(
            self.number,
            str(self._cluster.node),
            self.copy.position,
            seen.may_bid and not owns,
            time.time_ns() // 1_000_000,
            0 if owns else seen.owner_heard_ms,
            self._client_addr,
            str(self._redis_addr),
        )

    def lacks(self) -> str:
        """Why this standby could not take over at once; empty: it could."""
        return self._watch.lacks(_now_ms())

    def stand_by(self) -> None:
        """Follow until this node owns. A signal ends the process."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave)
        grpc, redis = self._clients.ports
        log.info(
            "cluster.standby", node=self._cluster.node, position=self.copy.position, grpc=grpc, redis=redis
        )
        synced_s = time.monotonic()
        while self.copy.state != OWNS:
            self._follow()
            self._hear()
            owner = self._owner()
            self._clients.name_owner(owner.client_addr if owner else "", owner.redis_addr if owner else "")
            if self.copy.state == FOLLOWS:
                self._decide()
            elif self.copy.state == RESIGNS:
                begin_anew(self.copy.why)
            if time.monotonic() - synced_s >= SYNC_S:
                synced_s = time.monotonic()
                self.copy.sync()
        self._clients.name_owner("")
        log.info("cluster.owner", node=self._cluster.node, term=self.copy.term[0])

    def _follow(self) -> None:
        if self.copy.state == HALTS:
            if self._watch.hindered != self.copy.why:
                self._watch.take(_now_ms(), Hindered(self.copy.why))
                log.error("cluster.halted", node=self._cluster.node, detail=self.copy.why)
            time.sleep(HALTED_LOOK_S)
            return
        self.copy.follow(FOLLOW_MS)
        answers, is_end = self.copy.answers
        now_ms = _now_ms()
        if answers > self._answers:
            self._answers, self._answered_ms = answers, now_ms
            owner, short_terms = self.copy.owner
            ahead_ms = self.copy.wall_ms - time.time_ns() // 1_000_000
            self._watch.take(now_ms, Read(self.copy.position, is_end, owner, short_terms, ahead_ms))
        elif now_ms - self._answered_ms >= LOOK_S * 1000:
            self._answered_ms = now_ms
            self.copy.look_again()

    def _hear(self) -> None:
        while not self._events.empty():
            self._watch.take(_now_ms(), self._events.get())

    def _owner(self) -> Report | None:
        """The other node that serves; None while it is not known, or is gone."""
        owner, _ = self.copy.owner
        if owner is None or owner == self.number or self._watch.is_gone(owner):
            return None
        return next((peer.report for peer in self._peers if peer.report and peer.node == owner), None)

    def group(self) -> Group:
        """What Redis clients are told of the group. Any thread may ask."""
        own = _member(str(self._cluster.node), str(self._redis_addr), self.copy.position)
        owner = self._owner()
        serving = own if self._serves else None
        others = []
        for peer in self._peers:
            if report := peer.report:
                is_gone = self._watch.is_gone(report.node)
                others.append(_member(report.name, report.redis_addr, report.position, is_gone=is_gone))
                serving = others[-1] if report is owner and not self._serves else serving
        return Group(str(self._cluster.name), own, tuple(others), serving)

    def _decide(self) -> None:
        decision = self._watch.decide(_now_ms())
        if decision.why != self._why:
            self._why = decision.why
            if decision.why:
                tell = log.error if decision.is_alarm else log.info
                tell("cluster.bids" if decision.bids else "cluster.waits", detail=decision.why)
        if decision.bids and self.copy.bid(secrets.randbits(64), time.time_ns() // 1_000_000):
            self._watch.take(_now_ms(), Bidden())

    def open_engine(self) -> Engine:
        """The engine of a node that owns. Once its term is over the process begins anew, unless it is about to end."""
        engine = open_owner(self._settings, self.copy)
        self._clients.name_owner("", str(self._redis_addr))
        self._clients.close()
        self._serves = True

        def wait() -> None:
            while not engine.term_over.wait(PROBE_MS / 1000):
                self._hear()
            if not self._is_leaving:
                begin_anew(self.copy.why)

        threading.Thread(target=wait, name="fila-term", daemon=True).start()
        return engine

    def leave(self) -> None:
        """The process is about to end: others need not wait for it."""
        self._is_leaving = True
        self._port.close()
        for peer in self._peers:
            peer.close()


def _member(node: str, redis: str, position: int, *, is_gone: bool = False) -> Member:
    place = Address(redis or ":0")
    return Member(node, place.host, place.port, position, is_gone)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _leave(*_: object) -> NoReturn:
    raise SystemExit(0)


def begin_anew(why: str) -> NoReturn:
    """Become the process that was started. Connections end without a word: what they asked may be in the log."""
    log.warning("cluster.term_over", detail=why or "another node has taken over")
    time.sleep(ANEW_S if why else 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the very program that runs
