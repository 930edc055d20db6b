"""Driver, executors and broker are killed at random, with keys and TLS on: each message is written once, in its order.

A stream from queue to queue and one from queue to Parquet, in one driver on a cluster of a master and two workers. Who
is killed next, and when, is drawn; whoever ends by itself is started again, as a supervisor would.

    FILA_SOAK=1 python -m pytest tests/test_kills.py -s    # a line for each run: what was killed, and what came of it
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from guarded import start_guarded
from spark_cluster import ROOT, Cluster, below, environ

from fila.v1 import admin_pb2

MESSAGES = 30_000
RUNS = 20
RUN_S_MAX = 900.0
QUIET_S = (2.0, 12.0)
"""Between two kills, least and most."""
KILLS = (4, 8)
DRIVERS_MAX = 30
SOURCE, COPIES = "orders", "copies"

pytestmark = pytest.mark.soak

DRIVER = """
import json, sys
from pyspark.sql import SparkSession

options, master, folder = sys.argv[1:]
options = json.loads(options)
spark = (
    SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    .config("spark.driver.host", "127.0.0.1").config("spark.executor.memory", "512m").config("spark.cores.max", "2")
    .config("spark.executor.cores", "1").config("spark.task.maxFailures", "30")
    .config("spark.python.authenticate.socketTimeout", "300s").config("spark.sql.codegen.wholeStage", "false")
    .getOrCreate()
)
def rows():
    stream = spark.readStream.format("fila").options(**options).option("maxMessagesPerTrigger", 1500)
    return stream.load("orders").select("payload")

copy = rows().writeStream.format("fila").options(**options).option("checkpointLocation", f"{folder}/to-queue")
keep = rows().selectExpr("cast(payload as string) as n").writeStream.format("parquet")
keep = keep.option("checkpointLocation", f"{folder}/to-files")
queries = [copy.trigger(availableNow=True).start("copies"), keep.trigger(availableNow=True).start(f"{folder}/out")]
for query in queries:
    query.awaitTermination()
"""


class Scene:
    """Everything that can be killed."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        # Bound without listening: the system gives the port to nobody else while the broker is down.
        self.kept = socket.socket()
        self.kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.kept.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.kept.getsockname()[1]}"
        self.guarded = start_guarded(ROOT, folder, self.address)
        self.broker = self.guarded.broker
        token = folder / "key"
        token.write_text(self.guarded.key_of("spark", consume=SOURCE, produce=f"{COPIES} spark-*").key)
        self.options = self.guarded.options | {"tokenFile": str(token), "timeoutMs": "60000"}
        (folder / "driver.py").write_text(DRIVER)
        self.driver: subprocess.Popen[bytes] | None = None
        self.drivers = 0
        self.killed: Counter[str] = Counter()

    def start_driver(self) -> None:
        self.drivers += 1
        assert self.drivers <= DRIVERS_MAX, "it does not come to its end"
        arguments = [json.dumps(self.options), self.cluster.master, str(self.folder / "streams")]
        with (self.folder / f"driver-{self.drivers}.log").open("wb") as out:
            self.driver = subprocess.Popen(
                [sys.executable, str(self.folder / "driver.py"), *arguments],
                env=environ(),
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def kill(self, what: str) -> None:
        if what == "driver":
            self._kill_driver()
        elif what == "broker":
            self.broker.kill()
            self.broker.start(self.address, **self.guarded.settings)
        elif not self._kill_below("CoarseGrainedExecutorBackend" if what == "executor" else "pyspark"):
            return
        self.killed[what] += 1

    def _kill_driver(self) -> None:
        assert self.driver is not None
        os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()

    def _kill_below(self, named: str) -> bool:
        """One of the processes of that name on the workers; False: there is none just now."""
        found = [
            pid
            for worker in self.cluster.processes[1:]
            for pid, line in below(worker.pid)
            if named in line and (named != "pyspark" or "python" in line.split()[0])
        ]
        if not found:
            return False
        os.kill(random.choice(found), signal.SIGKILL)
        return True

    def end(self) -> None:
        if self.driver is not None and self.driver.poll() is None:
            self._kill_driver()
        self.broker.kill()
        self.kept.close()

    def copied(self) -> list[int]:
        """What is in the queue of copies, in its order."""
        request = admin_pb2.ReadLogRequest(queue=COPIES, max_batch=10_000)
        answers = self.broker.admin.ReadLog(request)
        return [int(message.payload) for answer in answers for message in answer.messages]

    def filed(self) -> list[int]:
        """What the stream to Parquet says that it wrote."""
        return sorted(
            map(int, pq.read_table(told_files(self.folder / "streams/out")).column("n").to_pylist())
        )


def told_files(out: Path) -> list[str]:
    """Files that Spark's log of the sink lists: what a killed attempt left is not of the table."""
    logs = [log.read_text().splitlines()[1:] for log in (out / "_spark_metadata").glob("[0-9]*")]
    return sorted({json.loads(line)["path"].removeprefix("file://") for lines in logs for line in lines})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.stop()


@pytest.mark.parametrize("seed", range(1, RUNS + 1))
def test_each_message_is_written_once_and_in_order_over_kills_of_all_who_write_it(cluster, tmp_path, seed):
    dice = random.Random(seed)
    random.seed(seed)
    scene = Scene(cluster, tmp_path)
    try:
        scene.broker.create(SOURCE)
        scene.broker.create(COPIES)
        scene.broker.fill(SOURCE, MESSAGES)
        began = time.monotonic()
        scene.start_driver()
        kills = dice.randint(*KILLS)
        due = began + 10 + dice.uniform(*QUIET_S)
        ended_early = 0
        while (code := scene.driver.poll()) != 0:
            assert time.monotonic() < began + RUN_S_MAX, f"it takes too long: {scene.killed}"
            if code is not None:
                ended_early += code != -signal.SIGKILL
                scene.start_driver()
            if sum(scene.killed.values()) < kills and time.monotonic() > due:
                scene.kill(dice.choice(["driver", "executor", "executor", "python", "broker", "broker"]))
                due = time.monotonic() + dice.uniform(*QUIET_S)
            time.sleep(0.05)
        copied, filed = scene.copied(), scene.filed()
        wanted = list(range(MESSAGES))
        told = {
            "seed": seed,
            "killed": dict(scene.killed),
            "drivers": scene.drivers,
            "ended by themselves": ended_early,
            "seconds": round(time.monotonic() - began, 1),
            "queue": counted(copied, wanted),
            "files": counted(filed, wanted),
            "load": round(os.getloadavg()[0], 1),
        }
        print(f"\n{json.dumps(told)}", flush=True)
        assert copied == wanted
        assert filed == wanted
    finally:
        scene.end()


def counted(found: list[int], wanted: list[int]) -> dict[str, int]:
    """How many are lost, doubled and out of order."""
    return {
        "lost": len(set(wanted) - set(found)),
        "doubled": len(found) - len(set(found)),
        "out of order": sum(one > other for one, other in itertools.pairwise(found)),
    }
