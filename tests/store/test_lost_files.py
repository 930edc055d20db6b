"""A file of the data directory that is gone: the start succeeds or says what to do, and what is lost is told."""

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.protocol import commands
from fila_server.core.structures.checksum import extend
from tests.core.driven_engine import DrivenEngine
from tests.native.storeprobe import StoreProbe, StoreRefused
from tests.store.test_damage import (
    FAMILY_COUNT,
    FRAMES,
    INDEX,
    QUEUES,
    SETTLED,
    directory,
    fill,
    lost,
    numbers,
    sound,
)

__all__ = ["directory", "sound"]

LARGE = b"x" * 20_000


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine({"storage.hot_payload_bytes": 1})
    yield engine
    engine.remove()


def flush(engine: DrivenEngine, family: int) -> None:
    """Close the store; what this family has in memory goes to a table, and its payloads to a file of their own."""
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    probe.flush(family)
    probe.close()


def test_a_payload_file_that_is_gone_is_told_and_the_queue_goes_on_behind_it(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    for _ in range(3):
        engine.enqueue("q", LARGE)
    flush(engine, FRAMES)
    for path in engine.directory.rglob("*.blob"):
        path.unlink()
    engine.reopen()
    engine.enqueue("q", b"behind")

    token = engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=10, wait_ms=1000))
    engine.others += engine.settle_down()
    engine.sleep(1000)

    answered = service.LeaseResponse.FromString(engine.answer_of(token)[1]).messages
    assert [message.payload for message in answered] + engine.payloads("q") == [b"behind"]
    told = [payload for _, kind, _, payload in engine.others if kind == commands.LOST]
    assert len(told) == 3
    assert engine.core.counters()["lost_messages"] == 3


def test_a_start_that_shall_stop_stops_for_a_payload_file_that_is_gone(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q", LARGE)
    flush(engine, FRAMES)
    (payloads,) = engine.directory.rglob("*.blob")
    content = payloads.read_bytes()
    payloads.unlink()
    engine.settings["storage.on_damage"] = "stop"

    with pytest.raises(
        errors.StoreDamaged, match=r"a file of payloads \(rocksdb/\*\.blob\).*is missing or damaged"
    ):
        engine.reopen()

    payloads.write_bytes(content)
    engine.reopen()
    assert engine.payloads("q") == [LARGE]


@pytest.mark.parametrize("wait_ms", [0, 1000])
def test_a_pull_that_meets_only_damage_takes_what_can_be_read_behind_it(
    engine: DrivenEngine, wait_ms: int
) -> None:
    engine.create_queue("q")
    for _ in range(300):
        engine.enqueue("q", LARGE)
    flush(engine, FRAMES)
    for path in engine.directory.rglob("*.blob"):
        path.unlink()
    engine.reopen()
    engine.enqueue("q", b"behind")

    # One answer holds 4 MiB: about 200 of the lost ones, none of which can be delivered.
    assert [message.payload for message in engine.lease("q", 1000, wait_ms=wait_ms)] == [b"behind"]
    assert engine.core.counters()["lost_messages"] == 300


def test_a_pull_that_meets_only_damage_waits_as_long_as_it_was_asked_to(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q", LARGE)
    flush(engine, FRAMES)
    for path in engine.directory.rglob("*.blob"):
        path.unlink()
    engine.reopen()

    pull = service.LeaseRequest(queue="q", max_messages=10, wait_ms=1000)
    waiting = [engine.submit(commands.LEASE, pull) for _ in range(2)]
    engine.others += engine.settle_down()
    engine.sleep(900)
    engine.enqueue("q", b"came later")
    engine.sleep(200)

    answers = [service.LeaseResponse.FromString(engine.answer_of(token)[1]).messages for token in waiting]
    assert [[message.payload for message in each] for each in answers] == [[b"came later"], []]


def test_a_pull_whose_wait_is_over_while_its_messages_are_read_is_answered_when_they_prove_lost(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q")
    engine.enqueue("q", LARGE)
    flush(engine, FRAMES)
    for path in engine.directory.rglob("*.blob"):
        path.unlink()
    engine.reopen()
    pull = service.LeaseRequest(queue="q", max_messages=10, wait_ms=60_000)
    waiting = engine.submit(commands.LEASE, pull)
    engine.run_pass()
    engine.submit(commands.CANCEL, b"over", token=waiting)
    engine.run_pass()
    with pytest.raises(LookupError):
        engine.answer_of(waiting)

    engine.others += engine.settle_down()

    assert engine.answer_of(waiting) == (0, b"")
    assert engine.core.counters()["lost_messages"] == 1


def test_a_missing_table_of_contents_is_put_right_from_its_copy(directory: Path) -> None:
    for path in (directory / "rocksdb").glob("MANIFEST-*"):
        path.unlink()

    store = StoreProbe(str(directory))

    assert set(lost(store).values()) == {0}
    store.close()


def test_a_missing_table_of_contents_without_its_copy_ends_a_start_that_may_stop_with_advice_that_helps(
    directory: Path,
) -> None:
    for pattern in ("MANIFEST-*", "mirror"):
        for path in (directory / "rocksdb").glob(pattern):
            path.unlink()
    with pytest.raises(StoreRefused, match=r'start with storage\.on_damage = "start"'):
        StoreProbe(str(directory), stop_on_damage=True)

    store = StoreProbe(str(directory))

    assert lost(store)[INDEX] == 0
    store.close()


@pytest.mark.parametrize("content", [b"", b"99\n", b"abc", b"fila x\n", b"fila\n"])
def test_a_format_file_that_cannot_be_read_is_told(engine: DrivenEngine, content: bytes) -> None:
    engine.create_queue("q")
    engine.stop()
    (engine.directory / "format").write_bytes(content)
    engine.settings["storage.on_damage"] = "stop"
    with pytest.raises(errors.StoreDamaged, match=r"format"):
        engine.reopen()
    assert (engine.directory / "format").read_bytes() == content
    engine.settings["storage.on_damage"] = "start"

    engine.reopen()

    assert engine.core.open_report()["format_rewritten"] == 1
    assert (engine.directory / "format").read_bytes() == b"fila 2\n"


def test_a_format_that_is_nowhere_to_be_read_is_refused(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    probe.write([(0, b"format", None)])
    probe.close()
    (engine.directory / "format").write_bytes(b"?")

    with pytest.raises(errors.StoreDamaged, match=r"format.*fila 1"):
        engine.reopen()

    (engine.directory / "format").write_bytes(b"fila 1\n")
    engine.reopen()


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


ROUTING = b"\x00\x07default\x01\xe8\x07\x00"
"""A new one: key, weight 1, a cost of a thousand thousandths, no throttle keys. Its message's place follows."""
FORGERIES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "a place outside of the frame": lambda head, rest: head + ROUTING + b"\x7f" + rest[1:],
    "a length outside of the frame": lambda head, rest: head + ROUTING + rest[:1] + b"\x7f" + rest[2:],
    "a length that goes around": lambda head, rest: head + ROUTING + b"\x01" + varint(2**64 - 1) + rest[2:],
    "a routing that nobody brought": lambda head, rest: head + b"\x01" + rest,
    "a weight of 0": lambda head, rest: head + ROUTING[:9] + b"\x00" + ROUTING[10:] + rest,
    "a weight above 1000": lambda head, rest: head + ROUTING[:9] + varint(1001) + ROUTING[10:] + rest,
    "a weight that goes around": lambda head, rest: (
        head + ROUTING[:9] + varint(2**32 + 1) + ROUTING[10:] + rest
    ),
    "a cost of 0": lambda head, rest: head + ROUTING[:10] + b"\x00\x00" + rest,
    "a cost above a million": lambda head, rest: head + ROUTING[:10] + varint(10**9 + 1) + b"\x00" + rest,
    "a cost that goes around": lambda head, rest: head + ROUTING[:10] + varint(2**32 + 1) + b"\x00" + rest,
    "throttle keys behind the end of the record": lambda head, rest: head + ROUTING[:12] + b"\x7f" + rest,
    "half a throttle key": lambda head, rest: head + ROUTING[:12] + b"\x03\x00\x00\x00" + rest,
    "a throttle key behind their end": lambda head, rest: (
        head + ROUTING[:12] + b"\x04\xff\xff\xff\xff" + rest
    ),
    "no message": lambda head, rest: head[:2] + b"\x00" + head[3:] + ROUTING + rest,
    "a message too many": lambda head, rest: head[:2] + b"\x02" + head[3:] + ROUTING + rest,
    "a billion messages": lambda head, rest: head[:2] + varint(10**9) + head[3:] + ROUTING + rest,
    "a byte too many": lambda head, rest: head + ROUTING + rest + b"\x00",
    "a byte too few": lambda head, rest: head + ROUTING + rest[:-1],
    "a version of later": lambda head, rest: b"\x63" + head[1:] + ROUTING + rest,
}


def test_an_index_record_that_points_outside_of_its_frame_is_lost_and_counted(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"first")
    engine.enqueue("q", b"second")
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    key, record = next(iter(probe.scan(INDEX)))
    head, routing, rest = record.partition(ROUTING)
    assert (routing, struct.unpack(">QQ", key)[1]) == (ROUTING, 1)
    probe.write([(INDEX, key, head + routing + varint(2**64 - 1) + rest[1:])])
    probe.close()

    engine.reopen()

    assert engine.core.open_report()["lost_ranges"] == 1
    assert engine.payloads("q") == [b"second"]


def test_index_records_that_say_what_cannot_be_are_lost_and_counted_and_others_are_served(
    engine: DrivenEngine,
) -> None:
    queues = {what: what.replace(" ", "-") for what in FORGERIES}
    for queue in queues.values():
        engine.create_queue(queue)
        engine.enqueue(queue, b"first")
        engine.enqueue(queue, b"second")
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    firsts = [(key, record) for key, record in probe.scan(INDEX) if struct.unpack(">QQ", key)[1] == 1]
    for (key, record), forged in zip(firsts, FORGERIES.values(), strict=True):
        head, routing, rest = record.partition(ROUTING)
        assert routing == ROUTING
        probe.write([(INDEX, key, forged(head, rest))])
    probe.close()

    engine.reopen()

    served = {what: engine.payloads(queue) for what, queue in queues.items()}
    assert {what: payloads for what, payloads in served.items() if payloads != [b"second"]} == {}
    assert engine.core.open_report()["lost_ranges"] == len(FORGERIES)


@pytest.mark.parametrize("done_since", [b"x", LARGE], ids=["a-byte", "a-message"])
def test_an_older_version_of_a_frame_that_comes_to_light_is_never_cut_up(
    engine: DrivenEngine, done_since: bytes
) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"first")
    engine.enqueue("q", b"second")
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    [(key, body), _] = probe.scan(FRAMES)
    probe.write([(FRAMES, key, done_since + body)])  # as it was before it was written anew
    probe.close()
    engine.reopen()

    with pytest.raises(errors.LogDamaged):
        engine.core.log_reader(admin.ReadLogRequest(queue="q").SerializeToString()).read()
    assert engine.payloads("q") == [b"second"]
    assert engine.core.counters()["lost_messages"] == 1


@pytest.fixture
def three_of_twelve_done(engine: DrivenEngine) -> tuple[bytes, bytes]:
    """The record that says so of a frame, in a store that is closed."""
    engine.create_queue("q")
    messages = [service.EnqueueMessage(queue="q", payload=b"%d" % number) for number in range(12)]
    batch = service.EnqueueBatchRequest(queue="q", messages=messages)
    engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)
    engine.ack("q", engine.lease("q", 3))
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    [(key, done)] = [row for row in probe.scan(SETTLED) if len(row[0]) == 24]
    probe.close()
    assert done == b"\x02\x07\x00" + (12).to_bytes(4)
    return key, done


def reopen_with(engine: DrivenEngine, key: bytes, done: bytes) -> None:
    probe = StoreProbe(str(engine.directory))
    probe.write([(SETTLED, key, done)])
    probe.close()
    engine.reopen()


@pytest.mark.parametrize("count", [9, 20], ids=["newer", "older"])
def test_what_was_done_of_another_version_of_a_frame_is_not_believed(
    engine: DrivenEngine, three_of_twelve_done: tuple[bytes, bytes], count: int
) -> None:
    key, _ = three_of_twelve_done
    reopen_with(engine, key, b"\x02\x38\x00" + count.to_bytes(4))

    assert engine.core.open_report()["lost_acks"] == 1
    # What was acked comes again, and nothing is lost.
    assert engine.payloads("q") == [b"%d" % number for number in range(12)]


def test_what_was_done_is_believed_of_a_record_that_does_not_say_of_how_many(
    engine: DrivenEngine, three_of_twelve_done: tuple[bytes, bytes]
) -> None:
    key, done = three_of_twelve_done
    reopen_with(engine, key, b"\x01" + done[1:-4])

    assert engine.core.open_report()["lost_acks"] == 0
    assert engine.payloads("q") == [b"%d" % number for number in range(3, 12)]


def test_a_log_that_was_deleted_is_told_with_what_it_held(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    for _ in range(50):
        engine.enqueue("q")
    for _ in range(2):
        engine.core.upkeep()
    engine.kill()
    for path in engine.directory.rglob("*.log"):
        path.unlink()

    engine.reopen()

    report = engine.core.open_report()
    assert report["records_lost"] >= 100, report
    assert report["logs_missing"] == 1


def test_the_first_of_two_logs_that_was_deleted_is_told_with_what_it_held(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    fill(store, 0, 20)
    store.sync()
    store.flush(QUEUES)  # begins a new log, while the older one is still needed
    fill(store, 20, 30)
    store.sync()
    for _ in range(2):
        store.upkeep_round()
    store.close()
    older, newer = sorted(path for path in tmp_path.rglob("*.log") if path.stat().st_size)
    older.unlink()
    with pytest.raises(
        StoreRefused, match=rf"{older.name} is missing: \d+ records cannot be read.*on_damage"
    ):
        StoreProbe(str(tmp_path), stop_on_damage=True)
    assert newer.exists()

    store = StoreProbe(str(tmp_path))

    assert store.wal["logs_missing"] == 1
    assert 3 * 20 <= store.wal["records_lost"] <= 3 * 20 + 1  # the format's record, too
    assert numbers(store, FRAMES) == list(range(20, 30))
    store.close()


def test_a_log_that_went_because_its_records_are_in_tables_is_no_damage(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    fill(store, 0, 20)
    store.sync()
    for _ in range(2):
        store.upkeep_round()
    note = tmp_path / "rocksdb" / "synced"
    before = note.read_bytes()
    for family in range(FAMILY_COUNT):
        store.flush(family)
    fill(store, 20, 30)
    store.close()
    note.write_bytes(before)  # as a kill leaves it that comes before the next round

    store = StoreProbe(str(tmp_path), stop_on_damage=True)

    assert (store.wal["logs_missing"], store.wal["records_lost"]) == (0, 0)
    assert numbers(store, FRAMES) == list(range(30))
    store.close()


def test_a_synced_end_of_the_log_that_is_cut_off_is_damage(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    fill(store, 0, 20)
    store.sync()
    for _ in range(2):
        store.upkeep_round()
    store.close()
    (log,) = (path for path in tmp_path.rglob("*.log") if path.stat().st_size)
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - 100)

    store = StoreProbe(str(tmp_path))

    assert (store.wal["damaged_regions"], store.wal["records_lost"]) == (1, 3)
    assert store.wal["first_damaged_file"] == log.name
    assert numbers(store, FRAMES) == list(range(19))
    store.close()


@pytest.mark.parametrize("note", [b"", b"synced", b"synced 99999 log 9 first 1 sum 0"])
def test_a_note_of_the_log_that_cannot_be_read_is_damage_and_no_loss(
    engine: DrivenEngine, note: bytes
) -> None:
    engine.create_queue("q")
    engine.kill()
    (engine.directory / "rocksdb" / "synced").write_bytes(note)

    engine.reopen()

    assert {name for name, count in engine.core.open_report().items() if count} == {"notes_missing"}


def test_a_note_of_one_log_alone_as_older_servers_wrote_it_is_believed(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    fill(store, 0, 20)
    store.close()
    (log,) = (path for path in tmp_path.rglob("*.log") if path.stat().st_size)
    text = b"synced 61 log %d first 1 manifest MANIFEST-000005 2345" % int(log.stem)
    note = text + b" sum %08x\n" % extend(0, text)
    (tmp_path / "rocksdb" / "synced").write_bytes(note.ljust(256, b"\0"))
    log.unlink()

    store = StoreProbe(str(tmp_path))

    assert (store.wal["logs_missing"], store.wal["records_lost"]) == (1, 61)
    assert store.wal["notes_missing"] == 0
    store.close()


@pytest.mark.parametrize("what", ["rocksdb", "fila.lock", "rocksdb/CURRENT", "rocksdb/*.log", ""])
def test_a_directory_or_log_that_is_removed_under_a_running_server_is_noticed(
    engine: DrivenEngine, what: str
) -> None:
    engine.create_queue("q")
    assert engine.core.watch() is None

    for path in list(engine.directory.glob(what) if what else [engine.directory]):
        path.rename(engine.directory.with_name(engine.directory.name + "-away-" + path.name))

    why = engine.core.watch()
    assert why is not None
    assert "was removed" in why
    assert str(engine.directory) in why
    for path in engine.directory.parent.glob(engine.directory.name + "-away-*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_a_newer_log_in_the_place_of_an_older_one_is_no_loss(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    log = max(engine.directory.glob("rocksdb/*.log"))
    log.with_name(f"{int(log.stem) + 10:06}.log").touch()
    assert engine.core.watch() is None
    log.unlink()
    assert engine.core.watch() is None
