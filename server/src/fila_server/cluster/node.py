"""A node of a group, from its start until it owns: it follows the log, asks the others how they are, and bids.

A node that owns is opened as any broker is, with its copy for a store (opening.py). When its term is over the process
executes itself, and what it knew of that term is gone with its memory.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import structlog

from fila_server import errors
from fila_server.backup.control import ControlThread
from fila_server.backup.last import backup_age_s
from fila_server.cluster import kafka_settings, written
from fila_server.cluster.anew import begin_anew
from fila_server.cluster.copy_lines import COPY, Offer
from fila_server.cluster.directories import Directories
from fila_server.cluster.giving import Giver
from fila_server.cluster.identity import group_id, node_number
from fila_server.cluster.log_keeper import LogKeeper
from fila_server.cluster.moving import MOVE, Mover, Taker
from fila_server.cluster.peers import Peer, PeerPort, Trust
from fila_server.cluster.removed import RemovedNodes
from fila_server.cluster.reports import Asked, Report, nodes_of, redis_group, shared_settings
from fila_server.cluster.reseeding import RESEED, Reseeder
from fila_server.cluster.room import Room
from fila_server.cluster.seeding import Seeding, Want
from fila_server.cluster.sources import Lack
from fila_server.cluster.standby_ports import StandbyPorts
from fila_server.cluster.topic import TopicKeeper, ask
from fila_server.cluster.truncating import Truncation
from fila_server.cluster.upkeep import Upkeep
from fila_server.cluster.watching import PROBE_MS, Bidden, Handed, Heard, Hindered, Missed, Read, Watch
from fila_server.config.cluster import redis_addr
from fila_server.config.kinds import Address
from fila_server.config.schema import Config
from fila_server.core.log.kafka import KafkaLog, LogRefused
from fila_server.core.runtime.store_copy import (
    ANEW,
    BEGINS_LATER,
    BIDS,
    FOLLOWS,
    FORMAT,
    FOUNDED,
    GAP,
    HALTS,
    OWNS,
    RESIGNS,
    StoreCopy,
)
from fila_server.edge.redis.sentinel import Group
from fila_server.events import emit
from fila_server.opening import open_owner
from fila_server.operations.cluster import ClusterCalls
from fila_server.telemetry.group import HALTED, OWNER, STANDBY, GroupStatus
from fila_server.version import version

if TYPE_CHECKING:
    from collections.abc import Callable

    from fila_server.core.runtime.scheduler_thread import Engine

log = structlog.get_logger("fila_server.cluster.node")

FOLLOW_MS = 50
SYNC_S = 1.0
LOOK_S = 1.0
"""A log that says nothing for so long is read once more at its end: does it still answer?"""
HALTED_LOOK_S = 1.0
_LACKS = {BEGINS_LATER: Lack.BEHIND, GAP: Lack.BEHIND, FOUNDED: Lack.FOUNDED, ANEW: Lack.ANEW}
"""Where a reader halts, and a copy of another node helps."""


class Node:
    """This process, as its group sees it."""

    def __init__(self, settings: Config, load: Callable[[], object] = lambda: None) -> None:
        """Open the log, the copy and the port for other nodes. Raises StartError. `load` imports what serves."""
        cluster = settings.cluster
        self._settings, self._cluster, self.number = settings, cluster, node_number(cluster.node)
        trust = Trust.of(cluster)
        self._watch = Watch(self.number, cluster.clock_skew_max_ms)
        self._events: queue.SimpleQueue[Heard | Missed | Handed] = queue.SimpleQueue()
        self._answers, self._answered_ms = 0, _now_ms()
        self._why = ""
        self._serves = False
        self._copy: StoreCopy | None = None
        self._upkeep: Upkeep | None = None
        self._room = Room(settings.storage.min_free_bytes)
        self._role = (STANDBY, _wall_ms())
        self._takeovers = 0
        self._shared_settings, self._version = shared_settings(settings), version()
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
        look = partial(ask, cluster.log.topic, given)
        self._topic = TopicKeeper(cluster.log.topic, look, accepts_weak=cluster.accept_weak_topic)
        self._topic.begin()
        self._leaves = threading.Event()
        Path(settings.server.data_dir).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directories = Directories(Path(settings.server.data_dir))
        self._removed = RemovedNodes(self._directories.data_dir)
        self.format = written.WrittenFormat(self._directories.data_dir)
        spare_bytes = settings.storage.min_free_bytes
        self._seeding = Seeding(
            cluster,
            trust,
            group_id(cluster.name),
            self._directories,
            spare_bytes,
            self.log,
            self._opened,
            self.format,
        )
        truncation = Truncation(cluster.log_kept_ms, cluster.log_kept_bytes)
        self._keeper = LogKeeper(self._directories.data_dir, self.number, truncation, self.log)
        self._want = self._open()
        giver = Giver(self._directories.data_dir, spare_bytes, self._offer, self._checkpoint)
        self._reseeder = Reseeder()
        self._taker = Taker(self._would_lack, load, self._hold, self._events.put)
        others = {COPY: giver.give, MOVE: self._taker.take, RESEED: self._reseeder.take}
        self._port = PeerPort(cluster, trust, self.report, others)
        self.mover = Mover(cluster, trust, self.number, self._removed.remove, self.format.want)
        self._peers = [Peer(address, cluster, trust, self._events.put) for address in cluster.other_nodes]
        self._clients = StandbyPorts(settings, self.group, self._status_for_all)
        self._control = ControlThread(self._directories.data_dir, self._checkpoint, spare_bytes)

    def _open(self) -> Want | None:
        """Open the copy that is there, or say why another one is wanted. Raises StartError."""
        directories = self._directories
        if not directories.has_copy:
            with directories.locked():
                directories.clear_up()
        if not directories.has_copy:
            self.format.forget()
            return Want(Lack.EMPTY)
        if not directories.is_damaged:
            try:
                self._copy = self._opened(directories.data_dir)
            except errors.StoreDamaged as damaged:
                if not self._cluster.other_nodes:
                    raise
                return Want.damaged(str(damaged))
            directories.clear_up()
            return None
        if not self._cluster.other_nodes:
            raise errors.StoreError(
                f"the copy in {directories.data_dir} is damaged, and the group has no other node to take one from. "
                "Move the directory away, and start with an empty one: the node reads the whole log"
            )
        return Want.damaged("the store has met damage")

    def _opened(self, directory: Path) -> StoreCopy:
        copy = StoreCopy(
            str(directory),
            self._settings.engine_settings(),
            self.log,
            node=self.number,
            cluster=group_id(self._cluster.name),
            name=str(self._cluster.node),
        )
        copy.reads_up_to(self.format.format)
        return copy

    @property
    def copy(self) -> StoreCopy:
        """What this node has of the log."""
        assert self._copy is not None
        return self._copy

    def report(self) -> Report:
        """How this node is."""
        copy = self._copy
        owns = copy is not None and copy.state == OWNS
        seen = self._watch.report(_now_ms())
        return Report(
            self.number,
            str(self._cluster.node),
            copy.position if copy else -1,
            seen.may_bid and not owns,
            _wall_ms(),
            0 if owns else seen.owner_heard_ms,
            self._client_addr,
            str(self._redis_addr),
            synced=copy.synced if copy and copy.state != HALTS else -1,
            gives=not self._offer().refused,
            owns=owns,
            role=self._role[0],
            since_ms=self._role[1],
            lacks=self.lacks(),
            version=self._version,
            formats=(FORMAT, written.READS),
            incarnation=copy.incarnation if copy else 0,
            record_ms=copy.wall_ms if copy else 0,
            removed=self._removed.words,
            written=self.format.format if copy else 0,
            settings=self._shared_settings,
        )

    @property
    def _counted(self) -> list[Peer]:
        """The other nodes, without those that were removed."""
        return [peer for peer in self._peers if self._removed.counts(peer)]

    @property
    def _asked(self) -> list[Asked]:
        silent = [peer for peer in self._peers if not peer.answers]
        gone = {peer for peer in silent if peer.node is None or self._watch.is_gone(peer.node)}
        return [
            Asked(str(peer.address), peer.report, peer.clock_ms, peer.heard_ms, peer in gone)
            for peer in self._counted
        ]

    def status(self) -> GroupStatus:
        """How the group is, as far as this node knows. Any thread may ask."""
        nodes = nodes_of(str(self._cluster.peer_addr), self.report(), self._asked)
        copy = self._copy
        if copy is None:
            return GroupStatus(str(self._cluster.name), nodes)
        behind_ms = max(_wall_ms() - copy.wall_ms, 0) if copy.wall_ms else 0
        seen = copy.term[0], copy.owner[1], behind_ms, copy.waiting, self._takeovers, copy.skipped
        return GroupStatus(str(self._cluster.name), nodes, *seen, self.format.format)

    def _status_for_all(self) -> bytes:
        return ClusterCalls(self.status).status_of_standby(needs_key=self._settings.auth.enabled)

    def metrics(self) -> bytes:
        """The page of metrics until the owner has its own. Any thread may ask."""
        from fila_server.telemetry.prometheus import group_page  # what nobody asks for is not loaded

        age_s = backup_age_s(self._directories.data_dir, _wall_ms())
        return group_page(self.status(), self._room.disk, age_s)

    def _offer(self) -> Offer:
        """What another node may take of this one, or why it may not."""
        copy = self._copy
        if copy is None or copy.applied < 0:
            return Offer(refused="it has no copy yet")
        if copy.state not in (FOLLOWS, BIDS, OWNS):
            return Offer(refused=f"its own copy is of no use: {copy.why or 'its term is over'}")
        return Offer(
            cluster=group_id(self._cluster.name).hex(),
            format=FORMAT,
            position=copy.applied,
            log_format=self.format.format,
        )

    def _checkpoint(self, path: str) -> None:
        copy = self._copy
        if copy is None:
            raise errors.StoreError(f"this node has no copy just now: {self._seeding.why}")
        copy.checkpoint(path)

    def lacks(self) -> str:
        """Why this node could not take over at once; empty: it could, or serves."""
        copy = self._copy
        if copy is not None and copy.state == OWNS:
            return "" if self._serves else "its store is being opened"
        return self._seeding.why or self._watch.lacks(_now_ms())

    def _becomes(self, role: str) -> None:
        if role != self._role[0]:
            self._role = (role, _wall_ms())

    def stand_by(self) -> None:
        """Follow until this node owns. A signal raises SystemExit."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave)
        topic = partial(self._topic.keep, self._leaves)
        threading.Thread(target=topic, name="fila-topic", daemon=True).start()
        if self._want is not None:
            self._seed(self._want)
        else:
            self._goes_on(self.copy)
        grpc, redis = self._clients.ports
        log.info(
            "cluster.standby", node=self._cluster.node, position=self.copy.position, grpc=grpc, redis=redis
        )
        synced_s = time.monotonic()
        while self.copy.state != OWNS:
            self._follow()
            self._hear()
            self._name_owner()
            if self.copy.state == FOLLOWS:
                self._decide()
            elif self.copy.state == RESIGNS:
                begin_anew(self.copy.why)
            if time.monotonic() - synced_s >= SYNC_S:
                synced_s = time.monotonic()
                self.copy.sync()
                self._keeper.note(_wall_ms(), self.copy)
        self._becomes(OWNER)
        self._clients.name_owner("")
        emit("cluster.owner", node=self._cluster.node, term=self.copy.term[0])

    def end(self) -> None:
        """A signal ended `stand_by`. Otherwise a thread might be at work in the store or the log while the process
        takes itself apart."""
        self.leave()
        self._end_upkeep()
        if self._copy is not None:
            self._copy.close()
            self.log.close()

    def _seed(self, want: Want) -> None:
        """Get a copy, or begin at the beginning of the log."""

        def tick() -> None:
            self._hear()
            self._name_owner()

        self._want = want
        if self._copy is not None:
            self._end_upkeep()
            self._copy.close()
            self._copy = None
        self._copy = self._seeding.run(want, lambda: self._counted, tick)
        self._goes_on(self._copy)
        self._want, self._answers, self._answered_ms = None, 0, _now_ms()
        self._watch.take(_now_ms(), Hindered(""))
        self._becomes(STANDBY)

    def _goes_on(self, copy: StoreCopy) -> None:
        self._keeper.begin(copy)
        self._upkeep = Upkeep(copy)

    def _end_upkeep(self) -> None:
        if self._upkeep is not None:
            self._upkeep.end()
            self._upkeep = None

    def _follow(self) -> None:
        if self._reseeder.is_asked:
            if why := self._reseeder.carry_out(self.copy, self.log, self.format.format):
                begin_anew(f"it was to be reseeded: {why}")
            self._keeper.begin(self.copy)
            self.mover.why = "an operator reseeded the group with this node's copy"
            return
        if self.copy.state == HALTS:
            reason, offset = self.copy.halted
            if reason in _LACKS and self._cluster.other_nodes:
                self._seed(Want(_LACKS[reason], self.copy.why, offset - (reason == BEGINS_LATER)))
                return
            if self._is_reseeded():
                self._seed(Want(Lack.ANEW, self.copy.why))
                return
            if not self.format.goes_on(self.copy):
                self._halts(self.copy.why)
                time.sleep(HALTED_LOOK_S)
            return
        if why := self._room.why_none(self.copy, is_served=self._owner() is not None):
            self._halts(why)
            time.sleep(FOLLOW_MS / 1000)
            return
        if self._watch.hindered:
            self._watch.take(_now_ms(), Hindered(""))
            self._becomes(STANDBY)
            log.info("cluster.goes_on", node=self._cluster.node, position=self.copy.position)
        term, was_synced = self.copy.term, not self.lacks()
        self.copy.follow(FOLLOW_MS)
        if was_synced and self.copy.term != term:
            self._takeovers += 1
        answers, is_end = self.copy.answers
        now_ms = _now_ms()
        if answers > self._answers:
            self._answers, self._answered_ms = answers, now_ms
            owner, short_terms = self.copy.owner
            ahead_ms = self.copy.wall_ms - _wall_ms()
            self._watch.take(now_ms, Read(self.copy.position, is_end, owner, short_terms, ahead_ms))
        elif now_ms - self._answered_ms >= LOOK_S * 1000:
            self._answered_ms = now_ms
            self.copy.look_again()

    def _is_reseeded(self) -> bool:
        reports = [peer.report for peer in self._peers if peer.report and peer.answers]
        return any(report.owns and report.incarnation > self.copy.incarnation for report in reports)

    def _halts(self, why: str) -> None:
        if self._watch.hindered != why:
            self._watch.take(_now_ms(), Hindered(why))
            self._becomes(HALTED)
            log.error("cluster.halted", node=self._cluster.node, detail=why)

    def _hear(self) -> None:
        while not self._events.empty():
            self._watch.take(_now_ms(), self._events.get())
        self._removed.look(self._peers, self._owner(), owns=self._serves)

    def _name_owner(self) -> None:
        owner = self._owner()
        self._clients.name_owner(owner.client_addr if owner else "", owner.redis_addr if owner else "")

    def _owner(self) -> Report | None:
        """The other node that serves; None while it is not known, or is gone."""
        copy = self._copy
        if copy is None:
            reports = [peer.report for peer in self._peers if peer.report and peer.answers]
            return next((report for report in reports if report.owns), None)
        owner, _ = copy.owner
        if owner is None or owner == self.number or self._watch.is_gone(owner):
            return None
        return next((peer.report for peer in self._peers if peer.report and peer.node == owner), None)

    def group(self) -> Group:
        """What Redis clients are told of the group. Any thread may ask."""
        name, owner = str(self._cluster.name), self._owner()
        return redis_group(name, self.report(), self._asked, owner, serves=self._serves)

    def _decide(self) -> None:
        decision = self._watch.decide(_now_ms())
        if decision.why != self._why:
            self._why = decision.why
            if decision.why:
                tell = log.error if decision.is_alarm else log.info
                tell("cluster.bids" if decision.bids else "cluster.waits", detail=decision.why)
        raised = self._taker.format if decision.is_moved else 0
        if not decision.is_moved and not any(peer.answers for peer in self._peers):
            raised = self.format.wanted
        if decision.bids and self.format.bid(self.copy, _wall_ms(), raised, is_moved=decision.is_moved):
            self.mover.why = decision.why
            self._watch.take(_now_ms(), Bidden())

    # --- a planned move ---

    def _hold(self) -> None:
        self._clients.hold(self._client_addr, str(self._redis_addr))

    def _would_lack(self, owner: int) -> str:
        """Why this node would not take over from that one at once."""
        if self._copy is not None and self._copy.owner[0] != owner:
            return "by the log it has read, another node serves"
        return self.lacks()

    def open_engine(self) -> Engine:
        """The engine of a node that owns. Once its term is over the process begins anew, unless it is about to end."""
        self._end_upkeep()
        self._control.end()
        try:
            engine = open_owner(self._settings, self.copy)
        except errors.StoreDamaged as damaged:
            if not self._cluster.other_nodes:
                raise
            self._directories.say_damaged()
            begin_anew(f"the copy is damaged: {damaged}")
        self._clients.name_owner("", str(self._redis_addr))
        self._clients.hand_on()
        self._serves = True

        def wait() -> None:
            while not engine.term_over.wait(PROBE_MS / 1000):
                self._hear()
            if not self._leaves.is_set() and not self.mover.handover:  # main.py does, in a moment
                begin_anew(self.copy.why)

        threading.Thread(target=wait, name="fila-term", daemon=True).start()
        keep = partial(self._keeper.keep, self.copy, self._peers, engine.term_over)
        threading.Thread(target=keep, name="fila-log", daemon=True).start()
        return engine

    @property
    def is_leaving(self) -> bool:
        """The process is about to end."""
        return self._leaves.is_set()

    def leave(self) -> None:
        """The process is about to end: others need not wait for it."""
        self._leaves.set()
        self._port.close()
        for peer in self._peers:
            peer.close()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _leave(*_: object) -> NoReturn:
    raise SystemExit(0)
