"""Seeded runs of full disks, stalls, clocks that are set, clean stops under load and damage; each judge finds a lie."""

import os
from collections import Counter
from functools import cache
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine, Out
from tests.native.coreprobe import disk_becomes, store_stalls
from tests.simulation.hardships import simulate_hardships
from tests.simulation.oracles import Broken
from tests.simulation.seeds import too_little

SEEDS_EVERY_TIME = 5
SEEDS_TO_JUDGE_JUDGES = 20
COUNT = int(os.environ.get("FILA_SIM_SEEDS", SEEDS_EVERY_TIME))
SEEDS_TO_FIND_A_LIE = 20
SYNCS_THAT_ARE_TRUE = 30
"""Enough for the queues to be there."""


@cache
def judged(seed: int, /) -> Counter[str]:
    """One run, made once."""
    return simulate_hardships(seed)


@pytest.mark.parametrize("seed", range(1, COUNT + 1))
def test_what_was_promised_holds_whatever_happens_to_the_broker(seed: int) -> None:
    assert judged(seed).total() > 0


@pytest.mark.soak
def test_every_judge_has_something_to_judge() -> None:
    total: Counter[str] = Counter()
    for seed in range(1, SEEDS_TO_JUDGE_JUDGES + 1):
        total += judged(seed)

    assert too_little("hardships", total, SEEDS_TO_JUDGE_JUDGES) == {}


class Liar:
    """A core that does something else than it is told; `asking` changes what it is told."""

    def __init__(self, core: Any) -> None:
        self.core = core

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        self.core.submit(kind, token, self.asking(kind, frame))

    def asking(self, kind: int, frame: bytes) -> bytes:
        return frame


class Options(Liar):
    """Messages and queues are not what they were asked to be."""

    def asking(self, kind: int, frame: bytes) -> bytes:
        if kind == commands.ENQUEUE_BATCH:
            batch = service.EnqueueBatchRequest.FromString(frame)
            for message in batch.messages:
                self.enqueuing(message.options)
            return batch.SerializeToString()
        if kind == commands.CREATE_QUEUE:
            created = admin.CreateQueueRequest.FromString(frame)
            self.creating(created.config.retention)
            return created.SerializeToString()
        return frame

    def enqueuing(self, options: service.EnqueueOptions) -> None:
        pass

    def creating(self, retention: admin.Retention) -> None:
        pass


class Hasty(Options):
    def enqueuing(self, options: service.EnqueueOptions) -> None:
        options.delay_ms //= 4


class Lasting(Options):
    def enqueuing(self, options: service.EnqueueOptions) -> None:
        if options.HasField("ttl_ms"):
            options.ttl_ms *= 10


class Doubling(Options):
    def enqueuing(self, options: service.EnqueueOptions) -> None:
        options.ClearField("dedup_key")


class Hoarding(Options):
    def creating(self, retention: admin.Retention) -> None:
        retention.hard_bytes *= 4


class Wasteful(Options):
    def creating(self, retention: admin.Retention) -> None:
        retention.hard_period_ms //= 1_000


class Unrouted(Liar):
    def asking(self, kind: int, frame: bytes) -> bytes:
        if kind != commands.REDRIVE_MOVE:
            return frame
        page = seam_frames.RedrivePage.FromString(frame)
        for routing in page.routings:
            routing.ClearField("fairness_key")
        changed: bytes = page.SerializeToString()
        return changed


class Forgiving(Liar):
    """Says that it acked, and did not."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.counts: dict[int, int] = {}

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        if kind == commands.ACK_BATCH:
            batch = service.AckBatchRequest.FromString(frame)
            self.counts[token] = len(batch.items)
            for item in batch.items:
                item.lease_id += 1 << 40
            frame = batch.SerializeToString()
        self.core.submit(kind, token, frame)

    def drain(self) -> list[Out]:
        return [self._told(*out) for out in self.core.drain()]

    def _told(self, token: int, kind: int, status: int, payload: bytes) -> Out:
        if kind == commands.REPLY and status == 0 and token in self.counts:
            answer = service.SettleBatchResponse()
            for _ in range(self.counts[token]):
                answer.results.add()
            payload = answer.SerializeToString()
        return token, kind, status, payload


@pytest.mark.parametrize(
    ("liar", "found"),
    [
        (Hasty, "not before its delay is over"),
        (Lasting, "not after its time to live"),
        (Doubling, "a dedup key names its first message"),
        (Hoarding, "hard retention keeps within its size"),
        (Wasteful, "no answered message is lost"),
        (Unrouted, "a redriven message is routed as told"),
        (Forgiving, "what was acked never comes back"),
    ],
)
def test_a_core_that_lies_is_found_out(liar: type[Liar], found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DrivenEngine._open
    # What happens to a core from outside happens to the honest one behind the liar.
    world = "tests.simulation.troubled_broker"
    monkeypatch.setattr(f"{world}.disk_becomes", lambda found, level: disk_becomes(found.core, level))
    monkeypatch.setattr(f"{world}.store_stalls", lambda found, stalls: store_stalls(found.core, stalls))
    monkeypatch.setattr(DrivenEngine, "_open", lambda engine: liar(honest(engine)))

    with pytest.raises(Broken, match=found):
        _run_until_found()


def test_a_disk_that_says_it_synced_and_did_not_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DrivenEngine._note_synced

    def no_more_after_a_while(engine: DrivenEngine) -> None:
        vars(engine)["noted"] = vars(engine).get("noted", 0) + 1
        if vars(engine)["noted"] < SYNCS_THAT_ARE_TRUE:
            honest(engine)

    monkeypatch.setattr(DrivenEngine, "_note_synced", no_more_after_a_while)

    with pytest.raises(Broken, match=r"is lost|comes back|given twice|names its first"):
        _run_until_found()


def _run_until_found() -> None:
    for seed in range(1, SEEDS_TO_FIND_A_LIE + 1):
        simulate_hardships(seed)


def test_a_run_is_the_same_each_time() -> None:
    assert simulate_hardships(3) == judged(3)
