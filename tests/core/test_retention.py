"""Hard retention drops what nobody took, by age or by size; soft retention keeps what is done."""

import pytest

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine


def test_hard_retention_drops_what_is_older_than_its_period_and_nothing_younger(engine: DrivenEngine) -> None:
    engine.create_queue("q", retention=admin.Retention(hard_period_ms=5_000))
    engine.enqueue("q", b"old")
    engine.sleep(3_000, 100)
    engine.enqueue("q", b"young")

    engine.sleep(1_900, 100)
    assert engine.stats("q").depth == 2
    engine.sleep(300, 100)
    assert engine.payloads("q") == [b"young"]


def test_hard_retention_takes_what_somebody_holds_and_its_ack_says_so(engine: DrivenEngine) -> None:
    engine.create_queue("q", retention=admin.Retention(hard_period_ms=5_000))
    engine.enqueue("q", b"held")
    held = engine.lease("q")

    engine.sleep(5_300, 100)

    assert engine.ack("q", held) == [9]
    assert engine.stats("q").stored_bytes == 0


def test_hard_retention_by_size_drops_the_oldest_until_the_rest_fits(engine: DrivenEngine) -> None:
    engine.create_queue("q", retention=admin.Retention(hard_bytes=25_000))
    for number in range(5):
        engine.enqueue("q", b"%d" % number + b"." * 10_000)

    engine.sleep(200, 100)

    assert [payload[:1] for payload in engine.payloads("q")] == [b"3", b"4"]
    assert engine.stats("q").stored_bytes <= 25_000


def test_what_is_done_can_be_sought_back_for_its_period_and_no_longer(engine: DrivenEngine) -> None:
    engine.create_queue("q", retention=admin.Retention(soft_period_ms=5_000))
    engine.enqueue("q", b"done")
    engine.ack("q", engine.lease("q"))
    engine.sleep(4_000, 100)

    back = admin.SeekChannelRequest(queue="q", offset=0)
    engine.call(commands.SEEK_CHANNEL, back, admin.SeekChannelResponse)
    again = engine.lease("q")
    assert [message.payload for message in again] == [b"done"]

    engine.ack("q", again)
    engine.sleep(1_500, 100)
    assert engine.stats("q").stored_bytes == 0


@pytest.mark.parametrize("period_ms", [2**63 - 1, 2**63, 2**64 - 1])
def test_the_longest_periods_that_older_brokers_took_keep_for_ever(
    engine: DrivenEngine, period_ms: int
) -> None:
    engine.create_queue("q", retention=admin.Retention(hard_period_ms=period_ms, soft_period_ms=period_ms))
    engine.enqueue("q", b"waits")
    engine.enqueue("q", b"done")
    [_, done] = engine.lease("q", 2)
    engine.ack("q", [done])
    stored = engine.stats("q").stored_bytes

    engine.sleep(60_000, 1_000)

    assert engine.stats("q").hard_dropped == 0
    assert engine.stats("q").stored_bytes == stored
