"""Seeded runs of sessions: pauses, broken connections, restarts, liars; each judge is seen to find a fault."""

import os
from collections import Counter
from functools import cache
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import MS, DrivenEngine, Out
from tests.simulation.oracles import Broken
from tests.simulation.seeds import too_little
from tests.simulation.session_world import STEP_MS, SessionWorld, simulate_sessions

SEEDS_EVERY_TIME = 5
SEEDS_TO_JUDGE_JUDGES = 20
SEEDS_TO_FIND_A_FAULT = 40
COUNT = int(os.environ.get("FILA_SIM_SEEDS", SEEDS_EVERY_TIME))


@cache
def judged(seed: int, /) -> Counter[str]:
    """One run, made once."""
    return simulate_sessions(seed)


@pytest.mark.parametrize("seed", range(1, COUNT + 1))
def test_sessions_lose_nothing_and_count_only_what_was_begun(seed: int) -> None:
    assert judged(seed).total() > 0


@pytest.mark.soak
def test_every_judge_has_something_to_judge() -> None:
    total: Counter[str] = Counter()
    for seed in range(1, SEEDS_TO_JUDGE_JUDGES + 1):
        total += judged(seed)

    assert too_little("sessions", total, SEEDS_TO_JUDGE_JUDGES) == {}


class Faulty:
    """A core with a fault planted between it and its driver; `kept` outlives a restart."""

    def __init__(self, core: Any, kept: Counter[str]) -> None:
        self.core = core
        self.kept = kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)


class LosesBegun(Faulty):
    """What was begun is not there any more after a restart, as if no mark had been written."""

    def __init__(self, core: Any, kept: Counter[str]) -> None:
        super().__init__(core, kept)
        self.held_back: list[tuple[int, int, bytes]] = []

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        if kind == commands.SESSION:
            if service.ConsumeSessionRequest.FromString(frame).WhichOneof("request") == "begun":
                self.held_back.append((kind, token, frame))
                return
            for late in self.held_back:
                self.core.submit(*late)
            self.held_back.clear()
        self.core.submit(kind, token, frame)


class ReturnsAtTheBack(Faulty):
    """A release is a nack whose attempt is hidden."""

    def __init__(self, core: Any, kept: Counter[str]) -> None:
        super().__init__(core, kept)
        self.ids: dict[int, str] = {}

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        if kind == commands.SESSION:
            request = service.ConsumeSessionRequest.FromString(frame)
            if request.nack.release:
                request.nack.release, request.nack.delay_ms = False, 0
                self.kept.update(self.ids[lease_id] for lease_id in request.nack.lease_ids)
                frame = request.SerializeToString()
        self.core.submit(kind, token, frame)

    def drain(self) -> list[Out]:
        return [self._told(*out) for out in self.core.drain()]

    def _told(self, token: int, kind: int, status: int, payload: bytes) -> Out:
        if kind == commands.DELIVERY:
            response = service.ConsumeSessionResponse.FromString(payload)
            for message in response.delivery.messages:
                self.ids[message.metadata.lease_id] = message.id
                message.metadata.attempt_count -= min(self.kept[message.id], message.metadata.attempt_count)
            payload = response.SerializeToString()
        return token, kind, status, payload


class RefundsWithoutCap(Faulty):
    """After a mass return the key that returned goes on as if it were owed all of it: others wait."""

    def _quiet(self, *, paused: bool) -> None:
        policy = admin.SetKeyPolicyRequest(queue="q", fairness_key="quiet", paused=paused)
        self.core.submit(commands.SET_KEY_POLICY, 1 << 40, policy.SerializeToString())

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        if kind == commands.SESSION:
            request = service.ConsumeSessionRequest.FromString(frame)
            if len(request.window.give_back) > 5:
                self._quiet(paused=True)
        self.core.submit(kind, token, frame)


class JudgesPauses(Faulty):
    """Silence is counted while the broker stands still."""

    def __init__(self, core: Any, kept: Counter[str]) -> None:
        super().__init__(core, kept)
        self.last_ns = 0

    def run_pass(self, mono_ns: int, wall_ns: int) -> int | None:
        if self.last_ns and mono_ns - self.last_ns > 500 * MS:
            for at_ns in range(self.last_ns, mono_ns, STEP_MS * MS):
                self.core.submit(commands.LISTENED, 0, b"")
                self.core.run_pass(at_ns, wall_ns)
        self.last_ns = mono_ns
        result: int | None = self.core.run_pass(mono_ns, wall_ns)
        return result


class Options(Faulty):
    """Enqueues and settings are not what they were asked to be."""

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        if kind == commands.ENQUEUE:
            message = service.EnqueueRequest.FromString(frame)
            self.enqueuing(message.options)
            frame = message.SerializeToString()
        elif kind == commands.CREATE_QUEUE:
            created = admin.CreateQueueRequest.FromString(frame)
            self.setting(created.config)
            frame = created.SerializeToString()
        elif kind == commands.UPDATE_QUEUE:
            updated = admin.UpdateQueueRequest.FromString(frame)
            self.setting(updated.config)
            frame = updated.SerializeToString()
        self.core.submit(kind, token, frame)

    def enqueuing(self, options: service.EnqueueOptions) -> None:
        pass

    def setting(self, config: admin.QueueConfig) -> None:
        pass


class Hasty(Options):
    def enqueuing(self, options: service.EnqueueOptions) -> None:
        options.delay_ms //= 2


class Lasting(Options):
    def enqueuing(self, options: service.EnqueueOptions) -> None:
        if options.HasField("ttl_ms"):
            options.ttl_ms *= 4


class Patient(Options):
    def setting(self, config: admin.QueueConfig) -> None:
        config.max_attempts *= 2


@pytest.mark.parametrize(
    ("faulty", "found", "first"),
    [
        (LosesBegun, "attempts are begun failures|the books", 1),
        (ReturnsAtTheBack, "a return takes its old place", 1),
        (RefundsWithoutCap, "a quiet key waits a grant", 9),
        (JudgesPauses, "nobody is gone before its time|one holder", 1),
        (Hasty, "nothing is delivered before its time", 1),
        (Lasting, "nothing is delivered past its time to live", 1),
        (Patient, "dead letters are what failed so often", 39),
    ],
)
@pytest.mark.costly("as many runs as it takes until the fault shows")
def test_a_core_with_a_planted_fault_is_found_out(
    faulty: type[Faulty], found: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`first`: the seed that found it, or one before it, when this was written."""
    honest = DrivenEngine._open

    def planted(engine: DrivenEngine) -> Faulty:
        return faulty(honest(engine), vars(engine).setdefault("kept", Counter()))

    monkeypatch.setattr(DrivenEngine, "_open", planted)

    with pytest.raises(Broken, match=found):
        _run_until_found(first)


def _run_until_found(first: int) -> None:
    for seed in range(first, first + SEEDS_TO_FIND_A_FAULT):
        simulate_sessions(seed)


def test_a_run_is_the_same_each_time() -> None:
    first, again = SessionWorld(3), SessionWorld(3)
    try:
        assert first.run() == again.run()
        assert first.trace == again.trace
    finally:
        first.engine.remove()
        again.engine.remove()
