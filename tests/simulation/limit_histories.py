"""Random lives of limits on the whole core: every part's bound at every moment, over kills and set clocks.

    python -m tests.simulation.limit_histories FIRST COUNT     histories by their seeds; exit code 1 at a wrong one

Tenants of one pattern, and two names with limits of their own, get messages that need one to three of these. Limits
change and go, messages are acked, failed and left, the broker is killed, the clock is set back. The oracle knows no
token: it counts what went and what is in flight.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from typing import Any

from fila.v1 import limit_pb2 as pb
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.limit_calls import COST, MESSAGES, limited_engine, put, restart, send, state
from tests.simulation.limit_oracle import Oracle, Wrong

NAMES = ("tenant:a", "tenant:b", "tenant:c", "shared", "spare")


class History:
    """One story, by its seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.engine: DrivenEngine = limited_engine()
        self.elapsed_s = 0.0
        self.newest_ms = self.engine.wall_ms
        self.limits: dict[str, pb.Limit] = {}
        self.oracles: dict[str, Oracle] = {}
        self.leased: dict[str, dict[str, tuple[str, Any]]] = defaultdict(dict)
        self.judged = 0

    def run(self) -> None:
        """Raises Wrong."""
        try:
            for name in ("tenant:*", "shared", "spare"):
                self._set(name)
            for _ in range(self.chance.randint(30, 60)):
                self._happens()
                self._deliver()
        except Wrong as wrong:
            raise Wrong(f"history {self.seed}: {wrong}") from None
        finally:
            self.engine.remove()

    def _set(self, name: str) -> None:
        chance = self.chance
        terms: dict[str, Any] = {"rates": []}
        for _ in range(chance.choice([0, 1, 1, 2])):
            unit = chance.choice([MESSAGES, COST])
            per_second = chance.choice([0.5, 2, 10])
            terms["rates"].append(pb.Rate(per_second=per_second, burst=chance.choice([1, 3, 10]), unit=unit))
        if chance.random() < 0.5 or not terms["rates"]:
            terms["max_in_flight"] = chance.randint(1, 4)
        if chance.random() < 0.4:
            terms["budget"] = pb.Budget(
                amount=chance.randint(3, 12), period_ms=20_000, anchor_ms=chance.randrange(20_000),
                unit=chance.choice([MESSAGES, COST]),
            )  # fmt: skip
        self.limits[name] = put(self.engine, name, **terms)
        self.engine.settle_down()
        for key in NAMES:
            if self._limit_of(key) is self.limits[name]:
                self.oracles[key] = Oracle(self.limits[name])
                self._begins(key)

    def _limit_of(self, key: str) -> pb.Limit | None:
        return self.limits.get("tenant:*" if key.startswith("tenant:") else key)

    def _happens(self) -> None:
        chance, what = self.chance, self.chance.random()
        if what < 0.45:
            first, second = chance.choice(NAMES), chance.choice(("", "", "shared", "spare"))
            more = {"u": second} if second else {}
            send(
                self.engine, chance.randint(1, 6), first, chance.choice("qr"),
                chance.choice([0.5, 1, 1, 4, 20]), k=first, **more,
            )  # fmt: skip
        elif what < 0.7:
            self._settle()
        elif what < 0.8:
            self._set(chance.choice(("tenant:*", "shared", "spare")))
        elif what < 0.88:
            self.engine.commit()
            restart(self.engine)
            for key in self.oracles:
                self._begins(key)
        elif what < 0.92:
            self.engine.wall_ns -= chance.randrange(30_000) * 1_000_000
        ms = chance.choice([0, 50, 400, 3_000])
        self.engine.sleep(ms)
        self.elapsed_s += ms / 1000
        self.newest_ms = max(self.newest_ms, self.engine.wall_ms)
        for oracle in self.oracles.values():
            oracle.sees(self.engine.wall_ms)

    def _begins(self, key: str) -> None:
        if self.oracles[key].terms.HasField("budget"):
            ends_ms = state(self.engine, key).period_ends_at.ToMilliseconds()
            self.oracles[key].begins(ends_ms, self.engine.wall_ms, self.newest_ms)

    def _settle(self) -> None:
        for queue, held in self.leased.items():
            messages = [message for _, message in held.values() if self.chance.random() < 0.6]
            for message in messages:
                del held[message.id]
            if messages and self.chance.random() < 0.8:
                self.engine.ack(queue, messages)
            elif messages:
                self.engine.nack(queue, messages)

    def _deliver(self) -> None:
        for queue in "qr":
            for message in self.engine.lease(queue, most=self.chance.choice([1, 5, 100])):
                keys = list(message.metadata.throttle_keys)
                self.leased[queue][message.id] = (queue, message)
                for key in keys:
                    self.judged += 1
                    self.oracles[key].goes(self.elapsed_s, self.engine.wall_ms, message.metadata.cost)
        self._judge_slots()

    def _judge_slots(self) -> None:
        in_flight: dict[str, int] = defaultdict(int)
        for held in self.leased.values():
            for _, message in held.values():
                for key in message.metadata.throttle_keys:
                    in_flight[key] += 1
        for key, count in in_flight.items():
            asked = pb.ListLimitsRequest(throttle_key=key)
            told = self.engine.call(commands.LIST_LIMITS, asked, pb.ListLimitsResponse).limits
            if told and told[0].in_flight not in (count, count + 1):
                raise Wrong(f"{key}: {count} are in flight, and {told[0].in_flight} are counted")
            most = self.oracles[key].terms.max_in_flight
            before = getattr(self, "_in_flight", {}).get(key, 0)
            if most and count > most and count > before:
                raise Wrong(f"{key}: {count} are in flight, and {most} may be")
        self._in_flight = dict(in_flight)


def main(first: int, count: int) -> int:
    """Run histories and say how many were wrong."""
    wrong = judged = 0
    for seed in range(first, first + count):
        history = History(seed)
        try:
            history.run()
        except Wrong as error:
            wrong += 1
            print(error)
        judged += history.judged
    print(f"{count} histories from {first}: {judged} deliveries judged, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
