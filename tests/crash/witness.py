"""What clients were answered, and the judge of what a broker still knows after it died.

A `Copy` is one message in one channel: the unit of what a broker owes. What is known of it:

    stored  its enqueue was answered, or it was delivered or found: it must be somewhere
    settled its ack (purge, deletion) was answered: it must be nowhere
    asked   a call that may settle it was sent and not answered: it may be anywhere, once
    gone    a check did not find it: it must never be seen again
    cancelled  it was taken back, and that was answered: a delivery may be on its way, but a check finds it nowhere

`delivered` judges each delivery as it comes, `judge` all that is left after a restart. Both
write what is wrong into `violations`; a test ends with that list empty.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

NEVER = -1
ANY = 1 << 20
"""Received so often: any number of attempts is right."""


@dataclass(eq=False, slots=True)
class Copy:
    """One message as one channel of its queue sees it."""

    tag: bytes
    channel: str
    stored: bool = False
    settled: bool = False
    asked: bool = False
    gone: bool = False
    cancelled: bool = False
    attempts: int = NEVER
    """Of the last delivery that reached a client."""
    may_repeat: bool = False
    """Given back, or never reported written: the next delivery may carry the same count."""
    received: int = 0
    interruptions: int = 0
    """Of the witness when it was sent: how often deliveries could have been lost on the way by then."""
    redrives: int = 0

    @property
    def owed(self) -> bool:
        return self.stored and not self.settled and not self.asked and not self.gone


@dataclass(frozen=True, slots=True)
class Found:
    """One pending message as a check saw it."""

    tag: bytes
    channel: str
    id: str
    offset: int
    attempts: int
    is_dead: bool


@dataclass(eq=False)
class QueueBook:
    """What one queue owes; a queue made again under its name has a new book."""

    name: str
    channels: tuple[str, ...] = ("default",)
    is_log: bool = False
    """It keeps what is settled, and a seek may bring it back."""
    copies: dict[tuple[bytes, str], Copy] = field(default_factory=dict)
    ids: dict[bytes, str] = field(default_factory=dict)
    offsets: dict[int, bytes] = field(default_factory=dict)
    order: dict[tuple[str, str], int] = field(default_factory=dict)
    redrives: int = 0
    """Redrives done so far: each may set attempts back to 0 and append an entry under a new offset."""
    is_redriving: bool = False
    tags: itertools.count[int] = field(default_factory=itertools.count)

    def owed(self, channel: str = "default") -> list[Copy]:
        return [copy for copy in self.copies.values() if copy.channel == channel and copy.owed]


@dataclass(eq=False)
class Witness:
    """Everything that was answered, over all lives of one broker."""

    keeps_leases: bool = True
    """False where a power cut may forget lease records, which nobody syncs."""
    keeps_answered: bool = True
    """False under durability `os` and power cuts."""
    violations: list[str] = field(default_factory=list)
    interruptions: int = 0
    lease_ids: set[int] = field(default_factory=set)
    ids: dict[str, bytes] = field(default_factory=dict)
    config: dict[str, set[str]] = field(default_factory=dict)
    """Values a key may have: one, or two while a SetConfig was not answered. '' is none."""
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, by: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + by

    def wrong(self, what: str) -> None:
        if len(self.violations) < 20:
            self.violations.append(what)

    # --- producers ------------------------------------------------------------------------

    def sending(self, book: QueueBook) -> bytes:
        """A new message's payload, which is its name here."""
        tag = b"%s#%d#%d" % (book.name.encode(), id(book) % 9973, next(book.tags))
        for channel in book.channels:
            book.copies[tag, channel] = Copy(
                tag, channel, interruptions=self.interruptions, redrives=book.redrives
            )
        return tag

    def enqueued(self, book: QueueBook, tag: bytes, result: Any) -> None:
        """The answer to one message of an enqueue: an EnqueueResponse or an EnqueueResult."""
        if getattr(result, "error", None) is not None and result.error.code:
            for channel in book.channels:
                book.copies[tag, channel].gone = True
            self.count("refused")
            return
        self._is_stored(book, tag, result.message_id, result.offset)
        self.count("enqueued")

    def _is_stored(self, book: QueueBook, tag: bytes, message_id: str, offset: int) -> None:
        for channel in book.channels:
            book.copies[tag, channel].stored = True
        if self.ids.setdefault(message_id, tag) != tag:
            self.wrong(f"id {message_id} names {self.ids[message_id]!r} and {tag!r}")
        if book.ids.setdefault(tag, message_id) != message_id:
            self.wrong(f"{tag!r} had id {book.ids[tag]} and now {message_id}")
        if book.offsets.setdefault(offset, tag) != tag:
            self.wrong(f"{book.name}: offset {offset} of {book.offsets[offset]!r} was given to {tag!r}")

    # --- consumers ------------------------------------------------------------------------

    def delivered(
        self, book: QueueBook, channel: str, message: Any, now_ns: int, in_order: bool = False
    ) -> Copy | None:
        """A delivery out of `channel`; out of a dead letter queue, the channel it failed in.

        One that is read after its lease's end says nothing of what the broker knows now: while it lay in the client's
        buffer, the message may have become a dead letter, been settled as that, or sent back. Nobody may settle it, and
        None is returned.
        """
        lease_id = message.metadata.lease_id
        if lease_id in self.lease_ids:
            self.wrong(f"lease id {lease_id} was given out twice, now for {message.payload!r}")
        self.lease_ids.add(lease_id)
        self.count("delivered")
        copy = book.copies.get((message.payload, channel))
        if copy is None:
            self.wrong(f"{book.name}/{channel} delivered {message.payload!r}, which was never sent to it")
            return None
        if now_ns >= message.timestamps.lease_expires_at.ToNanoseconds():
            copy.received += 1
            self.count("read too late to judge")
            return None
        self._may_be_seen(book, copy, "was delivered")
        offset = message.metadata.offset
        if not message.metadata.HasField("dead_letter"):
            self._is_stored(book, copy.tag, message.id, offset)
            self._attempts_are_right(book, copy, message.metadata.attempt_count)
            copy.attempts = message.metadata.attempt_count
            copy.received += 1
            copy.may_repeat = False
        if in_order and message.metadata.attempt_count == 0:
            place = (channel, message.metadata.fairness_key)
            if offset <= book.order.get(place, 0):
                self.wrong(f"{book.name}/{place}: {offset} came after {book.order[place]}")
            book.order[place] = offset
        return copy

    def acked(self, copy: Copy) -> None:
        """Its ack was answered: a message has one end."""
        if copy.cancelled and self.keeps_answered:
            self.wrong(f"{copy} was acked after it was taken back")
        copy.settled, copy.asked = True, False

    def _may_be_seen(self, book: QueueBook, copy: Copy, how: str) -> None:
        if copy.gone:
            self.wrong(f"{book.name}/{copy.channel}: {copy.tag!r} {how} after it was refused or lost")
        if copy.settled and self.keeps_answered:
            self.wrong(f"{book.name}/{copy.channel}: {copy.tag!r} {how} after it was settled")

    def _attempts_are_right(self, book: QueueBook, copy: Copy, attempts: int) -> None:
        if copy.redrives != book.redrives or book.is_redriving:
            copy.redrives = NEVER if book.is_redriving else book.redrives
            copy.received = attempts
            return
        least = copy.attempts + 1
        if copy.attempts != NEVER and (copy.may_repeat or not self.keeps_leases):
            least = copy.attempts if self.keeps_leases else 0
        most = copy.received + self.interruptions - copy.interruptions
        if not least <= attempts <= max(most, 0):
            self.wrong(
                f"{book.name}/{copy.channel}: {copy.tag!r} has {attempts} attempts, not {least} to {most}"
            )

    # --- the judge ------------------------------------------------------------------------

    def judge(self, book: QueueBook, found: Iterable[Found]) -> None:
        """Compare what a quiet broker holds of a queue, its dead letters included, with what it owes."""
        places: dict[tuple[bytes, str], list[Found]] = {}
        for one in found:
            places.setdefault((one.tag, one.channel), []).append(one)
        for place in places.keys() - book.copies.keys():
            self.wrong(f"{book.name} holds {place}, which was never sent to it")
        last_offset = max((one.offset for all_ in places.values() for one in all_), default=0)
        for place, copy in book.copies.items():
            here = places.get(place, [])
            if len(here) > 1:
                self.wrong(f"{book.name}: {copy.tag!r} is in {len(here)} places: {here}")
            if here:
                self._judge_found(book, copy, here[0])
            else:
                self._judge_missing(book, copy, last_offset)
            copy.asked = False

    def _judge_found(self, book: QueueBook, copy: Copy, found: Found) -> None:
        self._may_be_seen(
            book, copy, f"was found ({found.offset=}, {found.attempts=}, {found.is_dead=}, {copy})"
        )
        if copy.cancelled and self.keeps_answered:
            self.wrong(f"{book.name}/{copy.channel}: {copy.tag!r} was found after it was taken back: {found}")
        copy.settled = copy.cancelled = False
        if book.ids.setdefault(copy.tag, found.id) != found.id:
            self.wrong(f"{book.name}: {copy.tag!r} had id {book.ids[copy.tag]} and now {found.id}")
        copy.stored = True
        if found.is_dead or copy.redrives != book.redrives:
            return
        book.offsets.setdefault(found.offset, copy.tag)
        if book.offsets[found.offset] != copy.tag:
            self.wrong(f"{book.name}: offset {found.offset} belongs to {book.offsets[found.offset]!r}")
        if copy.received:
            self._attempts_are_right(book, copy, found.attempts)

    def _judge_missing(self, book: QueueBook, copy: Copy, last_offset: int) -> None:
        if copy.owed and self.keeps_answered:
            self.wrong(f"{book.name}/{copy.channel}: {copy} was answered and is lost")
        if copy.owed and not self.keeps_answered:
            offset = next((at for at, tag in book.offsets.items() if tag == copy.tag), 0)
            # A log's forgotten seek leaves messages done that the witness thinks wanted.
            if offset and offset < last_offset and not book.redrives and not book.is_log:
                self.wrong(f"{book.name}: {copy.tag!r} at {offset} is lost, and {last_offset} is there")
        if book.is_log and not copy.stored:
            return  # behind the channel, perhaps
        if not copy.stored or copy.owed:
            copy.gone = True
        else:
            copy.settled = True
