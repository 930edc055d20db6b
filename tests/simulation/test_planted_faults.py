"""The checks of the runs in which settings change and hooks decide are checked: before the core stands a liar."""

from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from fila_server.hooks.packed import Routing
from tests.core.driven_engine import DrivenEngine, Out
from tests.core.test_parsed_frame import pack_routings
from tests.native import coreprobe
from tests.simulation import books
from tests.simulation.oracles import Broken
from tests.simulation.simulate import simulate

SEEDS_MAX = 12


@pytest.fixture(autouse=True)
def _ages_are_of_the_core_behind_a_liar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "wrong_ages", lambda core: coreprobe.wrong_ages(getattr(core, "core", core)))


class Liar:
    """A core that does something else than it is told, or tells something else than it did."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.updates: dict[int, bytes] = {}  # the answers that are expected
        self.nacks: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        if kind == commands.UPDATE_QUEUE:
            request = admin.UpdateQueueRequest.FromString(frame)
            self.updates[token] = admin.UpdateQueueResponse(config=request.config).SerializeToString()
            self.updating(request.config)
            frame = request.SerializeToString()
        elif kind == commands.NACK:
            self.nacks.add(token)
        self.core.submit(kind, token, frame)

    def updating(self, config: admin.QueueConfig) -> None:
        pass

    def drain(self) -> list[Out]:
        outs = []
        for token, kind, status, payload in self.core.drain():
            updated = kind == commands.REPLY and status == 0 and token in self.updates
            out = self.telling(token, kind, status, self.updates[token] if updated else payload)
            outs += [out] if out is not None else []
        return outs

    def telling(self, token: int, kind: int, status: int, payload: bytes) -> Out | None:
        return token, kind, status, payload


class OldTimeout(Liar):
    def updating(self, config: admin.QueueConfig) -> None:
        config.visibility_timeout_ms = 5000


class NoTable(Liar):
    def updating(self, config: admin.QueueConfig) -> None:
        config.weights.clear()


class OldHeaders(Liar):
    def updating(self, config: admin.QueueConfig) -> None:
        config.fairness_key_header = "k"


class Roomy(Liar):
    def updating(self, config: admin.QueueConfig) -> None:
        config.max_depth = 0


class Cramped(Liar):
    def updating(self, config: admin.QueueConfig) -> None:
        config.max_depth = min(config.max_depth, 2)


class Forgetful(Liar):
    """Decides for itself, and the world is asked all the same; its own commands are not among those it counts."""

    submitted = ran = 0

    def run_pass(self, mono_ns: int, wall_ns: int) -> int | None:
        submitted = self.submitted
        following: int | None = self.core.run_pass(mono_ns, wall_ns)
        self.ran = submitted
        return following

    def counters(self) -> dict[str, Any]:
        told: dict[str, Any] = self.core.counters()
        return told | {"commands": told["commands"] - self.ran}

    def telling(self, token: int, kind: int, status: int, payload: bytes) -> Out | None:
        if kind == commands.EVENT:
            hasty = seam_frames.Decision(action=seam_frames.RETRY, delay_ms=0)
            self.core.submit(commands.DECIDE, token, hasty.SerializeToString())
            self.submitted += 1
        return token, kind, status, payload


class Miscounting(Liar):
    def telling(self, token: int, kind: int, status: int, payload: bytes) -> Out | None:
        if kind == commands.EVENT:
            event = seam_frames.FailureEvent.FromString(payload)
            event.attempts += 1
            payload = event.SerializeToString()
        return token, kind, status, payload


class Bareheaded(Liar):
    def telling(self, token: int, kind: int, status: int, payload: bytes) -> Out | None:
        if kind == commands.EVENT:
            event = seam_frames.FailureEvent.FromString(payload)
            del event.headers[:]
            payload = event.SerializeToString()
        return token, kind, status, payload


class Silent(Liar):
    """The nack of a failure that a hook decided about is never answered."""

    def telling(self, token: int, kind: int, status: int, payload: bytes) -> Out | None:
        is_nack = kind == commands.REPLY and token in self.nacks
        return None if is_nack and status == 0 else (token, kind, status, payload)


class Merciful(Liar):
    """No dead letters: a hook's word is only its delay."""

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        if kind == commands.DECIDE:
            frame = seam_frames.Decision(action=seam_frames.RETRY, delay_ms=0).SerializeToString()
        super().submit(kind, token, frame)


class Unhooked(Liar):
    """What on_enqueue said is lost on the way."""

    def parse(self, kind: int, frame: bytes) -> Any:
        return Deaf(self.core.parse(kind, frame))

    def submit_parsed(self, token: int, parsed: Any) -> None:
        self.core.submit_parsed(token, parsed.parsed)


class Deaf:
    def __init__(self, parsed: Any) -> None:
        self.parsed = parsed

    def route(self, *told: Any) -> tuple[int, str | None, int]:
        taken: tuple[int, str | None, int] = self.parsed.route(*told)
        for index in told[0]:
            self.parsed.route([index], 0, 1, pack_routings([Routing()]), 0)
        return taken


class Embellishing(Liar):
    """Answers an update with settings of its own."""

    def telling(self, token: int, kind: int, status: int, payload: bytes) -> Out | None:
        if kind == commands.REPLY and not status and token in self.updates:
            payload = admin.UpdateQueueResponse(config=admin.QueueConfig(max_depth=1)).SerializeToString()
        return token, kind, status, payload


class Keeping(Liar):
    """Says that it took messages back, and keeps them."""

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        if kind == commands.CANCEL_MESSAGES:
            request = service.CancelMessagesRequest.FromString(frame)
            named = len(request.message_ids)
            del request.message_ids[:]
            request.dedup_keys.append("nobody's")
            self.cancels[token] = named
            frame = request.SerializeToString()
        super().submit(kind, token, frame)

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.cancels: dict[int, int] = {}

    def telling(self, token: int, kind: int, status: int, payload: bytes) -> Out | None:
        if kind == commands.REPLY and not status and token in self.cancels:
            outcomes = [service.CancelMessagesResponse.OUTCOME_CANCELLED] * self.cancels.pop(token)
            payload = service.CancelMessagesResponse(outcomes=outcomes).SerializeToString()
        return token, kind, status, payload


@pytest.mark.parametrize(
    ("liar", "found"),
    [
        (OldTimeout, "is leased for"),
        (NoTable, "weighs"),
        (OldHeaders, "is routed as|went before|active keys|weighs"),
        (Roomy, "accepted, and"),
        (Cramped, "refused for want of room"),
        (
            Forgetful,
            "failures were being decided|its failure is being decided|in_flight of|and the cap is",
        ),
        (Miscounting, "is not known"),
        (Bareheaded, "has headers"),
        (Silent, "never answered"),
        (
            Merciful,
            "was to wait|there is no such message|depth of|never delivered|although it was done|attempts",
        ),
        (Unhooked, "is routed as|weighs|ahead of"),
        (Embellishing, "with other settings"),
        (
            Keeping,
            "its ack was carried out|a cancel of|depth of|could go, and somebody|went before|in_flight of",
        ),
    ],
)
def test_a_core_that_lies_is_found_out(liar: type[Liar], found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DrivenEngine._open
    monkeypatch.setattr(DrivenEngine, "_open", lambda engine: liar(honest(engine)))
    with pytest.raises(Broken, match=found):
        _run_until_found()


def _run_until_found() -> None:
    for seed in range(1, SEEDS_MAX + 1):
        simulate(seed, policy=True)
