"""What cannot work is refused with a sentence, before the first task."""

from __future__ import annotations

import pytest

from pyspark_fila.errors import OptionInvalid
from pyspark_fila.options import parse_options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "option queue: must be given"),
        ({"queue": ".orders"}, "option queue: must be 1 to 255 characters"),
        ({"queue": "a", "path": "b"}, "named twice"),
        (
            {"queue": "a", "adress": "b:1"},
            "option adress: is not known; did you mean address? The options are acceptGap",
        ),
        (
            {"queue": "a", "colour": "b"},
            "option colour: is not known. The options are acceptGap, address, batchSize",
        ),
        ({"queue": "a", "apiKey": "b"}, "option apiKey: .*which Spark redacts, or its file as tokenFile"),
        ({"subscribe": "a"}, "option subscribe: is called queue, or queues where it names several"),
        ({"subscribePattern": "a.*"}, "option subscribePattern: is called queues, in which"),
        ({"queue": "a", "minOffsetsPerTrigger": "1"}, "is called minMessagesPerTrigger"),
        ({"queue": "a", "txnVersion": "1"}, "option txnVersion: is called sinkVersion"),
        (
            {"queues": "a", "queue": "b"},
            "option queues: the queue is named twice, by the option queue and by",
        ),
        ({"queues": "a,,b"}, "option queues: must be names of queues with commas between them"),
        ({"queues": "a,b c"}, "option queues: must be names of queues with commas between them"),
        ({"queues": "a*", "channel": "c"}, "option channel: belongs to one queue, and queues names several"),
        (
            {"queues": "a*", "startingOffset": "7"},
            "option startingOffset: is a number, which each queue counts",
        ),
        ({"queues": "a*", "endingOffset": "7"}, "option endingOffset: is a number, which each queue counts"),
        (
            {"queue": "a", "maxTriggerDelay": "1m"},
            "option maxTriggerDelay: says nothing without minMessagesPerTrigger",
        ),
        (
            {"queue": "a", "minMessagesPerTrigger": "9", "maxTriggerDelay": "25h"},
            "must be a time up to 24h, such as 30s or 15m",
        ),
        (
            {"queue": "a", "minMessagesPerTrigger": "9", "maxMessagesPerTrigger": "8"},
            "option minMessagesPerTrigger: is 9, above maxMessagesPerTrigger 8",
        ),
        ({"queue": "a", "maxBytesPerTrigger": "10MB"}, "maxBytesPerTrigger: must be a whole number"),
        ({"queue": "a", "view": "leased"}, "option view: must be log or pending, got 'leased'"),
        (
            {"queue": "a", "view": "pending", "startingOffset": "3"},
            "option startingOffset: has no meaning where view is pending; remove it",
        ),
        ({"queue": "a", "sinkVersion": "3"}, "option sinkVersion: says nothing without sinkId; give both"),
        ({"queue": "a", "startingOffsets": "latest"}, "option startingOffsets: is called startingOffset"),
        ({"queue": "a", "maxOffsetsPerTrigger": "1"}, "is called maxMessagesPerTrigger"),
        (
            {"queue": "a", "kafka.bootstrap.servers": "b:1"},
            "option kafka.bootstrap.servers: is called address",
        ),
        ({"queue": "a", "kafka.acks": "all"}, "option kafka.acks: is Kafka's"),
        (
            {"queue": "a", "token": "b", "tokenFile": "/b"},
            "option tokenFile: give either it or token, not both",
        ),
        ({"queue": "a", "tokenFile": "key"}, "option tokenFile: must be an absolute path"),
        ({"queue": "a", "certFile": "/a"}, "option certFile: belongs together with keyFile"),
        (
            {"queue": "a", "address": "http://b:1", "caFile": "/a"},
            "option address: says http://, and the TLS options",
        ),
        ({"queue": "a", "address": "localhost"}, "must look like localhost:5555"),
        ({"queue": "a", "address": "localhost:70000"}, "must look like localhost:5555"),
        ({"queue": "a", "startingOffset": "-1"}, "'earliest', 'latest' or an offset from 1, got '-1'"),
        ({"queue": "a", "startingOffset": "9", "endingOffset": "5"}, "is 5, below startingOffset 9"),
        ({"queue": "a", "partitions": "0"}, "a whole number from 1 to 10000"),
        ({"queue": "a", "batchSize": "10001"}, "a whole number from 1 to 10000"),
        ({"queue": "a", "failOnDataLoss": "yes"}, "must be true or false"),
        ({"queue": "a", "startingTimestamp": "2026-01-31T12:00:00"}, "ISO 8601 with an offset"),
        ({"queue": "a", "startingTimestamp": "99999999999999999"}, "ISO 8601 with an offset"),
        ({"queue": "a", "startingOffset": "1", "startingTimestamp": "1"}, "either it or startingOffset"),
        ({"queue": "a", "timeoutMs": "0"}, "a whole number from 1"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_with_what_is_accepted(options, said):
    with pytest.raises(OptionInvalid, match=said.replace("(", r"\(").replace("?", r"\?")):
        parse_options(options)


def test_a_wrong_option_fails_at_load(spark, broker):
    with pytest.raises(Exception, match="option partitions: must be a whole number"):
        spark.read.format("fila").option("partitions", "many").load("orders")


def test_an_option_of_the_other_kind_of_read_is_refused(spark, broker):
    frame = (
        spark.read.format("fila").option("address", broker.address).option("channel", "spark").load("orders")
    )
    with pytest.raises(Exception, match="option channel: has no meaning in a batch read"):
        frame.count()


def test_an_address_where_nobody_answers_is_named(spark):
    frame = (
        spark.read.format("fila").option("address", "127.0.0.1:1").option("timeoutMs", "200").load("orders")
    )
    with pytest.raises(Exception, match=r"no Fila broker could be reached at 127\.0\.0\.1:1 for 0\.2 s"):
        frame.count()


def test_a_queue_that_does_not_exist_is_named(spark, broker):
    frame = spark.read.format("fila").option("address", broker.address).load("nowhere")
    with pytest.raises(Exception, match='queue "nowhere" does not exist'):
        frame.count()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("offset bigint, tenant string", "column tenant is not known; the columns are offset, id"),
        ("payload string", "column payload is binary, not string"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(spark, broker, schema, said):
    reader = spark.read.format("fila").schema(schema).option("address", broker.address)
    with pytest.raises(Exception, match=said):
        reader.load("orders").count()


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ("'x' as payload", {"adress": "a:1"}, "option adress: is not known; did you mean address"),
        ("'x' as payload", {"acceptGap": "true"}, "option acceptGap: has no meaning in a batch write"),
        ("'x' as payload", {"sinkVersion": "1"}, "option sinkVersion: says nothing without sinkId"),
        (
            "'x' as payload, 1 as tenant",
            {},
            "column tenant is not known; a write has the columns queue, headers",
        ),
        ("1 as payload", {}, "column payload is int, not binary or string"),
        ("'q' as queue", {}, "there must be a column payload"),
        ("'x' as payload", {"queue": "nowhere"}, 'queue "nowhere" does not exist'),
    ],
)
def test_a_write_that_cannot_work_is_refused_before_the_first_task(spark, broker, rows, options, said):
    settings = {"address": broker.address, "queue": "nowhere", **options}
    writer = spark.sql(f"select {rows}").write.format("fila").mode("append").options(**settings)
    with pytest.raises(Exception, match=said):
        writer.save()


def test_a_write_needs_a_queue_and_a_broker(spark, broker):
    rows = spark.sql("select 'x' as payload").write.format("fila").mode("append")
    with pytest.raises(Exception, match="option queue: must be given, or be a column"):
        rows.option("address", broker.address).save()
    with pytest.raises(Exception, match=r"no Fila broker could be reached at 127\.0\.0\.1:1 for 0\.2 s"):
        rows.option("address", "127.0.0.1:1").option("timeoutMs", "200").save("q")


def test_a_queue_is_not_overwritten(spark, broker, queue):
    broker.create(queue)
    rows = spark.sql("select 'x' as payload").write.format("fila").mode("overwrite")
    with pytest.raises(Exception, match="must be append"):
        rows.option("address", broker.address).save(queue)


def last_words(error: BaseException) -> str:
    """The last line of Python's account, behind which Spark has its own state alone."""
    lines = [line for line in str(error).splitlines() if line.startswith(("pyspark_fila", "UnboundLocal"))]
    return lines[-1]


@pytest.mark.parametrize(
    ("schema", "options", "said"),
    [
        (None, {"endingOffset": "5"}, "option endingOffset: has no meaning in a streaming read"),
        (None, {"view": "pending"}, "option view: has no meaning in a streaming read"),
        ("offset bigint, tenant string", {}, "column tenant is not known"),
        ("offset bigint", {"queue": ""}, "option queue: must be 1 to 255"),
    ],
)
def test_a_stream_that_cannot_be_read_says_why_in_its_last_words(
    spark, broker, tmp_path, schema, options, said
):
    reader = spark.readStream.format("fila").options(address=broker.address, **{"queue": "orders", **options})
    asked = reader.schema(schema) if schema else reader

    def run() -> None:
        stream = asked.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        stream.start().awaitTermination(60)

    with pytest.raises(Exception, match="Traceback") as refused:
        run()
    assert said in last_words(refused.value)
