"""Clients of one queue who say what they have begun: an honest one, and three kinds of liars."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from fila.v1 import messages_pb2 as messages
from tests.core.driven_engine import MS, DrivenEngine
from tests.core.driven_session import DrivenSession
from tests.simulation.session_model import SessionModel

HONEST = "honest"
NEVER_BEGUN = "never says begun"
ALL_BEGUN = "says begun for all"
ALIVE_ONLY = "says alive and nothing else"
KINDS = (HONEST, HONEST, HONEST, NEVER_BEGUN, ALL_BEGUN, ALIVE_ONLY)


@dataclass(eq=False)
class Client:
    """What one client has in hand, and until when it may hand messages out."""

    name: str
    kind: str
    model: SessionModel  # of the channel it consumes
    visibility_ms: int = 0  # as its session was opened
    session: DrivenSession | None = None  # None: its connection is broken, or it is dead
    number: int = 0
    in_hand: dict[int, messages.Message] = field(default_factory=dict)  # by lease, not begun
    begun: dict[int, messages.Message] = field(default_factory=dict)
    asleep_until_ns: int = 0
    may_hand_out_until_ns: int = 0
    seen: int = 0  # of session.messages
    dead: bool = False

    @property
    def holds(self) -> list[int]:
        return [*self.in_hand, *self.begun]

    def connect(self, engine: DrivenEngine, resume: bool, window: int) -> set[int]:
        """A new stream, with or without what is in hand; returns the leases that are lost."""
        open_: dict[str, object] = {"name": self.name, "max_in_flight": window}
        place = {"queue": self.model.queue, "channel": self.model.channel}
        held = set(self.holds)
        if resume and self.number:
            open_["resume"] = {"consumer_id": self.number, "lease_ids": sorted(held)}
        self.session, self.seen = DrivenSession(engine, **place, **open_), 0  # type: ignore[arg-type]
        self.number = self.session.opened.consumer_id
        self.may_hand_out_until_ns = engine.mono_ns + self.visibility_ms * MS
        lost = set(self.session.opened.lost_lease_ids) if resume else held
        self.forget(lost)
        return lost

    def cut(self) -> None:
        if self.session is not None:
            self.session.breaks()
            self.session = None

    def forget(self, lease_ids: set[int]) -> None:
        for lease_id in lease_ids:
            self.in_hand.pop(lease_id, None)
            self.begun.pop(lease_id, None)

    def hears(self) -> list[messages.Message]:
        """Reads its stream: messages that are new; what was revoked it forgets; an end is a broken connection."""
        if self.session is None:
            return []
        self.session.read()
        new = self.session.messages[self.seen :]
        self.seen = len(self.session.messages)
        for message in new:
            self.in_hand[message.metadata.lease_id] = message
        for _, lost in self.session.revoked:
            self.forget(set(lost))
        self.session.revoked.clear()
        if self.session.ended is not None:
            self.session = None
        return new

    def says_alive(self, engine: DrivenEngine) -> None:
        if self.session is None:
            return
        sent_ns = engine.mono_ns
        self.session.say(alive={"sequence": sent_ns // MS})
        if any(frame.alive.sequence == sent_ns // MS for frame in self.session.answers):
            self.may_hand_out_until_ns = sent_ns + self.visibility_ms * MS
        self.session.answers.clear()

    def may_hand_out(self, engine: DrivenEngine) -> bool:
        return self.session is not None and engine.mono_ns < self.may_hand_out_until_ns

    def some(self, rnd: random.Random, of: dict[int, messages.Message], most: int) -> list[int]:
        return rnd.sample(sorted(of), min(len(of), rnd.randint(1, most))) if of else []
