"""`kill -9` of a server at each durable step of a sink: the batch is in its queue once, however it is taken up again.

    stage     while frames are put aside
    intent    around the commit point
    piece     while what is published moves into its queue, some of it there and some not
    done      right after the answer

After each kill a new run comes, as a restarted Spark query does, stages the batch anew and publishes it; then the log
is read. `make soak` kills twenty times at each step.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, sink_pb2, sink_pb2_grpc
from fila.v1 import service_pb2 as service
from tests.e2e.conftest import RunningServer, launch, wait_until_started

KILLS = 20 if os.environ.get("FILA_SOAK") else 2
SINK = "sink"
TASKS, FRAMES, MESSAGES = 2, 8, 100
TOTAL = TASKS * FRAMES * MESSAGES
WAIT_S_MAX = 30.0

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(0 if KILLS == 20 else 240)]


@dataclass
class Batch:
    """One batch, as one run of the sink writes it."""

    server: RunningServer
    number: int
    queue: str
    run: str

    def __post_init__(self) -> None:
        self._sink = sink_pb2_grpc.FilaSinkStub(self.server.channel())
        self._epoch = self._sink.OpenSink(sink_pb2.OpenSinkRequest(sink_id=SINK, run_id=self.run)).epoch

    def frames(self) -> list[tuple[int, int]]:
        return [(task, frame) for frame in range(FRAMES) for task in range(TASKS)]

    def stage(self, task: int, frame: int) -> sink_pb2.StageResponse:
        payloads = [f"{task}-{frame}-{number}".encode() for number in range(MESSAGES)]
        return self._sink.Stage(
            sink_pb2.StageRequest(
                queue=self.queue,
                messages=[service.EnqueueMessage(payload=payload) for payload in payloads],
                sink_id=SINK,
                epoch=self._epoch,
                batch=self.number,
                partition=task,
                frame=frame,
            )
        )

    def staged(self) -> list[sink_pb2.StagedAttempt] | None:
        """All of it, as Publish lists it; None: it was published before."""
        last: dict[int, sink_pb2.StageResponse] = {}
        for task, frame in self.frames():
            last[task] = self.stage(task, frame)
            if last[task].already_published:
                return None
        return [
            sink_pb2.StagedAttempt(partition=task, messages=told.messages, checksum=told.checksum)
            for task, told in last.items()
        ]

    def publish(self, attempts: list[sink_pb2.StagedAttempt]) -> Any:
        request = sink_pb2.PublishRequest(
            sink_id=SINK, epoch=self._epoch, batch=self.number, attempts=attempts
        )
        return self._sink.Publish.future(request, timeout=WAIT_S_MAX)


def killed(server: RunningServer) -> None:
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    for channel in server.channels:
        channel.close()


def depth(server: RunningServer, queue: str) -> int:
    return int(server.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue)).depth)


def die(step: str, batch: Batch, chance: random.Random) -> bool:
    """Write the batch up to the step, and kill the server there. Whether it was in the midst of it."""
    server = batch.server
    if step == "stage":
        stop_at = chance.randrange(1, TASKS * FRAMES)
        for number, (task, frame) in enumerate(batch.frames()):
            if number == stop_at:
                timer = threading.Timer(chance.uniform(0, 0.004), killed, [server])
                timer.start()
            try:
                batch.stage(task, frame)
            except grpc.RpcError:
                break
        timer.join()
        return True
    attempts = batch.staged()
    assert attempts is not None
    seen = -1
    publishing = batch.publish(attempts)
    if step == "intent":
        time.sleep(chance.uniform(0, 0.006))
    elif step == "piece":
        wanted = chance.randrange(1, TOTAL)
        deadline = time.monotonic() + WAIT_S_MAX
        admin = server.admin
        while seen < wanted and time.monotonic() < deadline:
            seen = int(admin.GetStats(admin_pb2.GetStatsRequest(queue=batch.queue)).depth)
    else:
        publishing.result()
        time.sleep(chance.uniform(0, 0.01))
    killed(server)
    return seen < TOTAL


def log_of(server: RunningServer, queue: str) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for piece in server.admin.ReadLog(admin_pb2.ReadLogRequest(queue=queue, max_batch=1_000)):
        found.update(message.payload for message in piece.messages)
    return found


@pytest.mark.parametrize("step", ["stage", "intent", "piece", "done"])
def test_a_batch_is_in_its_queue_once_wherever_the_server_was_killed(step: str, tmp_path: Path) -> None:
    chance = random.Random(step)
    data_dir = tmp_path / "data"
    expected = {
        f"{task}-{frame}-{number}".encode()
        for task in range(TASKS)
        for frame in range(FRAMES)
        for number in range(MESSAGES)
    }
    in_the_midst = 0
    server = wait_until_started(launch(data_dir, tmp_path / "server.log"))
    try:
        for life in range(KILLS):
            queue = f"{step}-{life}"
            config = admin_pb2.QueueConfig(retention=admin_pb2.Retention(soft_period_ms=3_600_000))
            server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue, config=config))
            in_the_midst += die(step, Batch(server, life, queue, f"run-{life}-killed"), chance)

            server = wait_until_started(launch(data_dir, tmp_path / f"server-{life}.log"))
            again = Batch(server, life, queue, f"run-{life}-again")
            attempts = again.staged()
            again.publish(attempts or []).result()
            found = log_of(server, queue)
            assert set(found) == expected, (step, life)
            assert set(found.values()) == {1}, (step, life)
            assert depth(server, queue) == TOTAL
        assert server.event("store.damage_found") is None
    finally:
        killed(server)
    if step == "piece" and KILLS > 2:
        assert in_the_midst > KILLS // 4, "the kills are to land between pieces"
