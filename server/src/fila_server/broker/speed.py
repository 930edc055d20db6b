"""How fast channels and their keys were served lately, from the core's numbers of every few seconds.

A look costs the path of messages nothing: the numbers are there. Kept are LOOKS of them for the channels that had
anything to do, at most CHANNELS_MAX, and some of those of the keys that telemetry lists. While nothing changes the
numbers of the last look are those of now, and nobody reads them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fila_server.telemetry.snapshot import WAIT_CAUSES, Channel, Queue, Snapshot

LOOKS = 90
"""At one every two seconds, three minutes."""
KEPT_S = 180.0
"""So long, too, where nothing happened in between: what a channel did before says nothing of its speed now."""
CHANNELS_MAX = 2_000
KEY_LOOKS = 18
KEY_LOOK_EVERY_S = 10.0
"""A thousand keys are many to keep every two seconds; who was served meanwhile is a question of tens of seconds."""

KEYS_LISTED_MAX = 1_000
"""Of a snapshot with fewer, a key that is not there was not served either."""

_NO_CONSUMER, _SHARE = WAIT_CAUSES.index("no_consumer"), WAIT_CAUSES.index("share")

Place = tuple[bytes, bytes]


class Look(NamedTuple):
    """A channel's numbers at one moment; totals count since the server started."""

    at_s: float
    """On the monotonic clock."""
    served: int
    """Cost delivered, in thousandths."""
    enqueued: int
    """Messages that came to its queue."""
    leased: int
    waited_ms: float
    """Message-milliseconds that messages stood ready, for a turn or for somebody with room."""
    consumers: int


class Speeds:
    """The looks of late, oldest first."""

    def __init__(self) -> None:
        self._channels: dict[Place, deque[Look]] = {}
        self._keys: deque[tuple[float, Mapping[tuple[bytes, bytes, bytes], float]]] = deque(maxlen=KEY_LOOKS)
        self._still_s = 0.0

    def still(self, now_s: float) -> None:
        """Nothing has changed since the last look."""
        self._still_s = now_s

    def look(self, snapshot: Snapshot, now_s: float) -> None:
        """Take the numbers of this moment."""
        kept: dict[Place, deque[Look]] = {}
        for queue in snapshot.queues:
            for channel in queue.channels:
                place = (queue.name, channel.name)
                if len(kept) < CHANNELS_MAX and (looks := self._next(place, queue, channel, now_s)):
                    kept[place] = looks
        self._channels = kept
        if not self._keys or now_s - self._keys[-1][0] >= KEY_LOOK_EVERY_S:
            served = {(key.queue, key.channel, key.fairness_key): key.served for key in snapshot.keys}
            self._keys.append((now_s, served))

    def _next(self, place: Place, queue: Queue, channel: Channel, now_s: float) -> deque[Look] | None:
        counts = queue.counts
        waited_ms = channel.waited_ms[_NO_CONSUMER] + channel.waited_ms[_SHARE]
        now = Look(now_s, channel.served, counts.enqueued, channel.leased, waited_ms, channel.consumers)
        looks = self._channels.get(place)
        if looks is not None and (now.served < looks[-1].served or now.enqueued < looks[-1].enqueued):
            looks = None  # deleted, and made again under the same name
        if looks is None:
            return deque([now], maxlen=LOOKS)
        looks = self._until_now(looks)
        looks.append(now)
        # One that has nothing to do for so long is kept as its last look, from which the next ones go on.
        is_idle = len(looks) == LOOKS and (looks[0].served, looks[0].enqueued) == (now.served, now.enqueued)
        return deque([now], maxlen=LOOKS) if is_idle else looks

    def of_channel(self, queue: str, channel: str) -> Sequence[Look]:
        """Its looks of late, oldest first; none when it was not there."""
        looks = self._channels.get((queue.encode(), channel.encode()))
        return () if looks is None else tuple(self._until_now(looks))

    def _until_now(self, looks: deque[Look]) -> deque[Look]:
        """The same, and the stillness since."""
        if looks[-1].at_s >= self._still_s:
            return looks
        longer = deque(looks, maxlen=LOOKS)
        longer.append(looks[-1]._replace(at_s=self._still_s))
        while len(longer) > 1 and longer[1].at_s < self._still_s - KEPT_S:
            longer.popleft()
        return longer

    def served_since(self, queue: str, channel: str, since_s: float) -> tuple[float, Mapping[bytes, float]]:
        """Cost that keys of a channel were delivered since about then, in thousandths, and since when it is
        known. Keys that telemetry does not list, and those listed only of late, are left out."""
        if not self._keys:
            return since_s, {}
        began_s, before = next((look for look in reversed(self._keys) if look[0] <= since_s), self._keys[0])
        place = (queue.encode(), channel.encode())
        listed_all = len(before) < KEYS_LISTED_MAX
        found: dict[bytes, float] = {}
        for (queue_name, channel_name, key), served in self._keys[-1][1].items():
            if (queue_name, channel_name) != place:
                continue
            earlier = before.get((*place, key), 0.0 if listed_all else served)
            if served > earlier:
                found[key] = served - earlier
        return began_s, found
