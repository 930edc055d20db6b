"""What becomes of a failed message: the cap, its time to live, on_failure, or the backoff; in this order.

A queue with an on_failure script is asked by an event and answers with a decision, perhaps much later, perhaps never.
Meanwhile the message counts as in flight, and the nacking caller waits: a nack is answered once the decision is
durable. A crash in between finds the failure undecided: it has not happened, the lease is as it was.
"""

from typing import Any

from fila_server.core.protocol import seam_frames
from tests.core.driven_engine import MS
from tests.simulation.asked import Asked
from tests.simulation.deliveries import Deliveries
from tests.simulation.model import (
    DECIDING,
    DELAYED,
    DONE,
    LEASED,
    READY,
    Decision,
    Note,
    Place,
    QueueModel,
)
from tests.simulation.oracles import Broken

EXPIRED = "visibility timeout expired"


def is_open(note: Note, decision: Decision) -> bool:
    return note.state == DECIDING and note.decision is decision


class Failures(Deliveries):
    def __init__(self, seed: int, settings: dict[str, int | str], cold: bool) -> None:
        super().__init__(seed, settings, cold)
        self.asked_about: dict[tuple[str, str, str], list[tuple[Note, Decision]]] = {}  # and not told yet
        self.events: dict[int, tuple[Note | None, Decision]] = {}  # told, and not decided; by number
        self.nacks: dict[int, Asked] = {}  # that may wait for decisions

    def place(self, note: Note, place: Place) -> Place | None:
        return None if self.pass_number <= note.channel.unordered_until else place

    def fail(
        self, note: Note, delay_ms: int | None, place: Place, error: str = EXPIRED, nack: int = 0
    ) -> None:
        queue = note.channel.queue
        policy = queue.config
        if note.attempts is not None:
            note.attempts += 1
        cap = policy.get("max_attempts", 20)
        if cap and not queue.is_dlq and note.attempts is not None and note.attempts >= cap:
            self.dead_letter(note)
        elif 0 < note.entry.expires_ms <= self.engine.wall_ms:
            self.drop(note)
        elif policy.get("on_failure"):
            note.state, note.decision = DECIDING, Decision(delay_ms, error, nack=nack)
            where = (queue.name, note.channel.name, note.entry.id)
            self.asked_about.setdefault(where, []).append((note, note.decision))
            if nack:
                self.nacks[nack].notes["open"].append((note, note.decision))
        else:
            self._by_policy(note, delay_ms, place)

    def drop(self, note: Note) -> None:
        """Its time to live is over."""
        queue = note.channel.queue
        if queue.config.get("ttl_to_dlq") and not queue.is_dlq:
            self.dead_letter(note)
        else:
            note.state, note.ended_ms = DONE, self.engine.wall_ms

    def _by_policy(self, note: Note, delay_ms: int | None, place: Place) -> None:
        wall = self.engine.wall_ms
        if delay_ms is None:
            low, high = self._backoff(note.channel.queue, note.attempts)
        else:
            low = high = delay_ms
        if high > 0:
            due_ms = (wall + low, wall + high)
            note.delay(due_ms, wall, self.engine.mono_ns // MS, keeps_place=note.in_order)
        elif note.in_order:
            note.state = READY
        else:
            note.state, note.place = READY, self.place(note, place)

    @staticmethod
    def _backoff(queue: QueueModel, attempts: int | None) -> tuple[int, int]:
        base = queue.config.get("retry_base_ms", 100)
        if queue.config.get("retry_fixed"):
            return base, base
        if attempts is None:
            return 0, 60000
        wait = min(base * 2 ** (attempts - 1), queue.config.get("retry_cap_ms", 60000))
        return (int(wait * 0.5) - 1, wait) if queue.config.get("jitter") else (wait, wait)

    # --- on_failure -----------------------------------------------------------------------------

    def undecided(self) -> set[int]:
        """Calls that may not be answered before a decision of this pass is carried out."""
        return {token for token, nack in self.nacks.items() if self.still_open(nack)}

    @staticmethod
    def still_open(nack: Asked) -> int:
        """How many of its failures are being decided: none is of a message that was seeked away or deleted."""
        return sum(1 for note, decision in nack.notes.get("open", []) if is_open(note, decision))

    def failure_told(self, number: int, payload: bytes) -> None:
        """An event: somebody's policy is to decide."""
        event = seam_frames.FailureEvent.FromString(payload)
        name, channel, message_id = event.queue.decode(), event.channel.decode(), event.message_id.decode()
        what = f"failure {number} of {message_id} in {name}/{channel}"
        asked_about = self.asked_about.pop((name, channel, message_id), [])
        error = event.error.decode()
        meant = [(n, d) for n, d in asked_about if n.attempts in (None, event.attempts) and d.error == error]
        if meant:
            # Two entries of one message, redriven and sought back, may expire at once; routing tells them apart.
            note, decision = next(
                (row for row in meant if row[0].entry.key == event.fairness_key.decode()), meant[0]
            )
            rest = [row for row in asked_about if row[1] is not decision]
            if rest:
                self.asked_about[name, channel, message_id] = rest
            for _, each in meant:
                each.twins = each.twins or [d for _, d in meant]
            self._check_event(note, event, what)
            self.events[number] = note, decision
            self.say(f"{what}: message {note.entry.token}, attempt {event.attempts}")
            return
        queue = self.model.queues.get(name)
        if queue is None or channel not in queue.channels:
            raise Broken(f"{what}: there is no such channel")
        notes = [n for n in queue.channels[channel].all_notes() if n.entry.id == message_id]
        unseen = next(
            (n for n in notes if n.state in (READY, DELAYED) or (n.state == DONE and not n.acked)), None
        )
        # A crash, or bytes that had to be read back, kept the world from seeing that it was leased. Of a failure that
        # was seen all is known, and there is no other entry of the message that this one could be of.
        hidden = self.cold or self.blurred or self.missed or self.lost_leases()
        if not hidden or (asked_about and unseen is None):
            raise Broken(f"{what}, {event.attempts} {error}, is not known: {asked_about or notes}")
        decision = Decision(None, EXPIRED)
        if unseen is not None:
            unseen.state, unseen.decision, unseen.attempts = DECIDING, decision, event.attempts
            # Of the lease that failed nothing is known but that it is over; what the note has is an earlier one's.
            unseen.lease_id = unseen.leased_ms = unseen.expires_ms = 0
        self.say(f"{what}: unseen until now: {unseen}")
        self.events[number] = unseen, decision

    def withdraw_unasked(self) -> None:
        """At the end of a pass. A failure is told once its bytes are here: a seek, or a deletion, that comes before
        them takes it along, and it is never told. Its message may fail anew, brought by the seek, as often as it did
        and by the same error: that event is the new one's."""
        for where, rows in list(self.asked_about.items()):
            still = [(note, decision) for note, decision in rows if is_open(note, decision)]
            if still:
                self.asked_about[where] = still
            else:
                del self.asked_about[where]

    @staticmethod
    def _check_event(note: Note, event: Any, what: str) -> None:
        """The script is asked with the message's own fairness key and headers; attempts and error it was found by."""
        if event.fairness_key.decode() != note.entry.key:
            raise Broken(f"{what} says {event.fairness_key}, not {note.entry.key}")
        if {h.name.decode(): h.value.decode() for h in event.headers} != note.entry.headers:
            raise Broken(f"{what} has headers {event.headers}, sent were {note.entry.headers}")

    def decided(self, asked: Asked) -> None:
        """A decision is carried out; its message may be gone meanwhile, and its nack is answered all the same."""
        note, decision = asked.notes["note"], asked.notes["decision"]
        nack = self.nacks.get(decision.nack)
        if nack is not None:
            nack.executed_pass = self.pass_number
        self.say(f"decided {asked.notes['action']} {asked.notes['delay_ms']} for {note}")
        if note is None or not is_open(note, decision):
            return
        note.decision = None
        place = (self.pass_number, 1, asked.index, 0)
        if asked.notes["action"] == seam_frames.DEAD_LETTER and not note.channel.queue.is_dlq:
            self.dead_letter(note)
        elif 0 < note.entry.expires_ms <= self.engine.wall_ms:
            self.drop(note)  # its time ended while it was in flight: as if its lease had ended now
        elif asked.notes["action"] == seam_frames.RETRY and asked.notes["delay_ms"] is not None:
            self._by_policy(note, asked.notes["delay_ms"], place)
        else:
            self._by_policy(note, decision.delay_ms, place)
        if len(decision.twins) > 1:
            note.place = None  # nobody knows which of them was meant

    def forget_decisions(self) -> int:
        """After a crash: nobody nacked, nothing expired, until it does again. Returns how many leases there may be
        again that nobody ever saw: nobody knows until when, since the clock may have been set back."""
        self.asked_about.clear()
        self.events.clear()
        self.nacks.clear()
        unseen = 0
        for note in self.model.all_notes():
            if note.state == DECIDING and not note.lease_id:
                note.state, note.decision, note.holder = READY, None, 0
                note.place = note.place if note.in_order else None
                note.attempts = note.attempts - 1 if note.attempts is not None else None
                unseen += 1
            elif note.state == DECIDING:
                note.state, note.decision, note.holder = LEASED, None, 0
                note.attempts = note.attempts - 1 if note.attempts is not None else None
                self.model.leases[note.lease_id] = note
        return unseen
