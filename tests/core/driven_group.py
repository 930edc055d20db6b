"""Nodes of a group under a simulated clock: each a data directory, an end of one log in memory, and the core that owns.

A node is a process. `start` opens its copy and follows; `own` is what it does when its takeover is met: it recovers and
serves. `kill` ends it without a last word, `cut_power` forgets what was not synced, too; then it may start again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.log.model import SimulatedEnd, SimulatedLog
from fila_server.core.log.record import decode
from fila_server.core.protocol import commands
from fila_server.core.runtime.engine import CoreEngine
from fila_server.core.runtime.store_copy import BIDS, FOLLOWS, OWNS, StoreCopy
from tests.core.driven_engine import (
    BALLAST_BYTES,
    MS,
    WAL_BYTES_MAX,
    WALL_START_NS,
    DrivenEngine,
    empty_directory,
    fresh_directory,
)

CLUSTER = b"sixteen bytes of"
TURNS_MAX = 400


class Clock:
    """One for all nodes of a run: no clock is off."""

    def __init__(self) -> None:
        self.mono_ns = 1_000 * MS
        self.wall_ns = WALL_START_NS

    def advance(self, ms: int) -> None:
        self.mono_ns += ms * MS
        self.wall_ns += ms * MS

    @property
    def now_ms(self) -> int:
        return self.mono_ns // MS


class Node:
    """One node, as a process that may end and start again."""

    def __init__(
        self, number: int, log: SimulatedLog, clock: Clock, settings: dict[str, int | str] | None = None
    ) -> None:
        ours: dict[str, int | str] = {
            "storage.min_free_bytes": 0,
            "storage.ballast_bytes": BALLAST_BYTES,
            "storage.wal_bytes_max": WAL_BYTES_MAX,
        }
        self.number, self.log, self.clock = number, log, clock
        self.settings = {**ours, **(settings or {})}
        self.directory = empty_directory()
        self.synced: dict[str, int] = {}
        self.engine: Serving | None = None
        self.term = (-1, 0)
        """Its own, since it owns: what the copy has read since may be of another."""
        self.start()

    def start(self) -> None:
        self.end = SimulatedEnd(self.log)
        self.end.read(0)  # brokers tell nobody of an end before one that they told of already
        self.copy = StoreCopy(
            str(self.directory),
            self.settings,
            self.end,
            node=self.number,
            cluster=CLUSTER,
            name=f"n{self.number}",
        )
        self.engine = None
        self.sync()

    def follow(self) -> int:
        """A standby's round; it owns when its takeover is met."""
        taken = self.copy.follow()
        if self.copy.state == OWNS and self.engine is None:
            self.term = self.copy.term
            self.engine = Serving(self)
        return taken

    @property
    def follows(self) -> bool:
        return self.copy.state in (FOLLOWS, BIDS)

    def sync(self) -> None:
        self.copy.sync()
        self.synced = {}
        for path in self.directory.rglob("*.log"):
            with suppress(FileNotFoundError):
                self.synced[path.name] = path.stat().st_size

    def kill(self) -> SimulatedEnd:
        """What is in the queue of its end may land all the same."""
        if self.engine is not None:
            self.engine.core.close()
        self.copy.close()
        return self.end

    def cut_power(self) -> SimulatedEnd:
        end = self.kill()
        for path in self.directory.rglob("*.log"):
            with path.open("r+b") as file:
                file.truncate(min(path.stat().st_size, self.synced.get(path.name, 0)))
        return end

    def take_copy(self, source: Node) -> None:
        """Begin anew with what another node has now."""
        self.kill()
        shutil.rmtree(self.directory)
        self.directory = fresh_directory()
        source.copy.checkpoint(str(self.directory / "rocksdb"))
        (self.directory / "format").write_text("fila 3\n")
        self.start()

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- where nothing fails ------------------------------------------------------------------

    def take_over(self, nonce: int = 1) -> Serving:
        """Read to the end, bid, and serve."""
        while self.follow():
            pass
        assert self.copy.bid(nonce, self.clock.wall_ns // MS)
        self.end.turn(self.clock.now_ms, 999)
        while self.engine is None:
            assert self.follow(), "its takeover is not in the log"
        return self.engine


class Serving(DrivenEngine):
    """The core of an owner. Its log moves when it commits, unless the test moves it."""

    def __init__(self, node: Node) -> None:
        self.node, self.clock = node, node.clock
        self.directory, self.settings = node.directory, node.settings
        self.lands = True
        self.tokens = 0
        self.others = []
        self.core = CoreEngine(
            str(node.directory),
            node.settings,
            mono_ns=self.mono_ns,
            wall_ns=self.wall_ns,
            seed=7,
            copy=node.copy,
        )

    @property
    def mono_ns(self) -> int:  # type: ignore[override]
        return self.clock.mono_ns

    @property
    def wall_ns(self) -> int:  # type: ignore[override]
        return self.clock.wall_ns

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)

    def commit(self) -> bool:
        moved = False
        while self.lands and self.node.end.turn(self.clock.now_ms, 999):
            moved = True
        return self.core.commit() or moved


class Group:
    """Nodes on one log."""

    def __init__(self) -> None:
        self.clock, self.log, self.nodes = Clock(), SimulatedLog(), list[Node]()

    def node(self, **settings: int | str) -> Node:
        named = {name.replace("_", ".", 1): value for name, value in settings.items()}
        self.nodes.append(Node(len(self.nodes) + 1, self.log, self.clock, named))
        return self.nodes[-1]

    def owner(self, **settings: int | str) -> Serving:
        """A new node that serves; the queue q, whose leases last a second."""
        serving = self.node(**settings).take_over()
        serving.settle_down()
        serving.create_queue("q", visibility_timeout_ms=1_000, max_attempts=3)
        return serving

    def kinds(self, first: int = 0) -> list[int]:
        return [decode(self.log.content(offset))[1]["kind"] for offset in range(first, len(self.log))]


def passes(owner: Serving, times: int = 3) -> list[tuple[int, int, int, bytes]]:
    """Passes and looks at the log, which stays as it is; what left."""
    owner.lands = False
    outs = []
    for _ in range(times):
        owner.run_pass()
        owner.core.commit()
        outs += owner.core.drain()
    return outs


def lands(owner: Serving) -> list[tuple[int, int, int, bytes]]:
    owner.lands = True
    owner.node.log.stall(False)
    return owner.settle_down()


def stand(owner: Serving, ms: int, step_ms: int = 100) -> list[tuple[int, int, int, bytes]]:
    """The log takes nothing for so long, and nobody can read it."""
    owner.node.log.stall(True)
    outs = []
    for _ in range(ms // step_ms):
        owner.advance(step_ms)
        outs += passes(owner, 1)
    return outs


def asks(owner: Serving) -> dict[str, Callable[[], int]]:
    lease = service.LeaseRequest(queue="q", max_messages=10)
    return {
        "enqueue": lambda: owner.submit(
            commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"asked")
        ),
        "lease": lambda: owner.submit(commands.LEASE, lease),
        "stats": lambda: owner.submit(commands.GET_STATS, admin.GetStatsRequest(queue="q")),
        "nowhere": lambda: owner.submit(
            commands.LEASE, service.LeaseRequest(queue="nowhere", max_messages=1)
        ),
    }
