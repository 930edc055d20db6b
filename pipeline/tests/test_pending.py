"""What is pending just now, as a table of which SQL asks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fila.v1 import admin_pb2, service_pb2

PAGE = Path(__file__).resolve().parents[2] / "docs/pipeline.md"
NOT_BEFORE_MS = 3_600_000


def lease(broker, queue, most=1):
    return broker.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=most)).messages


def pending(spark, broker, queue="", **options):
    reader = spark.read.format("fila").options(**{"address": broker.address, "view": "pending", **options})
    return reader.load(queue) if queue else reader.load()


@pytest.fixture
def in_every_state(broker, queue):
    """One message leased, one dead, one delayed, and 2,500 that wait, of three tenants."""
    retry = admin_pb2.RetryPolicy(kind=admin_pb2.RetryPolicy.KIND_FIXED, base_ms=1)
    config = admin_pb2.QueueConfig(
        fairness_key_header="tenant", max_attempts=1, retry=retry, visibility_timeout_ms=3_600_000
    )
    broker.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue, config=config))
    for number, delay_ms in enumerate((0, 0, NOT_BEFORE_MS)):
        broker.service.Enqueue(
            service_pb2.EnqueueRequest(
                queue=queue,
                payload=b"secret",
                headers={"tenant": f"x{number}"},
                options=service_pb2.EnqueueOptions(delay_ms=delay_ms),
            )
        )
        if number == 0:
            [dies] = lease(broker, queue)
            broker.service.Nack(
                service_pb2.NackRequest(
                    queue=queue, message_id=dies.id, lease_id=dies.metadata.lease_id, error="no"
                )
            )
        elif number == 1:
            lease(broker, queue)
    broker.fill(queue, 2500)
    return queue


def test_each_message_that_is_not_done_is_a_row_with_what_it_is_doing(spark, broker, in_every_state):
    queue = in_every_state
    rows = pending(spark, broker, queue, partitions=2)
    assert rows.columns == [
        "queue", "id", "fairness_key", "state", "enqueued_at", "due_at", "attempts", "age_ms", "cost",
    ]  # fmt: skip
    assert rows.rdd.getNumPartitions() == 2
    counted = {
        (row.queue, row.state): row["count"] for row in rows.groupBy("queue", "state").count().collect()
    }
    assert counted == {
        (queue, "waiting"): 2500,
        (queue, "leased"): 1,
        (queue, "delayed"): 1,
        (f"{queue}.dlq", "dead"): 1,
    }
    [delayed] = rows.where("state = 'delayed'").collect()
    assert (delayed.fairness_key, delayed.cost, delayed.age_ms) == ("x2", 1.0, 0)
    waited_ms = (delayed.due_at - delayed.enqueued_at).total_seconds() * 1000
    assert abs(waited_ms - NOT_BEFORE_MS) < 60_000
    assert rows.where("id is null or age_ms < 0 or attempts <> 0").count() == 0
    assert rows.select("id").distinct().count() == 2503


def test_a_key_that_may_only_view_is_enough_and_shows_no_dead_letters_that_it_may_not_see(
    spark, guarded, queue
):
    guarded.broker.create(queue)
    guarded.broker.fill(queue, 10)
    view = guarded.key_of(f"{queue[:40]}-viewer", view=queue)
    rows = pending(spark, guarded.broker, queue, **guarded.options | {"token": view.key})
    assert rows.count() == 10
    read = spark.read.format("fila").options(**guarded.options, token=view.key).load(queue)
    with pytest.raises(Exception, match="lacks a right"):
        read.count()


def test_a_channel_and_a_key_and_several_queues_narrow_it_down(spark, broker, queue):
    broker.create(f"{queue}-a")
    broker.create(f"{queue}-b")
    broker.fill(f"{queue}-a", 30)
    broker.admin.CreateChannel(
        admin_pb2.CreateChannelRequest(queue=f"{queue}-a", channel="audit", oldest=True)
    )
    broker.admin.PurgeChannel(admin_pb2.PurgeChannelRequest(queue=f"{queue}-a", channel="default"))
    broker.fill(f"{queue}-b", 3)
    assert pending(spark, broker, queues=f"{queue}-*").count() == 3
    assert pending(spark, broker, f"{queue}-a", channel="audit").count() == 30
    assert pending(spark, broker, f"{queue}-a", channel="audit", fairnessKey="t1").count() == 10
    with pytest.raises(Exception, match="option channel: has no meaning in a batch read"):
        spark.read.format("fila").options(address=broker.address, channel="audit").load(f"{queue}-a").count()


def test_the_pages_question_is_answered_as_it_stands(spark, broker, in_every_state):
    """What is still pending, by tenant and age."""
    [block] = re.findall(
        r"^```sql\n(CREATE TEMPORARY VIEW pending.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    view, question = block.replace("https://broker:5555", broker.address).split(";")[:2]
    view = view.replace("queue 'orders', tokenFile '/run/secrets/fila'", f"queue '{in_every_state}'")
    spark.sql(view)
    answer = {(row.tenant, row.state): row.messages for row in spark.sql(question).collect()}
    assert answer[("t0", "waiting")] + answer[("t1", "waiting")] + answer[("t2", "waiting")] == 2500
    assert answer[("x0", "dead")] == answer[("x1", "leased")] == answer[("x2", "delayed")] == 1
    spark.catalog.dropTempView("pending")
