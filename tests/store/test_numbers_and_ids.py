"""Numbers of queues and lease ids are never given out twice, though damage takes the records that promise them."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.native.storeprobe import StoreProbe
from tests.store.test_records_kept_twice import stop_and_damage

META, SETTLED = 0, 3
NAMES = (b"leases", b"numbers", b"id")
COMMANDS_PER_PASS_MAX = 64


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    """Two queues with ten messages each, some of them leased."""
    engine = DrivenEngine()
    for name in ("one", "two"):
        engine.create_queue(name)
        for i in range(10):
            engine.enqueue(name, b"%s %d" % (name.encode(), i))
    yield engine
    engine.remove()


def pending(engine: DrivenEngine, queue: str) -> list[bytes]:
    peek = admin.PeekMessagesRequest(queue=queue, max_messages=100)
    found = engine.call(commands.PEEK_MESSAGES, peek, admin.PeekMessagesResponse).messages
    return [message.payload for message in found]


def names(engine: DrivenEngine) -> list[str]:
    listed = engine.call(commands.LIST_QUEUES, admin.ListQueuesRequest(), admin.ListQueuesResponse)
    return sorted(queue.name for queue in listed.queues)


def use_new_queues(engine: DrivenEngine) -> None:
    """New queues take messages, are restarted with the others, and one of them is deleted."""
    before = {name: pending(engine, name) for name in ("one", "two")}
    for name in ("three", "four"):
        engine.create_queue(name)
        engine.enqueue(name, b"of " + name.encode())
    for _ in range(2):
        engine.kill()
        engine.reopen()
        assert {name: pending(engine, name) for name in before} == before
        assert pending(engine, "four") == [b"of four"]
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="three"), admin.DeleteQueueResponse)
    engine.kill()
    engine.reopen()
    assert {name: pending(engine, name) for name in before} == before
    assert names(engine) == ["four", "four.dlq", "one", "one.dlq", "two", "two.dlq"]


@pytest.mark.parametrize("at", [20, -4], ids=["a damaged block", "a lost table"])
def test_damage_to_the_record_of_numbers_is_told_and_lets_no_new_queue_have_the_number_of_another(
    engine: DrivenEngine, at: int
) -> None:
    stop_and_damage(engine, "default", at)

    engine.reopen()

    report = engine.core.open_report()
    assert report["damaged_blocks"] or report["salvage_tables_lost"], report
    assert report["lost_ranges"]
    use_new_queues(engine)


def test_a_damaged_record_of_numbers_ends_a_start_that_is_to_stop_at_damage(engine: DrivenEngine) -> None:
    stop_and_damage(engine, "default", 20)
    engine.settings["storage.on_damage"] = "stop"

    with pytest.raises(errors.StoreDamaged, match=r"damaged.*storage\.on_damage"):
        engine.reopen()

    engine.settings["storage.on_damage"] = "start"
    engine.reopen()


def test_without_any_record_of_numbers_and_ids_they_go_on_above_all_that_is_stored(
    engine: DrivenEngine,
) -> None:
    held = engine.lease("one", 5)
    engine.nack("one", engine.lease("one", 1), delay_ms=1000)
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    probe.write([(family, name, None) for family in (META, SETTLED) for name in NAMES])
    probe.close()

    engine.reopen(-60_000)

    later = engine.lease("two", 5)
    assert min(m.metadata.lease_id for m in later) > max(m.metadata.lease_id for m in held) + 1
    assert engine.ack("one", held) == [0] * 5
    use_new_queues(engine)


def test_a_store_of_before_gets_the_second_record_of_its_numbers_at_its_first_start(
    engine: DrivenEngine,
) -> None:
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    probe.write([(SETTLED, name, None) for name in NAMES])
    probe.close()
    engine.reopen()
    engine.run_pass()
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    assert [probe.get(SETTLED, name) for name in NAMES] == [probe.get(META, name) for name in NAMES]
    probe.close()
    engine.reopen()


def test_a_queue_whose_own_record_is_lost_leaves_its_number_to_nobody(engine: DrivenEngine) -> None:
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    lost = [(family, key, None) for family in (6, SETTLED) for key, _ in probe.scan(family) if len(key) <= 16]
    probe.write([*lost, *((META, name, None) for name in NAMES)])
    probe.close()
    engine.reopen()
    assert names(engine) == []

    for name in ("new", "newer"):
        engine.create_queue(name)
    engine.kill()
    engine.reopen()

    assert (pending(engine, "new"), pending(engine, "newer")) == ([], [])


@pytest.mark.parametrize("at", [60, 400, 1500, 20_000, 33_000, 50_000])
def test_one_flipped_bit_in_the_log_takes_no_queue_however_fresh(engine: DrivenEngine, at: int) -> None:
    for i in range(40):
        engine.enqueue("two", b"%d" % i * 1000)
    stored = pending(engine, "two")
    engine.kill()
    (log,) = (path for path in engine.directory.rglob("*.log") if path.stat().st_size > at)
    content = bytearray(log.read_bytes())
    content[at] ^= 4
    log.write_bytes(content)

    engine.reopen()

    assert names(engine) == ["one", "one.dlq", "two", "two.dlq"]
    kept = pending(engine, "two")
    assert kept == [payload for payload in stored if payload in kept]
    assert len(kept) >= 10
    use_new_queues(engine)


def test_a_seek_and_a_deletion_leave_nothing_in_what_is_written_apart(engine: DrivenEngine) -> None:
    for offset in (3, 5):
        seek = admin.SeekChannelRequest(queue="two", channel="default", offset=offset)
        engine.submit(commands.SEEK_CHANNEL, seek)
    engine.submit(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="one"))
    engine.settle_down()
    before = pending(engine, "two")
    engine.kill()

    engine.reopen()

    assert names(engine) == ["two", "two.dlq"]
    assert pending(engine, "two") == before
    channels = engine.call(
        commands.LIST_CHANNELS, admin.ListChannelsRequest(queue="two"), admin.ListChannelsResponse
    )
    assert [channel.name for channel in channels.channels] == ["default"]


def test_a_clean_stop_gives_no_lease_id_out_that_the_next_start_gives_again(engine: DrivenEngine) -> None:
    for _ in range(4 * COMMANDS_PER_PASS_MAX):
        engine.enqueue("one")
    for _ in range(4 * COMMANDS_PER_PASS_MAX):
        engine.submit(commands.LEASE, service.LeaseRequest(queue="one", max_messages=1))
    engine.core.stop_cleanly(engine.mono_ns, engine.wall_ns)
    given = [
        message.metadata.lease_id
        for _, kind, status, payload in engine.core.drain()
        if kind == commands.REPLY and status == 0
        for message in service.LeaseResponse.FromString(payload).messages
    ]
    next_lease_id = engine.core.counters()["next_lease_id"]
    assert isinstance(next_lease_id, int)
    engine.core.close()

    engine.reopen()

    again = [message.metadata.lease_id for message in engine.lease("two", 10)]
    assert len(again) == 10
    assert min(again) >= next_lease_id
    assert set(again).isdisjoint(given)
