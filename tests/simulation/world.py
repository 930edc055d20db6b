"""The core, its model and its judges side by side: an effect is predicted when a pass carries the command out."""

import copy
import random
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message as Proto

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.requests.parsed_frame import ParsedFrame
from tests.core.driven_engine import MS, Out
from tests.core.test_bounded_work import WORK_PER_STAGE
from tests.simulation.asked import Asked, Snapshot
from tests.simulation.deliveries import LONGEST_LEASE_MS
from tests.simulation.failures import Failures
from tests.simulation.ghosts import haunt
from tests.simulation.model import (
    DELAYED,
    DONE,
    LEASED,
    READY,
    Entry,
    Note,
    Place,
)
from tests.simulation.oracles import Broken

COMMANDS_PER_PASS = 64
FRAMES_REBUILT_PER_PASS = 64
# A copy of the model goes from message to message, over leases, consumers and dead letters: some thousand calls deep.
sys.setrecursionlimit(50_000)
FIRST_IN_A_PASS = (commands.DELETE_QUEUE, commands.DELETE_CHANNEL, commands.SCHEDULE_CHANGE)


class World(Failures):
    def __init__(self, seed: int, settings: dict[str, int | str], cold: bool, policy: bool = False) -> None:
        super().__init__(seed, settings, cold)
        self.policy = policy  # settings change, and hooks decide
        self.mailbox: deque[Asked] = deque()
        self.taken: list[Asked] = []
        self.unanswered: dict[int, Asked] = {}
        self.settled_late: set[int] = set()
        """Settlements of sessions that had ended: of a queue that is going, one may still be answered, and refused."""
        self.next_pass_ns: int | None = None
        self.clean_passes = True
        self.ended_by_us: set[int] = set()
        self.throttled_share = 0.0
        self.limited_share = 0.0
        self.limit_chance = random.Random(f"limits {seed}")  # of its own: a run without limits is as it was
        self.priority_chance = random.Random(f"priorities {seed}")
        self.prioritized_share = 0.0
        self.routing_chance = random.Random(f"routing {seed}")
        self.routed_share = 0.0
        self.messages = 0

    # --- asking -----------------------------------------------------------------------------

    def ask(
        self,
        kind: int,
        request: Proto | bytes,
        carried_out: Callable[[Asked], None] | None = None,
        answered: Callable[[Asked, int, bytes], None] | None = None,
        token: int | None = None,
        parsed: ParsedFrame | None = None,
        **notes: Any,
    ) -> Asked:
        if parsed is not None:  # it has been through the hooks
            self.engine.tokens += 1
            token = self.engine.tokens
            self.engine.core.submit_parsed(token, parsed)
        else:
            token = self.engine.submit(kind, request, token)
        asked = Asked(kind, token, carried_out, answered, notes)
        self.mailbox.append(asked)
        if answered is not None:
            self.unanswered[token] = asked
        if kind == commands.LEASE:  # answered before this one: served at once, and not at the pass's end
            nowhere = admin.GetStatsRequest(queue="nowhere")
            asked.marker = self.ask(commands.GET_STATS, nowhere, answered=lambda *_: None).token
        return asked

    # --- a pass -----------------------------------------------------------------------------

    def run_pass(self) -> None:
        self.pass_number += 1
        self.next_lease_id = self._count("next_lease_id")
        self.was_cold = self.cold or self._count("loads") > self.loaded
        self.fair.limited = self._throttled()
        ran, work = self._count("commands"), self._count("work")
        self.next_pass_ns = self.engine.run_pass()
        executed = self._next_commands(self._count("commands") - ran, self._count("work") - work)
        for index, asked in enumerate(executed):
            asked.executed_pass, asked.index = self.pass_number, index
        outs = self.engine.core.drain()
        loaded = self._load_now(outs)
        self._leases_given()
        at_once = self._served_at_once(executed, outs)
        unmarked = any(a.marker and a.marker not in self._replies(outs) for a in executed)
        self.blurred = loaded or self.cold or unmarked
        self.fair.pulled = self.blurred and any(a.kind == commands.LEASE for a in executed)
        new = {asked.token for asked in executed if asked.answered is not None}
        new |= self.undecided()
        # Durable answers of earlier passes left before this pass's commands were looked at.
        for token, kind, status, payload in outs:
            if kind == commands.REPLY and token not in new and token not in self.model.consumers:
                self._answer(token, status, payload)
        for asked in executed:
            if asked.carried_out is not None:
                asked.carried_out(asked)
            if asked.marker and asked.token in at_once:
                self._answer(asked.token, *at_once[asked.token])
                self.midway = True
                self._take_all(True)
                self.midway = False
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
        if not loaded:
            self._take_all(not self.blurred)
        for token, kind, status, payload in outs:
            if kind == commands.REPLY and token in new and token in self.unanswered:
                self._answer(token, status, payload)
        if loaded:  # a second pass may have delivered what the first one took in
            self._take_all(False)
        for token, kind, _, payload in outs:
            if kind == commands.EVENT:
                self.failure_told(token, payload)
        self.withdraw_unasked()
        self._look()

    def _look(self) -> None:
        for queue in self.model.queues.values() if not self.always_cold else ():
            for channel in queue.channels.values():
                self.fair.look(channel)
        if self.cold:  # somebody may hold what nobody has seen yet
            self.fair.interrupt()

    @staticmethod
    def _replies(outs: list[Out]) -> dict[int, int]:
        return {token: i for i, (token, kind, _, _) in enumerate(outs) if kind == commands.REPLY}

    def _served_at_once(self, executed: list[Asked], outs: list[Out]) -> dict[int, tuple[int, bytes]]:
        """Pulls that were served where they stood among the pass's commands, and their answers."""
        replies = self._replies(outs)
        return {
            asked.token: outs[replies[asked.token]][2:]
            for asked in executed
            if asked.marker in replies and replies.get(asked.token, len(outs)) < replies[asked.marker]
        }

    def _load_now(self, outs: list[Out]) -> bool:
        """Where bodies are hot, what a restart left cold is read at once: nobody holds what nobody saw."""
        loaded = False
        while not self.always_cold and not self.mailbox and not self.taken and self.load():
            self.next_pass_ns = self.engine.run_pass()
            outs += self.engine.core.drain()
            loaded = True
        return loaded

    def _next_commands(self, ran: int, work: int) -> list[Asked]:
        """A pass takes a handful from the mailbox, and stops before a deletion, and a change of a
        schedule, that is not its first command. Where
        a command touches much, as the deletion of a large queue does, the rest waits for the next pass: after which
        one that is, the core says by how many it `ran`."""
        if not self.taken:
            self.taken = [self.mailbox.popleft() for _ in range(min(COMMANDS_PER_PASS, len(self.mailbox)))]
        stop = next(
            (i for i, asked in enumerate(self.taken) if i and asked.kind in FIRST_IN_A_PASS), len(self.taken)
        )
        if ran != stop and not (0 < ran < stop and work >= WORK_PER_STAGE):
            raise Broken(f"a pass ran {ran} commands, and not {stop}")
        executed, self.taken = self.taken[:ran], self.taken[ran:]
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
            state = note.state
            if state == LEASED and note.due_mono_ms <= mono:
                due.append((note.due_mono_ms, lambda n=note: self._expire(n)))  # type: ignore[misc]
            elif state == DELAYED and note.due_ms[0] == note.due_ms[1] and note.due_ms[1] <= wall:
                when = max(mono - (wall - note.due_ms[1]), note.delayed_at_ms)
                due.append((when, lambda n=note: self._ready(n)))  # type: ignore[misc]
            elif state == DELAYED and note.due_ms[1] <= wall:
                note.state, note.place = READY, note.place if note.keeps_place else None
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
        note.state = READY
        if not note.keeps_place:
            note.place = self.place(note, self._due_place)

    def _expire(self, note: Note) -> None:
        self.say(f"lease {note.lease_id} of {note.entry.token} expired")
        self.end_lease(note)
        self.fail(note, None, self._due_place)

    # --- what leaves ------------------------------------------------------------------------

    def _ended(self, token: int, status: int) -> None:
        if token not in self.ended_by_us:
            raise Broken(f"stream {token} was ended with {status}, and its queue and channel are there")

    def _session_answer(self, payload: bytes) -> None:
        response = service.ConsumeSessionResponse.FromString(payload)
        if response.HasField("settled"):
            if response.settled.sequence in self.settled_late and response.settled.failures:
                return
            self._answer(response.settled.sequence, 0, payload)

    # --- commits, crashes, quiet ----------------------------------------------------------------

    def plan_power_cut(self) -> bool:
        """Sync now and remember this moment: the next crash goes back to it."""
        if not self.engine.commit():
            return False
        originals = self.under_way()
        model, under_way = copy.deepcopy((self.model, originals))
        self.snapshot = Snapshot(
            model,
            under_way,
            originals,
            self.pass_number,
            len(self.unseen),
            dict(self.engine.synced),
            self.kept.newest_id,
        )
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
            ghosts, unseen = self.under_way(), len(self.unseen)
        else:
            assert self.snapshot is not None
            self.model, ghosts, unseen = self.snapshot.model, self.snapshot.under_way, self.snapshot.unseen
            for ghost, original in zip(ghosts, self.snapshot.originals, strict=True):
                ghost.id, ghost.offset = original.id, original.offset
            self.engine.synced = self.snapshot.synced
            self.kept.newest_id = self.snapshot.newest_id
            self.engine.cut_power()
        self.say(f"{'power cut' if power_cut else 'kill'}, back after {away_ms} ms")
        self._restart(ghosts, away_ms, unseen)

    def clean_restart(self, away_ms: int) -> None:
        self.quiet()
        self.engine.stop()
        self.say(f"clean restart, back after {away_ms} ms")
        self._restart([], away_ms, 0)

    def _restart(self, ghosts: list[Entry], away_ms: int, unseen: int) -> None:
        self.mailbox.clear()
        self.taken.clear()
        self.unanswered.clear()
        self.snapshot = None
        for queue in self.model.queues.values():
            over = {key: row for key, row in queue.dedup.items() if row[1] <= self.engine.wall_ms}
            queue.over_once.update(over)
            queue.dedup = {key: row for key, row in queue.dedup.items() if key not in over}
        stopped_ms = self.engine.wall_ms
        self.engine.reopen(away_ms)
        self._clock_restarts(ghosts)
        self.pass_number += 1
        self.fair.forget()
        wall, mono = self.engine.wall_ms, self.engine.mono_ns // MS
        self.lost = [mono + LONGEST_LEASE_MS] * (len(self.lost) + unseen)
        self.missed = self.missed or unseen > 0
        self.failed_unseen += unseen
        self.unseen.clear()
        self.loaded = 0
        self.model.consumers.clear()  # what was sent stays leased
        again = self.forget_decisions()
        self.lost += [mono + LONGEST_LEASE_MS] * again
        self.failed_unseen += again
        haunt(self, ghosts)
        for bucket in self.model.buckets.values():
            bucket.level = min(bucket.burst, bucket.level + bucket.rate * max(0, wall - bucket.at_ms) / 1000)
            bucket.at_ms = wall
        self.model.limits.starts_again(wall, mono)
        if self.always_cold:
            self._dead_that_waited(wall)
        for note in self.model.all_notes():
            if note.state == LEASED:
                left = max(0, min(note.expires_ms - wall, note.expires_ms - note.leased_ms))
                note.due_mono_ms = mono + left
            elif note.state == DELAYED:
                note.delay_resumes(stopped_ms, wall, mono)
            if self.always_cold and note.state in (READY, DELAYED) and not note.in_order:
                # It may have been leased for somebody while its bytes were being read back.
                note.place = None
        self._timers()  # opening runs a pass of its own

    def _dead_that_waited(self, wall: int) -> None:
        """A letter is written once its bytes are read back. Where that was not yet, and the clock was set back behind
        the end of the message's time to live, it is what it was before: a message."""
        for note in self.model.all_notes():
            unwritten = [dead for dead in note.buried if dead.maybe and dead.state == READY]
            if note.state == DONE and unwritten and wall < note.entry.expires_ms <= note.ended_ms:
                note.state, note.maybe, note.place, note.ended_ms = READY, True, None, -1

    def _clock_restarts(self, ghosts: list[Entry]) -> None:
        wall = self.engine.wall_ms
        entries = {id(note.entry): note.entry for note in self.model.all_notes()}
        for queue in self.model.queues.values():
            entries |= {id(entry): entry for entry in [*queue.log, *queue.ghosts.values()]}
            for rows in (queue.dedup, queue.over_once):
                for key, (entry, _) in rows.items():
                    rows[key] = (entry, entry.at_most(entry.window_ends_ms, wall))
        for entry in [*entries.values(), *ghosts]:
            entry.clock_restarts(wall)

    def quiet(self) -> None:
        """Passes, commits and loads until nothing is left to do at this moment."""
        for _ in range(400):
            self.run_pass()
            busy = self.engine.commit() | bool(self.load())
            again = self.next_pass_ns is not None and self.next_pass_ns <= self.engine.mono_ns
            if not (busy or again or self.mailbox or self.taken):
                self.missed = self.missed or bool(self.unseen)
                self.unseen.clear()  # whatever was not sent by now has ended
                return
        raise Broken("the core is still busy after 400 passes of a clock that stands still")
