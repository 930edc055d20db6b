"""On a real cluster, Spark's own: a master and a worker in processes of their own, each Python found by its PATH."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from fila_pipeline.history import open_history
from fila_pipeline.runs import Choices, run_job
from fila_pipeline.synthetic import noisy_neighbours, record

ROOT = Path(__file__).resolve().parents[2]
STARTED_S_MAX = 120.0

pytestmark = pytest.mark.soak


def environ() -> dict[str, str]:
    paths = [str(ROOT / "pipeline/src"), str(ROOT / "sdks/python/src")]
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": "python3",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def started(folder: Path, name: str, said: str, *arguments: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start a part of the cluster; returns it, and what `said` found in its log."""
    log = folder / f"{name}.log"
    command = [str(Path(pyspark.__file__).parent / "bin/spark-class"), f"org.apache.spark.deploy.{name}"]
    with log.open("wb") as out:
        process = subprocess.Popen([*command, *arguments], env=environ(), stdout=out, stderr=out, cwd=folder)
    deadline = time.monotonic() + STARTED_S_MAX
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(said, log.read_text())
        if found:
            return process, found[0]
        time.sleep(0.1)
    process.kill()
    raise AssertionError(f"{name} did not start:\n{log.read_text()}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master with one worker."""
    folder = tmp_path_factory.mktemp("cluster")
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    master, address = started(folder, "master.Master", r"spark://127\.0\.0\.1:\d+", "--port", "0", *here)
    room = ("--cores", "2", "--memory", "2g", "--work-dir", str(folder / "work"))
    try:
        worker, _ = started(folder, "worker.Worker", "Successfully registered", *here, *room, address)
        yield address
        worker.terminate()
        worker.wait(60)
    finally:
        master.terminate()
        master.wait(60)


def said_by(*command: str) -> str:
    """What a driver in a process of its own printed."""
    ran = subprocess.run(
        [sys.executable, *command],
        env=environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def test_a_job_says_on_a_cluster_what_it_says_without_one(spark, cluster, tmp_path):
    record(noisy_neighbours(300), tmp_path / "history")
    history = open_history(spark, str(tmp_path / "history"))
    # Its model runs in the executors' Python.
    alone = run_job("throttles", history, str(tmp_path / "alone"), Choices())
    asked = ["throttles", "--history", str(tmp_path / "history"), "--out", str(tmp_path / "out")]
    there = [
        "--master",
        cluster,
        "--conf",
        "spark.executor.memory=1g",
        "--conf",
        "spark.driver.host=127.0.0.1",
    ]
    assert f"throttles: {alone.answer}\n" in said_by("-m", "fila_pipeline.main", *asked, *there)


READ = """
import json, sys
from pyspark.sql import SparkSession

options, queue, copies, master, checkpoint = sys.argv[1:]
options = json.loads(options)
spark = (
    SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    .config("spark.driver.host", "127.0.0.1").config("spark.executor.memory", "1g").getOrCreate()
)
print("read", spark.read.format("fila").options(**options).load(queue).select("offset").distinct().count())
stream = spark.readStream.format("fila").options(**options).load(queue).select("payload")
writer = stream.writeStream.format("fila").options(**options).option("checkpointLocation", checkpoint)
writer.trigger(availableNow=True).start(copies).awaitTermination()
copied = spark.read.format("fila").options(**options).load(copies).select("payload")
print("copied", copied.count(), copied.distinct().count())
"""


def test_a_queue_is_read_and_copied_once_by_executors(broker, cluster, queue, tmp_path):
    assert read_and_copied(broker, {"address": broker.address}, cluster, queue, tmp_path) == COPIED


def test_executors_read_the_key_and_the_authority_from_files_of_their_own_machine(
    guarded, cluster, queue, tmp_path
):
    file = tmp_path / "key"
    file.write_text(guarded.key_of("both", consume=f"{queue}*", produce=f"{queue}* spark-*").key)
    options = guarded.options | {"tokenFile": str(file)}
    assert read_and_copied(guarded.broker, options, cluster, queue, tmp_path) == COPIED


COPIED = ["read", "3000", "copied", "3000", "3000"]


def read_and_copied(broker, options, cluster, queue, tmp_path):
    copies = f"{queue}-copies"
    broker.create(queue)
    broker.create(copies)
    broker.fill(queue, 3000)
    (tmp_path / "read.py").write_text(READ)
    arguments = [json.dumps(options), queue, copies, cluster, str(tmp_path / "checkpoint")]
    return said_by(str(tmp_path / "read.py"), *arguments).split()
