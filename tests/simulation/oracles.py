"""The judges. Each looks at what left the core and knows one promise; none knows how the core works.

Kept       no answered message is lost, nothing acked or deleted comes back, ids and offsets are never repeated
OneHolder  one live lease a message and channel, lease ids never repeat, nobody holds more than agreed
InOrder    within a key, channel and set of throttle keys, positions go out in order
FairShare  two backlogged, unthrottled keys stay within the bound of docs/fairness.md
OnCurve    no bucket gives more than its curve
"""

from itertools import combinations

from tests.simulation.model import LEASED, READY, BucketModel, ChannelModel, Entry, Model, Note

QUANTUM = 1000


class Broken(AssertionError):
    """A promise was not kept."""


class Kept:
    def __init__(self) -> None:
        self.tokens_by_id: dict[str, int] = {}
        self.tokens_by_offset: dict[tuple[int, int], int] = {}
        self.newest_id = ""

    def stored(self, entry: Entry, newest_before: str) -> None:
        """An enqueue was answered: `newest_before` is the newest id known when it was asked for."""
        owner = self.tokens_by_id.setdefault(entry.id, entry.token)
        if owner != entry.token:
            raise Broken(f"id {entry.id} was given to messages {owner} and {entry.token}")
        if entry.id <= newest_before:
            raise Broken(f"id {entry.id} is not above {newest_before}, which was known before")
        self.newest_id = max(self.newest_id, entry.id)
        self.placed(entry)

    def placed(self, entry: Entry) -> None:
        owner = self.tokens_by_offset.setdefault((entry.queue.number, entry.offset), entry.token)
        if owner != entry.token:
            raise Broken(
                f"offset {entry.offset} of {entry.queue.name} was given to {owner} and {entry.token}"
            )

    def delivered(self, note: Note | None, what: str) -> None:
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
        self.lease_ids: set[int] = set()

    def leased(self, note: Note, lease_id: int, mono_ms: int) -> None:
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
    def picked(self, note: Note) -> None:
        """Called before the note changes its state."""
        if note.place is None or note.maybe:
            return
        for other in note.channel.all_notes():
            if (
                other is not note
                and other.state == READY
                and other.place is not None
                and not other.maybe
                and other.entry.key == note.entry.key
                and (note.entry.queue.is_dlq or other.entry.throttles == note.entry.throttles)
                and other.place < note.place
            ):
                raise Broken(
                    f"message {note.entry.token} at {note.place} went before {other.entry.token} at {other.place}"
                    f" in {note.entry.queue.name}/{note.channel.name} key {note.entry.key}"
                )


class FairShare:
    """For each pair of keys of a channel, how far their services a weight have drifted since both were backlogged."""

    def __init__(self) -> None:
        self.served: dict[tuple[int, str], float] = {}
        self.windows: dict[tuple[int, str, str], list[float]] = {}  # lowest, highest difference
        self.largest: dict[tuple[int, str], int] = {}
        self.reweighed: set[tuple[int, str]] = set()
        self.weights: dict[tuple[int, str], int] = {}
        self.blind = False  # what happens now can't be put in order
        self.owed: dict[tuple[int, str], int] = {}  # given back for what was never written
        self.shown: list[str] = []

    def reset(self, channel: ChannelModel | None = None, key: str | None = None) -> None:
        for window in list(self.windows):
            if (channel is None or window[0] == id(channel)) and (key is None or key in window[1:]):
                del self.windows[window]
        for where in list(self.largest):
            if (channel is None or where[0] == id(channel)) and (key is None or key == where[1]):
                del self.largest[where]

    @staticmethod
    def _backlogged(channel: ChannelModel) -> dict[str, int]:
        """Keys that have a ready message without throttle keys, and the largest cost among their ready ones."""
        keys: dict[str, int] = {}
        plain: set[str] = set()
        for note in channel.all_notes():
            if note.state == READY and not note.maybe and note.place is not None:
                key = note.entry.key
                keys[key] = max(keys.get(key, 0), note.entry.cost)
                if not note.entry.throttles or note.entry.queue.is_dlq:
                    plain.add(key)
        return {
            key: cost
            for key, cost in keys.items()
            if key in plain and not (policy := channel.queue.key(key)).paused and not policy.cap
        }

    def look(self, channel: ChannelModel) -> None:
        """Between passes and after each delivery: windows end where a key stops being backlogged."""
        keys = self._backlogged(channel)
        shown = f"{channel.queue.name}/{channel.name} {keys}"
        if not self.shown or self.shown[-1] != shown:
            self.shown.append(shown)
        for over in list(self.windows):
            if over[0] == id(channel) and (over[1] not in keys or over[2] not in keys):
                del self.windows[over]
        for key in keys:
            weight = channel.queue.key(key).due_weight
            if self.weights.setdefault((id(channel), key), weight) != weight:
                self.weights[(id(channel), key)] = weight
                self.reset(channel, key)
                self.reweighed.add((id(channel), key))  # it may have saved under the old weight
        ready = {note.entry.key for note in channel.all_notes() if note.state == READY}
        for where in list(self.owed):
            if where[0] == id(channel) and where[1] not in ready:
                del self.owed[where]  # the idle forfeit it
        self.reweighed = {where for where in self.reweighed if where[0] != id(channel) or where[1] in ready}
        keys = {key: cost for key, cost in keys.items() if (id(channel), key) not in self.reweighed}
        for key, cost in keys.items():
            self.largest[id(channel), key] = max(self.largest.get((id(channel), key), 0), cost)
        for one, other in combinations(sorted(keys), 2):
            difference = self._difference(channel, one, other)
            drift = self.windows.setdefault((id(channel), one, other), [difference, difference])
            drift[0] = min(drift[0], difference)
            drift[1] = max(drift[1], difference)
            self._judge(channel, one, other, drift)

    def _difference(self, channel: ChannelModel, one: str, other: str) -> float:
        weights = channel.queue.key
        return (
            self.served.get((id(channel), one), 0.0) / weights(one).due_weight
            - self.served.get((id(channel), other), 0.0) / weights(other).due_weight
        )

    def _judge(self, channel: ChannelModel, one: str, other: str, window: list[float]) -> None:
        bound = 0.0
        for key in (one, other):
            weight = channel.queue.key(key).due_weight
            grant = QUANTUM * weight
            where = (id(channel), key)
            bound += (max(self.largest[where], grant) + grant + self.owed.get(where, 0)) / weight
        if window[1] - window[0] > bound + 1e-6:
            raise Broken(
                f"{channel.queue.name}/{channel.name}: {one} and {other} drifted {window[1] - window[0]:.0f} apart,"
                f" the bound is {bound:.0f}: {self._shown(channel)}"
            )

    def given_back(self, note: Note) -> None:
        where = (id(note.channel), note.entry.key)
        self.owed[where] = self.owed.get(where, 0) + note.entry.cost

    def _shown(self, channel: ChannelModel) -> list[str]:
        name = f"{channel.queue.name}/{channel.name} "
        return [text for text in self.shown if text.startswith(name)][-24:]

    def picked(self, note: Note) -> None:
        where = (id(note.channel), note.entry.key)
        self.largest[where] = max(self.largest.get(where, 0), note.entry.cost)
        self.shown.append(f"{note.channel.queue.name}/{note.channel.name} {note.entry.key} {note.entry.cost}")
        self.served[where] = self.served.get(where, 0.0) + note.entry.cost
        if self.blind:
            return
        self.look(note.channel)


class OnCurve:
    def taken(self, bucket: BucketModel, name: str, now_ms: int) -> None:
        bucket.refill(now_ms)
        bucket.level -= 1
        if bucket.level < -0.001:
            raise Broken(f"bucket {name} gave a token it cannot have had: level {bucket.level:.4f}")

    def given_back(self, bucket: BucketModel) -> None:
        bucket.level = max(bucket.level, min(bucket.level + 1, bucket.burst))
