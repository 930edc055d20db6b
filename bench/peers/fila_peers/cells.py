"""What is measured: a cell is one load on one peer with one durability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .brokers import PEERS, SYNCED, Peer


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long and how large; a quick run has smaller ones."""

    name: str
    repeats: int
    seconds: float
    noisy_seconds: float
    backlog: int
    tenants: tuple[int, ...]


QUICK = Sizes("quick", repeats=1, seconds=3, noisy_seconds=6, backlog=100_000, tenants=(10, 1_000))
FULL = Sizes("full", repeats=3, seconds=6, noisy_seconds=15, backlog=1_000_000, tenants=(10, 1_000, 100_000))
TINY = Sizes("tiny", repeats=1, seconds=0.5, noisy_seconds=1, backlog=2_000, tenants=(10,))
"""To see that a peer works at all; its numbers say nothing."""


@dataclass(frozen=True, slots=True)
class Case:
    """A load, for any broker."""

    workload: str
    name: str
    flags: tuple[str, ...]
    how: str = "life"
    """How it is measured: life (a measured stretch), backlog (fill, then drain), crash (fill, kill -9, drain)."""


@dataclass(frozen=True, slots=True)
class Cell:
    peer: Peer
    durability: str
    case: Case

    @property
    def key(self) -> str:
        return f"{self.peer.name}|{self.durability}|{self.case.workload}|{self.case.name}"


def cases(sizes: Sizes) -> list[Case]:
    """All loads, in the order in which they are shown."""
    seconds = f"-duration={sizes.seconds}s"
    count = f"-count={sizes.backlog}"
    found = [
        Case("produce only", "1 KB, batches of 100", _life(seconds, batch=100, receivers=0)),
        Case(
            "produce only", "1 KB, one a call, 50 callers", _life(seconds, batch=1, senders=50, receivers=0)
        ),
        Case("full life", "1 KB, one a call, 50 callers", _life(seconds, batch=1, senders=50, receivers=50)),
        Case("full life", "1 KB, batches of 10", _life(seconds, batch=10)),
        Case("full life", "1 KB, batches of 100", _life(seconds, batch=100)),
        Case("full life", "64 B, batches of 100", _life(seconds, batch=100, payload=64)),
        Case("full life", "64 KB, batches of 10", _life(seconds, batch=10, payload=65_535)),
        Case("latency", "1 KB, 1,000/s", _life(seconds, batch=1, senders=20, receivers=2, rate=1_000)),
        Case("backlog", f"{sizes.backlog:,} of 1 KB", (count, *_life(batch=100)), how="backlog"),
        Case("recovery", f"{sizes.backlog:,} of 1 KB, kill -9", (count, *_life(batch=100)), how="crash"),
    ]
    return found + _tenant_cases(sizes)


def _tenant_cases(sizes: Sizes) -> list[Case]:
    noisy = ("-workload=noisy", "-warm-up=0s", f"-duration={sizes.noisy_seconds}s", "-receive-rate=2000")
    found = [
        Case(
            "noisy neighbour",
            f"{tenants:,} tenants, {_per_tenant(each)}",
            (*noisy, f"-tenants={tenants}", "-backlog=20000", *(("-queue-per-tenant",) if each else ())),
        )
        for tenants in sizes.tenants
        for each in (False, True)
    ]
    if sizes.tenants[-1] > 10:
        found.append(
            Case(
                "noisy neighbour",
                "10 tenants, one queue, 200,000 waiting",
                (*noisy, "-tenants=10", "-backlog=200000"),
            )
        )
    limit = ("-workload=limit", "-tenants=100", "-tenant-rate=10", f"-duration={sizes.noisy_seconds}s")
    return [*found, Case("rate limit", "100 tenants, 10/s each", limit)]


def _per_tenant(each: bool) -> str:
    return "a queue each" if each else "one queue"


def _life(
    *more: str, batch: int, senders: int = 8, receivers: int = 2, payload: int = 1024, rate: int = 0
) -> tuple[str, ...]:
    flags = (f"-batch={batch}", f"-senders={senders}", f"-receivers={receivers}", f"-payload={payload}")
    return (*flags, f"-rate={rate}", *more)


def planned(sizes: Sizes, peers: Sequence[str], workloads: Sequence[str]) -> Iterator[Cell]:
    """One round of all cells: load by load, the peers in turn, so that a machine that slows down is not charged to one
    of them."""
    for case in cases(sizes):
        if workloads and case.workload not in workloads:
            continue
        for name in peers:
            peer = PEERS[name]
            if not _suits(peer, case):
                continue
            for durability in peer.durabilities:
                # Fairness and rates are no matter of durability.
                if durability == SYNCED or case.workload not in {"noisy neighbour", "rate limit"}:
                    yield Cell(peer, durability, case)


def _suits(peer: Peer, case: Case) -> bool:
    if case.workload == "rate limit":
        return peer.limits_tenants
    if case.workload != "noisy neighbour":
        return True
    if "-queue-per-tenant" in case.flags:
        return peer.tenants == "a queue each"
    return bool(peer.tenants)
