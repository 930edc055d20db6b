"""Sinks against a slow twin: random calls, repeats, runs and ends of the broker; the queue's log must be the twin's."""

import os
import random
from collections import Counter
from typing import Any

import pytest

from fila.v1 import sink_pb2 as pb
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.sink_client import SinkClient, Staged, log_of

SEEDS = range(200 if os.environ.get("FILA_SOAK") else 12)
STEPS = 60


class Twin:
    """What a sink promises, as dictionaries."""

    def __init__(self) -> None:
        self.next_batch = 0
        self.staged: dict[tuple[int, int, int], list[list[bytes]]] = {}
        self.log: list[bytes] = []

    def new_run(self) -> None:
        self.staged.clear()

    def publish(self, batch: int, attempts: list[tuple[int, int]]) -> None:
        for partition, attempt in attempts:
            for frame in self.staged.get((batch, partition, attempt), []):
                self.log += frame
        self.next_batch = batch + 1
        self.staged = {key: frames for key, frames in self.staged.items() if key[0] > batch}


class Play:
    """One seed: a driver with its tasks, and a broker that ends now and then."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.engine = DrivenEngine(seed=seed)
        self.engine.create_queue("q")
        self.twin = Twin()
        self.answers: dict[tuple[int, int, int], pb.StageResponse] = {}
        self.serial = 0
        self.runs = 0
        self.seen: Counter[str] = Counter()
        self.new_run()

    def new_run(self) -> None:
        self.runs += 1
        self.sink = SinkClient(self.engine, run_id=f"run-{self.runs}")
        self.sink.open()
        self.twin.new_run()
        self.answers.clear()

    def messages(self) -> list[bytes]:
        self.serial += 1
        return [b"%d-%d" % (self.serial, i) for i in range(self.chance.randint(1, 5))]

    def stage(self) -> None:
        batch = self.twin.next_batch + self.chance.choice((-1, 0, 0, 0, 0, 1))
        key = (max(batch, 0), self.chance.randrange(3), self.chance.randrange(2))
        frames = self.twin.staged.get(key, [])
        repeats = bool(frames) and self.chance.random() < 0.5
        frame = self.chance.randrange(len(frames)) if repeats else len(frames)
        messages = frames[frame] if repeats and self.chance.random() < 0.7 else self.messages()
        names: dict[str, Any] = {"partition": key[1], "attempt": key[2], "frame": frame}
        if self.chance.random() < 0.1:
            self.engine.submit(commands.STAGE, self.sink.request(key[0], messages, **names))
            self.end("while it stages")
            return
        if repeats and messages != frames[frame]:
            with pytest.raises(Refused, match="STAGED_OTHERWISE"):
                self.sink.stage(key[0], messages, **names)
            self.seen["staged otherwise"] += 1
            return
        answer = self.sink.stage(key[0], messages, **names)
        if key[0] < self.twin.next_batch:
            assert answer.already_published
            return
        if not repeats:
            self.twin.staged.setdefault(key, []).append(messages)
        assert answer.messages == sum(map(len, self.twin.staged[key]))
        self.answers[key] = answer
        self.seen["staged"] += 1

    def listed(self, batch: int) -> list[tuple[int, int]]:
        """One attempt of each partition that has any."""
        chosen: dict[int, int] = {}
        for key in sorted(self.twin.staged, key=lambda _: self.chance.random()):
            if key[0] == batch:
                chosen[key[1]] = key[2]
        return list(chosen.items())

    def publish(self) -> None:
        batch = self.twin.next_batch
        pairs = self.listed(batch)
        attempts = [
            Staged(
                partition=partition,
                attempt=attempt,
                messages=self.answers[batch, partition, attempt].messages,
                checksum=self.answers[batch, partition, attempt].checksum,
            )
            for partition, attempt in pairs
        ]
        if self.chance.random() < 0.4:
            self.engine.submit(commands.PUBLISH, self.sink.publish_request(batch, attempts))
            self.end("while it publishes")
            answer = self.sink.publish(batch, attempts)
        else:
            answer = self.sink.publish(batch, attempts)
            assert not answer.already_published
        self.twin.publish(batch, pairs)
        self.check()
        self.seen["published"] += 1
        assert self.sink.publish(batch, attempts).already_published
        with pytest.raises(Refused, match="BATCH_GAP"):
            self.sink.publish(batch + 2)
        with pytest.raises(Refused, match="ALREADY_PUBLISHED"):
            self.sink.drop(batch)

    def drop(self) -> None:
        if not self.twin.staged:
            return
        batch, partition, attempt = self.chance.choice(list(self.twin.staged))
        self.sink.drop(batch, [Staged(partition=partition, attempt=attempt)])
        del self.twin.staged[batch, partition, attempt]

    def end(self, when: str) -> None:
        """The broker ends after some steps of what is under way; what was answered is there afterwards."""
        for _ in range(self.chance.randrange(9)):
            self.engine.run_pass()
            if self.chance.random() < 0.7:
                self.engine.commit()
            self.engine.core.load()
        if self.chance.random() < 0.5:
            self.engine.kill()
        else:
            self.engine.cut_power()
        self.engine.reopen()
        self.engine.settle_down()
        self.seen[when] += 1
        if when == "while it stages":
            # Nobody knows whether it was: a later run stages everything anew.
            self.new_run()

    def check(self) -> None:
        self.engine.settle_down()
        assert log_of(self.engine) == self.twin.log
        told = self.engine.call(commands.LIST_SINKS, pb.ListSinksRequest(), pb.ListSinksResponse)
        (info,) = told.sinks
        staged = sum(len(messages) for frames in self.twin.staged.values() for messages in frames)
        assert (info.staged_messages, info.attempts) == (staged, len(self.twin.staged))
        assert info.staged_bytes == told.staged_bytes

    def run(self) -> None:
        for _ in range(STEPS):
            action = self.chance.choices(
                (self.stage, self.publish, self.drop, self.new_run, self.check), (12, 3, 1, 1, 1)
            )[0]
            action()
        self.check()
        self.sink.drop(self.twin.next_batch)
        self.sink.drop(self.twin.next_batch + 1)
        self.engine.settle_down()
        assert self.engine.core.counters()["staged_bytes"] == 0
        self.engine.remove()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sink_keeps_what_its_twin_keeps(seed: int) -> None:
    Play(seed).run()


def test_the_play_meets_what_it_is_for() -> None:
    seen: Counter[str] = Counter()
    for seed in range(4):
        play = Play(1000 + seed)
        play.run()
        seen += play.seen
    assert (
        min(seen[what] for what in ("staged", "staged otherwise", "published", "while it publishes")) >= 3
    ), seen
