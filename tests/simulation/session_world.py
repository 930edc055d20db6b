"""Sessions that say what they have begun, against a core that pauses, dies and comes back: one seed, one run.

Two queues, one with two channels; times to live, delays, dead letters, settings that change meanwhile, and in some runs
every body is read back from disk before it is delivered. Each act is carried out before the next one, so the model
knows at each moment who holds what; what it does not decide itself is when a silent or broken session is gone: that it
sees in the list of consumers, and judges by a clock of its own that goes on only while the edge reads its sockets.
`python -m tests.simulation.session_world SEED [COUNT]` runs it; FILA_SIM_TRACE=1 shows every step.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import MS, DrivenEngine
from tests.simulation.oracles import Broken
from tests.simulation.seeds import run_seeds
from tests.simulation.session_clients import ALIVE_ONLY, ALL_BEGUN, HONEST, KINDS, NEVER_BEGUN, Client
from tests.simulation.session_model import BURST, DEAD, HELD, READY, Bucket, SessionModel, Told

STEPS = 120
QUEUES = ("q", "r")
PLACES = (("q", "default"), ("q", "b"), ("r", "default"))
VISIBILITY_MS = 2_000
LONGEST_MS = 6_000
"""The longest grace or visibility timeout that is ever set."""
STEP_MS = 100
HEARD_GAP_MS_MAX = 500
LATE_MS_MAX = 700
"""How much later than its time a session may be found gone: a step, the times at which the core looks, and the
moment that is counted of a pause."""


class SessionWorld:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.random = rnd = random.Random(seed * 6007 + 5)
        cold: dict[str, int | str] = {"storage.hot_payload_bytes": 1} if rnd.random() < 0.3 else {}
        self.engine = DrivenEngine(cold, seed=seed)
        self.judged: Counter[str] = Counter()
        self.bucket = Bucket(at_ns=self.engine.mono_ns)
        self.models = [SessionModel(*place, self.bucket, self.judged) for place in PLACES]
        self.grace_ms = dict.fromkeys(QUEUES, 0)
        self.visibility_ms = dict.fromkeys(QUEUES, 0)
        self.clients: list[Client] = []
        self.deadlines: dict[int, int] = {}  # on heard_ms, by a session's number
        self.heard_ms, self.listened_ns = 0, 0
        self.enqueued = 0
        self.trace: list[str] = []
        for queue in QUEUES:
            request = admin.CreateQueueRequest(name=queue, config=self._settings(queue))
            self.engine.call(commands.CREATE_QUEUE, request, admin.CreateQueueResponse)
        more = admin.CreateChannelRequest(queue="q", channel="b")
        self.engine.call(commands.CREATE_CHANNEL, more, admin.CreateChannelResponse)
        self.engine.set_config("throttle.api", "5,10")

    def _settings(self, queue: str) -> admin.QueueConfig:
        rnd = self.random
        self.grace_ms[queue] = rnd.choice([0, 1_000, 5_000])
        self.visibility_ms[queue] = rnd.choice([VISIBILITY_MS, VISIBILITY_MS, LONGEST_MS])
        cap = rnd.choice([0, 0, 2, 4])
        for model in self._models_of(queue):
            model.max_attempts = cap
        return admin.QueueConfig(
            visibility_timeout_ms=self.visibility_ms[queue],
            disconnect_grace_ms=self.grace_ms[queue],
            max_attempts=cap,
            retry=admin.RetryPolicy(kind=admin.RetryPolicy.KIND_FIXED, base_ms=1, jitter=0),
            fairness_key_header="k",
            throttle_key_headers=["t"],
        )

    def _models_of(self, queue: str) -> list[SessionModel]:
        return [model for model in self.models if model.queue == queue]

    def judge(self, what: str, good: bool, why: str) -> None:
        self.models[0].judge(what, good, why)

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
        self.bucket.clock(self.engine.mono_ns)
        for model in self.models:
            model.clock(self.engine.wall_ms)
        here = {row.consumer_id for queue in QUEUES for row in self._listed(queue)}
        for number, deadline in list(self.deadlines.items()):
            late = f"{number} since {deadline} of {self.heard_ms}"
            if number in here:
                on_time = self.heard_ms <= deadline + LATE_MS_MAX
                self.judge("who is silent or away is gone in time", on_time, late)
            else:
                lives = self.heard_ms >= deadline
                self.judge("nobody is gone before its time", lives or not self._holds(number), late)
                self.say(f"{number} is gone")
                del self.deadlines[number]
                for model in self.models:
                    model.gone(number)
        self._take()
        for model in self.models:
            self._audit(model)
        for queue in QUEUES:
            self._audit_counts(queue)
            models = self._models_of(queue)
            dead, maybe = sum(m.dead for m in models), sum(m.maybe_dead for m in models)
            told = self.engine.stats(f"{queue}.dlq").depth
            good = dead <= told <= dead + maybe
            self.judge("dead letters are what failed so often", good, f"{told} of {queue}, {dead} + {maybe}")
            if not maybe:
                continue
            for model, each in [(m, t) for m in models for t in m.messages.values() if t.maybe_dead]:
                if told in (dead, dead + maybe):
                    each.maybe_dead = False
                    each.state = DEAD if told > dead else READY
                    model.dead += told > dead

    def _listed(self, queue: str) -> Sequence[admin.ConsumerInfo]:
        asked = admin.ListConsumersRequest(queue=queue)
        return self.engine.call(commands.LIST_CONSUMERS, asked, admin.ListConsumersResponse).consumers

    def _audit(self, model: SessionModel) -> None:
        held = [told for told in model.messages.values() if told.state == HELD]
        begun = sum(told.begun or told.maybe_begun for told in held)
        sure = not any(told.maybe_begun for told in held)
        stats = self.engine.stats(model.queue, model.channel)
        good = stats.in_flight == len(held) and (not sure or stats.unbegun == len(held) - begun)
        what = f"{stats.in_flight}, {stats.unbegun} for {len(held)}, {begun} in {model.queue}/{model.channel}"
        self.judge("the books", good, what)

    def _audit_counts(self, queue: str) -> None:
        """A message counts as delivered when it is begun, and is leased before that."""
        models, stats = self._models_of(queue), self.engine.stats(queue)
        begun, maybe = sum(m.begun for m in models), sum(m.maybe_begun_more for m in models)
        counted = begun <= stats.delivered_total <= begun + maybe
        self.judge("delivered is begun", counted, f"{stats.delivered_total} of {queue}, {begun} + {maybe}")
        leased = sum(m.leased for m in models)
        self.judge(
            "leased is sent", stats.leased_total >= leased, f"{stats.leased_total} of {queue}, {leased}"
        )

    def _holds(self, number: int) -> bool:
        return any(model.held_by(number) for model in self.models)

    def _take(self) -> None:
        new = [(m.metadata.lease_id, m, client) for client in self.clients for m in client.hears()]
        for lease_id, message, client in sorted(new, key=lambda row: row[0]):
            meta, number = message.metadata, client.number
            self.say(f"deliver {message.payload!r} to {number} under {lease_id}, {meta.attempt_count}")
            client.model.delivered(message.payload, meta, number)

    # --- what clients do -------------------------------------------------------------------------

    def _spoke(self, client: Client) -> None:
        self.deadlines[client.number] = self.heard_ms + client.visibility_ms

    def join(self) -> None:
        if len(self.clients) < 8:
            client = Client(
                f"c{len(self.clients)}", self.random.choice(KINDS), self.random.choice(self.models)
            )
            self.clients.append(client)
            self.connect(client, resume=False)

    def connect(self, client: Client, *, resume: bool) -> None:
        client.visibility_ms = self.visibility_ms[client.model.queue]
        before, listed = client.number, set(client.holds) if resume else set()
        lost = client.connect(self.engine, resume, self.random.choice([1, 5, 40]))
        self.say(f"{client.name}, {client.kind}, connects as {client.number}, was {before}, lost {lost}")
        if resume:
            held = {told.lease_id for told in client.model.held_by(before)}
            self.judge("a resume keeps what is held", lost == listed - held, f"{lost} of {listed}, {held}")
            if client.number == before:
                for lease_id in held - listed:
                    client.model.came_back(lease_id, tokens=False)
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
            if lease_id in client.model.by_lease:
                client.model.begins(lease_id)
        self.say(f"{client.name} begins {lease_ids}")
        client.session.say(begun={"lease_ids": lease_ids})

    def hand_out(self, client: Client) -> None:
        if not client.may_hand_out(self.engine):
            return
        chosen = client.some(self.random, client.in_hand, 4)
        for lease_id in chosen:
            told = client.model.by_lease.get(lease_id)
            good = told is not None and told.holder == client.number
            self.judge("nobody hands out after its deadline", good, f"{client.name} {lease_id} {told}")
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
            if lease_id not in client.model.by_lease:
                continue
            client.model.begins(lease_id)
            if how == "release":
                client.model.came_back(lease_id, tokens=False)
            else:
                {
                    "ack": client.model.acked,
                    "nack": client.model.failed,
                    "dead_letter": client.model.rejected,
                }[how](lease_id)
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
            if lease_id in client.model.by_lease:
                client.model.came_back(lease_id, tokens=True)
        if len(chosen) > 5:
            client.model.many_returned()
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
            self.deadlines[client.number] = self.heard_ms + self.grace_ms[client.model.queue]
            client.cut()
            self.look()
            return
        assert client.session is not None
        for told in client.model.held_by(client.number):
            if how == "release" or not told.begun:
                client.model.came_back(told.lease_id, tokens=False)
            else:  # it keeps its lease, and nobody tells us when it ends: the program settles it now
                request = service.AckRequest(
                    queue=client.model.queue,
                    channel=client.model.channel,
                    message_id=self._id(client, told),
                    lease_id=told.lease_id,
                )
                self.engine.call(commands.ACK, request, service.AckResponse)
                client.model.acked(told.lease_id)
        if how == "release":
            client.model.many_returned()
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
        rnd, queue = self.random, self.random.choice(["q", "q", "r"])
        key = rnd.choice(["noisy", "noisy", "noisy", "quiet"])
        for _ in range(rnd.choice([1, 3, 20]) if key == "noisy" else 1):
            throttled = rnd.random() < 0.1
            ttl_ms = rnd.choice([700, 3_000, 20_000]) if rnd.random() < 0.1 else 0
            delay_ms = rnd.choice([300, 2_500]) if rnd.random() < 0.1 else 0
            payload = b"%s-%d" % (key.encode(), self.enqueued)
            self.enqueued += 1
            told = Told(payload, 0, key, throttled)
            told.expires_ms = self.engine.wall_ms + ttl_ms if ttl_ms else 0
            told.due_ms, told.delayed = (self.engine.wall_ms + delay_ms, True) if delay_ms else (0, False)
            both = [replace(told) for _ in self._models_of(queue)]
            for model, each in zip(self._models_of(queue), both, strict=True):
                model.messages[payload] = each
            options = {name: value for name, value in (("ttl_ms", ttl_ms), ("delay_ms", delay_ms)) if value}
            headers = {"k": key, **({"t": "api"} if throttled else {})}
            offset = self.engine.enqueue(queue, payload, headers, **options)
            for each in both:
                each.offset = offset
            self._take()

    def change_settings(self) -> None:
        queue = self.random.choice(QUEUES)
        config = self._settings(queue)
        self.say(f"{queue}: {config.visibility_timeout_ms}, {self.grace_ms[queue]}, {config.max_attempts}")
        mask = ["visibility_timeout_ms", "disconnect_grace_ms", "max_attempts"]
        request = admin.UpdateQueueRequest(queue=queue, config=config, update_mask={"paths": mask})
        self.engine.call(commands.UPDATE_QUEUE, request, admin.UpdateQueueResponse)
        self.look()

    def seek(self) -> None:
        moving = self.random.choice(self.models)
        self.say(f"seek {moving.queue}/{moving.channel}")
        self.look()
        kept: dict[bytes, bool] = {}
        for model in self._models_of(moving.queue):
            for payload, told in model.messages.items():
                is_kept = model.is_kept(told)
                if is_kept or (is_kept is None and payload not in kept):
                    kept[payload] = bool(is_kept)
        moved = admin.SeekChannelRequest(queue=moving.queue, channel=moving.channel, offset=1)
        self.engine.call(commands.SEEK_CHANNEL, moved, admin.SeekChannelResponse)
        moving.seeked(kept)
        self.look()

    def purge(self) -> None:
        queue = self.random.choice(QUEUES)
        only = self.random.choice([None, *self._models_of(queue)])
        self.say(f"purge {queue}, {only.channel if only else 'all'}")
        request = admin.PurgeQueueRequest(queue=queue, channel=only.channel if only else None)
        self.engine.call(commands.PURGE_QUEUE, request, admin.PurgeQueueResponse)
        for model in [only] if only else self._models_of(queue):
            model.purged()
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
        self.bucket.level, self.bucket.at_ns = BURST, self.engine.mono_ns  # full at most
        for model in self.models:
            model.restarted()
        self.deadlines = {
            number: max(1, self.grace_ms[model.queue])
            for number in self.deadlines
            for model in self.models
            if model.held_by(number)
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
        if lease_id in client.model.by_lease:
            client.model.by_lease[lease_id].maybe_begun = True
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
            (1, self.change_settings),
        ]
        weights = [weight for weight, _ in often]
        self._listened()
        for _ in range(STEPS):
            self.random.choices(often, weights)[0][1]()
        for client in self.clients:
            if client.session is not None:
                self.deadlines[client.number] = self.heard_ms + self.grace_ms[client.model.queue]
                client.cut()
        self.listen(LONGEST_MS + 1_000)
        left = [told for model in self.models for told in model.messages.values() if told.state == HELD]
        self.judge("everything comes back in the end", not left, f"{left}")
        return self.judged


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


if __name__ == "__main__":
    sys.exit(run_seeds("sessions", simulate_sessions, sys.argv[1:]))
