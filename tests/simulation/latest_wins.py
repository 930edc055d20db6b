"""The latest of a dedup key wins: what a replacement does to the earlier message, channel by channel.

The core resolves a replacement as its frame becomes visible, before a command, a timer or a delivery of that pass can
see either message; so does the model, as the enqueue is answered. What the world can't know (bytes that are read back,
leases that a crash kept from being seen, a channel that was sought) leaves both as messages that may be there.

What is held behind a lease is a DELAYED note that nothing makes due but the end of that lease.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from tests.core.driven_engine import MS
from tests.simulation.model import (
    DECIDING,
    DELAYED,
    DONE,
    LEASED,
    NEVER_MS,
    READY,
    Chain,
    ChannelModel,
    Entry,
    Note,
    QueueModel,
    Wish,
)
from tests.simulation.oracles import Broken

if TYPE_CHECKING:
    from tests.simulation.deliveries import Deliveries

KEYS = ("x", "y", "z")
DELAYS_MS, MAX_WAITS_MS = (0, 0, 700, 3000), (0, 500, 2000)
BEHIND_ALL = 1 << 60
"""Added to an offset: what names an earlier message, and finds it to be done, stands behind all that became visible
with it."""


def some_wish(rnd: Random, delay_ms: int, options: service.EnqueueOptions) -> Wish:
    """To replace, now or with a delay; `delay_ms`: the delay that the message has already."""
    wish = Wish(rnd.choice(KEYS), delay_ms or rnd.choice(DELAYS_MS), rnd.choice(MAX_WAITS_MS))
    options.dedup_key, options.on_duplicate = wish.key, service.EnqueueOptions.ON_DUPLICATE_REPLACE
    if wish.delay_ms:
        options.delay_ms = wish.delay_ms
    if wish.max_wait_ms:
        options.max_wait_ms = wish.max_wait_ms
    return wish


def _notes_of(entry: Entry) -> list[Note]:
    return [
        note
        for channel in entry.queue.channels.values()
        for note in channel.notes.get(entry.token, [])
        if note.entry is entry
    ]


class LatestWins:
    """What the model knows of replacements, and how often it was sure."""

    def __init__(self, world: Deliveries) -> None:
        self.world = world
        self.judged = 0
        self.judged_waiting = 0
        self.judged_dues = 0
        self._shared: set[QueueModel] = set()
        """Queues that had several channels. There a dedup key remembers its newest message and the oldest that is
        pending, and not what one channel alone has in flight between."""

    # --- as the enqueue is carried out ------------------------------------------------------

    def comes(self, entry: Entry, queue: QueueModel) -> None:
        """Which message it replaces, and until when it is delayed."""
        world = self.world
        wish = entry.wish
        assert wish is not None
        if len(queue.channels) > 1:
            self._shared.add(queue)
        world.say(f"{entry.token} replaces {wish.key} in {queue.name}")
        chain = self._known(queue, wish.key)
        waits = False
        if chain is not None:
            entry.is_vague = chain.is_vague or self._is_hazy()
            entry.replaces = self._standing(chain)
            if entry.replaces is not None:
                waits, _ = self._stands(entry.replaces)
                entry.is_vague = entry.is_vague or any(note.maybe for note in _notes_of(entry.replaces))
        wall, first_ns = world.engine.wall_ms, world.engine.mono_ns
        if chain is not None and waits:
            first_ns = chain.first_ns
        due_ms = wall + wish.delay_ms if wish.delay_ms else 0
        if not wish.delay_ms and waits and entry.replaces is not None:
            due_ms = entry.replaces.deliver_at_ms if entry.replaces.deliver_at_ms > wall else 0
        clock_was_set = chain is not None and chain.starts != world.starts
        if due_ms and waits and clock_was_set:
            entry.is_vague = True
        elif due_ms and wish.max_wait_ms and not entry.is_vague:
            waited_ms = (world.engine.mono_ns - first_ns) // MS if waits else 0
            due_ms = min(due_ms, wall + wish.max_wait_ms - waited_ms)
            due_ms = due_ms if due_ms > wall else 0
        entry.deliver_at_ms = due_ms
        entry.behind = self._oldest(chain) if chain is not None else None
        queue.chains[wish.key] = Chain(
            entry,
            entry.behind,
            first_ns,
            world.starts if not waits or chain is None else chain.starts,
            entry.is_vague,
        )

    def _known(self, queue: QueueModel, key: str) -> Chain | None:
        """What is vague is clear again once all but the newest is done, if that came behind all that made it so."""
        chain = queue.chains.get(key)
        if chain is None or not chain.is_vague or chain.may_be_forgotten or self._is_hazy():
            return chain
        others = [n for c in queue.channels.values() for n in self._open_notes(c, key, chain.newest)]
        if others or any(note.maybe for note in _notes_of(chain.newest)):
            return chain
        if not chain.newest.offset:
            return chain  # on its way still, or refused
        return Chain(chain.newest, None, 0, -1, False)

    def _oldest(self, chain: Chain) -> Entry | None:
        for entry in (chain.before, chain.newest):
            if entry is not None and any(self._stands(entry)):
                return entry
        return None

    def _standing(self, chain: Chain) -> Entry | None:
        for entry in (chain.newest, chain.before):
            if entry is not None and any(self._stands(entry)):
                return entry
        return chain.newest if chain.is_vague else None

    def _stands(self, entry: Entry) -> tuple[bool, bool]:
        """Whether it waits in some channel, and is in flight in one; what is not visible yet waits."""
        if not entry.offset:
            return True, False
        states = [note.state for note in _notes_of(entry)]
        return any(s in (READY, DELAYED) for s in states), any(s in (LEASED, DECIDING) for s in states)

    def _is_hazy(self) -> bool:
        world = self.world
        hidden = any(lease_id < world.next_lease_id for lease_id in world.unseen)
        return bool(world.cold or world.blurred or hidden or world.missed or world.lost_leases())

    @staticmethod
    def _open_notes(channel: ChannelModel, key: str, but: Entry) -> list[Note]:
        return [
            note
            for note in channel.all_notes()
            if note.entry.wish is not None
            and note.entry.wish.key == key
            and note.entry is not but
            and note.state != DONE
        ]

    # --- as it becomes visible ----------------------------------------------------------------

    def resolve(self, note: Note) -> None:
        """In one channel."""
        world, entry, channel = self.world, note.entry, note.channel
        olds = [self._note_in(channel, earlier) for earlier in (entry.replaces, entry.behind)]
        old = next((note for note in olds if note is not None and note.state != DONE), None)
        is_hazy = entry.is_vague or self._is_hazy() or channel.unordered_until >= world.pass_number
        if is_hazy or note.maybe or (old is not None and old.maybe):
            self.may_replace(note)
        elif old is None:
            self._goes(note)
        elif old.state == LEASED:
            self._hold(note, old)
        elif old.is_held:
            assert old.behind is not None
            lease = old.behind
            self.ended(old)
            self._hold(note, lease)
        else:
            has_place = old.state == READY or old.keeps_place_in_order
            self.ended(old)
            if has_place and not entry.deliver_at_ms:
                note.place = old.place
                world.say(
                    f"{entry.token} takes the place of {old.entry.token} in {channel.name}: {note.place}"
                )
            else:
                self._goes(note)

    @staticmethod
    def _note_in(channel: ChannelModel, earlier: Entry | None) -> Note | None:
        if earlier is None:
            return None
        return next((n for n in channel.notes.get(earlier.token, []) if n.entry is earlier), None)

    def may_replace(self, note: Note) -> None:
        """Nobody knows what it met."""
        wish = note.entry.wish
        assert wish is not None
        for other in self._open_notes(note.channel, wish.key, note.entry):
            if other.state == LEASED:
                other.may_be_replaced = True
            else:
                other.maybe, other.place = True, None
        note.maybe, note.place = True, None
        if note.entry.deliver_at_ms:
            self._delay(note, (0, note.entry.deliver_at_ms))

    def _goes(self, note: Note) -> None:
        world, due_ms = self.world, note.entry.deliver_at_ms
        if due_ms:
            self._delay(note, (due_ms, due_ms))
        else:
            behind = BEHIND_ALL if note.entry.replaces is not None else 0
            note.place = world.place(note, (world.pass_number, 0, behind + note.entry.offset))

    def _hold(self, note: Note, lease: Note) -> None:
        """Behind that lease; what has a delay of its own takes no place over."""
        due_ms = note.entry.deliver_at_ms or NEVER_MS
        self._delay(note, (due_ms, due_ms))
        note.takes_place = due_ms == NEVER_MS
        note.behind, lease.successor = lease, note
        self.world.say(f"{note.entry.token} is held behind {lease.entry.token} in {note.channel.name}")

    def _delay(self, note: Note, due_ms: tuple[int, int]) -> None:
        note.delay(due_ms, note.entry.delayed_from_ms, self.world.engine.mono_ns // MS)

    def ended(self, note: Note) -> None:
        """It gave way, for sure: nobody gets it any more, and nothing else ends it."""
        self.judged += 1
        note.state, note.acked = DONE, True
        self.world.one_end.ended(note, "a replacement")
        self.world.say(f"{note.entry.token} gave way in {note.channel.name}")

    # --- as a lease ends ----------------------------------------------------------------------

    def lease_ends(self, lease: Note) -> None:
        """What was held behind it goes; what becomes of the leased one itself, `was_replaced` decides later."""
        note, lease.successor = lease.successor, None
        lease.was_replaced = False
        if note is None or note.state != DELAYED or note.behind is not lease:
            return
        lease.was_replaced, lease.may_be_replaced = not note.maybe, lease.may_be_replaced or note.maybe
        note.behind = None
        if note.due_ms[0] < NEVER_MS:
            return  # its own delay goes on
        note.state, note.returned_pass = READY, self.world.pass_number
        note.place = lease.place if note.takes_place else None

    def expires(self, lease: Note) -> None:
        """Called before it does. Timers fire in order: what is held behind it may have outlived its time to live."""
        note, wall = lease.successor, self.world.engine.wall_ms
        if note is None or not note.is_held or not 0 < note.entry.expires_ms <= wall:
            return
        over_mono_ms = self.world.engine.mono_ns // MS - (wall - note.entry.expires_ms)
        if over_mono_ms <= lease.due_mono_ms:
            lease.successor = note.behind = None
        if over_mono_ms == lease.due_mono_ms:
            lease.may_be_replaced = note.maybe = True

    def gives_way(self, note: Note) -> bool:
        """Its lease has ended and it would wait again: whether it ends instead."""
        if note.was_replaced:
            self.ended(note)
        elif note.may_be_replaced:
            note.maybe, note.place = True, None
        return note.was_replaced

    @staticmethod
    def leased_again(note: Note) -> None:
        """Nobody saw the end of its lease before; what was held behind it may have gone, or not."""
        if note.was_replaced:
            note.was_replaced, note.may_be_replaced = False, True

    # --- what blurs a channel -----------------------------------------------------------------

    @staticmethod
    def forget(queue: QueueModel) -> None:
        """A channel starts anew: what was replaced may wait there again."""
        for chain in queue.chains.values():
            chain.is_vague = chain.may_be_forgotten = True

    # --- the judge of what the core says waits ------------------------------------------------

    def check(self, queue: QueueModel, channel: ChannelModel, listed: admin.ListPendingResponse) -> None:
        """Of each dedup key at most one waits that came since the channel began, where there is no other."""
        states = admin.GetMessageResponse
        entries = {entry.offset: entry for entry in queue.log if entry.wish is not None}
        waiting: defaultdict[str, list[int]] = defaultdict(list)
        for each in listed.messages:
            entry = entries.get(each.offset)
            in_flight = each.state in (states.STATE_LEASED, states.STATE_DECIDING)
            if entry is None or in_flight or entry.executed_pass <= channel.began_pass:
                continue
            assert entry.wish is not None
            waiting[entry.wish.key].append(entry.token)
            self._check_due(channel, entry, each)
        if queue in self._shared:
            return
        self.judged_waiting += len(waiting)
        if several := {key: tokens for key, tokens in waiting.items() if len(tokens) > 1}:
            raise Broken(f"in {queue.name}/{channel.name} more than one of a dedup key waits: {several}")

    def _check_due(self, channel: ChannelModel, entry: Entry, listed: admin.PendingMessage) -> None:
        """Its own delay, or that of what it replaced, ends when it was to, and not beyond its `max_wait_ms`."""
        due_ms = entry.deliver_at_ms
        for note in channel.notes.get(entry.token, []):
            is_sure = note.entry is entry and note.state == DELAYED and not note.maybe
            if not is_sure or entry.is_vague or note.due_ms != (due_ms, due_ms):
                continue
            self.judged_dues += 1
            if listed.due_at.ToMilliseconds() != due_ms:
                raise Broken(f"{note} is due at {listed.due_at.ToMilliseconds() % 10**7}")
