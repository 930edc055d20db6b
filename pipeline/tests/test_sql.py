"""Tables, views and INSERT, in Spark's SQL."""

from __future__ import annotations

import pytest


@pytest.fixture
def told(broker, queue):
    """A queue of 30 messages, and the options that name it."""
    broker.create(queue)
    broker.fill(queue, 30)
    return f"address '{broker.address}', queue '{queue}'"


def test_a_table_is_read_by_sql_and_by_a_stream_and_a_query_may_add_options(spark, told, tmp_path):
    spark.sql(f"CREATE TABLE kept_orders USING fila OPTIONS ({told}, startingOffset '11')")
    assert spark.sql("select min(offset), count(*) from kept_orders").first() == (11, 20)
    assert spark.sql("select count(*) from kept_orders with (endingOffset = '16')").first() == (5,)
    stream = spark.readStream.table("kept_orders").writeStream.format("parquet")
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    stream.start(str(tmp_path / "out")).awaitTermination(100)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 20
    with pytest.raises(
        Exception, match=r"does not tell a source which table it writes to. INSERT INTO a view"
    ):
        spark.sql("insert into kept_orders select * from kept_orders")
    spark.sql("DROP TABLE kept_orders")


def test_rows_that_were_read_are_inserted_into_another_queue_as_they_are(spark, broker, queue, told):
    broker.create(f"{queue}-2")
    spark.sql(f"CREATE TABLE read_orders USING fila OPTIONS ({told})")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW all_columns USING fila OPTIONS "
        f"(address '{broker.address}', queue '{queue}-2')"
    )
    spark.sql("insert into all_columns select * from read_orders where offset <= 9")
    written = spark.table("all_columns").select("payload", "headers").collect()
    assert sorted(int(row.payload) for row in written) == list(range(9))
    assert all(row.headers["n"] == row.payload.decode() for row in written)
    spark.sql("DROP TABLE read_orders")


def test_a_view_with_the_columns_of_a_write_is_inserted_into(spark, broker, queue, told):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW few_columns (payload BINARY) USING fila OPTIONS ({told})")
    spark.sql("insert into few_columns values (cast('last' as binary))")
    assert broker.stats(queue).head_offset == 32
    assert spark.sql("select count(*) from few_columns where payload = cast('last' as binary)").first() == (
        1,
    )


def test_a_table_that_was_made_with_columns_says_why_it_has_no_options(spark, told):
    spark.sql(f"CREATE TABLE columns_named (payload BINARY) USING fila OPTIONS ({told})")
    with pytest.raises(Exception, match="keeps its options only where it was made without columns"):
        spark.table("columns_named").count()
    spark.sql("DROP TABLE columns_named")
