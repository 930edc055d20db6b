"""The judge of fairness judged: a ring that keeps the promise passes, each planted fault is seen within a few picks.

Bounds are easily written so wide that nothing exceeds them. Here the slow ring of
core/structures/reference.py serves notes of the model, as it is and with one fault each.
"""

import random
from collections.abc import Callable

import pytest

from fila_server.core.structures.reference import DEFERRED, IDLE, ReferenceRing
from tests.simulation.fair_share import FairShare
from tests.simulation.model import LEASED, READY, ChannelModel, Entry, Note, QueueModel
from tests.simulation.oracles import Broken

KEYS = ["ant", "bee", "cat", "dog"]
WEIGHTS = [1, 1, 3, 1]
PICKS = 400  # enough to see any of the faults, whatever the seed


class Forgetful(ReferenceRing):
    """Deficit is not kept from turn to turn."""

    def afford(self, number: int, cost: int) -> bool:
        if self.flows[number].deficit < cost:
            self.flows[number].deficit = 0
        return super().afford(number, cost)


class Favouring(ReferenceRing):
    """One key is served twice a round."""

    def turn(self) -> int | None:
        fresh = self.granted
        number = super().turn()
        if number == 0 and self.granted is not fresh:
            self.flows[0].deficit += self._grant(self.flows[0])
        return number


class Unweighted(ReferenceRing):
    """Every grant is that of weight 1."""

    def _grant(self, flow: object) -> int:
        return self.quantum


class Patient(ReferenceRing):
    """Who waits for a message that went away goes on waiting."""

    def again(self, number: int) -> None:
        pass


class Hoarding(ReferenceRing):
    """A lower weight leaves what was kept through a pause."""

    def reweigh(self, number: int, weight: int) -> None:
        flow = self.flows[number]
        deficit = flow.deficit
        super().reweigh(number, weight)
        flow.deficit = deficit


class Backlog:
    """Four keys that always have something ready, served by a ring and watched by the judge."""

    def __init__(self, ring: Callable[[int, int], ReferenceRing], seed: int) -> None:
        self.random = random.Random(seed)
        self.queue = QueueModel("q", {})
        self.channel = ChannelModel("c", self.queue)
        self.queue.channels["c"] = self.channel
        self.ring = ring(1000, len(KEYS))
        self.judge = FairShare()
        self.token = 0
        for number, key in enumerate(KEYS):
            self.weigh(number, WEIGHTS[number])
            for _ in range(5):
                self.add(key)
            self.ring.join(number)
        self.judge.look(self.channel)

    def weigh(self, number: int, weight: int) -> None:
        self.queue.key(KEYS[number]).weigh(weight)
        self.ring.reweigh(number, weight)

    def add(self, key: str) -> None:
        self.token += 1
        cost = self.random.choice([500, 700, 1000, 3250, 40000 if self.token % 40 == 0 else 1000])
        entry = Entry(self.token, self.queue, {}, key, 1, cost, frozenset())
        self.channel.add(Note(entry, self.channel, place=(self.token,)))

    def ready(self, key: str) -> list[Note]:
        return [n for n in self.channel.all_notes() if n.state == READY and n.entry.key == key]

    def pick(self) -> None:
        while True:
            number = self.ring.turn()
            assert number is not None
            note = self.ready(KEYS[number])[0]
            if self.ring.afford(number, note.entry.cost):
                break
        self.ring.charge(number, note.entry.cost)
        note.state = LEASED
        self.add(note.entry.key)
        self.judge.picked(note, in_order=True)
        self.channel.notes.pop(note.entry.token)

    def lose_what_is_saved_for(self) -> None:
        """Purge the first message of a key that waits for it."""
        for number, key in enumerate(KEYS):
            if self.ring.flows[number].place == DEFERRED:
                self.channel.notes.pop(self.ready(key)[0].entry.token)
                self.add(key)
                self.ring.again(number)
        self.judge.look(self.channel)

    def pause_and_weigh(self) -> None:
        """A key is paused in its turn, comes back, and then its weight changes."""
        number = self.random.randrange(len(KEYS))
        self.ring.park(number)
        assert self.ring.flows[number].place == IDLE
        self.judge.interrupt(self.channel, KEYS[number])
        self.ring.rejoin(number)
        self.weigh(number, self.random.choice([1, 1, 30]))
        self.judge.look(self.channel)

    def run(self, happens: str) -> None:
        for _ in range(PICKS):
            self.pick()
            if happens in ("losses", "both") and self.random.random() < 0.05:
                self.lose_what_is_saved_for()
            if happens in ("changes", "both") and self.random.random() < 0.05:
                self.pause_and_weigh()


@pytest.mark.parametrize("happens", ["nothing", "losses", "changes", "both"])
@pytest.mark.parametrize("seed", range(5))
def test_a_ring_that_keeps_the_promise_is_not_accused(happens: str, seed: int) -> None:
    backlog = Backlog(ReferenceRing, seed)
    backlog.run(happens)
    assert backlog.judge.judged > PICKS


@pytest.mark.parametrize(
    ("fault", "happens"),
    [
        (Forgetful, "nothing"),
        (Favouring, "nothing"),
        (Favouring, "both"),
        (Unweighted, "nothing"),
        (Unweighted, "both"),
        (Patient, "losses"),
        (Hoarding, "changes"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_ring_that_shares_wrongly_is_found_out(fault: type[ReferenceRing], happens: str, seed: int) -> None:
    with pytest.raises(Broken, match="ahead of"):
        Backlog(fault, seed).run(happens)
