"""Senders that take messages back at random: what each cancel finds, and that nothing of it is delivered afterwards.

Messages that were moved may have several entries under one id, or be looked for until later in the pass: those are left
to the tests of the core. The others are found where the command stands among the pass's commands, as an ack is.
"""

from __future__ import annotations

from uuid import UUID

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.simulation.asked import Asked
from tests.simulation.model import DECIDING, DELAYED, DONE, LEASED, READY, ChannelModel, Note
from tests.simulation.oracles import Broken
from tests.simulation.world import World

CANCELLED, REVOKED, NOT_FOUND = (
    service.CancelMessagesResponse.OUTCOME_CANCELLED,
    service.CancelMessagesResponse.OUTCOME_REVOKED,
    service.CancelMessagesResponse.OUTCOME_NOT_FOUND,
)
MOST = 3
_EXPECTED = {
    READY: CANCELLED,
    DELAYED: CANCELLED,
    DECIDING: CANCELLED,
    LEASED: REVOKED,
    DONE: NOT_FOUND,
}


class Cancels:
    """Takes messages back by their ids, some of them twice, and some ids that never were."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.judged = 0

    def cancel(self) -> None:
        world, rnd = self.world, self.random
        channels = [c for q in world.model.queues.values() if not q.is_dlq for c in q.channels.values()]
        if not channels:
            return
        channel = rnd.choice(channels)
        names = [note for notes in channel.notes.values() for note in notes if self._is_plain(channel, note)]
        chosen: list[Note | None] = [*rnd.choices(names, k=rnd.randint(1, MOST))] if names else []
        if rnd.random() < 0.2:
            chosen.insert(0, None)
        if not chosen:
            return
        ids = [note.entry.id if note else str(UUID(int=rnd.getrandbits(128))) for note in chosen]
        world.ask(
            commands.CANCEL_MESSAGES,
            service.CancelMessagesRequest(queue=channel.queue.name, channel=channel.name, message_ids=ids),
            self._cancelled,
            self._answered,
            chosen=chosen,
            where=(channel.queue.name, channel.name),
        )

    @staticmethod
    def _is_plain(channel: ChannelModel, note: Note) -> bool:
        """Answered, never moved, and the only one of its id."""
        return (
            bool(note.entry.id and note.entry.offset)
            and note.entry.only is None
            and len(channel.notes[note.entry.token]) == 1
        )

    def _cancelled(self, asked: Asked) -> None:
        world = self.world
        queue = world.model.queues.get(asked.notes["where"][0])
        channel = queue.channels.get(asked.notes["where"][1]) if queue is not None else None
        asked.notes["expected"] = expected = []
        if queue is None or channel is None:
            return
        asked.notes["fsync"] = queue.config["fsync"]
        expected += [self._take_back(channel, note) for note in asked.notes["chosen"]]
        world.say(
            f"cancel {[n and n.entry.token for n in asked.notes['chosen']]} in {asked.notes['where']}: {expected}"
        )

    def _take_back(self, channel: ChannelModel, note: Note | None) -> int | None:
        """What the core must say of it; None: nobody knows what it has."""
        world = self.world
        if note is None:
            return NOT_FOUND
        same = channel.notes.get(note.entry.token, [])
        if same != [note] or not self._is_plain(channel, note):  # sought, redriven, or failed since
            self._nobody_knows(channel, note)
            return None
        outcome = _EXPECTED[note.state]
        if note.state == DONE:
            if note.ended_ms >= 0:
                self._nobody_knows(channel, note)
                return None
            return outcome
        # Somebody may have it who was not seen to get it, or had it and died unseen.
        unsure = note.maybe or bool(world.unseen) or world.lost_leases() > 0 or world.cold
        if note.state == LEASED:
            world.end_lease(note)
        note.state, note.acked = DONE, not unsure
        note.ended_ms = world.engine.wall_ms if unsure else -1
        return None if unsure else outcome

    @staticmethod
    def _nobody_knows(channel: ChannelModel, note: Note) -> None:
        """The cancel may have met the message before it died in the same pass: then there is no dead letter of it."""
        letters = channel.queue.dlq.channels.values() if channel.queue.dlq is not None else ()
        for place in (channel, *letters):
            for other in place.notes.get(note.entry.token, []):
                other.maybe = True

    def _answered(self, asked: Asked, status: int, payload: bytes) -> None:
        if status != (0 if asked.notes["expected"] else 5):
            raise Broken(f"a cancel in {asked.notes['where']} was answered {status}")
        if status:
            return
        outcomes = list(service.CancelMessagesResponse.FromString(payload).outcomes)
        if CANCELLED in outcomes or REVOKED in outcomes:
            self.world.check_synced(asked)
        for note, expected, outcome in zip(
            asked.notes["chosen"], asked.notes["expected"], outcomes, strict=True
        ):
            self.judged += expected is not None
            if note is not None and expected is not None and outcome in (CANCELLED, REVOKED):
                self.world.one_end.ended(note, "a cancel")
            if expected is not None and outcome != expected:
                raise Broken(f"a cancel of {note} was answered {outcome}, not {expected}")
