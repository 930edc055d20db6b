"""What the hooks stage does beside the core: frames routed on their way to the mailbox, failures decided in their time.

No script runs here: any decision a script could come to is as good as another. A frame is parsed, lies with the hooks
for a while, and is submitted; meanwhile the world goes on, and a crash takes it along unseen.
"""

from typing import Any

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from fila_server.core.requests.parsed_frame import ParsedFrame
from fila_server.hooks.packed import Routing
from tests.core.test_parsed_frame import pack_routings
from tests.simulation.model import Entry, QueueModel
from tests.simulation.oracles import Broken
from tests.simulation.producers import FAIRNESS_KEYS, THROTTLE_KEYS, Producers
from tests.simulation.world import World

FREE_KEY = "nobody-configured-it"
TOO_LONG = Routing(b"k" * 257)

Frame = tuple[int, Any, QueueModel, list[tuple[service.EnqueueMessage, Entry | None]], ParsedFrame]


class Hooks:
    """on_enqueue and on_failure, as the core sees them."""

    def __init__(self, world: World, producers: Producers) -> None:
        self.world = world
        self.random = world.random
        self.producers = producers
        self.frames: list[Frame] = []  # with the hooks

    # --- on_enqueue -----------------------------------------------------------------------------

    def route(self) -> None:
        """Take a frame in, and decide about its messages; for some the hook fails, and the queue's policy stays."""
        made = self.producers.frame()
        if made is None:
            return
        shape, request, queue, items = made
        parsed = self.world.engine.core.parse(shape, request.SerializeToString())
        asked_about = [i for i, (_, entry) in enumerate(items) if entry is not None]
        failing = self.random.choice([0.0, 0.0, 0.3, 1.0])
        routings = [self._routing(queue) if self.random.random() >= failing else None for _ in asked_about]
        for i, routing in zip(asked_about, routings, strict=True):
            entry = items[i][1]
            assert entry is not None
            entry.hooked = routing
        self._tell(parsed, asked_about, routings)
        self.frames.append((shape, request, queue, items, parsed))

    def _routing(self, queue: QueueModel) -> Routing:
        rnd = self.random
        weight = rnd.choice([None, None, 1, 3, 0, 5000])
        count = rnd.choice([0, 1, 2, 3, 5])
        keys = tuple(name.encode() for name in rnd.choices([*THROTTLE_KEYS, FREE_KEY, ""], k=count))
        return Routing(
            rnd.choice([None, b"", *(key.encode() for key in FAIRNESS_KEYS)]),
            weight if not self.producers.may_refuse(queue) else None,
            rnd.choice([None, None, 0.5, 2.0, 7.25, -3.0, 0.0, 1e9]) if rnd.random() < 0.5 else None,
            keys if rnd.random() < max(0.1, self.world.throttled_share) else None,
        )

    def _tell(self, parsed: ParsedFrame, indices: list[int], routings: list[Routing | None]) -> None:
        """In several crossings; what the core can't take costs that message its routing, and no other."""
        rnd = self.random
        spoilt = rnd.random() < 0.5  # whether a hook that fails answers badly, or not at all
        answers = [
            (i, r or TOO_LONG) for i, r in zip(indices, routings, strict=True) if r is not None or spoilt
        ]
        while answers:
            run, answers = answers[: (count := rnd.choice([1, 5, 100]))], answers[count:]
            packed, at, start = pack_routings([routing for _, routing in run]), 0, 0
            while at < len(run):
                taken, problem, start = parsed.route([i for i, _ in run], at, len(run) - at, packed, start)
                at += taken
                if (problem is not None) != (at < len(run) and run[at][1] is TOO_LONG):
                    raise Broken(f"of {run[at - taken :]} {taken} were taken: {problem}")
                at += problem is not None

    def submit(self) -> None:
        """Frames of one queue leave the hooks in order; here they all do."""
        if self.frames:
            shape, request, queue, items, parsed = self.frames.pop(0)
            self.producers.ask(shape, request, queue, items, parsed)

    def forget(self) -> None:
        self.frames.clear()

    # --- on_failure -----------------------------------------------------------------------------

    def decide(self) -> None:
        """One to all of those that are waiting; the others wait on."""
        rnd = self.random
        waiting = list(self.world.events)
        for number in rnd.sample(waiting, min(len(waiting), rnd.choice([1, 2, 100]))):
            if number not in self.world.events:  # decided with its twin
                continue
            actions = [seam_frames.BY_POLICY, seam_frames.RETRY, seam_frames.RETRY]
            if not self.world.always_cold:  # a dead letter whose bytes are away moves when they are back
                actions.append(seam_frames.DEAD_LETTER)
            self._say(number, rnd.choice(actions), rnd.choice([None, 0, 30, 2000]))

    def decide_all(self) -> None:
        if not self.world.events:
            return
        while self.world.events:
            self._say(next(iter(self.world.events)), seam_frames.RETRY, 0)
        self.world.quiet()

    def _say(self, number: int, action: int, delay_ms: int | None) -> None:
        note, decision = self.world.events.pop(number)
        twins = [n for n, (_, d) in self.world.events.items() if d in decision.twins]
        frame = seam_frames.Decision(action=action)
        if delay_ms is not None:
            frame.delay_ms = delay_ms
        self.world.ask(
            commands.DECIDE,
            frame.SerializeToString(),
            self.world.decided,
            token=number,
            note=note,
            decision=decision,
            action=action,
            delay_ms=delay_ms,
        )
        for twin in twins:  # the same for both, or it would matter which is which
            self._say(twin, action, delay_ms)
