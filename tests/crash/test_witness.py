"""The judge of kills blames a broker for what it sent, and not for what a slow client read late."""

from __future__ import annotations

from fila.v1.messages_pb2 import Message
from tests.crash.witness import Copy, QueueBook, Witness

ENDS_NS = 2_000_000_000


def _delivery(witness: Witness, book: QueueBook, lease_id: int, attempts: int, now_ns: int) -> Copy | None:
    message = Message(id="m", payload=next(iter(book.copies))[0])
    message.metadata.lease_id = lease_id
    message.metadata.attempt_count = attempts
    message.timestamps.lease_expires_at.FromNanoseconds(ENDS_NS)
    return witness.delivered(book, "default", message, now_ns)


def _settled_as_a_dead_letter() -> tuple[Witness, QueueBook]:
    witness, book = Witness(), QueueBook("work")
    copy = book.copies[witness.sending(book), "default"]
    copy.stored = True
    witness.acked(copy)
    return witness, book


def test_what_comes_after_its_end_is_wrong() -> None:
    witness, book = _settled_as_a_dead_letter()

    _delivery(witness, book, lease_id=9, attempts=0, now_ns=ENDS_NS - 1)

    assert witness.violations == [
        f"work/default: b'work#{id(book) % 9973}#0' was delivered after it was settled"
    ]


def test_what_is_read_after_its_lease_has_ended_is_counted_and_not_judged() -> None:
    witness, book = _settled_as_a_dead_letter()

    held = _delivery(witness, book, lease_id=9, attempts=0, now_ns=ENDS_NS)

    assert held is None, "nobody may settle it"
    assert witness.violations == []
    assert witness.counts["read too late to judge"] == 1


def test_a_delivery_read_late_counts_as_an_attempt_of_the_next() -> None:
    witness, book = Witness(), QueueBook("work")
    witness.sending(book)

    _delivery(witness, book, lease_id=8, attempts=0, now_ns=ENDS_NS)
    _delivery(witness, book, lease_id=9, attempts=1, now_ns=ENDS_NS - 1)

    assert witness.violations == []
