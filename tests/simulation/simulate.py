"""One seed, one run: `python -m tests.simulation.simulate [--policy] SEED [COUNT]` runs it.

With `--policy` settings change meanwhile and hooks decide; FILA_SIM_TRACE=1 shows every step. Exit code 1 when a seed
failed, or when an oracle judged too little (tests/simulation/seeds.py).
"""

import logging
import os
import random
import sys
from collections import Counter
from functools import partial

import structlog

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from fila_server.operations.firing import DEFINITIONS, DUES
from tests.simulation.books import Books
from tests.simulation.cancels import Cancels
from tests.simulation.consumers import Consumers
from tests.simulation.hooks import Hooks
from tests.simulation.limit_operators import Limits
from tests.simulation.model import DONE, ConsumerModel
from tests.simulation.operators import Operators
from tests.simulation.oracles import Broken
from tests.simulation.policies import PolicyOperators
from tests.simulation.producers import THROTTLE_KEYS, Producers
from tests.simulation.schedules import Schedules
from tests.simulation.seeds import run_seeds
from tests.simulation.world import World

STEPS = 280
"""Some 1,000 deliveries a run: a third fewer, and the judge of fairness has too little in one slice of fifteen."""
POLICY = "--policy"
TRACE_LINES = 60


class Simulation:
    def __init__(self, seed: int, policy: bool = False) -> None:
        self.seed = seed
        rnd = random.Random(seed * 7919 + 1)
        cold = rnd.random() < 0.25
        settings: dict[str, int | str] = {"storage.hot_payload_bytes": rnd.choice([1, 3000])} if cold else {}
        self.world = World(seed, settings, cold, policy)
        self.random = self.world.random
        self.world.throttled_share = rnd.choice([0.0, 0.2, 0.8])
        self.producers = Producers(self.world)
        self.consumers = Consumers(self.world)
        self.cancels = Cancels(self.world)
        self.operators = Operators(self.world, self.producers)
        self.books = Books(self.world)
        self.schedules = Schedules(self.world, self.producers)
        self.crashes = rnd.random() < 0.6
        calm = rnd.random() < 0.3
        rare = 0 if calm else 1
        self.actions = [
            (self.producers.enqueue, rnd.choice([5, 20])),
            (self.consumers.open, 5),
            (self.consumers.settle, rnd.choice([5, 20])),
            (self.consumers.written, 10),
            (self.consumers.credit, 1),
            (self.consumers.close, 2 * rare),
            (self.operators.create_queue, 0.5),
            (self.operators.delete_queue, 0.2 * rare),
            (self.operators.create_channel, 0.5 * rare),
            (self.operators.delete_channel, 0.2 * rare),
            (self.operators.seek, 0.5 * rare),
            (self.operators.purge, 0.5 * rare),
            (self.operators.throttle, 1),
            (self.operators.key_policy, 1),
            (self.operators.redrive, 0.5),
            (self.cancels.cancel, rnd.choice([0, 1, 3])),
            (self.schedules.create, 0.5),
            (self.schedules.pause, 0.2),
            (self.schedules.delete, 0.2 * rare),
            (self.schedules.jump, 0.5 * rare),
            (self.schedules.turn, rnd.choice([0.5, 2])),
        ]
        self.limits = Limits(self.world, self.operators, self.world.limit_chance)
        self._meets_what_some_runs_have()
        self.hooks = Hooks(self.world, self.producers)
        self.actions_near_a_crash = [
            self.producers.enqueue,
            self.consumers.settle,
            self.consumers.open,
            self.schedules.begin,
        ]
        if policy:
            self.operators.one_channel = rnd.random() < 0.3
            policies = PolicyOperators(self.world, self.operators)
            self.actions += [
                (policies.update, 2),
                (self.hooks.route, rnd.choice([2, 10])),
                (self.hooks.submit, rnd.choice([3, 10])),
                (self.hooks.decide, rnd.choice([1, 10])),
            ]
            self.actions_near_a_crash += [policies.update, self.hooks.submit, self.hooks.decide]

    def _meets_what_some_runs_have(self) -> None:
        self._meets_limits()
        self._meets_priorities()
        self._meets_producers_that_route()

    def _meets_limits(self) -> None:
        """Half of the runs have limits; the others are as they were without them."""
        if self.limits.random.random() < 0.5:
            self.world.limited_share = self.limits.random.choice([0.3, 0.9])
            self.consumers.feedback, self.books.lets = self.limits.feedback, self.limits.lets

    def _meets_priorities(self) -> None:
        """A third of the runs have messages of other priorities than the usual one."""
        if self.world.priority_chance.random() < 0.33:
            self.world.prioritized_share = self.world.priority_chance.choice([0.2, 0.8])

    def _meets_producers_that_route(self) -> None:
        """A third of the runs have producers that say key, weight and cost."""
        if self.world.routing_chance.random() < 0.33:
            self.world.routed_share = self.world.routing_chance.choice([0.2, 0.8])

    def judged(self) -> Counter[str]:
        """How often each oracle judged."""
        world = self.world
        return Counter(
            {
                "messages": world.messages,
                "no answered message is lost or comes back": world.kept.judged,
                "one lease a message": world.one_holder.judged,
                "order within a key": world.in_order.judged,
                "the higher priority of a key goes first": world.in_order.judged_priorities,
                "one at a time of a key in order": world.one_at_a_time.judged,
                "a message is shared as its producer said": world.as_said.judged,
                "one end a message": world.one_end.judged,
                "one firing a moment": world.one_firing.judged,
                "a message and its next moment agree": self.schedules.judged_crashes,
                "no moment that is over stays due": self.schedules.judged_turns,
                "no bucket over its curve": world.on_curve.judged,
                "no limit gives more than it may": world.within_limits.judged,
                "nobody waits at limits that have enough": self.limits.judged,
                "limits that are whole let somebody go": self.limits.judged_in_time,
                "keys stay within the bound": world.fair.judged,
                "keys share a limit within the bound": world.fair.judged_limits,
                "what is cancelled ends once, and is never delivered": self.cancels.judged,
                "the numbers agree": self.books.judged,
                "nothing that could go is left lying": self.books.judged_idle,
                "no pass does more than its bound": self.books.judged_work,
            }
        )

    def run(self) -> None:
        world, rnd = self.world, self.random
        for _ in range(2):
            self.operators.create_queue()
        world.quiet()
        if world.limited_share:
            for _ in range(3):
                self.limits.set()
            self.actions += [(self.limits.set, 1), (self.limits.delete, 0.3), (self.limits.reset, 0.3)]
        does = [action for action, _ in self.actions]
        weights = [weight for _, weight in self.actions]
        for _ in range(STEPS):
            for action in rnd.choices(does, weights, k=rnd.choice([1, 1, 3, 8])):
                action()
            self._pass()
            if rnd.random() < 0.03:
                self.books.check()
            if self.crashes and rnd.random() < 0.02:
                self._crash()
        self.books.check()
        self._drain()
        self._leave_nothing()

    def _pass(self) -> None:
        world, rnd = self.world, self.random
        world.engine.advance(rnd.choice([0, 0, 1, 1, 3, 20, 200, 1500]))
        for _ in range(rnd.choice([1, 1, 2])):
            world.run_pass()
            if rnd.random() < 0.6:
                world.engine.commit()
            if rnd.random() < 0.6:
                world.load()

    def _crash(self) -> None:
        world, rnd = self.world, self.random
        away_ms = rnd.choice([0, 10, 3000, -2000])
        how = rnd.choice(["kill", "power", "clean"])
        if how == "clean":
            self.hooks.forget()
            world.clean_restart(away_ms)
            self.schedules.take_up()
            return
        if how == "power" and not world.plan_power_cut():
            return
        for _ in range(rnd.choice([0, 1, 4])):  # nothing of this is synced any more
            for action in rnd.choices(self.actions_near_a_crash, k=3):
                action()
            world.engine.advance(1)
            world.run_pass()
        self.hooks.forget()
        world.crash(how == "power", away_ms)
        self.schedules.take_up()

    # --- the end --------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Lift every limit, let everybody leave, and take what is there until nothing comes any more."""
        world = self.world
        self.consumers.feedback = lambda _names: []
        world.quiet()
        for key in THROTTLE_KEYS:
            removal = admin.SetConfigRequest(key=f"throttle.{key}", value="")
            gone = self.operators.throttled
            world.ask(commands.SET_CONFIG, removal, gone, self._fine, key=key, remove=True)
        world.quiet()
        for queue in world.model.queues.values():
            for name, policy in queue.keys.items():
                request = admin.SetKeyPolicyRequest(
                    queue=queue.name,
                    fairness_key=name,
                    weight=0,
                    paused=False,
                    max_in_flight=0,
                    committed_per_second=0,
                )
                policy.weigh(admin_weight=0)
                policy.paused, policy.own_cap = False, 0
                self._sure(commands.SET_KEY_POLICY, request)
        world.fair.interrupt()
        for consumer in list(world.model.consumers.values()):
            self._leave(consumer)
        world.quiet()
        self.limits.wait_out(self._take_and_ack)
        self.limits.lift()
        # Where keys are in order, each round brings one message a key.
        for _ in range(60 + len(world.model.all_notes())):
            self._take_and_ack()
            if all(n.state == DONE or n.maybe for n in world.model.all_notes()):
                break
            world.engine.advance(1000)
        hidden = sum(note.maybe and note.state != DONE and note.in_order for note in world.model.all_notes())
        hidden += sum(len(queue.ghosts) for queue in world.model.queues.values() if queue.in_order)
        # What only may be there, and what was leased for somebody who never saw it.
        for _ in range(3 + hidden):
            world.engine.advance(70_000)
            if self.world.policy:
                world.quiet()  # what failed meanwhile is told
            self._take_and_ack()
        world.kept.drained(world.model)
        if world.unanswered:
            raise Broken(f"never answered: {list(world.unanswered.values())}")

    def _take_and_ack(self) -> None:
        """All that may go now, of every channel."""
        world = self.world
        self.hooks.decide_all()
        for queue in world.model.queues.values():
            for channel in queue.channels:
                self._take_all(queue.name, channel)
        world.quiet()
        for note in list(world.model.leases.values()):
            self.consumers._settle_many([note], note.channel.queue.name, note.channel.name, True, None)
        world.quiet()

    def _leave(self, consumer: ConsumerModel) -> None:
        if not consumer.closing:
            consumer.closing = True
            kind = commands.CANCEL if consumer.kind == "pull" else commands.CONSUMER_CLOSE
            self.world.ask(
                kind, b"", self.consumers._closed, token=consumer.token, consumer=consumer, release=False
            )

    def _take_all(self, queue: str, channel: str) -> None:
        model = self.world.model.queues[queue]
        from fila.v1 import service_pb2 as service

        request = service.LeaseRequest(queue=queue, channel=channel, max_messages=10000)
        self.consumers._ask_open(
            commands.LEASE, request, ConsumerModel(0, "pull", model, channel, 10000, 10000)
        )

    def _sure(self, kind: int, request: object) -> None:
        self.world.ask(kind, request, answered=self._fine)  # type: ignore[arg-type]
        self.world.quiet()

    @staticmethod
    def _fine(asked: object, status: int, _payload: bytes) -> None:
        if status:
            raise Broken(f"{asked} was answered {status}")

    def _leave_nothing(self) -> None:
        """Everything is acked: stats say so; and when the queues are gone, nothing at all is left in memory."""
        world = self.world
        for queue in world.model.queues.values():
            stats = self.books.stats(queue)
            if stats.depth or stats.in_flight or stats.active_fairness_keys:
                raise Broken(
                    f"{queue.name} was drained, and says {stats.depth} pending, {stats.in_flight} leased"
                )
            if not queue.config["soft"] and stats.stored_bytes:
                raise Broken(f"{queue.name} was drained, and still has {stats.stored_bytes} bytes")
        for name in [q.name for q in world.model.queues.values() if not q.is_dlq]:
            self._sure(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue=name))
        if self.schedules.records(DUES) or self.schedules.records(DEFINITIONS):
            raise Broken("the queues are gone, and not their schedules")
        counters = world.engine.core.counters()
        left = {
            name: counters[name]
            for name in ("index_bytes", "leases", "consumers", "keys", "hot_bytes")
            if counters[name]
        }
        if left or counters["timers"] != 1:  # housekeeping's
            raise Broken(f"left in memory after everything is gone: {left}, {counters['timers']} timers")
        if counters["lost_ranges"] or counters["lost_messages"] or counters["lost_acks"]:
            raise Broken("the core says it lost something, and nothing was damaged")


def simulate(seed: int, policy: bool = False) -> Counter[str]:
    """Run one seed; returns how often each oracle judged. A failure says how to see it again."""
    simulation = Simulation(seed, policy)
    try:
        simulation.run()
    except Exception as error:
        shown = (
            simulation.world.trace
            if os.environ.get("FILA_SIM_TRACE")
            else simulation.world.trace[-TRACE_LINES:]
        )
        raise Broken(
            f"seed {seed}: {type(error).__name__}: {error}\n"
            f"again: python -m tests.simulation.simulate {'--policy ' * policy}{seed}"
            "   (FILA_SIM_TRACE=1 shows every step)\n" + "\n".join(shown)
        ) from error
    finally:
        simulation.world.engine.remove()
    return simulation.judged()


def main() -> int:
    # Schedules that fail or miss moments say so, and here that is no news.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    arguments = [argument for argument in sys.argv[1:] if argument != POLICY]
    if len(arguments) < len(sys.argv) - 1:
        return run_seeds("policy", partial(simulate, policy=True), arguments)
    return run_seeds("plain", simulate, arguments)


if __name__ == "__main__":
    sys.exit(main())
