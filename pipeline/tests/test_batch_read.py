"""Batch reads of a real broker's log."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from broker_process import BrokerProcess
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col


def read(spark: SparkSession, broker: BrokerProcess, queue: str, **options: object) -> DataFrame:
    reader = spark.read.format("fila").option("address", broker.address)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(queue)


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(row.payload) for row in frame.select("payload").collect())


@pytest.fixture
def filled(broker: BrokerProcess, queue: str) -> str:
    broker.create(queue)
    broker.fill(queue, 3000)
    return queue


def test_a_queue_is_read_whole_with_every_column(spark, broker, filled):
    frame = read(spark, broker, filled)
    assert numbers(frame) == list(range(3000))
    row = frame.where("offset = 5").collect()[0]
    assert row.headers == {"tenant": "t1", "n": "4"}
    assert (row.fairness_key, row.weight, row.cost, row.throttle_keys) == ("t1", 1, 1.0, [])
    assert len(row.id) == 36
    age_s = (datetime.now(UTC) - row.appended_at.replace(tzinfo=UTC)).total_seconds()
    assert 0 <= age_s < 600
    assert row.enqueued_at <= row.appended_at


def test_the_log_is_split_into_as_many_tasks_as_asked_for(spark, broker, filled):
    assert read(spark, broker, filled, partitions=3).rdd.getNumPartitions() == 3
    assert read(spark, broker, filled, partitions=64).rdd.getNumPartitions() == 3, (
        "1000 messages a task at least"
    )


def test_a_range_of_offsets_is_read_and_nothing_beside_it(spark, broker, filled):
    frame = read(spark, broker, filled, startingOffset=11, endingOffset=21)
    assert [row.offset for row in frame.orderBy("offset").collect()] == list(range(11, 21))


def test_a_range_of_times_is_read_to_the_millisecond(spark, broker, filled):
    times = {row.offset: row.appended_at.replace(tzinfo=UTC) for row in read(spark, broker, filled).collect()}
    middle = times[1700]
    stamp = int(middle.timestamp() * 1000)
    later = read(spark, broker, filled, startingTimestamp=stamp)
    earlier = read(spark, broker, filled, endingTimestamp=middle.isoformat())
    assert {row.offset for row in later.collect()} == {offset for offset in times if times[offset] >= middle}
    assert {row.offset for row in earlier.collect()} == {offset for offset in times if times[offset] < middle}


def test_the_option_for_one_key_reads_that_key_alone(spark, broker, filled):
    assert numbers(read(spark, broker, filled, fairnessKey="t2")) == list(range(2, 3000, 3))


def test_filters_are_pushed_down_where_spark_offers_them(spark, broker, filled):
    wanted = (col("fairness_key") == "t1") & (col("offset") > 100) & (col("offset") <= 200)
    plain = read(spark, broker, filled).where(wanted)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = read(spark, broker, filled).where(wanted)
        plan = pushed._jdf.queryExecution().executedPlan().toString()
        assert "+- Filter" not in plan.replace("*(1) Filter", "+- Filter"), plan
        assert numbers(pushed) == numbers(plain) == list(range(100, 200, 3))
        moment = read(spark, broker, filled).where("offset = 1500").collect()[0].appended_at
        late = read(spark, broker, filled).where(col("appended_at") > moment)
        assert {row.offset for row in late.collect()} == {
            row.offset for row in read(spark, broker, filled).collect() if row.appended_at > moment
        }
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_fewer_columns_can_be_asked_for(spark, broker, filled):
    frame = (
        spark.read.format("fila").schema("payload binary, offset bigint").option("address", broker.address)
    )
    rows = frame.load(filled).orderBy("offset").limit(2).collect()
    assert [tuple(row) for row in rows] == [(b"0", 1), (b"1", 2)]


def test_an_empty_queue_has_no_rows(spark, broker, queue):
    broker.create(queue)
    assert read(spark, broker, queue).collect() == []


def test_payloads_beyond_one_response_come_whole(spark, broker, queue):
    broker.create(queue)
    broker.fill(queue, 40, payload=b"x" * 300_000)
    lengths = read(spark, broker, queue).selectExpr("length(payload) as n").collect()
    assert sorted({row.n for row in lengths}) == [300_001, 300_002]
    assert len(lengths) == 40


def test_offsets_that_retention_took_are_a_loss_only_where_they_were_named(spark, broker, queue):
    broker.create(queue, hard_bytes=150_000)
    broker.fill(queue, 2000, payload=b"x" * 100)
    wait_for_retention(broker, queue)
    assert 0 < read(spark, broker, queue).count() < 2000
    with pytest.raises(Exception, match="keeps nothing below offset"):
        read(spark, broker, queue, startingOffset=1).count()
    assert read(spark, broker, queue, startingOffset=1, failOnDataLoss="false").count() < 2000


def wait_for_retention(broker: BrokerProcess, queue: str) -> None:
    import time

    deadline = time.monotonic() + 30
    while broker.stats(queue).tail_offset <= 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
