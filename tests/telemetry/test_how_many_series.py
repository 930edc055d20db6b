"""A page of many queues: what every queue has, what only comes with an event, and what paused keys and backups add."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.backup.last import FILE_NAME, backup_age_s, note_backup
from fila_server.core.protocol import commands
from fila_server.telemetry import catalog as c
from fila_server.telemetry.prometheus import lines_of
from fila_server.telemetry.series import OtherKeys, all_series
from tests.core.driven_engine import DrivenEngine
from tests.telemetry.conftest import snapshot_of

SERIES_MAX = 30_000
OF_EACH = {metric.prometheus_name for metric in c.METRICS if metric.is_of_each}


def page_of(engine: DrivenEngine) -> list[str]:
    """The lines of a page, without those that explain."""
    told = all_series(snapshot_of(engine), OtherKeys(), [])
    return [line for entry in told for line in "".join(lines_of(entry)).splitlines() if line[0] != "#"]


def metrics_of(engine: DrivenEngine, queue: str) -> Counter[str]:
    wanted = f'messaging_destination_name="{queue}"'
    return Counter(line.partition("{")[0] for line in page_of(engine) if wanted in line)


def pause(engine: DrivenEngine, key: str, *, paused: bool = True) -> None:
    request = admin.SetKeyPolicyRequest(queue="orders", fairness_key=key, paused=paused)
    engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


def value_of(engine: DrivenEngine, name: str, queue: str = "orders") -> float | None:
    found = [
        line for line in page_of(engine) if line.startswith(f'{name}{{messaging_destination_name="{queue}"')
    ]
    return float(found[0].rpartition(" ")[2]) if found else None


@pytest.mark.costly("makes 2,000 queues, and as many dead-letter queues")
def test_a_page_of_2000_queues_with_traffic_in_200_has_fewer_than_30000_series(engine: DrivenEngine) -> None:
    for number in range(1_999):  # and `orders`
        config = admin.QueueConfig(fairness_key_header="tenant")
        engine.submit(commands.CREATE_QUEUE, admin.CreateQueueRequest(name=f"q{number}", config=config))
    engine.settle_down()
    for number in range(200):
        batch = service.EnqueueBatchRequest(queue=f"q{number}")
        for tenant in ("acme", "globex", "initech", "hooli", "umbrella"):
            batch.messages.add(headers={"tenant": tenant})
        engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)
    engine.sleep(1_500)
    for number in range(200):
        acked, nacked, *_ = engine.lease(f"q{number}", 4)
        engine.ack(f"q{number}", [acked])
        engine.nack(f"q{number}", [nacked], 10_000)

    page = page_of(engine)

    assert len(page) < SERIES_MAX
    depths = [line for line in page if line.startswith("fila_queue_depth{")]
    assert len(depths) == 2_000, (
        "every queue has its depth, and no dead-letter queue that never held a letter"
    )
    assert not any(".dlq" in line for line in page)


def test_a_queue_without_traffic_has_the_few_series_that_every_queue_has(engine: DrivenEngine) -> None:
    assert metrics_of(engine, "orders").keys() == OF_EACH


def test_a_counter_appears_with_its_first_event_and_a_gauge_of_traffic_stays_at_zero(
    engine: DrivenEngine,
) -> None:
    engine.enqueue("orders")
    assert value_of(engine, "fila_messages_enqueued_total") == 1
    assert value_of(engine, "fila_messages_acked_total") is None
    assert "fila_delivery_latency_seconds_bucket" not in metrics_of(engine, "orders")

    engine.ack("orders", engine.lease("orders"))

    assert value_of(engine, "fila_messages_acked_total") == 1
    assert value_of(engine, "fila_messages_nacked_total") is None
    assert value_of(engine, "fila_queue_in_flight") == 0
    assert value_of(engine, "fila_delivery_latency_seconds_count") == 1


def test_a_dead_letter_queue_appears_with_its_first_letter_and_stays(engine: DrivenEngine) -> None:
    engine.enqueue("orders")
    assert not metrics_of(engine, "orders.dlq")

    engine.call(
        commands.NACK_BATCH,
        service.NackBatchRequest(
            queue="orders",
            items=[
                service.SettleItem(
                    message_id=message.id, lease_id=message.metadata.lease_id, dead_letter=True, error="no"
                )
                for message in engine.lease("orders")
            ],
        ),
        service.SettleBatchResponse,
    )
    assert value_of(engine, "fila_queue_depth", "orders.dlq") == 1
    engine.ack("orders.dlq", engine.lease("orders.dlq"))

    assert value_of(engine, "fila_queue_depth", "orders.dlq") == 0


def test_paused_keys_are_counted_and_the_longest_pause_is_told_over_a_restart(engine: DrivenEngine) -> None:
    assert value_of(engine, "fila_queue_paused_keys") is None
    engine.enqueue("orders", headers={"tenant": "acme"})
    engine.sleep(200)
    pause(engine, "acme")
    engine.sleep(1_000)
    pause(engine, "globex")
    pause(engine, "acme")  # it is already
    engine.sleep(1_000)

    for _ in range(2):
        assert value_of(engine, "fila_queue_paused_keys") == 2
        assert value_of(engine, "fila_queue_paused_keys_longest_seconds") == 2
        engine.kill()
        engine.reopen()

    pause(engine, "acme", paused=False)
    assert value_of(engine, "fila_queue_paused_keys") == 1
    assert value_of(engine, "fila_queue_paused_keys_longest_seconds") == 1
    pause(engine, "globex", paused=False)
    assert value_of(engine, "fila_queue_paused_keys_longest_seconds") is None


def test_a_paused_key_is_named_where_its_other_numbers_are(engine: DrivenEngine) -> None:
    for tenant in ("acme", "globex", "acme"):
        engine.enqueue("orders", headers={"tenant": tenant})
    engine.sleep(200)  # long enough to be remembered
    engine.ack("orders", engine.lease("orders", 2))
    pause(engine, "acme")
    pause(engine, "never-had-a-message")

    named = [line for line in page_of(engine) if line.startswith("fila_key_paused{")]

    assert len(named) == 1
    assert 'fila_fairness_key="acme"' in named[0]


def test_a_paused_queue_says_so(engine: DrivenEngine) -> None:
    assert value_of(engine, "fila_queue_paused") == 0
    request = admin.UpdateQueueRequest(queue="orders", config=admin.QueueConfig(paused=True))
    request.update_mask.paths.append("paused")
    engine.call(commands.UPDATE_QUEUE, request, admin.UpdateQueueResponse)

    assert value_of(engine, "fila_queue_paused") == 1


def test_the_last_backup_has_an_age_until_a_newer_one_is_noted(tmp_path: Path) -> None:
    assert backup_age_s(tmp_path, 1_000) is None
    note_backup(tmp_path, 5_000)
    note_backup(tmp_path, 8_000)

    assert backup_age_s(tmp_path, 9_500) == 1.5
    assert backup_age_s(tmp_path, 7_000) == 0, "the clock was set back"
    (tmp_path / FILE_NAME).write_bytes(b"\xff")
    assert backup_age_s(tmp_path, 9_500) is None
