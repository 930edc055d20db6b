"""On a real cluster, Spark's own (spark_cluster.py): a job, and both ends of `format("fila")`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from spark_cluster import Cluster, environ

from fila_pipeline.history import open_history
from fila_pipeline.runs import Choices, run_job
from fila_pipeline.synthetic import noisy_neighbours, record

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master with two workers."""
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running.master
    running.stop()


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
