"""What a lease is good for: one message, in one channel, until one moment, under a number of its own."""

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused

FAILED_PRECONDITION = 9
LEASED_AT_ONCE = 10_000
MANY = 52
"""Half a million leases and more: as many numbers are taken from one reservation before the next is written."""


def test_a_lease_of_one_channel_settles_nothing_in_another(engine: DrivenEngine) -> None:
    engine.create_queue("q", channels=["a", "b"])
    engine.enqueue("q", b"m")
    of_a, of_b = engine.lease("q", channel="a"), engine.lease("q", channel="b")

    assert engine.ack("q", of_a, "b") == [FAILED_PRECONDITION]

    assert engine.ack("q", of_a, "a") == [0]
    assert engine.ack("q", of_b, "b") == [0]


def test_a_lease_of_one_channel_is_neither_given_up_nor_made_longer_in_another(engine: DrivenEngine) -> None:
    engine.create_queue("q", channels=["a", "b"], visibility_timeout_ms=1_000)
    engine.enqueue("q", b"m")
    [of_a] = engine.lease("q", channel="a")
    longer = service.ExtendLeaseRequest(
        queue="q", channel="b", message_id=of_a.id, lease_id=of_a.metadata.lease_id, extend_ms=60_000
    )

    assert engine.nack("q", [of_a], 0, "b") == [FAILED_PRECONDITION]
    with pytest.raises(Refused, match="LEASE_LOST"):
        engine.call(commands.EXTEND_LEASE, longer, service.ExtendLeaseResponse)

    engine.sleep(1_000)
    assert engine.stats("q", "a").expired_total == 1


def test_a_lease_ends_at_its_time(engine: DrivenEngine) -> None:
    engine.create_queue("q", visibility_timeout_ms=1_000)
    engine.enqueue("q", b"m")
    engine.lease("q")

    engine.sleep(999)
    assert engine.stats("q").expired_total == 0
    engine.sleep(1)
    assert engine.stats("q").expired_total == 1


def test_a_lease_ends_at_its_new_time_once_it_is_extended(engine: DrivenEngine) -> None:
    engine.create_queue("q", visibility_timeout_ms=1_000)
    engine.enqueue("q", b"m")
    [held] = engine.lease("q")
    longer = service.ExtendLeaseRequest(
        queue="q", message_id=held.id, lease_id=held.metadata.lease_id, extend_ms=3_000
    )
    engine.sleep(500)
    engine.call(commands.EXTEND_LEASE, longer, service.ExtendLeaseResponse)

    engine.sleep(2_999)
    assert engine.stats("q").expired_total == 0
    engine.sleep(1)
    assert engine.stats("q").expired_total == 1


@pytest.mark.parametrize("end", ["kill", "cut_power"])
def test_no_lease_id_is_given_twice_though_more_were_given_than_one_reservation_holds(
    engine: DrivenEngine, end: str
) -> None:
    engine.create_queue("q")
    batch = service.EnqueueBatchRequest(queue="q")
    for _ in range(LEASED_AT_ONCE):
        batch.messages.add(payload=b"m")
    engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)
    back = admin.SeekChannelRequest(queue="q", offset=0)
    for _ in range(MANY):
        engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=LEASED_AT_ONCE))
        engine.settle_down()
        engine.call(commands.SEEK_CHANNEL, back, admin.SeekChannelResponse)
    given = engine.core.counters()["next_lease_id"]
    assert isinstance(given, int)
    assert given > MANY * LEASED_AT_ONCE

    getattr(engine, end)()
    engine.reopen()

    assert engine.lease("q", 1)[0].metadata.lease_id >= given
