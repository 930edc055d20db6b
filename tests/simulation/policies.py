"""UpdateQueue while messages wait, are leased, delayed and being decided.

What is stored with a message stays as it was: its key, cost and throttle keys, its delay, its time to live. What
belongs to the queue counts from now on, for what waits too: weight table, visibility timeout, retry, max_attempts,
on_failure, ttl_to_dlq, durability, capacity, retention, each key's default cap.
"""

from dataclasses import replace

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from tests.simulation.asked import Asked
from tests.simulation.limit_model import OWN
from tests.simulation.model import Headers, QueueModel
from tests.simulation.operators import WITH_KEY_LIMIT, Operators
from tests.simulation.oracles import Broken
from tests.simulation.producers import BOUNDED, FAIRNESS_KEYS, LONG_MS, SHIFTING
from tests.simulation.world import World


class PolicyOperators:
    """An admin who can't leave the settings alone."""

    def __init__(self, world: World, operators: Operators) -> None:
        self.world = world
        self.random = world.random
        self.operators = operators

    def update(self) -> None:
        world, rnd = self.world, self.random
        queues = list(world.model.queues.values())
        on_its_way = {
            a.notes["name"] for a in [*world.taken, *world.mailbox] if a.kind == commands.UPDATE_QUEUE
        }
        queues = [queue for queue in queues if queue.name not in on_its_way]
        if not queues or not self.operators.nobody_pulls():
            return
        queue = rnd.choice(queues)
        # The edge merges what the mask names into what it knows, and the core is given all of it.
        config, headers, weights = dict(queue.config), queue.headers, dict(queue.weights)
        for _ in range(rnd.choice([1, 1, 2, 5])):
            headers, weights = self._change(queue, config, headers, weights)
        if world.routed_share and not queue.is_dlq and world.routing_chance.random() < 0.2:
            config["producers_route"] = 1 - config["producers_route"]
        complete = self.operators.complete_config(config, headers, weights, [])
        world.ask(
            commands.UPDATE_QUEUE,
            admin.UpdateQueueRequest(queue=queue.name, config=complete),
            self._updated,
            self._answered,
            name=queue.name,
            config=config,
            headers=headers,
            weights=weights,
            complete=complete,
            fsync=1,
        )

    def _change(
        self, queue: QueueModel, config: dict[str, int], headers: Headers, weights: dict[str, int]
    ) -> tuple[Headers, dict[str, int]]:
        rnd = self.random
        what = rnd.choice(
            ["visibility", "attempts", "retry", "weights", "headers", "script", "time", "room", "soft", "cap"]
        )
        if what == "visibility":
            config["visibility_ms"] = rnd.choice([1000, 5000, 30000])
        elif what == "attempts" and not self.world.always_cold:
            config["max_attempts"] = rnd.choice([0, 1, 2, 3, 20])
        elif what == "retry":
            config.update(
                retry_base_ms=rnd.choice([50, 500]),
                retry_cap_ms=rnd.choice([500, 2000]),
                retry_fixed=int(rnd.random() < 0.5),
                jitter=int(rnd.random() < 0.3),
            )
        elif what == "weights":
            keys = rnd.sample(FAIRNESS_KEYS, rnd.choice([0, 1, 2, 4]))
            weights = {key: rnd.choice([1, 2, 5, 20]) for key in keys}
        elif what == "headers" and not queue.is_dlq:
            headers = Headers(
                rnd.choice(["k", "k", "t1", ""]),
                rnd.choice(["w", "w", ""]),
                rnd.choice(["c", "c", "w", ""]),
                rnd.choice([("t1", "t2"), ("t1",), ("t2", "t1", "t2"), ()]),
            )
            if self.world.limited_share and queue.name == WITH_KEY_LIMIT and headers.throttles:
                headers = replace(headers, key_limit=OWN)
        elif what == "script" and (self.operators.one_channel or not queue.is_dlq):
            config["on_failure"] = 1 - config["on_failure"]
        elif what == "time":
            config["ttl_to_dlq"] = int(rnd.random() < 0.5)
            config["dedup_window_ms"] = rnd.choice([1000, 300000])
        elif what == "room" and queue.name in BOUNDED:
            config["max_depth"] = rnd.choice([0, 5, 30])
        elif what == "room" and queue.name in SHIFTING:
            config["fsync"] = 1 - config["fsync"]
        elif what == "soft" and not queue.is_dlq:
            config["soft"] = rnd.choice([0, LONG_MS])
        elif what == "cap":
            config["key_cap"] = rnd.choice([0, 0, 1, 3])
        return headers, weights

    def _updated(self, asked: Asked) -> None:
        queue = self.world.model.queues.get(asked.notes["name"])
        asked.notes["expected"] = 5 if queue is None else 0
        if queue is None:
            return
        shown = [asked.notes[name] for name in ("config", "headers", "weights")]
        self.world.say(f"update {queue.name}: {shown}")
        queue.retention_changed |= asked.notes["config"]["soft"] != queue.config["soft"]
        queue.config = dict(asked.notes["config"])
        queue.headers, queue.weights = asked.notes["headers"], asked.notes["weights"]
        for name, key in queue.keys.items():
            key.weigh(table_weight=queue.weights.get(name, 0))
            if key.default_cap != queue.config["key_cap"]:
                key.default_cap = queue.config["key_cap"]
                for channel in queue.channels.values():
                    self.world.fair.interrupt(channel, name)

    def _answered(self, asked: Asked, status: int, payload: bytes) -> None:
        if status != asked.notes["expected"]:
            raise Broken(
                f"updating {asked.notes['name']} was answered {status}, not {asked.notes['expected']}"
            )
        if status == 0:
            self.world.check_synced(asked)
            if admin.UpdateQueueResponse.FromString(payload).config != asked.notes["complete"]:
                raise Broken(f"updating {asked.notes['name']} was answered with other settings")
