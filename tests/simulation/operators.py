"""Queues come and go, and settings change while messages wait; each act predicts its own effect on the model."""

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from fila_server.hooks.packed import Routing
from tests.simulation.asked import Asked
from tests.simulation.channel_operators import ChannelOperators
from tests.simulation.limit_model import OWN
from tests.simulation.model import (
    DELAYED,
    DONE,
    READY,
    BucketModel,
    ChannelModel,
    Entry,
    Headers,
    KeyModel,
    Note,
    QueueModel,
)
from tests.simulation.oracles import Broken
from tests.simulation.producers import FAIRNESS_KEYS, LONG_MS, THROTTLE_KEYS

WITH_KEY_LIMIT = "q3"
"""Where there are limits, each message of this queue needs that of its fairness key, too."""


class Operators(ChannelOperators):
    """Queues and channels come and go; settings, limits and policies change while messages wait."""

    def create_queue(self) -> None:
        world, rnd = self.world, self.random
        name = rnd.choice(["q1", "q2", "q3"])
        config: dict[str, int] = {
            "visibility_ms": rnd.choice([1000, 5000, 30000]),
            "max_attempts": rnd.choice([0, 1, 2, 3, 20]) if not world.always_cold else 20,
            "fsync": int(rnd.random() < 0.7),
            "max_depth": rnd.choice([0, 0, 0, 30]),
            "dedup_window_ms": rnd.choice([1000, 300000]),
            "ttl_to_dlq": int(rnd.random() < 0.5),
            "retry_base_ms": rnd.choice([50, 500]),
            "retry_cap_ms": 2000,
            "retry_fixed": int(rnd.random() < 0.5),
            "jitter": int(rnd.random() < 0.3),
            "soft": rnd.choice([0, 0, LONG_MS]),
            "key_cap": 0,
            # Such a queue gives out one message of a key at a time, which leaves little of fairness to judge.
            "in_order": int(rnd.random() < 0.2),
        }
        if world.policy:
            config["on_failure"] = int(rnd.random() < 0.5)
        if world.routed_share:
            config["producers_route"] = int(world.routing_chance.random() < 0.8)
        channels = rnd.choice([[], [], ["a"], ["a", "b"]])[: 1 if self.one_channel else None]
        headers = Headers(key_limit=OWN if world.limited_share and name == WITH_KEY_LIMIT else "")
        request = admin.CreateQueueRequest(
            name=name, config=self.complete_config(config, headers, {}, channels)
        )
        world.ask(
            commands.CREATE_QUEUE,
            request,
            self._created,
            self._create_answered,
            name=name,
            config=config,
            headers=headers,
            channels=channels,
            fsync=1,
        )

    @staticmethod
    def complete_config(
        config: dict[str, int], headers: Headers, weights: dict[str, int], channels: list[str]
    ) -> admin.QueueConfig:
        kinds = admin.RetryPolicy
        return admin.QueueConfig(
            on_failure_script="function on_failure(msg) end" if config.get("on_failure") else "",
            visibility_timeout_ms=config["visibility_ms"],
            max_attempts=config["max_attempts"],
            durability=admin.DURABILITY_FSYNC if config["fsync"] else admin.DURABILITY_OS,
            max_depth=config["max_depth"],
            fairness_key_header=headers.key,
            weight_header=headers.weight,
            weights=weights,
            cost_header=headers.cost,
            throttle_key_headers=headers.throttles,
            key_limit=headers.key_limit,
            retry=admin.RetryPolicy(
                kind=kinds.KIND_FIXED if config["retry_fixed"] else kinds.KIND_EXPONENTIAL,
                base_ms=config["retry_base_ms"],
                cap_ms=config["retry_cap_ms"],
                jitter=0.5 if config["jitter"] and not config["retry_fixed"] else 0,
            ),
            dedup_window_ms=config["dedup_window_ms"],
            ttl_to_dlq=bool(config["ttl_to_dlq"]),
            retention=admin.Retention(soft_period_ms=config["soft"]),
            channels=channels,
            allow_producer_routing=bool(config.get("producers_route")),
            key_order=admin.KEY_ORDER_STRICT if config["in_order"] else admin.KEY_ORDER_UNSPECIFIED,
            key_defaults=admin.KeyDefaults(
                max_in_flight=config["key_cap"],
                committed_per_second=KeyModel.COMMITTED_WITH_CAP.get(config["key_cap"], 0),
            )
            if config["key_cap"]
            else None,
        )

    def _created(self, asked: Asked) -> None:
        model, name = self.world.model, asked.notes["name"]
        asked.notes["exists"] = name in model.queues
        if asked.notes["exists"]:
            return
        self.world.say(f"create {name} {asked.notes['config']} {asked.notes['channels']}")
        queue = QueueModel(
            name, asked.notes["config"], headers=asked.notes["headers"], number=2 * asked.token
        )
        for channel in asked.notes["channels"] or ["default"]:
            queue.channels[channel] = ChannelModel(channel, queue)
        dlq = QueueModel(f"{name}.dlq", {**asked.notes["config"], "max_depth": 0, "soft": 0}, is_dlq=True)
        dlq.number = queue.number + 1
        # Of its own settings a DLQ takes over two; the rest are defaults.
        dlq.config.update(retry_base_ms=100, retry_cap_ms=60000, retry_fixed=0, jitter=1, ttl_to_dlq=0)
        dlq.config.update(on_failure=0, dedup_window_ms=300000, key_cap=0, in_order=0)
        dlq.config.update(producers_route=0)
        dlq.headers = Headers("", "", "", ())
        dlq.channels["default"] = ChannelModel("default", dlq)
        queue.dlq, dlq.origin = dlq, queue
        model.queues[name], model.queues[dlq.name] = queue, dlq

    def _create_answered(self, asked: Asked, status: int, payload: bytes) -> None:
        if status != (6 if asked.notes["exists"] else 0):
            raise Broken(f"creating {asked.notes['name']} was answered {status}")

    def delete_queue(self) -> None:
        queues = [q for q in self.world.model.queues.values() if not q.is_dlq]
        if not queues or not self.nobody_pulls():
            return
        name = self.random.choice(queues).name
        self.world.ask(
            commands.DELETE_QUEUE,
            admin.DeleteQueueRequest(queue=name),
            self._deleted,
            self._expect,
            name=name,
            fsync=1,
        )

    def _deleted(self, asked: Asked) -> None:
        queue = self.world.model.queues.get(asked.notes["name"])
        asked.notes["expected"] = 0 if queue is not None else 5
        if queue is None:
            return
        self.world.say(f"delete {queue.name}")
        assert queue.dlq is not None
        for gone in (queue, queue.dlq):
            gone.gone = True
            del self.world.model.queues[gone.name]
            for channel in gone.channels.values():
                self._forget_channel(channel)

    # --- limits and policies ----------------------------------------------------------------------

    def throttle(self) -> None:
        rnd, world = self.random, self.world
        if not self.nobody_pulls():
            return
        key = rnd.choice(THROTTLE_KEYS)
        rate, burst = rnd.choice(
            [(1.0, 1.0), (20.0, 1.0), (5.0, 3.0), (100.0, 10.0), (0.0, 2.0), (10.0, 0.0)]
        )
        remove = rnd.random() < 0.3
        value = "" if remove else f"{rate},{burst}"
        request = admin.SetConfigRequest(key=f"throttle.{key}", value=value)
        world.ask(
            commands.SET_CONFIG,
            request,
            self.throttled,
            self._expect,
            key=key,
            rate=rate,
            burst=burst,
            remove=remove,
            expected=0,
            fsync=1,
        )

    def throttled(self, asked: Asked) -> None:
        world, key = self.world, asked.notes["key"]
        world.say(f"throttle {asked.notes}")
        unseen = len(world.unseen)
        bucket = world.model.buckets.get(key)
        if asked.notes["remove"]:
            world.model.buckets.pop(key, None)
            world.model.lifted_pass[key] = world.pass_number
        elif bucket is None:
            burst = asked.notes["burst"]
            wall = world.engine.wall_ms
            world.model.buckets[key] = BucketModel(asked.notes["rate"], burst, burst + unseen, wall, wall)
        else:
            bucket.refill(world.engine.wall_ms, unseen)
            # A full bucket that no message names is forgotten, so it begins full under its new limit.
            may_be_forgotten = bucket.level >= bucket.burst
            bucket.rate, bucket.burst = asked.notes["rate"], asked.notes["burst"]
            full = bucket.burst + bucket.KEPT + unseen
            bucket.level = full if may_be_forgotten else min(bucket.level, full)
            bucket.since_ms = world.engine.wall_ms

    def key_policy(self) -> None:
        rnd, world = self.random, self.world
        queue = self._source()
        if queue is None or not self.nobody_pulls():
            return
        key = rnd.choice(FAIRNESS_KEYS)
        request = admin.SetKeyPolicyRequest(queue=queue.name, fairness_key=key)
        what = rnd.choice(["weight", "pause", "cap"])
        if what == "weight":
            request.weight = rnd.choice([0, 1, 4, 10])
            if world.policy and request.weight != 1:
                request.committed_per_second = 5 if request.weight == 4 else 0
        elif what == "pause":
            request.paused = rnd.random() < 0.4
        else:
            request.max_in_flight = rnd.choice([0, 0, 1, 3])
            if world.policy and rnd.random() < 0.3:
                request.ClearField("max_in_flight")
                request.cap_by_default = True
        world.ask(
            commands.SET_KEY_POLICY,
            request,
            self._policy_set,
            self._expect,
            name=queue.name,
            policy=request,
            fsync=1,
        )

    def _policy_set(self, asked: Asked) -> None:
        queue, request = self.world.model.queues.get(asked.notes["name"]), asked.notes["policy"]
        asked.notes["expected"] = 5 if queue is None else 0
        if queue is None:
            return
        self.world.say(f"policy {request}".replace("\n", " "))
        key = queue.key(request.fairness_key)
        if request.HasField("weight"):
            key.weigh(admin_weight=request.weight)
        if request.HasField("committed_per_second"):
            committed = int(request.committed_per_second)
            by_default = KeyModel.COMMITTED_WITH_CAP.get(key.default_cap, 0)
            key.own_committed = committed if committed or by_default else None
        if request.HasField("paused"):
            key.paused = request.paused
        if request.HasField("max_in_flight"):
            key.own_cap = request.max_in_flight if request.max_in_flight or key.default_cap else None
        elif request.cap_by_default:
            key.own_cap = None
        for channel in queue.channels.values():
            self.world.fair.interrupt(channel, request.fairness_key)

    # --- redrive ------------------------------------------------------------------------------------

    def redrive(self) -> None:
        """All that is dead in a queue, at a quiet moment."""
        world = self.world
        queue = self._source()
        if queue is None or world.always_cold:
            return
        world.quiet()
        queue = world.model.queues.get(queue.name)
        if queue is None or queue.dlq is None:
            return
        # A page moves no more than what is hot: have all of it read back first.
        peeked: list[bytes] = []
        world.ask(
            commands.PEEK_MESSAGES,
            admin.PeekMessagesRequest(queue=queue.dlq.name, max_messages=1000),
            answered=lambda _, __, payload: peeked.append(payload),
        )
        world.quiet()
        dead = admin.PeekMessagesResponse.FromString(peeked[0]).messages
        for message in dead:  # some may have died before anybody saw them: their enqueue was never answered
            meta, token = message.metadata, int(message.payload.split(b"|")[0])
            world.find(queue.dlq.channels["default"], token, meta.dead_letter.source_channel, meta.offset)
        pending = list(world.model.pending(queue.dlq))
        if not pending or len(pending) > 256:
            return
        # The oldest goes first and the newest one's weight stays, and who died first is not always known.
        oldest_first = [
            (int(message.payload.split(b"|")[0]), message.metadata.dead_letter.source_channel)
            for message in dead
        ]
        order = {what: at for at, what in enumerate(oldest_first)}
        pending.sort(key=lambda note: order.get((note.entry.token, note.entry.source), len(order)))
        # What only may be there, and is not, moves nowhere and gives no key its weight.
        pending = [n for n in pending if not n.maybe or (n.entry.token, n.entry.source) in order]
        request = admin.RedriveRequest(dlq_queue=queue.dlq.name, count=256)
        world.ask(
            commands.REDRIVE_MOVE,
            request,
            self._redriven,
            self._redrive_answered,
            queue=queue,
            pending=pending,
            fsync=1,
        )
        world.run_pass()

    def _redriven(self, asked: Asked) -> None:
        world, queue = self.world, asked.notes["queue"]
        asked.notes["moved"] = 0
        for note in asked.notes["pending"]:
            channel = queue.channels.get(note.entry.source)
            if channel is None or note.state not in (READY, DELAYED):
                continue
            asked.notes["moved"] += 1
            key, weight, cost, throttles = self.producers.routed(
                queue, note.entry.headers, self._as_it_was(queue, note.entry)
            )
            entry = Entry(
                note.entry.token, queue, note.entry.headers, key, weight, cost, throttles, id=note.entry.id
            )
            entry.priority = note.entry.priority
            entry.only = channel
            queue.log.append(entry)
            if not queue.lets_producers_route:
                queue.key(key).weigh(weight)
            note.state, note.ended_ms = DONE, world.engine.wall_ms
            channel.add(Note(entry, channel, place=None, maybe=note.maybe))
        world.say(f"redrive {asked.notes['moved']} of {queue.name}")

    @staticmethod
    def _as_it_was(queue: QueueModel, entry: Entry) -> Routing | None:
        """Where producers route, key and cost stay, for no header tells them; so does the weight of the key. One that
        has nothing else may be new."""
        if not queue.lets_producers_route:
            return None
        key = queue.key(entry.key)
        notes = (note for channel in queue.channels.values() for note in channel.all_notes())
        if not any(n.entry.key == entry.key and n.state != DONE and not n.maybe for n in notes):
            key.is_vague = True
        return Routing(entry.key.encode(), None, entry.cost / 1000, None)

    def _redrive_answered(self, asked: Asked, status: int, payload: bytes) -> None:
        moved = asked.notes["moved"]
        if status == 9 and moved == 0:
            return
        got = admin.RedriveResponse.FromString(payload).redriven if status == 0 else -1
        if got != moved and not any(n.maybe for n in asked.notes["pending"]):
            raise Broken(f"redrive was answered {status} and moved {got}, not {moved}")
