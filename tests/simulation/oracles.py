"""The judges. Each looks at what left the core and knows one promise; none knows how the core works.

Kept       no answered message is lost, nothing acked or deleted comes back, ids and offsets are never repeated, and a
           new id is above all that the store still has, or that were answered under fsync
OneHolder  one live lease a message and channel, lease ids never repeat, nobody holds more than agreed
InOrder    within a key, channel and set of throttle keys, the higher priority goes out first, and positions of one in
           order; where a queue's keys are in order, within a key and channel
OneAtATime where keys are in order, nothing of a key goes while another of it is in flight or waits for its retry
OneEnd     what ended a message in a channel, and was answered, is the last that ends it there
AsSaid     what a producer said of its message's key and cost, where its queue lets it, is what the message is shared by
OneFiring  a moment of a schedule has one message
OnCurve    no bucket gives more than its curve
FairShare, in fair_share.py: two backlogged keys that are not throttled, or wait for the same one bucket, stay within
           the bounds of docs/fairness.md
Books, in books.py: nothing that could go is left lying while somebody has room for it; the numbers agree; no pass does
           more than its bound

Each counts how often it judged: a run in which one judged too little shows nothing, and fails.
"""

from collections.abc import Callable

from tests.simulation.model import DECIDING, DELAYED, LEASED, READY, BucketModel, Entry, Model, Note, Routed


class Broken(AssertionError):
    """A promise was not kept."""


class Kept:
    def __init__(self) -> None:
        self.judged = 0
        self.tokens_by_id: dict[str, int] = {}
        self.tokens_by_offset: dict[tuple[int, int], int] = {}
        self.newest_id = ""

    def stored(self, entry: Entry, newest_before: str) -> None:
        """An enqueue was answered: `newest_before` is the newest id known when it was asked for.

        Known is what was ever answered, but for what a power cut lost under `os` (its id is still never repeated).
        """
        self.judged += 1
        self.seen(entry)
        if entry.id <= newest_before:
            raise Broken(f"id {entry.id} is not above {newest_before}, which was known before")

    def seen(self, entry: Entry) -> None:
        owner = self.tokens_by_id.setdefault(entry.id, entry.token)
        if owner != entry.token:
            raise Broken(f"id {entry.id} was given to messages {owner} and {entry.token}")
        self.newest_id = max(self.newest_id, entry.id)
        self.placed(entry)

    def placed(self, entry: Entry) -> None:
        owner = self.tokens_by_offset.setdefault((entry.queue.number, entry.offset), entry.token)
        if owner != entry.token:
            raise Broken(
                f"offset {entry.offset} of {entry.queue.name} was given to {owner} and {entry.token}"
            )

    def delivered(self, note: Note | None, what: str) -> None:
        self.judged += 1
        if note is None:
            raise Broken(f"{what} was delivered, but there is no such message in that channel (any more)")
        if note.acked:
            raise Broken(f"{what} was delivered although its ack was carried out")

    def drained(self, model: Model) -> None:
        for note in model.all_notes():
            if note.state != "done" and not note.maybe:
                raise Broken(
                    f"message {note.entry.token} of {note.entry.queue.name}/{note.channel.name} was never delivered"
                    f" again: {note}"
                )


class OneHolder:
    def __init__(self) -> None:
        self.judged = 0
        self.lease_ids: set[int] = set()

    def leased(self, note: Note, lease_id: int, mono_ms: int) -> None:
        self.judged += 1
        if lease_id in self.lease_ids:
            raise Broken(f"lease id {lease_id} was given twice")
        self.lease_ids.add(lease_id)
        if note.state == LEASED and note.due_mono_ms > mono_ms:
            raise Broken(
                f"message {note.entry.token} is leased as {lease_id} while lease {note.lease_id} lasts"
                f" {note.due_mono_ms - mono_ms} ms more"
            )

    def holds(self, token: int, count: int, most: int) -> None:
        if count > most:
            raise Broken(f"consumer {token} holds {count} leases, {most} were agreed")


class InOrder:
    def __init__(self) -> None:
        self.judged = 0
        self.judged_priorities = 0

    def picked(self, note: Note, now_pass: int, limits_since: Callable[[int], int]) -> None:
        """Called before the note changes its state. What returned in this pass may have come behind a pull. It names so
        many limits for which it may have had to wait since a pass."""
        if note.place is None or note.maybe:
            return
        self.judged += 1
        for other in note.channel.all_notes():
            if (
                other is not note
                and other.state == READY
                and other.place is not None
                and not other.maybe
                and other.returned_pass != now_pass
                and other.entry.key == note.entry.key
                and (
                    note.entry.queue.is_dlq or note.in_order or other.entry.throttles == note.entry.throttles
                )
                and self._stands_before(other, note, now_pass, limits_since)
            ):
                raise Broken(
                    f"message {note.entry.token} at {note.place} went before {other.entry.token} at {other.place}"
                    f" in {note.entry.queue.name}/{note.channel.name} key {note.entry.key}"
                )

    def _stands_before(
        self, other: Note, note: Note, now_pass: int, limits_since: Callable[[int], int]
    ) -> bool:
        """One of a higher priority that came in this pass may have come behind a pull. Of two limits or more the
        higher one may have waited at another than the lower one."""
        assert other.place is not None
        assert note.place is not None
        if note.entry.queue.is_dlq or other.entry.priority == note.entry.priority:
            return other.place < note.place
        is_known = other.place[0] < now_pass and limits_since(other.place[0]) < 2
        self.judged_priorities += is_known
        return is_known and other.entry.priority > note.entry.priority


class OneAtATime:
    def __init__(self) -> None:
        self.judged = 0

    def picked(self, note: Note, *, hidden: bool) -> None:
        """Called before the note changes its state. Where something is hidden, what waits may have ended unseen; one
        that may be gone may have been taken back while its failure was being decided."""
        if not note.in_order:
            return
        self.judged += 1
        for other in note.channel.all_notes():
            if other is note or other.entry.key != note.entry.key or not other.holds_its_key:
                continue
            if (other.maybe and other.state in (DELAYED, DECIDING)) or (hidden and other.state == DELAYED):
                continue
            raise Broken(f"{note} was picked while {other} held its key")


class OneEnd:
    def __init__(self) -> None:
        self.judged = 0

    def ended(self, note: Note, how: str) -> None:
        """Its end was answered."""
        self.judged += 1
        if note.ended_by:
            raise Broken(f"{note} ended by {how}, and it had ended by {note.ended_by}")
        note.ended_by = how


class AsSaid:
    def __init__(self) -> None:
        self.judged = 0

    def delivered(self, note: Note, got: Routed) -> None:
        """A hook's word counts over the producer's. What the key weighs, the books say."""
        said = note.entry.said
        if note.entry.hooked is not None or not (said.fairness_key or said.cost):
            return
        self.judged += 1
        key, _, cost, _ = got
        if said.fairness_key not in ("", key) or said.cost not in (0, cost):
            raise Broken(f"{note} has the key {key} and costs {cost}, and its producer said {said}")


class OneFiring:
    def __init__(self) -> None:
        self.judged = 0

    def seen(self, fired: dict[tuple[str, str], str], headers: dict[str, str], message_id: str) -> None:
        """`fired`: what was seen of all moments before."""
        moment = (headers.get("fila-schedule", ""), headers.get("fila-schedule-moment", ""))
        if not moment[0]:
            return
        self.judged += 1
        if fired.setdefault(moment, message_id) != message_id:
            raise Broken(f"{moment} has the messages {fired[moment]} and {message_id}")


class OnCurve:
    """`unseen` leases hold tokens, as far as the model knows, that may come back to any bucket."""

    def __init__(self) -> None:
        self.judged = 0

    def taken(self, bucket: BucketModel, name: str, now_ms: int, unseen: int) -> None:
        self.judged += 1
        bucket.refill(now_ms, unseen)
        bucket.level -= 1
        if bucket.level < -0.001:
            raise Broken(f"bucket {name} gave a token it cannot have had: level {bucket.level:.4f}")

    def given_back(self, bucket: BucketModel, unseen: int) -> None:
        bucket.level = max(bucket.level, min(bucket.level + 1, bucket.burst + unseen))
