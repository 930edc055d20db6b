"""What a client may rely on whatever happens to the broker around it, message by message, with judges that count.

Nothing here knows how the core works, or predicts it: what a crash left unanswered is open until it is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from fila.v1 import messages_pb2 as messages
from tests.core.driven_engine import MS
from tests.simulation.oracles import Broken

DLQ = ".dlq"


@dataclass(eq=False)
class Told:
    """One message, as far as its clients were told of it."""

    token: int
    queue: str
    payload: bytes = field(repr=False)
    key: str
    asked_ns: int
    since_ms: int
    """The earliest moment, by the wall clock, at which it can have been stored."""
    dedup_key: str = ""
    stored: bool = False
    refused: bool = False
    acked: bool = False
    open_acks: int = 0
    """Asked and not answered: it may be gone."""
    may_be_gone: bool = False
    """A time to live, or hard retention, may have taken it."""
    may_be_another: bool = False
    """What was answered may be an earlier message of its dedup key, of which nobody was told."""
    id: str = ""
    offset: int = 0
    """The newest: a redrive gives another."""
    not_before_ns: int = 0
    not_after_ns: int = 0
    lease_id: int = 0
    held_until_ns: int = 0
    held_in: str = ""
    routed_as: str = ""
    """A redrive gave it this fairness key."""

    @property
    def owed(self) -> bool:
        gone = self.refused or self.acked or self.open_acks or self.may_be_gone or self.may_be_another
        return self.stored and not gone


@dataclass
class Witness:
    """All messages there ever were, and the judges."""

    told: list[Told] = field(default_factory=list)
    judged: Counter[str] = field(default_factory=Counter)
    lease_ids: set[int] = field(default_factory=set)
    by_id: dict[str, Told] = field(default_factory=dict)
    by_offset: dict[tuple[str, int], Told] = field(default_factory=dict)
    is_damaged: bool = False
    """A file was damaged, and the core said that something is lost: settled messages may be back, others gone."""

    def judge(self, what: str, good: bool, why: object) -> None:
        self.judged[what] += 1
        if not good:
            raise Broken(f"{what}: {why}")

    # --- what producers are told ------------------------------------------------------------------

    def answered(self, told: Told, code: int, message_id: str, offset: int) -> None:
        if code:
            told.refused = True
            return
        owner = self.by_id.get(message_id)
        first = self._first(told) if told.dedup_key and not told.stored else None
        if first is not None and first.stored:
            self.judge("a dedup key names its first message", owner is first, (told, first, message_id))
            told.refused = True  # in the sense that it is never seen
            return
        if first is not None:  # the first one's answer was never seen: this may be it, or not
            told.may_be_another = first.may_be_another = True
            return
        # Under `os` it may have been delivered before this is heard.
        self.judge("no id is given twice", owner in (None, told), (told, owner, message_id))
        told.stored = True
        self._named(told, message_id, told.queue, offset)

    def _first(self, told: Told) -> Told | None:
        """An earlier message of its dedup key: the one that is stored, or else one that may be."""
        others = [
            other
            for other in self.told
            if other is not told
            and (other.queue, other.dedup_key) == (told.queue, told.dedup_key)
            and not other.refused
        ]
        return next((other for other in others if other.stored), others[0] if others else None)

    def _named(self, told: Told, message_id: str, queue: str, offset: int) -> None:
        self.judge("an id stays", told.id in ("", message_id), (told, message_id))
        told.id, told.offset = message_id, offset
        self.by_id[message_id] = told
        owner = self.by_offset.setdefault((queue, offset), told)
        self.judge("no offset is given twice", owner is told, (queue, offset, owner, told))

    # --- what consumers are told ------------------------------------------------------------------

    def delivered(
        self, queue: str, message: messages.Message, asked_ns: int, now_ns: int, visibility_ms: int
    ) -> Told:
        token = int(message.payload.split(b"|")[0])
        told = self.told[token] if token < len(self.told) else None
        meta = message.metadata
        what = (queue, message.payload[:20], meta.lease_id, told)
        genuine = told is not None and told.payload == message.payload
        genuine = genuine and told is not None and queue.removesuffix(DLQ) == told.queue
        self.judge("what is delivered was sent, whole", genuine, what)
        assert told is not None
        self.judge("no lease id is given twice", meta.lease_id not in self.lease_ids, what)
        self.lease_ids.add(meta.lease_id)
        self.judge("what was refused is never seen", not told.refused or told.may_be_another, what)
        if not self.is_damaged:
            self.judge("what was acked never comes back", not told.acked, what)
        # A damaged note of a deletion brings a dead letter's source back beside the letter, in a queue of its own, or
        # beside the redriven letter, in the same one.
        is_other_copy = self.is_damaged and (told.held_in != queue or bool(told.routed_as))
        self.judge("one lease at a time", is_other_copy or now_ns >= told.held_until_ns, what)
        self.judge("not before its delay is over", now_ns >= told.not_before_ns, what)
        if told.not_after_ns:
            self.judge("not after its time to live", now_ns <= told.not_after_ns, what)
        # A damaged note of a deletion brings the copy back that lay there before it died, too, with its first key.
        if told.routed_as and not queue.endswith(DLQ) and not self.is_damaged:
            self.judge("a redriven message is routed as told", meta.fairness_key == told.routed_as, what)
        self._named(told, message.id, queue, meta.offset)
        told.stored, told.acked, told.open_acks, told.may_be_another = True, False, 0, False
        told.not_before_ns = told.not_after_ns = 0
        told.lease_id, told.held_until_ns = meta.lease_id, asked_ns + visibility_ms * MS
        told.held_in = queue
        return told

    # --- time, and ends ---------------------------------------------------------------------------

    def restarted(self) -> None:
        """Times go on by the wall clock, which nobody can vouch for; what was held may be given out again."""
        for told in self.told:
            told.not_before_ns = told.not_after_ns = told.held_until_ns = 0

    def ages(self, queue: str, wall_ms: int, period_ms: int) -> None:
        """Hard retention may have taken what is older than its period."""
        for told in self.told:
            if told.queue == queue and wall_ms - told.since_ms > period_ms:
                told.may_be_gone = True

    def owed(self) -> list[Told]:
        return [told for told in self.told if told.owed]

    def none_is_lost(self, owed: Iterable[Told], seen: Iterable[Told]) -> None:
        """What was owed when the drain began was seen in it."""
        there = set(map(id, seen))
        for told in owed:
            if not told.may_be_gone and not self.is_damaged:
                self.judge("no answered message is lost", id(told) in there, told)

    def oldest_went_first(self, queue: str, before: Iterable[Told], seen: Iterable[Told]) -> None:
        """Of a queue that hard retention bounds by size: nothing is left of before what was dropped."""
        there = {id(told): told for told in seen if told.queue == queue}
        least = min((told.offset for told in there.values()), default=0)
        for told in before:
            if there and told.queue == queue and id(told) not in there:
                self.judge("hard retention takes the oldest first", told.offset < least, (told, least))
