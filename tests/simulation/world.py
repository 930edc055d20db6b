"""The core, its model and its judges side by side: an effect is predicted when a pass carries the command out."""

import copy
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message as Proto

from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server import commands
from tests.core.driven_engine import MS, DrivenEngine, Out
from tests.simulation.asked import Asked, Snapshot
from tests.simulation.fair_share import FairShare
from tests.simulation.model import (
    DELAYED,
    DONE,
    LEASED,
    READY,
    ChannelModel,
    ConsumerModel,
    Entry,
    Model,
    Note,
    Place,
    QueueModel,
)
from tests.simulation.oracles import Broken, InOrder, Kept, OnCurve, OneHolder

COMMANDS_PER_PASS = 64
FRAMES_REBUILT_PER_PASS = 64
ENQUEUES = (commands.ENQUEUE, commands.ENQUEUE_BATCH, commands.ENQUEUE_STREAM)
DELETIONS = (commands.DELETE_QUEUE, commands.DELETE_CHANNEL)


class World:
    def __init__(self, seed: int, settings: dict[str, int | str], cold: bool) -> None:
        self.random = random.Random(seed)
        self.engine = DrivenEngine(settings, seed=seed & 0xFFFF)
        self.always_cold = cold
        self.hazy = False  # somebody's messages are being read back while commands wait
        self.taking: list[tuple[int, ConsumerModel, messages.Message, list[Note]]] = []
        self.model = Model()
        self.kept, self.one_holder, self.in_order = Kept(), OneHolder(), InOrder()
        self.fair, self.on_curve = FairShare(), OnCurve()
        self.mailbox: deque[Asked] = deque()
        self.taken: list[Asked] = []
        self.unanswered: dict[int, Asked] = {}
        self.pass_number = 0
        self.next_pass_ns: int | None = None
        self.clean_passes = True
        self.snapshot: Snapshot | None = None
        self.ended_by_us: set[int] = set()
        self.throttled_share = 0.0
        self.messages = 0
        self.trace: list[str] = []

    def say(self, text: str) -> None:
        self.trace.append(f"[{self.pass_number} {self.engine.wall_ms % 10_000_000}] {text}")

    # --- asking -----------------------------------------------------------------------------

    def ask(
        self,
        kind: int,
        request: Proto | bytes,
        carried_out: Callable[[Asked], None] | None = None,
        answered: Callable[[Asked, int, bytes], None] | None = None,
        token: int | None = None,
        **notes: Any,
    ) -> Asked:
        token = self.engine.submit(kind, request, token)
        asked = Asked(kind, token, carried_out, answered, notes)
        self.mailbox.append(asked)
        if answered is not None:
            self.unanswered[token] = asked
        return asked

    # --- a pass -----------------------------------------------------------------------------

    def run_pass(self) -> None:
        self.pass_number += 1
        executed = self._next_commands()
        for index, asked in enumerate(executed):
            asked.executed_pass, asked.index = self.pass_number, index
        self.next_pass_ns = self.engine.run_pass()
        outs = self.engine.core.drain()
        loaded = self._load_now(outs)
        new = {asked.token for asked in executed if asked.answered is not None}
        # Durable answers of earlier passes left before this pass's commands were looked at.
        for token, kind, status, payload in outs:
            if kind == commands.REPLY and token not in new and token not in self.model.consumers:
                self._answer(token, status, payload)
        for asked in executed:
            if asked.carried_out is not None:
                asked.carried_out(asked)
        self._timers()
        for token, kind, status, payload in outs:
            if kind == commands.DELIVERY:
                self._delivery(token, payload)
            elif kind == commands.FRAME:
                self._session_answer(payload)
            elif kind == commands.END:
                self._ended(token, status)
            elif kind == commands.REPLY and token in self.model.consumers:
                self._answer(token, status, payload)
        # A pull is served in the middle of a pass, before the weights that later commands bring.
        self.fair.pulled = any(a.kind == commands.LEASE for a in executed)
        if not loaded:
            self._take_all(not (self.fair.pulled and any(a.kind in ENQUEUES for a in executed)))
        for token, kind, status, payload in outs:
            if kind == commands.REPLY and token in new and token in self.unanswered:
                self._answer(token, status, payload)
        if loaded:  # a second pass may have delivered what the first one took in
            self._take_all(False)
        self._look()

    def _look(self) -> None:
        for queue in self.model.queues.values() if not self.always_cold else ():
            for channel in queue.channels.values():
                self.fair.look(channel)
        if self.cold:  # somebody may hold what nobody has seen yet
            self.fair.interrupt()

    def _load_now(self, outs: list[Out]) -> bool:
        """Where bodies are hot, what a restart left cold is read at once: nobody holds what nobody saw."""
        loaded = False
        while not self.always_cold and not self.mailbox and not self.taken and self.engine.core.load():
            self.next_pass_ns = self.engine.run_pass()
            outs += self.engine.core.drain()
            loaded = True
        self.hazy = not self.always_cold and bool(self.mailbox or self.taken)
        return loaded

    @property
    def cold(self) -> bool:
        return self.always_cold or self.hazy

    def _take_all(self, weights_known: bool) -> None:
        """What was delivered, in the order of lease ids: that is the order in which it was picked."""
        for _, consumer, message, notes in sorted(self.taking, key=lambda item: item[0]):
            notes.append(self._take_one(consumer, message, weights_known))
        for _, consumer, _, _ in self.taking:
            if consumer.kind != "pull":
                held = sum(1 for n in self.model.leases.values() if n.holder == consumer.token)
                self.one_holder.holds(consumer.token, held, consumer.max_in_flight)
        self.taking.clear()

    def _next_commands(self) -> list[Asked]:
        """A pass takes a handful from the mailbox, and stops before a deletion that is not its first command."""
        if not self.taken:
            self.taken = [self.mailbox.popleft() for _ in range(min(COMMANDS_PER_PASS, len(self.mailbox)))]
        stop = next(
            (i for i, asked in enumerate(self.taken) if i and asked.kind in DELETIONS), len(self.taken)
        )
        executed, self.taken = self.taken[:stop], self.taken[stop:]
        return executed

    def _answer(self, token: int, status: int, payload: bytes) -> None:
        asked = self.unanswered.pop(token, None)
        if asked is None:
            if token in self.model.consumers and self.model.consumers[token].kind == "pull":
                raise Broken(f"pull {token} was answered twice")
            raise Broken(f"an answer to {token}, which asked nothing or was answered before")
        assert asked.answered is not None
        asked.answered(asked, status, payload)

    def check_synced(self, asked: Asked) -> None:
        """Something was done under fsync, and says so: that must have been synced."""
        if (
            self.snapshot is not None
            and asked.notes.get("fsync")
            and asked.executed_pass > self.snapshot.at_pass
        ):
            raise Broken(f"{asked.kind} of pass {asked.executed_pass} was answered before its sync")

    # --- timers -----------------------------------------------------------------------------

    def _timers(self) -> None:
        wall, mono = self.engine.wall_ms, self.engine.mono_ns // MS
        due: list[tuple[int, Callable[[], None]]] = []
        for note in self.model.all_notes():
            if note.state == LEASED and note.due_mono_ms <= mono:
                due.append((note.due_mono_ms, lambda n=note: self._expire(n)))  # type: ignore[misc]
            elif note.state == DELAYED and note.due_ms[0] == note.due_ms[1] and note.due_ms[1] <= wall:
                when = max(mono - (wall - note.due_ms[1]), note.delayed_at_ms)
                due.append((when, lambda n=note: self._ready(n)))  # type: ignore[misc]
            elif note.state == DELAYED and note.due_ms[1] <= wall:
                note.state, note.place = READY, None
        for when, happen in sorted(due, key=lambda item: item[0]):
            self._due_place: Place = (self.pass_number, 2, when)
            happen()
        for note in self.model.all_notes():
            if note.state in (READY, DELAYED) and 0 < note.entry.expires_ms <= wall:
                self.say(f"ttl of {note.entry.token} over in {note.channel.name}")
                if note.channel.queue.config.get("ttl_to_dlq") and not note.channel.queue.is_dlq:
                    self.dead_letter(note)
                    for dead in note.buried:  # unless somebody's delivery waits for its bytes
                        dead.maybe = dead.maybe or self.cold
                else:
                    note.state, note.ended_ms = DONE, wall

    def _ready(self, note: Note) -> None:
        note.state, note.place = READY, self._place(note, self._due_place)

    def _place(self, note: Note, place: Place) -> Place | None:
        return None if self.pass_number <= note.channel.unordered_until else place

    def _expire(self, note: Note) -> None:
        self.say(f"lease {note.lease_id} of {note.entry.token} expired")
        self.end_lease(note)
        self.fail(note, None, self._due_place)

    # --- effects that commands and timers share -----------------------------------------------

    def end_lease(self, note: Note) -> None:
        self.model.leases.pop(note.lease_id, None)

    def fail(self, note: Note, delay_ms: int | None, place: Place) -> None:
        queue = note.channel.queue
        policy = queue.config
        if note.attempts is not None:
            note.attempts += 1
        cap = policy.get("max_attempts", 20)
        if cap and not queue.is_dlq and note.attempts is not None and note.attempts >= cap:
            self.dead_letter(note)
            return
        if 0 < note.entry.expires_ms <= self.engine.wall_ms:
            if policy.get("ttl_to_dlq") and not queue.is_dlq:
                self.dead_letter(note)
            else:
                note.state, note.ended_ms = DONE, self.engine.wall_ms
            return
        wall = self.engine.wall_ms
        if delay_ms is None:
            low, high = self._backoff(queue, note.attempts)
        else:
            low = high = delay_ms
        if high > 0:
            note.delay((wall + low, wall + high), wall, self.engine.mono_ns // MS)
        else:
            note.state, note.place = READY, self._place(note, place)

    @staticmethod
    def _backoff(queue: QueueModel, attempts: int | None) -> tuple[int, int]:
        base = queue.config.get("retry_base_ms", 100)
        if queue.config.get("retry_fixed"):
            return base, base
        if attempts is None:
            return 0, 60000
        wait = min(base * 2 ** (attempts - 1), queue.config.get("retry_cap_ms", 60000))
        return (int(wait * 0.5) - 1, wait) if queue.config.get("jitter") else (wait, wait)

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

    # --- what leaves ------------------------------------------------------------------------

    def _ended(self, token: int, status: int) -> None:
        if token not in self.ended_by_us:
            raise Broken(f"stream {token} was ended with {status}, and its queue and channel are there")

    def _session_answer(self, payload: bytes) -> None:
        response = service.ConsumeSessionResponse.FromString(payload)
        if response.HasField("settled"):
            self._answer(response.settled.sequence, 0, payload)

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
        meta, times = message.metadata, message.timestamps
        message_token = int(message.payload.split(b"|")[0])
        channel = consumer.queue.channels[consumer.channel]
        wall, mono = self.engine.wall_ms, self.engine.mono_ns // MS
        leased_ms = times.leased_at.ToMilliseconds()
        what = (
            f"message {message_token} ({meta.offset}) to {consumer.token} in {meta.queue_id}/{meta.channel}"
        )
        self.say(f"deliver {what} lease {meta.lease_id} attempts {meta.attempt_count}")
        if (meta.queue_id, meta.channel) != (consumer.queue.name, consumer.channel):
            raise Broken(f"{what} is not where the consumer is: {consumer.queue.name}/{consumer.channel}")
        note = self.find(channel, message_token, meta.dead_letter.source_channel, meta.offset)
        self.kept.delivered(note, what)
        assert note is not None
        if (
            self.snapshot is not None
            and consumer.queue.config["fsync"]
            and note.entry.executed_pass > self.snapshot.at_pass
        ):
            raise Broken(f"{what} was delivered before its enqueue was durable")
        # A pull is served before this pass's timers fire, and what waits for its bytes was leased before.
        if note.state == DONE and not ((self.cold or consumer.kind == "pull") and note.ended_ms >= leased_ms):
            raise Broken(f"{what} was delivered although it was done: {note}")
        if note.state == DONE:
            for phantom in note.buried:
                phantom.state = DONE
        entry = note.entry
        if entry.id and entry.id != message.id:
            raise Broken(f"{what} has id {message.id}, it was stored as {entry.id}")
        entry.id, entry.offset = message.id, meta.offset
        self.kept.placed(entry)
        self._check_fields(note, message, what)
        if self.cold and leased_ms < wall:
            pass  # picked some passes ago: the order of then can't be judged now
        else:
            self._check_ready(note, what)
            if not self.cold:
                self.in_order.picked(note)
        self.one_holder.leased(note, meta.lease_id, mono)
        if note.state == LEASED:
            self.end_lease(note)
        expires_ms = times.lease_expires_at.ToMilliseconds()
        note.state, note.maybe, note.lease_id = LEASED, False, meta.lease_id
        note.leased_ms, note.expires_ms = leased_ms, expires_ms
        note.due_mono_ms = mono - (wall - leased_ms) + (expires_ms - leased_ms)
        note.attempts = meta.attempt_count
        note.holder = consumer.token if consumer.kind != "pull" else 0
        self.model.leases[meta.lease_id] = note
        for name in entry.throttles if not consumer.queue.is_dlq else ():
            bucket = self.model.buckets.get(name)
            # What was read back was picked before, perhaps under other limits.
            if bucket is not None and not (self.cold and (leased_ms < wall or leased_ms <= bucket.since_ms)):
                self.on_curve.taken(bucket, name, wall)
        self.fair.picked(note, in_order=weights_known and not self.cold)
        return note

    def find(self, channel: ChannelModel, token: int, source: str, offset: int) -> Note | None:
        note = channel.find(token, source, offset)
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
        return note

    def _check_fields(self, note: Note, message: messages.Message, what: str) -> None:
        entry, meta = note.entry, message.metadata
        if dict(message.headers) != entry.headers:
            raise Broken(f"{what} has headers {dict(message.headers)}, sent were {entry.headers}")
        got = (meta.fairness_key, frozenset(meta.throttle_keys), round(meta.cost * 1000))
        if got != (entry.key, entry.throttles, entry.cost):
            raise Broken(f"{what} is routed as {got}, not {(entry.key, entry.throttles, entry.cost)}")
        hidden = self.cold and note.attempts is not None and meta.attempt_count > note.attempts
        if note.attempts is not None and meta.attempt_count != note.attempts and not hidden:
            raise Broken(f"{what} says {meta.attempt_count} attempts, it had {note.attempts}")

    def _check_ready(self, note: Note, what: str) -> None:
        key = note.channel.queue.key(note.entry.key)
        if note.state == DELAYED and note.due_ms[0] > self.engine.wall_ms + 1:
            raise Broken(f"{what} was to wait {note.due_ms[0] - self.engine.wall_ms} ms more")
        if key.paused:
            raise Broken(f"{what} although its key {note.entry.key} is paused")
        if key.cap:
            held = sum(
                1
                for n in note.channel.all_notes()
                if n is not note and n.state == LEASED and n.entry.key == note.entry.key
            )
            if held >= key.cap:
                raise Broken(
                    f"{what} although {held} of key {note.entry.key} are leased and the cap is {key.cap}"
                )

    # --- commits, crashes, quiet ----------------------------------------------------------------

    def commit(self) -> None:
        self.engine.commit()

    def plan_power_cut(self) -> bool:
        """Sync now and remember this moment: the next crash goes back to it."""
        if not self.engine.commit():
            return False
        originals = self.under_way()
        model, under_way = copy.deepcopy((self.model, originals))
        self.snapshot = Snapshot(model, under_way, originals, self.pass_number, dict(self.engine.synced))
        return True

    def under_way(self) -> list[Entry]:
        """Enqueues that were carried out and not answered."""
        return [
            entry
            for asked in self.unanswered.values()
            if asked.executed_pass
            for entry in asked.notes.get("entries", [])
            if entry.executed_pass and not entry.offset
        ]

    def crash(self, power_cut: bool, away_ms: int) -> None:
        if not power_cut:
            self.engine.kill()
            ghosts = self.under_way()
        else:
            assert self.snapshot is not None
            self.model, ghosts = self.snapshot.model, self.snapshot.under_way
            for ghost, original in zip(ghosts, self.snapshot.originals, strict=True):
                ghost.id, ghost.offset = original.id, original.offset
            self.engine.synced = self.snapshot.synced
            self.engine.cut_power()
        self.say(f"{'power cut' if power_cut else 'kill'}, back after {away_ms} ms")
        self._restart(ghosts, away_ms)

    def clean_restart(self, away_ms: int) -> None:
        self.quiet()
        self.engine.stop()
        self.say(f"clean restart, back after {away_ms} ms")
        self._restart([], away_ms)

    def _restart(self, ghosts: list[Entry], away_ms: int) -> None:
        self.mailbox.clear()
        self.taken.clear()
        self.unanswered.clear()
        self.snapshot = None
        self.engine.reopen(away_ms)
        self.pass_number += 1
        self.fair.forget()
        wall, mono = self.engine.wall_ms, self.engine.mono_ns // MS
        self.model.consumers.clear()  # what was sent stays leased
        for entry in ghosts:
            self._haunt(entry)
        for bucket in self.model.buckets.values():
            bucket.level = min(bucket.burst, bucket.level + bucket.rate * max(0, wall - bucket.at_ms) / 1000)
            bucket.at_ms = wall
        for note in self.model.all_notes():
            if note.state == LEASED:
                left = max(0, min(note.expires_ms - wall, note.expires_ms - note.leased_ms))
                note.due_mono_ms = mono + left
            elif note.state == DELAYED:
                note.delay_resumes(wall, mono)
            if self.always_cold and note.state in (READY, DELAYED):
                # It may have been leased for somebody while its bytes were being read back.
                note.attempts, note.place = None, None
        self._timers()  # opening runs a pass of its own

    def _haunt(self, entry: Entry) -> None:
        """An enqueue that nobody saw answered; or one that was answered after the moment we went back to."""
        queue = entry.queue
        if queue.gone or entry.first is not None:
            return
        if entry.offset:
            queue.log.append(entry)
            for channel in queue.channels.values():
                if channel.name not in entry.excluded and entry.offset >= channel.start:
                    channel.add(Note(entry, channel, place=None, maybe=channel.name in entry.fuzzy))
            return
        queue.ghosts[entry.token] = entry
        if entry.dedup_key:
            queue.dedup.pop(entry.dedup_key, None)
            queue.ghost_keys.add(entry.dedup_key)

    def quiet(self) -> None:
        """Passes, commits and loads until nothing is left to do at this moment."""
        for _ in range(400):
            self.run_pass()
            busy = self.engine.commit() | bool(self.engine.core.load())
            again = self.next_pass_ns is not None and self.next_pass_ns <= self.engine.mono_ns
            if not (busy or again or self.mailbox or self.taken):
                return
        raise Broken("the core is still busy after 400 passes of a clock that stands still")
