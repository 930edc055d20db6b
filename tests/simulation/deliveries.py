"""What leaves the core as deliveries, looked at in the order in which it was picked.

A lease id says when a message was picked: ids rise, and the core says after each pass how far they got. So what was
picked in an earlier pass, and came only now because its bytes had to be read back, is told from what was picked in
this one; and a pull that was answered before the marker behind it was served in the middle of the pass.
"""

import copy
import random
from collections.abc import Iterable
from functools import partial
from typing import Any

from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from tests.core.driven_engine import MS, DrivenEngine
from tests.simulation.asked import Snapshot
from tests.simulation.fair_share import FairShare
from tests.simulation.limit_model import NAMES
from tests.simulation.model import (
    DECIDING,
    DELAYED,
    DONE,
    LEASED,
    READY,
    ChannelModel,
    ConsumerModel,
    Entry,
    Model,
    Note,
    QueueModel,
    Routed,
)
from tests.simulation.oracles import (
    AsSaid,
    Broken,
    InOrder,
    Kept,
    OnCurve,
    OneAtATime,
    OneEnd,
    OneFiring,
    OneHolder,
)
from tests.simulation.within_limits import WithinLimits

LONGEST_LEASE_MS = 30_000  # of those that nobody extends


def _routed(meta: messages.MessageMetadata) -> Routed:
    """As a delivery says it."""
    priority = meta.priority if meta.HasField("priority") else 1
    return meta.fairness_key, frozenset(meta.throttle_keys), round(meta.cost * 1000), priority


class Deliveries:
    """The model, the judges, and what they are shown of each delivered message."""

    def __init__(self, seed: int, settings: dict[str, int | str], cold: bool) -> None:
        self.random = random.Random(seed)
        self.engine = DrivenEngine(settings, seed=seed & 0xFFFF)
        self.always_cold = cold
        self.hazy = False  # somebody's messages are being read back while commands wait
        self.was_cold = False  # as this pass began
        self.taking: list[tuple[int, ConsumerModel, messages.Message, list[Note]]] = []
        self.model = Model()
        self.kept, self.one_holder, self.in_order = Kept(), OneHolder(), InOrder()
        self.one_at_a_time, self.one_end, self.one_firing = OneAtATime(), OneEnd(), OneFiring()
        self.fair, self.on_curve, self.within_limits = FairShare(), OnCurve(), WithinLimits()
        self.as_said = AsSaid()
        self.pass_number = 0
        self.next_lease_id = 0  # when this pass began
        self.loaded = 0  # since the core was opened
        self.blurred = False  # nobody knows when in this pass a pull was served
        self.midway = False  # but for those that were at once
        self.unseen: set[int] = set()  # leases given since the last quiet moment, and not seen so far
        self.missed = False  # some of those ended unseen
        self.failed_unseen = 0  # the most failures of such that no message showed so far
        self.lost: list[int] = []  # until when (mono) a lease may last that a crash kept from being seen
        self.snapshot: Snapshot | None = None
        self.trace: list[str] = []

    def say(self, text: str) -> None:
        self.trace.append(f"[{self.pass_number} {self.engine.wall_ms % 10_000_000}] {text}")

    @property
    def cold(self) -> bool:
        return self.always_cold or self.hazy

    def hears(self, said: Iterable[service.LimitFeedback], note: Note) -> bool:
        """Whether limits that learn were told of a refusal: they close for as long as it says."""
        limits, refused = self.model.limits, False
        for each in said if not note.channel.queue.is_dlq else ():
            for key in note.entry.throttles if each.limit == "" else (each.limit,):
                if each.kind == service.LimitFeedback.KIND_LIMITED and limits.learns(key):
                    until_s = limits.clock_s + each.retry_after_ms / 1000
                    limits.closed_until_s[key] = max(limits.closed_until_s.get(key, 0.0), until_s)
                    refused = True
        return refused

    # --- leases given, and seen -----------------------------------------------------------------

    def _leases_given(self) -> None:
        """After the core's pass: those of its leases that are not seen now are seen when their bytes are here."""
        hazy = bool(self.unseen) or self._count("loads") > self.loaded
        self.unseen.update(range(self.next_lease_id, self._count("next_lease_id")))
        self.hazy = hazy and not self.always_cold
        for bucket in self.model.buckets.values():
            bucket.refill(self.engine.wall_ms, len(self.unseen))
            if not self.unseen:
                bucket.level = min(bucket.level, bucket.full + bucket.KEPT)
        self.model.limits.ticks(self.engine.wall_ms, self.engine.mono_ns // MS)
        if hazy:
            self.within_limits.unseen(self.model)

    def _throttled(self) -> set[str]:
        """Throttle keys at which a message may have to wait."""
        limits = self.model.limits
        return set(self.model.buckets) | {key for key in NAMES if limits.holds(key, self.pass_number)}

    def _count(self, name: str) -> int:
        count = self.engine.core.counters()[name]
        assert isinstance(count, int)
        return count

    def load(self) -> int:
        """Reads back what the core asked for; the next pass finds it."""
        served = self.engine.core.load()
        self.loaded += served
        return served

    def lost_leases(self) -> int:
        """The most leases there may be that a crash kept from being seen."""
        mono = self.engine.mono_ns // MS
        self.lost = [until for until in self.lost if until >= mono]
        return len(self.lost)

    def _take_all(self, weights_known: bool) -> None:
        """What was delivered, in the order of lease ids: that is the order in which it was picked."""
        self.fair.buckets = self.model.buckets
        self.fair.limited |= self._throttled()
        for _, consumer, message, notes in sorted(self.taking, key=lambda item: item[0]):
            notes.append(self._take_one(consumer, message, weights_known))
        for _, consumer, _, _ in self.taking:
            if consumer.kind != "pull":
                held = sum(1 for n in self.model.leases.values() if n.holder == consumer.token)
                self.one_holder.holds(consumer.token, held, consumer.max_in_flight)
        self.taking.clear()

    def _delivery(self, token: int, payload: bytes) -> None:
        consumer = self.model.consumers.get(token)
        if consumer is None or consumer.ended:
            raise Broken(f"a delivery to {token}, which is closed")
        if consumer.kind == "session":
            found = list(service.ConsumeSessionResponse.FromString(payload).delivery.messages)
        else:
            response = service.ConsumeResponse.FromString(payload)
            found = [response.message] if response.HasField("message") else list(response.messages)
        if not found:
            raise Broken(f"an empty delivery to {token}")
        consumer.unwritten.append(self.take(consumer, found))

    def take(self, consumer: ConsumerModel, found: Any) -> list[Note]:
        """Messages that were delivered, to be looked at when all of the pass are known."""
        notes: list[Note] = []
        self.taking += [(message.metadata.lease_id, consumer, message, notes) for message in found]
        return notes

    def _take_one(self, consumer: ConsumerModel, message: messages.Message, weights_known: bool) -> Note:
        meta = message.metadata
        message_token = int(message.payload.split(b"|")[0])
        channel = consumer.queue.channels[consumer.channel]
        wall, mono = self.engine.wall_ms, self.engine.mono_ns // MS
        leased_ms = message.timestamps.leased_at.ToMilliseconds()
        self.unseen.discard(meta.lease_id)
        what = (
            f"message {message_token} ({meta.offset}) to {consumer.token} in {meta.queue_id}/{meta.channel}"
        )
        self.say(f"deliver {what} lease {meta.lease_id} attempts {meta.attempt_count}")
        if (meta.queue_id, meta.channel) != (consumer.queue.name, consumer.channel):
            raise Broken(f"{what} is not where the consumer is: {consumer.queue.name}/{consumer.channel}")
        routed = _routed(meta)
        note = self.find(channel, message_token, meta.dead_letter.source_channel, meta.offset, routed)
        self.kept.delivered(note, what)
        assert note is not None
        if (
            self.snapshot is not None
            and note.entry.fsync
            and note.entry.executed_pass > self.snapshot.at_pass
        ):
            raise Broken(f"{what} was delivered before its enqueue was durable")
        # Picked before this pass, or where nobody knows in it, and read back since.
        early = meta.lease_id < self.next_lease_id or (
            consumer.kind == "pull" and self.blurred and not self.midway
        )
        # What was picked just before it is known, and not being read back for an answer that comes later.
        clear = not self.cold and min(self.unseen, default=meta.lease_id + 1) > meta.lease_id
        if note.state == DONE and not (early and note.ended_ms >= leased_ms):
            raise Broken(f"{what} was delivered although it was done: {note}")
        if note.state == DONE:
            for phantom in note.buried:
                phantom.state = DONE
        entry = note.entry
        if entry.id and entry.id != message.id:
            raise Broken(f"{what} has id {message.id}, it was stored as {entry.id}")
        entry.id, entry.offset = message.id, meta.offset
        self.kept.placed(entry)
        self.one_firing.seen(self.model.fired, entry.headers, entry.id)
        self._check_fields(note, message, what)
        if not early:  # else what held then can't be judged now
            self._check_ready(note, what)
            self.one_at_a_time.picked(note, hidden=self.cold or self.missed or bool(self.lost_leases()))
            if clear:
                self.in_order.picked(note, self.pass_number, partial(self._limits_since, entry))
        self.one_holder.leased(note, meta.lease_id, mono)
        if note.state == LEASED:
            self.end_lease(note)
        self._lease(note, consumer, message, early, what)
        for name in entry.throttles if not consumer.queue.is_dlq else ():
            bucket = self.model.buckets.get(name)
            # What was picked in an earlier pass may have paid under other limits.
            if bucket is not None and not (early and leased_ms <= bucket.since_ms):
                self.on_curve.taken(bucket, name, wall, len(self.unseen))
        self.within_limits.taken(self.model, note, self.pass_number, is_seen=clear and not early)
        self.fair.picked(note, in_order=weights_known and clear)
        return note

    def _limits_since(self, entry: Entry, since_pass: int) -> int:
        """For how many of the limits that it names it may have to wait, or may have had to since that pass."""
        model = self.model
        return sum(
            name in model.buckets
            or model.lifted_pass.get(name, -1) >= since_pass
            or model.limits.holds(name, since_pass)
            for name in entry.throttles
        )

    def _lease(
        self, note: Note, consumer: ConsumerModel, message: messages.Message, early: bool, what: str
    ) -> None:
        """What the delivery says of its lease, into the model."""
        meta, times = message.metadata, message.timestamps
        leased_ms, expires_ms = times.leased_at.ToMilliseconds(), times.lease_expires_at.ToMilliseconds()
        # A lease lasts for the queue's visibility timeout, as it is at the moment of the pick.
        if not early and expires_ms - leased_ms != consumer.queue.config["visibility_ms"]:
            raise Broken(f"{what} is leased for {expires_ms - leased_ms} ms, not {consumer.queue.config}")
        note.state, note.maybe, note.lease_id = LEASED, False, meta.lease_id
        note.leased_ms, note.expires_ms = leased_ms, expires_ms
        passed_ms = self.engine.wall_ms - leased_ms
        note.due_mono_ms = self.engine.mono_ns // MS - passed_ms + (expires_ms - leased_ms)
        note.attempts = meta.attempt_count
        note.holder = consumer.token if consumer.kind != "pull" else 0
        self.model.leases[meta.lease_id] = note

    def find(
        self, channel: ChannelModel, token: int, source: str, offset: int, routed: Routed | None = None
    ) -> Note | None:
        note = channel.find(token, source, offset, routed)
        ghost = channel.queue.ghosts.get(token)
        if note is None and ghost is not None:  # an enqueue whose answer a crash swallowed
            del channel.queue.ghosts[token]
            ghost.offset = offset
            channel.queue.log.append(ghost)
            for each in channel.queue.channels.values():
                if each.name not in ghost.excluded:
                    each.add(Note(ghost, each, place=None, maybe=each.name in ghost.fuzzy))
            note = channel.find(token, source, offset)
        origin = self.model.queues.get(channel.queue.name.removesuffix(".dlq"))
        if note is None and channel.queue.is_dlq and origin is not None and token in origin.ghosts:
            entry = copy.copy(origin.ghosts[token])  # it died before anybody saw it
            entry.queue, entry.offset, entry.source = channel.queue, offset, source
            entry.expires_ms = entry.deliver_at_ms = 0
            origin.ghosts[token].fuzzy.update(origin.channels)
            note = Note(entry, channel, attempts=None)
            channel.add(note)
        if note is None and origin is not None and channel.queue.is_dlq:
            note = self._died_unseen(origin, channel, token, source)
        return note

    def _died_unseen(self, origin: QueueModel, dlq: ChannelModel, token: int, source: str) -> Note | None:
        """Its leases ran out, and a crash kept everybody from seeing them."""
        cap = origin.config["max_attempts"]
        for note in origin.channels[source].notes.get(token, []) if source in origin.channels else ():
            failed = cap - (note.attempts or 0)
            if note.state in (READY, DELAYED) and 0 < failed <= self.failed_unseen:
                self.failed_unseen -= failed
                self.dead_letter(note)
                return next(dead for dead in note.buried if dead.channel is dlq)
            # Leased as its time to live ended: what becomes of it the end of that lease says, by the settings of then.
            over = note.state == DONE and 0 < note.entry.expires_ms <= note.ended_ms and not note.buried
            if over and self.failed_unseen and origin.config["ttl_to_dlq"]:
                self.failed_unseen -= 1
                self.dead_letter(note)
                return next(dead for dead in note.buried if dead.channel is dlq)
        return None

    def _check_fields(self, note: Note, message: messages.Message, what: str) -> None:
        entry, meta = note.entry, message.metadata
        if dict(message.headers) != entry.headers:
            raise Broken(f"{what} has headers {dict(message.headers)}, sent were {entry.headers}")
        got = _routed(meta)
        self.as_said.delivered(note, got)
        if got != entry.routed:
            raise Broken(f"{what} is routed as {got}, not {entry.routed}")
        unseen = self.cold or self.missed
        hidden = unseen and note.attempts is not None and meta.attempt_count > note.attempts
        if note.attempts is not None and meta.attempt_count != note.attempts and not hidden:
            raise Broken(f"{what} says {meta.attempt_count} attempts, it had {note.attempts}")

    def _check_ready(self, note: Note, what: str) -> None:
        key = note.channel.queue.key(note.entry.key)
        if note.state == DECIDING:
            raise Broken(f"{what} while its failure is being decided")
        if note.state == DELAYED and note.due_ms[0] > self.engine.wall_ms + 1:
            raise Broken(f"{what} was to wait {note.due_ms[0] - self.engine.wall_ms} ms more")
        if key.paused:
            raise Broken(f"{what} although its key {note.entry.key} is paused")
        if key.cap:
            held = sum(
                1
                for n in note.channel.all_notes()
                if n is not note and n.state in (LEASED, DECIDING) and n.entry.key == note.entry.key
            )
            if held >= key.cap:
                raise Broken(
                    f"{what} although {held} of key {note.entry.key} are leased and the cap is {key.cap}"
                )

    # --- ends of leases, and of messages --------------------------------------------------------

    def end_lease(self, note: Note) -> None:
        self.model.leases.pop(note.lease_id, None)

    def dead_letter(self, note: Note) -> None:
        queue = note.channel.queue
        note.state, note.ended_ms = DONE, self.engine.wall_ms
        self.say(f"dead letter {note.entry.token} of {queue.name}/{note.channel.name}")
        if queue.dlq is None:
            return
        entry = copy.copy(note.entry)
        entry.queue, entry.offset, entry.source = queue.dlq, 0, note.channel.name
        entry.expires_ms = entry.deliver_at_ms = 0
        for channel in queue.dlq.channels.values():
            note.buried.append(Note(entry, channel, place=None, maybe=note.maybe))
            channel.add(note.buried[-1])
