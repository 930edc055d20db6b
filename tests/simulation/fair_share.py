"""The judge of fairness: any two keys that are backlogged and may go stay within the bound of docs/fairness.md.

The promise, for two keys i and j over an interval in which both are backlogged, not throttled, paused or capped, have
no committed rate (committed_rates.py judges those), and keep their weights: with S the cost sent, w the weight,
g = w * quantum, Q the quantum,

    S_i / w_i - S_j / w_j  =  (N_i - N_j) * Q
                              +  (D_i start - D_i end + R_i) / w_i  +  (D_j end - D_j start - R_j) / w_j

where N counts grants, D is the deficit with the grants that are owed, and R what the interval gives back for
deliveries that were never written (they count as sent here, each time). By the proof on that page the grants and the
turns under way at both ends make at most 2Q. What is left is judged in its parts, each as small as the proof lets it:

- D_i start: what i had saved. Its last turn ended because a message cost more, so it is below that message's cost, be
  the message there still or gone; or i came back from a park, with one grant at most. So `saved`, the largest cost
  that came up since the turn before, or one grant, whichever is more; and `unspent`, what was given back since.
- D_j end: below the cost of the message that ended j's last turn *in the interval*, or that j has waited for since
  before, which is still the one that is next (the core asks anew when it is not). Either came up in the interval.
- D_i end, D_j start, R_j: not negative, and against the bound.

What came up is not seen from outside. It is what was sent, and what may have stood first: of the ready messages of a
key with the same throttle keys the one in front, and each whose place, or whose being there, the model is not sure of.
Both directions are judged by themselves: a flow that is not served is never excused by what it saved before.

Keys that share a limit are judged by Promise 2 of that page: two keys all of whose ready messages name the same one
bucket, with more of them than that can hold tokens. They may have been in the channel's ring before they came to the
bucket's, so both bounds count, and the cost of as many messages as it has tokens, at the most twice.

"Any interval" is too many to look at. Judged are all that begin since both keys are backlogged, with the largest costs
of all that time, and all that begin lately, with the largest costs of lately: a long interval sees small wrongs add up,
a short one is not blinded by one dear message long ago.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import permutations

from tests.simulation.model import DELAYED, DONE, READY, BucketModel, ChannelModel, Note, Place
from tests.simulation.oracles import Broken

QUANTUM = 1000
LATELY = 32  # looks, which is about as many deliveries


@dataclass(eq=False)
class Flow:
    """One key in one channel, as far as it is seen from outside."""

    served: float = 0.0
    weight: int = 0
    weight_changes: int = 0
    came_up: int = 0  # the largest cost since its last delivery
    saved: int = 0  # the largest cost that ended a turn it may not have spent yet
    unspent: int = 0  # given back, and perhaps not spent yet

    def turn_is_over(self) -> None:
        """Somebody else was served: what its deficit covered is spent, and what is next ended its turn."""
        self.saved = self.unspent = 0

    def is_idle(self) -> None:
        self.came_up = self.saved = self.unspent = 0


@dataclass(eq=False)
class Window:
    """How far one key has got ahead of another since both are backlogged."""

    ahead: float  # of the one, a weight, since ever
    least: float
    most_gained: float = 0.0
    saved: int = 0  # the one's at the start
    given_back: int = 0  # to the one
    came_up_one: int = 0
    came_up_other: int = 0
    looks: int = 0


Pair = tuple[str, str, bool, str]
"""One, other, lately, and at which bucket: its name and since when it is as it is; empty: in the channel."""


@dataclass(eq=False)
class ChannelShare:
    """What is known of one channel's keys."""

    flows: dict[str, Flow] = field(default_factory=dict)
    windows: dict[Pair, Window] = field(default_factory=dict)
    ready: set[Note] = field(default_factory=set)  # at the end of the last pass
    at_turn: str = ""  # the key served last
    shown: list[str] = field(default_factory=list)

    def flow(self, key: str) -> Flow:
        if key not in self.flows:
            self.flows[key] = Flow()
        return self.flows[key]


class FairShare:
    """For each pair of keys of a channel, how far their services a weight have drifted since both were backlogged."""

    def __init__(self) -> None:
        self.channels: dict[int, tuple[ChannelModel, ChannelShare]] = {}
        self.pulled = False  # some of this pass was given out before its timers fired
        self.limited: set[str] = set()  # throttle keys that had a bucket at some time of this pass
        self.buckets: dict[str, BucketModel] = {}
        self.judged = 0  # intervals that were looked at, for tests that ask whether this sees anything
        self.judged_limits = 0

    def share(self, channel: ChannelModel) -> ChannelShare:
        if id(channel) not in self.channels:
            self.channels[id(channel)] = channel, ChannelShare()
        return self.channels[id(channel)][1]

    def forget(self) -> None:
        """A restart: the ring begins anew, and nobody has saved anything."""
        self.channels.clear()

    def interrupt(self, channel: ChannelModel | None = None, key: str | None = None) -> None:
        """Something happened that no interval goes over; what was saved before is still there."""
        for owner, share in self.channels.values():
            if channel is None or owner is channel:
                for pair in [pair for pair in share.windows if key is None or key in pair[:2]]:
                    del share.windows[pair]

    # --- what the model says -------------------------------------------------------------------

    def look(self, channel: ChannelModel, pass_is_over: bool = True) -> None:
        """Between passes and after each delivery: intervals end where a key stops being backlogged."""
        share = self.share(channel)
        notes = channel.all_notes()
        ready = [note for note in notes if note.state == READY]
        # A pull is served in the middle of a pass: what later commands and timers make ready was not there yet.
        there = share.ready.intersection(ready) if self.pulled else ready
        surely = {note for note in there if note.place is not None and not note.maybe}
        came_up = self._may_have_come_up(channel, notes, surely, share)
        backlogged = self._backlogged(channel, surely)
        share.shown.append(f"{sorted(backlogged)}, may be next {came_up}")
        for key, flow in share.flows.items():
            if key not in came_up:
                flow.is_idle()
        for key, cost in came_up.items():
            flow = share.flow(key)
            flow.came_up = max(flow.came_up, cost)
            policy = channel.queue.key(key)
            is_new = (flow.weight, flow.weight_changes) != (policy.due_weight, policy.changes)
            if is_new or not policy.is_sure:
                flow.weight, flow.weight_changes = policy.due_weight, policy.changes
                self.interrupt(channel, key)
        sharing = dict.fromkeys(backlogged, "") | self._at_one_bucket(channel, notes, surely, share)
        pairs = [(*pair, sharing[pair[0]]) for pair in permutations(sorted(sharing), 2)]
        pairs = [pair for pair in pairs if sharing[pair[1]] == pair[2]]
        for gone in [pair for pair in share.windows if (*pair[:2], pair[3]) not in pairs]:
            del share.windows[gone]
        for one, other, bucket in pairs:
            for lately in (False, True):
                window = self._window(share, one, other, lately, bucket)
                window.came_up_one = max(window.came_up_one, came_up[one])
                window.came_up_other = max(window.came_up_other, came_up[other])
                self._judge(channel, share, window, one, other, bucket)
        if pass_is_over:
            share.ready = set(ready)

    def _backlogged(self, channel: ChannelModel, surely: set[Note]) -> set[str]:
        """Keys that have, for sure, a ready message which no bucket holds."""
        keys = {
            note.entry.key
            for note in surely
            if self.limited.isdisjoint(note.entry.throttles) or note.entry.queue.is_dlq
        }
        return {
            key
            for key in keys
            if not ((policy := channel.queue.key(key)).paused or policy.cap or policy.committed)
        }

    def _at_one_bucket(
        self, channel: ChannelModel, notes: list[Note], surely: set[Note], share: ChannelShare
    ) -> dict[str, str]:
        """Keys that want tokens of one bucket and wait for nothing else, with that bucket as it is."""
        sets: dict[str, set[frozenset[str]]] = {}
        ready: Counter[str] = Counter(note.entry.key for note in surely)
        origin = channel.queue.origin
        for note in self._may_be_ready(notes, share):
            sets.setdefault(note.entry.key, set()).add(note.entry.throttles)
        for ghost in [*channel.queue.ghosts.values(), *(origin.ghosts.values() if origin else [])]:
            sets.setdefault(ghost.key, set()).add(frozenset())
        found = {}
        for key, named in sets.items():
            names = next(iter(named))
            policy = channel.queue.key(key)
            if (
                len(named) > 1
                or len(names) != 1
                or channel.queue.is_dlq
                or policy.paused
                or policy.cap
                or policy.committed
            ):
                continue
            (name,) = names
            bucket = self.buckets.get(name)
            if bucket is not None and ready[key] > bucket.full + 1:
                found[key] = f"{name} {bucket.since_ms}"
        return found

    def _may_have_come_up(
        self, channel: ChannelModel, notes: list[Note], surely: set[Note], share: ChannelShare
    ) -> dict[str, int]:
        """For each key that may have anything ready, the largest cost that may stand first."""
        found: dict[str, int] = {}
        first: dict[tuple[str, frozenset[str], int], tuple[Place, int]] = {}

        def add(key: str, cost: int) -> None:
            found[key] = max(found.get(key, 0), cost)

        for note in self._may_be_ready(notes, share):
            entry = note.entry
            if note.place is None or note not in surely:
                add(entry.key, entry.cost)
                continue
            own = (entry.key, frozenset() if entry.queue.is_dlq else entry.throttles, entry.priority)
            if own not in first or note.place < first[own][0]:
                first[own] = note.place, entry.cost
            elif note.place == first[own][0]:  # leases that ended in the same millisecond
                first[own] = note.place, max(first[own][1], entry.cost)
        for (key, _, _), (_, cost) in first.items():
            add(key, cost)
        origin = channel.queue.origin
        for ghost in [*channel.queue.ghosts.values(), *(origin.ghosts.values() if origin else [])]:
            add(ghost.key, ghost.cost)  # an enqueue whose answer a crash swallowed may be there
        return found

    def _may_be_ready(self, notes: list[Note], share: ChannelShare) -> Iterable[Note]:
        return [
            note
            for note in notes
            if (state := note.state) == READY
            or (state == DELAYED and note.due_ms[0] != note.due_ms[1])
            # its time ran out in this pass, after the pulls
            or (self.pulled and state == DONE and note in share.ready)
        ]

    # --- the judgement -------------------------------------------------------------------------

    @staticmethod
    def _window(share: ChannelShare, one: str, other: str, lately: bool, bucket: str) -> Window:
        flow, rival = share.flow(one), share.flow(other)
        ahead = flow.served / flow.weight - rival.served / rival.weight
        window = share.windows.get((one, other, lately, bucket))
        if window is None or (lately and window.looks >= LATELY):
            saved = max(flow.saved, flow.came_up)
            window = Window(ahead, ahead, saved=saved, given_back=flow.unspent)
            share.windows[one, other, lately, bucket] = window
        window.looks += 1
        window.ahead = ahead
        window.least = min(window.least, ahead)
        window.most_gained = max(window.most_gained, ahead - window.least)
        return window

    def _judge(
        self, channel: ChannelModel, share: ChannelShare, window: Window, one: str, other: str, bucket: str
    ) -> None:
        self.judged += not bucket
        self.judged_limits += bool(bucket)
        flow, rival = share.flow(one), share.flow(other)
        saved = max(window.saved, window.came_up_one, QUANTUM * flow.weight) + window.given_back
        bound = saved / flow.weight + QUANTUM + window.came_up_other / rival.weight + QUANTUM
        if bucket:
            tokens = self.buckets[bucket.split(maxsplit=1)[0]].full
            costs = window.came_up_one / flow.weight + window.came_up_other / rival.weight
            bound = 2 * bound + 2 * tokens * costs
        if window.most_gained > bound + 1e-6:
            raise Broken(
                f"{channel.queue.name}/{channel.name}: {one} got {window.most_gained:.0f} ahead of {other}"
                f" {bucket and f'at bucket {bucket}'},"
                f" the bound is {bound:.0f}: {flow}, {rival}, {window}: {share.shown[-24:]}"
            )

    # --- what happened -------------------------------------------------------------------------

    def picked(self, note: Note, in_order: bool) -> None:
        """Delivered; `in_order` unless the model can't say what was the state of things at that moment."""
        share, key = self.share(note.channel), note.entry.key
        share.shown.append(f"{key} {note.entry.cost}")
        flow = share.flow(key)
        flow.served += note.entry.cost
        flow.saved = max(flow.saved, flow.came_up, note.entry.cost)
        if not in_order:
            self.interrupt(note.channel)
            flow.came_up = max(flow.came_up, note.entry.cost)
            share.at_turn = ""
            return
        if share.at_turn not in ("", key):
            share.flow(share.at_turn).turn_is_over()
        share.at_turn = key
        for (one, other, _, _), window in share.windows.items():
            if one == key:
                window.came_up_one = max(window.came_up_one, note.entry.cost)
            elif other == key:
                window.came_up_other = max(window.came_up_other, note.entry.cost)
        flow.came_up = 0
        self.look(note.channel, pass_is_over=False)

    def given_back(self, note: Note) -> None:
        share = self.share(note.channel)
        share.flow(note.entry.key).unspent += note.entry.cost
        if share.at_turn == note.entry.key:
            share.at_turn = ""  # its turn may have been over before
        for (one, _, _, _), window in share.windows.items():
            if one == note.entry.key:
                window.given_back += note.entry.cost
