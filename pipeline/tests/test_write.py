"""What Spark writes is in the queues once: tasks may run twice, drivers die, queries stop halfway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fila.v1 import admin_pb2, service_pb2
from pyspark_fila.broker_sink import BrokerSink
from pyspark_fila.connection import Connection
from pyspark_fila.errors import SinkRefused

ROOT = Path(__file__).resolve().parents[2]


def log_of(broker, queue):
    """Every message of the queue's log."""
    request = admin_pb2.ReadLogRequest(queue=queue, max_batch=10_000)
    return [message for answer in broker.admin.ReadLog(request) for message in answer.messages]


def payloads(broker, queue):
    return sorted(int(message.payload) for message in log_of(broker, queue))


def rows(spark, count, partitions=2):
    return spark.range(0, count, 1, partitions).selectExpr("cast(id as string) as payload")


def write(frame, broker, queue="", **options):
    writer = frame.write.format("fila").mode("append").option("address", broker.address).options(**options)
    writer.save(queue) if queue else writer.save()


def test_rows_become_messages_with_all_their_columns(spark, broker, queue):
    broker.create(queue)
    broker.create(queue + "-2")
    frame = spark.sql(
        f"select '{queue}' as queue, map('tenant', 'acme') as headers, cast('1' as binary) as payload, "
        f"'k' as dedup_key, 3600000L as delay_ms union all select '{queue}-2', null, cast('2' as binary), null, null"
    )
    write(frame, broker)

    [first] = log_of(broker, queue)
    assert (first.payload, dict(first.headers), first.metadata.fairness_key) == (
        b"1",
        {"tenant": "acme"},
        "acme",
    )
    assert broker.service.Lease(service_pb2.LeaseRequest(queue=queue)).messages == []
    assert payloads(broker, queue + "-2") == [2]


def test_many_rows_of_many_tasks_are_there_once(spark, broker, queue):
    broker.create(queue)
    write(rows(spark, 5000, partitions=4), broker, queue, batchSize=700)
    assert payloads(broker, queue) == list(range(5000))


def test_a_job_that_is_run_again_writes_again_unless_it_names_its_sink(spark, broker, queue):
    broker.create(queue)
    write(rows(spark, 10), broker, queue)
    write(rows(spark, 10), broker, queue)
    assert payloads(broker, queue) == sorted([*range(10), *range(10)])

    broker.create(queue + "-once")
    write(rows(spark, 10), broker, queue + "-once", sinkId=queue)
    write(rows(spark, 10), broker, queue + "-once", sinkId=queue)
    assert payloads(broker, queue + "-once") == list(range(10))


def test_a_version_of_a_sink_is_written_once_and_one_may_be_left_out(spark, broker, queue):
    broker.create(queue)
    for version, first in ((3, 0), (3, 100), (2, 200), (7, 300), (6, 400)):
        numbers = spark.range(first, first + 10).selectExpr("cast(id as string) as payload")
        write(numbers, broker, queue, sinkId=queue, sinkVersion=version)
    assert payloads(broker, queue) == [*range(10), *range(300, 310)]


def test_what_foreach_batch_publishes_is_there_once_although_its_query_forgot_it(
    spark, broker, queue, tmp_path
):
    broker.create(queue)
    expected = files(tmp_path, 3, 10)

    def publish(rows, number):
        rows.selectExpr("value as payload").write.format("fila").mode("append").options(
            address=broker.address, sinkId=queue, sinkVersion=number
        ).save(queue)

    for checkpoint in ("one", "two"):
        stream = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
        writer = stream.writeStream.foreachBatch(publish).option(
            "checkpointLocation", str(tmp_path / checkpoint)
        )
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(100)
        assert query.exception() is None
    assert payloads(broker, queue) == expected


def test_a_job_that_fails_writes_nothing(spark, broker, queue):
    broker.create(queue)
    frame = spark.sql(
        "select if(id < 900, cast(id as string), cast(raise_error('no') as string)) as payload from range(1000)"
    )
    with pytest.raises(Exception, match="no"):
        write(frame, broker, queue, batchSize=100)
    assert log_of(broker, queue) == []


QUERY = """
import os, sys
from pyspark.sql import SparkSession
import pyspark_fila.writing as writing

address, queue, source, checkpoint = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2").config("spark.sql.adaptive.enabled", "false")
    .config("spark.sql.codegen.wholeStage", "false")  # as conftest.py: small data
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC").getOrCreate()
)
rows = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(source)
rows = rows.withColumnRenamed("value", "payload")
writer = rows.writeStream.format("fila").option("address", address).option("checkpointLocation", checkpoint)
writer.option("batchSize", 10).trigger(availableNow=True).queryName("q").start(queue).awaitTermination()
"""

DYING = """
import os, signal
from pyspark_fila import broker_sink

publish = broker_sink.BrokerSink.publish

def kill_the_driver():
    # The JVM, whose helper this process is, and with it all of the query.
    pid = os.getpid()
    while open(f"/proc/{pid}/comm").read().strip() != "java":
        pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)
    os._exit(1)

def dying(self, epoch, batch, attempts, *, accept_gap):
    before = os.environ["FILA_TEST_DIES"] == "before"
    if batch == 1 and before:
        raise RuntimeError("the driver dies before it commits")
    answer = publish(self, epoch, batch, attempts, accept_gap=accept_gap)
    if batch == 1 and os.environ["FILA_TEST_DIES"] == "killed":
        kill_the_driver()
    if batch == 1:
        raise RuntimeError("the driver dies after it committed, before Spark's checkpoint says so")
    return answer

broker_sink.BrokerSink.publish = dying
"""

TRYING_TWICE = """
import os
from pyspark import TaskContext
from pyspark_fila import writing

stage_all = writing._Task.stage_all

def staged_twice(self, batches):
    told = stage_all(self, batches)
    if TaskContext.get().attemptNumber() == 0:
        with open(os.environ["FILA_TEST_TRIES"], "a") as tries:
            tries.write(f"{told.messages}\\n")
        raise RuntimeError("the first try fails when everything is staged")
    return told

writing._Task.stage_all = staged_twice
"""


def run_query(broker, queue, folder, site_code="", dies=""):
    """Run the streaming query in a process of its own; `site_code` runs first in each of its Pythons.
    `dies`: its commit of batch 1 fails, before or after it took, or the driver is killed behind it."""
    script = folder / "query.py"
    script.write_text(QUERY)
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(DYING if dies else site_code)
    paths = [str(site), str(ROOT / "pipeline/src"), str(ROOT / "sdks/python/src")]
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": sys.executable,
        "FILA_TEST_DIES": dies,
        "FILA_TEST_TRIES": str(folder / "tries"),
    }
    arguments = [broker.address, queue, str(folder / "in"), str(folder / "checkpoint")]
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def files(folder, count, lines):
    (folder / "in").mkdir()
    for number in range(count):
        first = number * lines
        path = folder / "in" / f"{number}.txt"
        path.write_text("".join(f"{n}\n" for n in range(first, first + lines)))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    return list(range(count * lines))


IN_SOAK = [pytest.param(dies, marks=pytest.mark.soak) for dies in ("before", "killed")]


@pytest.mark.costly("two Sparks of its own")
@pytest.mark.parametrize("dies", ["after", *IN_SOAK])
def test_a_query_that_dies_around_its_commit_goes_on_without_loss_or_repeat(broker, queue, tmp_path, dies):
    broker.create(queue)
    expected = files(tmp_path, 3, 25)

    first = run_query(broker, queue, tmp_path, dies=dies)
    assert first.returncode != 0, first.stderr[-3000:]
    assert payloads(broker, queue) == expected[: 25 if dies == "before" else 50]
    second = run_query(broker, queue, tmp_path)

    assert second.returncode == 0, second.stderr[-3000:]
    assert payloads(broker, queue) == expected


@pytest.mark.costly("a Spark of its own")
def test_a_task_that_runs_twice_writes_once(broker, queue, tmp_path):
    broker.create(queue)
    expected = files(tmp_path, 2, 25)

    ran = run_query(broker, queue, tmp_path, TRYING_TWICE)

    assert ran.returncode == 0, ran.stderr[-3000:]
    tried = (tmp_path / "tries").read_text().split()
    assert sum(map(int, tried)) == len(expected), "each row was staged once in vain"
    assert payloads(broker, queue) == expected


def test_an_abort_after_a_commit_undoes_nothing(broker, queue):
    broker.create(queue)
    sink = BrokerSink(Connection(broker.address, 10_000), queue)
    epoch = sink.open("run", 0)
    assert not sink.publish(epoch, 0, [], accept_gap=False).already_published
    with pytest.raises(SinkRefused, match="stays so"):
        sink.drop(epoch, 0, [])
