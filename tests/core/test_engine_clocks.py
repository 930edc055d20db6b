"""Windows and times to live run on the monotonic clock, and the wall clock never makes them longer than they were."""

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import MS, DrivenEngine
from tests.native.storeprobe import StoreProbe

HOUR_MS = 3_600_000
DEDUP = 10


def set_clock(engine: DrivenEngine, by_ms: int) -> None:
    engine.wall_ns += by_ms * MS


def test_a_window_ends_in_its_time_though_the_clock_was_set_back(engine: DrivenEngine) -> None:
    engine.create_queue("q", dedup_window_ms=2000)
    first = engine.enqueue("q", dedup_key="k")
    set_clock(engine, -HOUR_MS)
    engine.sleep(1500)
    assert engine.enqueue("q", dedup_key="k") == first

    engine.sleep(1000)

    assert engine.enqueue("q", dedup_key="k") != first


def test_a_window_lasts_its_time_though_the_clock_was_set_forward(engine: DrivenEngine) -> None:
    engine.create_queue("q", dedup_window_ms=2000)
    first = engine.enqueue("q", dedup_key="k")

    set_clock(engine, HOUR_MS)
    engine.sleep(1500)

    assert engine.enqueue("q", dedup_key="k") == first


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_window_is_not_longer_than_it_was_though_the_clock_was_set_back_over_a_restart(
    engine: DrivenEngine, how: str
) -> None:
    engine.create_queue("q", dedup_window_ms=2000)
    first = engine.enqueue("q", dedup_key="k")
    engine.stop() if how == "stop" else engine.kill()
    engine.reopen(-HOUR_MS)
    engine.sleep(1500)
    assert engine.enqueue("q", dedup_key="k") == first

    engine.sleep(1000)

    assert engine.enqueue("q", dedup_key="k") != first


def test_a_window_that_ended_while_the_broker_was_down_is_over(engine: DrivenEngine) -> None:
    engine.create_queue("q", dedup_window_ms=2000)
    first = engine.enqueue("q", dedup_key="k")
    engine.kill()

    engine.reopen(2500)

    assert engine.enqueue("q", dedup_key="k") != first


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_time_to_live_is_not_longer_than_it_was_though_the_clock_was_set_back_over_a_restart(
    engine: DrivenEngine, how: str
) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"short", ttl_ms=1500)
    engine.enqueue("q", b"long", ttl_ms=10_000)
    engine.stop() if how == "stop" else engine.kill()

    engine.reopen(-HOUR_MS)
    engine.sleep(2000)

    assert engine.payloads("q") == [b"long"]


def test_a_time_to_live_lasts_its_time_though_the_clock_was_set_forward(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"short", ttl_ms=1500)

    set_clock(engine, HOUR_MS)
    engine.sleep(1000)

    assert engine.payloads("q") == [b"short"]


def test_a_clock_that_was_wrong_for_a_month_when_a_message_came_does_not_end_it_at_the_next_start(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"earlier")
    set_clock(engine, -30 * 24 * HOUR_MS)
    engine.enqueue("q", b"later", ttl_ms=10_000)
    engine.kill()

    engine.reopen()

    assert engine.payloads("q") == [b"earlier", b"later"]


def test_a_window_of_a_store_of_before_goes_on_and_is_not_longer_than_the_queue_has_it(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", dedup_window_ms=2000)
    first = engine.enqueue("q", dedup_key="k")
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    ((key, row),) = probe.scan(DEDUP)
    probe.write([(DEDUP, key, b"\x01" + row[1:33])])  # it did not tell when its window began
    probe.close()
    engine.reopen(-HOUR_MS)
    engine.sleep(1500)
    assert engine.enqueue("q", dedup_key="k") == first

    engine.sleep(1000)

    assert engine.enqueue("q", dedup_key="k") != first


@pytest.mark.parametrize("how", ["while it ran", "over a restart"])
def test_what_was_over_before_a_channel_began_does_not_die_in_it_though_the_clock_was_set_back(
    engine: DrivenEngine, how: str
) -> None:
    engine.create_queue("q", ttl_to_dlq=True, retention=admin.Retention(soft_period_ms=HOUR_MS))
    engine.enqueue("q", b"short", ttl_ms=1500)
    engine.enqueue("q", b"lasting")
    engine.sleep(2000)
    assert engine.payloads("q.dlq") == [b"short"]
    if how == "over a restart":
        engine.stop()
        engine.reopen(-HOUR_MS)
    else:
        set_clock(engine, -HOUR_MS)
    engine.sleep(2000)

    made = admin.CreateChannelRequest(queue="q", channel="new", oldest=True)
    engine.call(commands.CREATE_CHANNEL, made, admin.CreateChannelResponse)

    assert engine.payloads("q", channel="new") == [b"lasting"]
    assert engine.stats("q.dlq").depth == 0


@pytest.mark.parametrize("wall_ms", [0, -HOUR_MS], ids=["clock as it was", "clock set back"])
def test_a_seek_brings_nothing_back_whose_time_to_live_is_over(engine: DrivenEngine, wall_ms: int) -> None:
    engine.create_queue("q", retention=admin.Retention(soft_period_ms=24 * HOUR_MS), ttl_to_dlq=True)
    engine.enqueue("q", b"over", ttl_ms=1000)
    engine.enqueue("q", b"kept")
    engine.sleep(1500)
    assert engine.stats("q.dlq").depth == 1

    set_clock(engine, wall_ms)
    sought = admin.SeekChannelRequest(queue="q", offset=1)
    engine.call(commands.SEEK_CHANNEL, sought, admin.SeekChannelResponse)

    assert engine.payloads("q") == [b"kept"]
    assert engine.stats("q.dlq").depth == 1, "it is buried once"


@pytest.mark.parametrize("by_ms", [-HOUR_MS, HOUR_MS])
def test_a_clock_that_is_set_while_a_message_waits_for_its_sync_changes_no_delay(
    engine: DrivenEngine, by_ms: int
) -> None:
    engine.create_queue("q")
    late = service.EnqueueRequest(queue="q", payload=b"late", options=service.EnqueueOptions(delay_ms=1000))
    engine.submit(commands.ENQUEUE, late)
    engine.run_pass()

    set_clock(engine, by_ms)
    engine.advance(300)
    engine.settle_down()

    engine.sleep(699)
    assert engine.payloads("q") == []
    engine.sleep(2)
    assert engine.payloads("q") == [b"late"]


@pytest.mark.parametrize("by_ms", [-HOUR_MS, HOUR_MS])
def test_a_clock_that_is_set_while_a_message_waits_for_its_sync_changes_no_time_to_live(
    engine: DrivenEngine, by_ms: int
) -> None:
    engine.create_queue("q")
    short = service.EnqueueRequest(queue="q", payload=b"short", options=service.EnqueueOptions(ttl_ms=1000))
    engine.submit(commands.ENQUEUE, short)
    engine.run_pass()

    set_clock(engine, by_ms)
    engine.advance(300)
    engine.settle_down()

    engine.sleep(699)
    assert engine.stats("q").depth == 1
    engine.sleep(2)
    assert engine.stats("q").depth == 0
