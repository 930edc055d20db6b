"""Streaming reads of a real broker's log."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
from broker_process import BrokerProcess
from pyspark.sql import SparkSession

from fila.v1 import admin_pb2


def reader(spark: SparkSession, broker: BrokerProcess, **options: object):
    stream = spark.readStream.format("fila").option("address", broker.address).option("pollIntervalMs", "50")
    for name, value in options.items():
        stream = stream.option(name, str(value))
    return stream


def run_to_end(frame, folder: Path) -> list[dict]:
    """Run what is available now into Parquet, and return the progress of each batch that had rows."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination(100)
    assert not query.isActive
    return [progress for progress in map(as_dict, query.recentProgress) if progress["numInputRows"]]


def as_dict(progress) -> dict:
    if isinstance(progress, str):
        return json.loads(progress)
    return json.loads(progress.json) if hasattr(progress, "json") else progress


def numbers(spark: SparkSession, folder: Path) -> list[int]:
    return sorted(int(row.payload) for row in spark.read.parquet(str(folder / "out")).collect())


def channel(broker: BrokerProcess, queue: str, name: str):
    found = [info for info in broker.stats(queue).channels if info.name == name]
    return found[0] if found else None


def lag(source) -> int:
    """How far a query is behind the log's end, as its progress tells."""
    latest, end = (
        json.loads(source[name]) if isinstance(source[name], str) else source[name]
        for name in ("latestOffset", "endOffset")
    )
    return latest["offset"] - end["offset"]


def test_all_that_is_available_is_read_once_in_batches_of_the_limit_and_the_next_run_goes_on(
    spark, broker, queue, tmp_path
):
    broker.create(queue)
    broker.fill(queue, 4000)
    frame = reader(spark, broker, maxMessagesPerTrigger=1500).load(queue)
    done = run_to_end(frame, tmp_path)
    assert [progress["numInputRows"] for progress in done] == [1500, 1500, 1000]
    assert [lag(progress["sources"][0]) for progress in done] == [2500, 1000, 0]
    assert numbers(spark, tmp_path) == list(range(4000))
    broker.fill(queue, 10, first=4000)
    assert [progress["numInputRows"] for progress in run_to_end(frame, tmp_path)] == [10]
    assert numbers(spark, tmp_path) == list(range(4010))


def test_a_channel_keeps_what_is_unread_over_a_pause_and_lets_go_of_what_the_checkpoint_has(
    spark, broker, queue, tmp_path
):
    broker.create(queue, soft_period_ms=0)
    broker.fill(queue, 1000)
    frame = reader(spark, broker, channel="spark").load(queue)
    run_to_end(frame, tmp_path)
    assert channel(broker, queue, "spark").depth == 1000, "what was read last is let go of by the next run"
    broker.fill(queue, 1000, first=1000)
    purge_default(broker, queue)
    run_to_end(frame, tmp_path)
    assert numbers(spark, tmp_path) == list(range(2000))
    assert channel(broker, queue, "spark").depth == 1000
    assert channel(broker, queue, "spark").tail_offset == 1001


def purge_default(broker: BrokerProcess, queue: str) -> None:
    broker.admin.PurgeChannel(admin_pb2.PurgeChannelRequest(queue=queue, channel="default"))


def test_what_retention_took_between_two_runs_fails_the_second(spark, broker, queue, tmp_path):
    broker.create(queue, hard_bytes=100_000)
    broker.fill(queue, 100)
    frame = reader(spark, broker, startingOffset="earliest").load(queue)
    run_to_end(frame, tmp_path)
    broker.fill(queue, 3000, first=100)
    deadline = time.monotonic() + 30
    while broker.stats(queue).tail_offset <= 101:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with pytest.raises(Exception, match="no longer keeps offsets 101 to"):
        run_to_end(frame, tmp_path)
    allowed = reader(spark, broker, failOnDataLoss="false").load(queue)
    done = run_to_end(allowed, tmp_path)
    end = done[-1]["sources"][0]["endOffset"]
    end = json.loads(end) if isinstance(end, str) else end
    read = numbers(spark, tmp_path)
    assert end["lost"] == 3100 - len(read) > 0
    assert read[-1] == 3099


def test_a_query_that_runs_goes_on_over_a_restart_of_the_broker(spark, tmp_path):
    own = BrokerProcess(Path(__file__).resolve().parents[2], tmp_path)
    # Bound without listening: the system gives the port to nobody else while the broker is down.
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{kept.getsockname()[1]}"
    own.start(address)
    try:
        own.create("orders")
        own.fill("orders", 1000)
        stream = reader(spark, own, timeoutMs=60_000).load("orders").writeStream.format("parquet")
        query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(tmp_path / "out"))
        wait_for_rows(spark, tmp_path, query, 1000)
        own.kill()
        own.start(address)
        own.fill("orders", 1000, first=1000)
        wait_for_rows(spark, tmp_path, query, 2000)
        assert numbers(spark, tmp_path) == list(range(2000))
        query.stop()
    finally:
        own.kill()
        kept.close()


def test_a_queue_made_anew_is_refused_and_then_read_from_its_beginning_where_that_is_allowed(
    spark, broker, queue, tmp_path
):
    broker.create(queue)
    broker.fill(queue, 1500)
    run_to_end(reader(spark, broker, channel="spark").load(queue), tmp_path)
    broker.admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=queue))
    broker.create(queue)
    broker.fill(queue, 1000, first=10_000)
    with pytest.raises(
        Exception, match=f'"{queue}" was made anew: the checkpoint is of the one .* up to offset 1500;'
    ):
        run_to_end(reader(spark, broker, channel="spark").load(queue), tmp_path)
    done = run_to_end(reader(spark, broker, failOnDataLoss="false", channel="spark").load(queue), tmp_path)
    end = as_dict(done[-1]["sources"][0]["endOffset"])
    assert (end["queue"], end["offset"], end["lost"], end["remade"]) == (queue, 1001, 0, 1)
    assert numbers(spark, tmp_path) == [*range(1500), *range(10_000, 11_000)]


def test_the_checkpoint_of_one_queue_is_refused_for_another(spark, broker, queue, tmp_path):
    for name in (queue, f"{queue}-2"):
        broker.create(name)
        broker.fill(name, 10)
    run_to_end(reader(spark, broker).load(queue), tmp_path)
    with pytest.raises(
        Exception, match=f'checkpoint is of queue "{queue}", read up to offset 10, and the query names'
    ):
        run_to_end(reader(spark, broker).load(f"{queue}-2"), tmp_path)


def wait_for_rows(spark: SparkSession, folder: Path, query, count: int) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        assert query.isActive, query.exception()
        if sum(as_dict(progress)["numInputRows"] for progress in query.recentProgress) >= count:
            return
        time.sleep(0.1)
    pytest.fail(f"{count} rows did not come: {query.lastProgress}")


def test_a_stream_without_channel_from_a_queue_that_keeps_nothing_is_refused(spark, broker, queue, tmp_path):
    broker.create(queue, soft_period_ms=0)
    broker.fill(queue, 10)
    with pytest.raises(Exception, match="option channel: must be given"):
        run_to_end(reader(spark, broker).load(queue), tmp_path)


def test_a_queue_that_does_not_exist_fails_the_query_before_a_task(spark, broker, tmp_path):
    with pytest.raises(Exception, match='queue "nowhere" does not exist'):
        run_to_end(reader(spark, broker).load("nowhere"), tmp_path)
