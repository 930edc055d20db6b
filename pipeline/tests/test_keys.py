"""Against a broker that asks for keys and speaks TLS alone: read, write, stream, and where the key never is."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

READS = {"consume": "orders"}
HOLDS = {"consume": "orders", "manage": "orders"}
WRITES = {"produce": "copies spark-*"}


@pytest.fixture(scope="module", autouse=True)
def queues(spark, guarded):
    guarded.broker.create("orders")
    guarded.broker.fill("orders", 1200)
    guarded.broker.create("copies")


def count(guarded, queue):
    return guarded.broker.stats(queue).head_offset - 1


def copied(spark, guarded, reads, writes, folder):
    """Stream everything of `orders` to `copies`, with these options of keys."""
    stream = (
        spark.readStream.format("fila").options(**guarded.options, **reads).load("orders").select("payload")
    )
    writer = stream.writeStream.format("fila").options(**guarded.options, **writes)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start("copies")
    query.awaitTermination(100)
    assert not query.isActive


def test_the_named_rights_are_enough_and_none_of_them_can_be_left_out(spark, guarded, tmp_path):
    """On the driver and in the tasks, which ask by themselves: a key in its file, and a key in an option."""
    keys = {
        name: guarded.key_of(name, **rights).key
        for name, rights in {
            "reads": READS,
            "holds": HOLDS,
            "writes": WRITES,
            "writes-no-sink": {"produce": "copies"},
        }.items()
    }
    file = tmp_path / "key"
    file.write_text(keys["reads"])
    by_file = {"tokenFile": str(file)}
    frame = spark.read.format("fila").options(**guarded.options, **by_file)
    assert frame.load("orders").select("payload").distinct().count() == 1200
    with pytest.raises(Exception, match="or shows it to this key as missing, which has no right on it"):
        frame.load("copies").count()

    before = count(guarded, "copies")
    copied(spark, guarded, by_file, {"token": keys["writes"]}, tmp_path)
    assert count(guarded, "copies") == before + 1200
    rows = spark.sql("select 'x' as payload").write.format("fila").mode("append").options(**guarded.options)
    rows.option("token", keys["writes"]).save("copies")
    assert count(guarded, "copies") == before + 1201
    with pytest.raises(Exception, match="the key lacks a right at the broker"):
        rows.option("token", keys["writes-no-sink"]).save("copies")

    held = {"channel": "spark", "token": keys["holds"]}
    copied(spark, guarded, held, {"token": keys["writes"]}, tmp_path / "held")
    assert count(guarded, "copies") == before + 2401
    with pytest.raises(Exception, match="the key lacks a right at the broker"):
        copied(spark, guarded, {"channel": "other", **by_file}, {"token": keys["writes"]}, tmp_path / "none")


def test_the_key_is_in_no_plan_checkpoint_log_event_log_or_page(spark, guarded, tmp_path):
    """Whatever is done with it: a read, a view, both ends of a stream, and both kinds of failure."""
    key = guarded.key
    options = {**guarded.options, "token": key}
    with logged(spark, tmp_path / "spark.log") as log:
        frame = spark.read.format("fila").options(**options).load("orders")
        assert frame.where("fairness_key = 't1'").count() == 400
        told = ", ".join(f"{name} '{value}'" for name, value in options.items())
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING fila OPTIONS ({told}, queue 'orders')")
        view = spark.sql("select * from orders")
        assert view.count() == 1200
        view.write.format("fila").mode("append").options(**options).save("copies")
        copied(spark, guarded, {"token": key}, {"token": key}, tmp_path)
        for wrong in ({"partitions": "many"}, {"queue": "nowhere"}):
            with pytest.raises(Exception, match=r"partitions|nowhere") as refused:
                spark.read.format("fila").options(**{"queue": "orders", **options, **wrong}).load().count()
            assert key not in str(refused.value)
        plans = [plan(each, mode) for each in (frame, view) for mode in ("extended", "formatted", "cost")]
        page = pages(spark)

    checkpoint = "".join(
        file.read_text(errors="replace") for file in tmp_path.glob("checkpoint/**/*") if file.is_file()
    )
    found = {
        "a plan": ("BatchScan fila", "\n".join(plans)),
        "the checkpoint": ('"queue": "orders"', checkpoint),
        "the log": ("MicroBatchExecution", log.read_text() + driver_output(spark)),
        "the event log": ("BatchScan fila", event_log(spark)),
        "a page": ("BatchScan fila", page),
    }
    for place, (has, text) in found.items():
        assert has in text, f"{place} was not found"
        assert key not in text, f"the key is in {place}: {around(text, key)}"


def test_a_table_names_the_file_of_a_key_and_never_the_key(spark, guarded, tmp_path):
    file = tmp_path / "key"
    file.write_text(guarded.key)
    told = ", ".join(f"{name} '{value}'" for name, value in guarded.options.items())
    for options in (f"OPTIONS ({told}, token '{guarded.key}')", f"TBLPROPERTIES ('token' = '{guarded.key}')"):
        with pytest.raises(
            Exception, match=r"token: cannot be an option of a table.*by tokenFile"
        ) as refused:
            spark.sql(f"CREATE TABLE guarded_orders USING fila {options}")
        assert guarded.key not in str(refused.value)
    spark.sql(f"CREATE TABLE guarded_orders USING fila OPTIONS ({told}, queue 'orders', tokenFile '{file}')")
    assert spark.table("guarded_orders").count() == 1200
    spark.sql("DROP TABLE guarded_orders")


def plan(frame, mode: str) -> str:
    query = frame._jdf.queryExecution()
    return str(
        query.explainString(
            frame.sparkSession._jvm.org.apache.spark.sql.execution.ExplainMode.fromString(mode)
        )
    )


@contextmanager
def logged(spark, path: Path) -> Iterator[Path]:
    """Everything that Spark logs meanwhile, in a file."""
    log4j = spark._jvm.org.apache.logging.log4j
    builder = log4j.core.appender.FileAppender.newBuilder()
    builder.setName("fila-test")
    builder.withFileName(str(path))
    builder.setLayout(log4j.core.layout.PatternLayout.createDefaultLayout())
    appender, root = builder.build(), log4j.LogManager.getRootLogger()
    appender.start()
    root.addAppender(appender)
    spark.sparkContext.setLogLevel("INFO")
    try:
        yield path
    finally:
        spark.sparkContext.setLogLevel("ERROR")
        root.removeAppender(appender)
        appender.stop()


def driver_output(spark) -> str:
    """What Java, and the Python workers that it started, printed; nothing where that is no file."""
    process = spark._jvm.java.lang.ProcessHandle.current().pid()
    outputs = [Path(f"/proc/{process}/fd/{number}") for number in (1, 2)]
    return "".join(file.read_text(errors="replace") for file in outputs if file.is_file())


def event_log(spark) -> str:
    folder = Path(spark.sparkContext.getConf().get("spark.eventLog.dir").removeprefix("file://"))
    return "".join(file.read_text() for file in folder.rglob("*") if file.is_file())


def pages(spark) -> str:
    """The pages of Spark's UI that tell of queries and settings, and what its API says of the same."""
    context = spark.sparkContext
    api = f"/api/v1/applications/{context.applicationId}"
    listed = fetched(context.uiWebUrl + f"{api}/sql?length=100000&details=true&planDescription=true")
    queries = [each["id"] for each in json.loads(listed)]
    addresses = ["/environment/", "/StreamingQuery/", "/SQL/", "/jobs/", "/stages/", f"{api}/environment"]
    addresses += [f"/SQL/execution/?id={number}" for number in queries[-30:]]
    return listed + "".join(fetched(context.uiWebUrl + address) for address in addresses)


def fetched(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return str(answer.read().decode())


def around(text: str, key: str) -> str:
    return re.sub(key, "KEY", text[max(0, text.index(key) - 200) :][:400])
