"""Neither a damaged block nor a lost table takes a queue away: its own record is kept twice, in two files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.native.storeprobe import StoreProbe

SETTLED = 3
FAMILY_COUNT = 11


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    """Two queues with a channel more than they began with, messages, acks, a weight, a delay and a dedup key."""
    engine = DrivenEngine()
    for name in ("one", "two"):
        engine.create_queue(name, fairness_key_header="key", weights={"a": 7}, max_depth=1000)
        request = admin.CreateChannelRequest(queue=name, channel="audit", oldest=True)
        engine.call(commands.CREATE_CHANNEL, request, admin.CreateChannelResponse)
        for i in range(10):
            engine.enqueue(name, b"%s %d" % (name.encode(), i), {"key": "ab"[i % 2]})
        engine.enqueue(name, b"late", delay_ms=60_000, dedup_key="once")
        engine.ack(name, engine.lease(name, 4))
        engine.ack(name, engine.lease(name, 1, channel="audit"), channel="audit")
    yield engine
    engine.remove()


def told(engine: DrivenEngine) -> dict[str, object]:
    """All that an operator can see of the queues."""
    seen: dict[str, object] = {}
    listed = engine.call(commands.LIST_QUEUES, admin.ListQueuesRequest(), admin.ListQueuesResponse)
    seen["names"] = [queue.name for queue in listed.queues]
    for name in ("one", "two"):
        queue = engine.call(commands.GET_QUEUE, admin.GetQueueRequest(queue=name), admin.GetQueueResponse)
        seen[f"{name} config"] = queue
        for channel in ("default", "audit"):
            peek = admin.PeekMessagesRequest(queue=name, channel=channel, max_messages=100)
            pending = engine.call(commands.PEEK_MESSAGES, peek, admin.PeekMessagesResponse).messages
            seen[f"{name}/{channel}"] = [(m.metadata.offset, m.payload, m.metadata.weight) for m in pending]
    return seen


def flush(engine: DrivenEngine) -> frozenset[Path]:
    """Write everything into tables, and tell which there are; the store is closed."""
    probe = StoreProbe(str(engine.directory))
    for each in range(FAMILY_COUNT):
        probe.flush(each)
    probe.close()
    return frozenset(engine.directory.rglob("*.sst"))


def stop_and_damage(engine: DrivenEngine, family: str, at: int, older: frozenset[Path] = frozenset()) -> None:
    """Close the store with everything in tables, and flip a bit in each that holds `family`; not in `older`."""
    engine.stop()
    tables = [path for path in flush(engine) - older if holds(path, family)]
    assert tables, family
    for path in tables:
        content = bytearray(path.read_bytes())
        content[at] ^= 4
        path.write_bytes(content)


def holds(table: Path, family: str) -> bool:
    """A table's properties say so: `...column.family.id=6`, then only what is different of the next name."""
    return b"name" + family.encode() in table.read_bytes()


@pytest.mark.parametrize("family", ["queues", "settled"])
@pytest.mark.parametrize("at", [20, -4], ids=["a damaged block", "a lost table"])
def test_a_queue_outlives_damage_to_either_of_its_records(engine: DrivenEngine, family: str, at: int) -> None:
    before = told(engine)
    stop_and_damage(engine, family, at)

    engine.reopen()
    after = told(engine)
    assert after["names"] == before["names"]
    assert (after["one config"], after["two config"]) == (before["one config"], before["two config"])
    if family == "queues":  # with SETTLED, acks are lost too, and come back
        assert after == before

    # The next start copies what can be read; the one after that knows nothing of damage any more.
    for _ in range(3):
        engine.kill()
        engine.reopen()
        assert told(engine) == after


@pytest.mark.parametrize("family", ["queues", "settled"])
@pytest.mark.parametrize("at", [20, -4], ids=["a damaged block", "a lost table"])
def test_an_older_record_that_comes_to_light_gives_no_offset_twice(family: str, at: int) -> None:
    engine = DrivenEngine()
    engine.create_queue("q")
    engine.kill()
    older = flush(engine)
    engine.reopen()
    given = [engine.enqueue("q")]
    engine.ack("q", engine.lease("q"))
    stop_and_damage(engine, family, at, older)

    for _ in range(3):
        engine.reopen()
        given.append(engine.enqueue("q"))
        engine.ack("q", engine.lease("q"))
        engine.kill()
    assert given == sorted(set(given))
    engine.remove()


def test_a_store_of_before_gets_its_second_records_at_its_first_start(engine: DrivenEngine) -> None:
    before = told(engine)
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    twice = [key for key, _ in probe.scan(SETTLED) if 8 <= len(key) < 24]  # shorter ones are META's
    assert len(twice) == 2 * (1 + 2) + 2 * (1 + 1)  # queues and their channels, and their DLQs'
    probe.write([(SETTLED, key, None) for key in twice])
    probe.close()
    engine.reopen()
    engine.run_pass()

    stop_and_damage(engine, "queues", 20)
    engine.reopen()

    assert told(engine) == before


def test_a_deleted_queue_and_a_channel_that_was_moved_leave_no_second_record(engine: DrivenEngine) -> None:
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="one"), admin.DeleteQueueResponse)
    seek = admin.SeekChannelRequest(queue="two", channel="audit", offset=3)
    engine.call(commands.SEEK_CHANNEL, seek, admin.SeekChannelResponse)
    before = [m.metadata.offset for m in engine.lease("two", channel="audit")]
    stop_and_damage(engine, "queues", 20)

    engine.reopen()

    listed = engine.call(commands.LIST_QUEUES, admin.ListQueuesRequest(), admin.ListQueuesResponse)
    assert sorted(queue.name for queue in listed.queues) == ["two", "two.dlq"]
    channels = engine.call(
        commands.LIST_CHANNELS, admin.ListChannelsRequest(queue="two"), admin.ListChannelsResponse
    )
    assert sorted(channel.name for channel in channels.channels) == ["audit", "default"]
    assert before[0] == 3
