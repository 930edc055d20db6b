"""Sessions that say what they have begun, against a core that pauses, dies and comes back: one seed, one run.

Everything is hot and each act is carried out before the next one, so the model knows at each moment who holds what;
what it does not decide itself is when a silent or broken session is gone: that it sees in the list of consumers, and
judges by a clock of its own that goes on only while the edge reads its sockets.
`python -m tests.simulation.session_world SEED [COUNT]` runs it; FILA_SIM_TRACE=1 shows every step.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server import commands
from tests.core.driven_engine import MS, DrivenEngine
from tests.simulation.oracles import Broken
from tests.simulation.session_clients import ALIVE_ONLY, ALL_BEGUN, HONEST, KINDS, NEVER_BEGUN, Client
from tests.simulation.session_model import HELD, SessionModel, Told

STEPS = 90
VISIBILITY_MS = 2_000
STEP_MS = 100
HEARD_GAP_MS_MAX = 500
LATE_MS_MAX = 700
"""How much later than its time a session may be found gone: a step, the times at which the core looks, and the
moment that is counted of a pause."""


class SessionWorld:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.random = rnd = random.Random(seed * 6007 + 5)
        self.engine = DrivenEngine(seed=seed)
        self.model = SessionModel()
        self.grace_ms = rnd.choice([0, 1_000, 5_000])
        self.clients: list[Client] = []
        self.deadlines: dict[int, int] = {}  # on heard_ms, by a session's number
        self.heard_ms, self.listened_ns = 0, 0
        self.enqueued = 0
        self.trace: list[str] = []
        self.engine.create_queue(
            "q",
            visibility_timeout_ms=VISIBILITY_MS,
            disconnect_grace_ms=self.grace_ms,
            max_attempts=0,
            retry=admin.RetryPolicy(kind=admin.RetryPolicy.KIND_FIXED, base_ms=1, jitter=0),
            fairness_key_header="k",
            throttle_key_headers=["t"],
        )
        self.engine.set_config("throttle.api", "5,10")
        self.model.level_at_ns = self.engine.mono_ns

    def say(self, text: str) -> None:
        self.trace.append(f"[{self.engine.mono_ns // MS} heard {self.heard_ms}] {text}")

    # --- time ------------------------------------------------------------------------------------

    def listen(self, ms: int) -> None:
        for _ in range(ms // STEP_MS):
            self.engine.sleep(STEP_MS)
            self._listened()
            self.look()

    def _listened(self) -> None:
        self.engine.submit(commands.LISTENED)
        gap_ms = (self.engine.mono_ns - self.listened_ns) // MS if self.listened_ns else 0
        self.heard_ms += min(gap_ms, HEARD_GAP_MS_MAX)
        self.listened_ns = self.engine.mono_ns
        self.engine.others += self.engine.settle_down()

    def look(self) -> None:
        """Who is gone, then what came: in one pass ends of leases come before deliveries."""
        self.model.clock(self.engine.mono_ns)
        asked = admin.ListConsumersRequest(queue="q")
        listed = self.engine.call(commands.LIST_CONSUMERS, asked, admin.ListConsumersResponse).consumers
        here = {row.consumer_id for row in listed}
        for number, deadline in list(self.deadlines.items()):
            late = f"{number} since {deadline} of {self.heard_ms}"
            if number in here:
                on_time = self.heard_ms <= deadline + LATE_MS_MAX
                self.model.judge("who is silent or away is gone in time", on_time, late)
            else:
                lives = self.heard_ms >= deadline
                self.model.judge("nobody is gone before its time", lives or not self._holds(number), late)
                self.say(f"{number} is gone")
                del self.deadlines[number]
                self.model.gone(number)
        self._take()
        held = [told for told in self.model.messages.values() if told.state == HELD]
        begun = sum(told.begun or told.maybe_begun for told in held)
        sure = not any(told.maybe_begun for told in held)
        stats = self.engine.stats("q")
        good = stats.in_flight == len(held) and (not sure or stats.unbegun == len(held) - begun)
        self.model.judge("the books", good, f"{stats.in_flight}, {stats.unbegun} for {len(held)}, {begun}")

    def _holds(self, number: int) -> bool:
        return bool(self.model.held_by(number))

    def _take(self) -> None:
        new = [(m.metadata.lease_id, m, client.number) for client in self.clients for m in client.hears()]
        for lease_id, message, number in sorted(new, key=lambda row: row[0]):
            meta = message.metadata
            self.say(f"deliver {message.payload!r} to {number} under {lease_id}, {meta.attempt_count}")
            self.model.delivered(message.payload, lease_id, meta.attempt_count, meta.redelivered, number)

    # --- what clients do -------------------------------------------------------------------------

    def _spoke(self, client: Client) -> None:
        self.deadlines[client.number] = self.heard_ms + VISIBILITY_MS

    def join(self) -> None:
        if len(self.clients) < 6:
            client = Client(f"c{len(self.clients)}", self.random.choice(KINDS), VISIBILITY_MS)
            self.clients.append(client)
            self.connect(client, resume=False)

    def connect(self, client: Client, *, resume: bool) -> None:
        before, listed = client.number, set(client.holds) if resume else set()
        lost = client.connect(self.engine, resume, self.random.choice([1, 5, 40]))
        self.say(f"{client.name}, {client.kind}, connects as {client.number}, was {before}, lost {lost}")
        if resume:
            held = {told.lease_id for told in self.model.held_by(before)}
            self.model.judge(
                "a resume keeps what is held", lost == listed - held, f"{lost} of {listed}, {held}"
            )
            if client.number == before:
                for lease_id in held - listed:
                    self.model.came_back(lease_id, tokens=False)
        self._spoke(client)
        self.look()

    def act(self) -> None:
        """One client that is awake does something."""
        awake = [
            c for c in self.clients if not c.dead and c.session and c.asleep_until_ns <= self.engine.mono_ns
        ]
        for client in awake:
            client.says_alive(self.engine)
            if client.session is not None:
                self._spoke(client)
        self.look()
        if not awake:
            return
        client = self.random.choice(awake)
        if client.session is None or client.kind == ALIVE_ONLY:
            return
        acts = [self.settle, self.settle, self.give_back, self.widen]
        if client.kind == HONEST:
            acts += [self.hand_out] * 3
        if client.kind == ALL_BEGUN:
            acts = [self.begin_all, self.settle]
        self.random.choice(acts)(client)
        self._spoke(client)
        self.look()

    def _begins(self, client: Client, lease_ids: list[int]) -> None:
        assert client.session is not None
        for lease_id in lease_ids:
            client.begun[lease_id] = client.in_hand.pop(lease_id)
            if lease_id in self.model.by_lease:
                self.model.by_lease[lease_id].begun = True
        self.say(f"{client.name} begins {lease_ids}")
        client.session.say(begun={"lease_ids": lease_ids})

    def hand_out(self, client: Client) -> None:
        if not client.may_hand_out(self.engine):
            return
        chosen = client.some(self.random, client.in_hand, 4)
        for lease_id in chosen:
            told = self.model.by_lease.get(lease_id)
            good = told is not None and told.holder == client.number
            self.model.judge("nobody hands out after its deadline", good, f"{client.name} {lease_id} {told}")
        if chosen:
            self._begins(client, chosen)

    def begin_all(self, client: Client) -> None:
        if client.in_hand:
            self._begins(client, list(client.in_hand))

    def settle(self, client: Client) -> None:
        assert client.session is not None
        of = client.in_hand if client.kind == NEVER_BEGUN else client.begun
        chosen = client.some(self.random, of, 5)
        if not chosen:
            return
        how = self.random.choice(["ack", "ack", "nack", "release", "dead_letter"])
        self.say(f"{client.name}: {how} {chosen}")
        for lease_id in chosen:
            of.pop(lease_id)
            if lease_id not in self.model.by_lease:
                continue
            if how == "release":
                self.model.came_back(lease_id, tokens=False)
            else:
                {"ack": self.model.acked, "nack": self.model.failed, "dead_letter": self.model.rejected}[how](
                    lease_id
                )
        wishes = {how: True} if how in ("release", "dead_letter") else {}
        settle = {"sequence": 1, "lease_ids": chosen, **wishes}
        client.session.say(**{"ack" if how == "ack" else "nack": settle})
        client.session.answers.clear()

    def give_back(self, client: Client) -> None:
        assert client.session is not None
        chosen = client.some(self.random, client.in_hand, self.random.choice([3, 40]))
        self.say(f"{client.name} gives back {chosen}")
        for lease_id in chosen:
            client.in_hand.pop(lease_id)
            if lease_id in self.model.by_lease:
                self.model.came_back(lease_id, tokens=True)
        if len(chosen) > 5:
            self.model.many_returned()
        client.session.say(
            window={"size": self.random.choice([0, 1, len(client.holds)]), "give_back": chosen}
        )

    def widen(self, client: Client) -> None:
        assert client.session is not None
        client.session.say(window={"size": self.random.choice([5, 60])})

    def leave(self) -> None:
        """Close, with release or without; or gone without a word; or asleep for a while."""
        living = [c for c in self.clients if c.session is not None]
        if not living:
            return
        client = self.random.choice(living)
        how = self.random.choice(["close", "release", "cut", "cut", "crash", "sleep", "sleep"])
        self.say(f"{client.name}, {client.number}: {how}")
        if how == "sleep":
            client.asleep_until_ns = self.engine.mono_ns + self.random.choice([500, 1_500, 4_000]) * MS
            return
        if how in ("cut", "crash"):
            client.dead = how == "crash"
            self.deadlines[client.number] = self.heard_ms + self.grace_ms
            client.cut()
            self.look()
            return
        assert client.session is not None
        for told in self.model.held_by(client.number):
            if how == "release" or not told.begun:
                self.model.came_back(told.lease_id, tokens=False)
            else:  # it keeps its lease, and nobody tells us when it ends: the program settles it now
                request = service.AckRequest(
                    queue="q", message_id=self._id(client, told), lease_id=told.lease_id
                )
                self.engine.call(commands.ACK, request, service.AckResponse)
                self.model.acked(told.lease_id)
        if how == "release":
            self.model.many_returned()
        client.session.say(close={"release": how == "release"})
        self.deadlines.pop(client.number, None)
        client.session, client.number = None, 0
        client.in_hand.clear()
        client.begun.clear()
        self.look()

    @staticmethod
    def _id(client: Client, told: Told) -> str:
        return (client.begun | client.in_hand)[told.lease_id].id

    def come_back(self) -> None:
        for client in self.clients:
            if client.session is None and not client.dead and self.random.random() < 0.6:
                self.connect(client, resume=self.random.random() < 0.7)

    # --- what producers, operators and fate do -----------------------------------------------------

    def enqueue(self) -> None:
        key = self.random.choice(["noisy", "noisy", "noisy", "quiet"])
        for _ in range(self.random.choice([1, 3, 20]) if key == "noisy" else 1):
            throttled = self.random.random() < 0.1
            payload = b"%s-%d" % (key.encode(), self.enqueued)
            self.enqueued += 1
            told = self.model.messages[payload] = Told(payload, 0, key, throttled)
            told.offset = self.engine.enqueue("q", payload, {"k": key, **({"t": "api"} if throttled else {})})
            self._take()

    def seek(self) -> None:
        self.say("seek")
        moved = admin.SeekChannelRequest(queue="q", offset=1)
        self.engine.call(commands.SEEK_CHANNEL, moved, admin.SeekChannelResponse)
        self.model.seeked()
        self.look()

    def purge(self) -> None:
        self.say("purge")
        self.engine.call(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="q"), admin.PurgeQueueResponse)
        self.model.purged()
        self.look()

    def pause(self) -> None:
        """The broker stands still: no socket is read, and no timer of the core runs."""
        ms = self.random.choice([1_000, 3_000, 30_000])
        self.say(f"the broker pauses for {ms} ms")
        self.engine.sleep(ms)
        self._listened()
        self.look()

    def restart(self) -> None:
        how = self.random.choice(["kill", "kill", "stop", "power cut"])
        self.look()
        if how == "power cut":
            self.engine.set_config("synced", str(self.enqueued))  # with it all leases given so far
            self._begin_unsynced()
            self.engine.cut_power()
        elif how == "kill":
            self.engine.kill()
        else:
            self.engine.stop()
        self.engine.reopen(away_ms=self.random.choice([0, 1_000, 10_000_000]))
        self.say(f"{how} and restart")
        self.heard_ms = self.listened_ns = 0
        self.model.level, self.model.level_at_ns = 10.0, self.engine.mono_ns  # full at most
        self.model.restarted()
        self.model.noisy_since_return = None
        self.deadlines = {
            number: max(1, self.grace_ms) for number in self.deadlines if self.model.held_by(number)
        }
        for client in self.clients:
            client.session = None
        self._listened()
        self.look()

    def _begin_unsynced(self) -> None:
        """One client begins something and nothing is synced after it."""
        able = [c for c in self.clients if c.session is not None and c.in_hand]
        if not able:
            return
        client = self.random.choice(able)
        assert client.session is not None
        lease_id = self.random.choice(list(client.in_hand))
        client.begun[lease_id] = client.in_hand.pop(lease_id)
        if lease_id in self.model.by_lease:
            self.model.by_lease[lease_id].maybe_begun = True
        frame = service.ConsumeSessionRequest(begun={"lease_ids": [lease_id]})
        self.engine.submit(commands.SESSION, frame, client.session.token)
        self.engine.run_pass()

    # --- the run ---------------------------------------------------------------------------------

    def run(self) -> Counter[str]:
        often: list[tuple[int, Callable[[], None]]] = [
            (30, self.act),
            (14, self.enqueue),
            (10, lambda: self.listen(self.random.choice([100, 300, 900]))),
            (5, self.join),
            (5, self.leave),
            (6, self.come_back),
            (2, self.pause),
            (2, self.restart),
            (1, self.seek),
            (1, self.purge),
        ]
        weights = [weight for weight, _ in often]
        self._listened()
        for _ in range(STEPS):
            self.random.choices(often, weights)[0][1]()
        for client in self.clients:
            if client.session is not None:
                self.deadlines[client.number] = self.heard_ms + self.grace_ms
                client.cut()
        self.listen(max(self.grace_ms, VISIBILITY_MS) + 1_000)
        left = [told for told in self.model.messages.values() if told.state == HELD]
        self.model.judge("everything comes back in the end", not left, f"{left}")
        return self.model.judged


def simulate_sessions(seed: int) -> Counter[str]:
    world = SessionWorld(seed)
    try:
        return world.run()
    except Broken as error:
        shown = world.trace if os.environ.get("FILA_SIM_TRACE") else world.trace[-25:]
        again = f"again: python -m tests.simulation.session_world {seed}"
        raise Broken("\n".join([f"seed {seed}: {error}", again, *shown])) from error
    finally:
        world.engine.remove()


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    judged: Counter[str] = Counter()
    bad = 0
    for seed in range(first, first + count):
        try:
            judged += simulate_sessions(seed)
        except Broken as error:
            bad += 1
            print(error if count == 1 else str(error).split("\n")[0][:300], flush=True)
    print(f"{count} seeds, {bad} bad; judged {dict(judged)}")


if __name__ == "__main__":
    main()
