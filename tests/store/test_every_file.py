"""Each kind of file of a data directory, damaged in six ways: what was answered and is lost is counted and told.

One small directory is made, as `kill -9` leaves it, and copied for each case. The judge is what its client was
answered up to the last note of the log: all of it is there, or the core counts a loss, and a start that
shall stop at damage stops.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, fresh_directory

SETTINGS: dict[str, int | str] = {
    "storage.memtable_bytes": 256 * 1024,
    "storage.memtable_count": 64,
    "storage.wal_bytes_max": 16 << 20,
    "storage.hot_payload_bytes": 1,
    "storage.min_free_bytes": 0,
    "storage.ballast_bytes": 65_536,
}
PAYLOAD_BYTES = 3_000
FRAME_MESSAGES = 10


class Killed(NamedTuple):
    """A data directory as a killed broker left it, and what its client knows."""

    directory: Path
    earlier: Path
    """The same a while before."""
    noted: set[bytes]
    """Answered at or below the last note, and not acked."""
    later: set[bytes]
    """Answered behind it."""


def payload(number: int) -> bytes:
    return (b"%06d " % number) * (PAYLOAD_BYTES // 7)


def send(engine: DrivenEngine, first: int, end: int) -> set[bytes]:
    for at in range(first, end, FRAME_MESSAGES):
        messages = [service.EnqueueMessage(queue="q", payload=payload(at + i)) for i in range(FRAME_MESSAGES)]
        request = service.EnqueueBatchRequest(queue="q", messages=messages)
        engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)
    return {payload(number) for number in range(first, end)}


def note(engine: DrivenEngine) -> None:
    for _ in range(2):
        engine.core.upkeep()


def copied_while_open(engine: DrivenEngine, copy: Path) -> Path:
    """Each file as it is at some moment; RocksDB may be deleting one."""
    copy.mkdir()
    for path in engine.directory.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                shutil.copy(path, copy)
    return copy


@pytest.fixture(scope="module")
def killed() -> Iterator[Killed]:
    place = fresh_directory()
    engine = DrivenEngine(dict(SETTINGS))
    engine.create_queue("q")
    noted = send(engine, 0, 300)
    leased = engine.lease("q", 95)  # of the last frame some, so that a record says which
    engine.ack("q", leased)
    noted -= {message.payload for message in leased}
    note(engine)
    engine.stop()
    engine.reopen()  # what the log held is in tables now
    noted |= send(engine, 300, 600)
    note(engine)
    earlier = copied_while_open(engine, place / "earlier")
    noted |= send(engine, 600, 1000)
    note(engine)
    last_note = (engine.directory / "rocksdb" / "synced").read_bytes()
    later = send(engine, 1000, 1020)
    engine.kill()
    # As a kill leaves it that comes before the next round.
    (engine.directory / "rocksdb" / "synced").write_bytes(last_note)
    assert len(list(engine.directory.glob("rocksdb/*.log"))) >= 4
    yield Killed(engine.directory, earlier, noted, later)
    shutil.rmtree(engine.directory)
    shutil.rmtree(place)


def _zeroed(path: Path, _: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _one_bit(path: Path, _: Path) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 4
    path.write_bytes(content)


def _older(path: Path, earlier: Path) -> None:
    """What the file was a while before; where it was the same, or was not, the file of its kind that came before it."""
    before = earlier / path.name
    if not before.exists() or before.read_bytes() == path.read_bytes():
        same_kind = sorted(
            path.parent.glob("*" + path.suffix if path.suffix else path.name.split("-")[0] + "*")
        )
        before = same_kind[same_kind.index(path) - 1]
    path.write_bytes(before.read_bytes())


DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "deleted": lambda path, _: path.unlink(),
    "cut": lambda path, _: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeroed": _zeroed,
    "one-bit": _one_bit,
    "doubled": lambda path, _: path.write_bytes(path.read_bytes() * 2),
    "older": _older,
}
KINDS = {
    "log": "rocksdb/*.log",
    "table": "rocksdb/*.sst",
    "payloads": "rocksdb/*.blob",
    "contents": "rocksdb/MANIFEST-*",
    "current": "rocksdb/CURRENT",
    "mirror": "rocksdb/mirror",
    "note": "rocksdb/synced",
    "format": "format",
}
HARMLESS = ("rocksdb/OPTIONS-*", "rocksdb/IDENTITY", "rocksdb/LOCK", "rocksdb/LOG*", "fila.lock", "ballast")
"""Nothing is read from them."""
FILES_MAX = 4


def files_of(killed: Killed, pattern: str) -> list[Path]:
    """The first and the last of a kind, and some between them."""
    files = sorted(killed.directory.glob(pattern))
    assert files, pattern
    step = max(1, (len(files) - 1) // (FILES_MAX - 1))
    return sorted({*files[::step], files[-1]})


def held_of(engine: DrivenEngine) -> set[bytes]:
    held: set[bytes] = set()
    while True:
        token = engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=100))
        engine.others += engine.settle_down()
        status, answer = engine.answer_of(token)
        got = set() if status else {m.payload for m in service.LeaseResponse.FromString(answer).messages}
        if not got:
            return held
        held |= got


class Found(NamedTuple):
    """What is there after a start."""

    lost: int
    back: int
    is_counted: bool
    report: dict[str, int]


def start(killed: Killed, directory: Path, on_damage: str) -> Found | None:
    """None when it stops for damage."""
    try:
        engine = DrivenEngine({**SETTINGS, "storage.on_damage": on_damage}, directory=directory)
    except errors.StoreDamaged:
        return None
    report = {name: count for name, count in engine.core.open_report().items() if count}
    held = held_of(engine)
    counters = engine.core.counters()
    engine.core.close()
    return Found(
        len(killed.noted - held),
        len(held - killed.noted - killed.later),
        counters["lost_ranges"] != 0 or counters["lost_messages"] != 0,
        report,
    )


def starts(killed: Killed, place: Path, file: Path, damage: str) -> tuple[Found | None, Found]:
    """With `stop`, and with `start`, each on a copy of its own."""
    found: list[Found | None] = []
    for on_damage in ("stop", "start"):
        copy = place / on_damage
        shutil.copytree(killed.directory, copy)
        DAMAGE[damage](copy / file.relative_to(killed.directory), killed.earlier)
        found.append(start(killed, copy, on_damage))
        shutil.rmtree(copy)
    stopping, going_on = found
    assert going_on is not None
    return stopping, going_on


@pytest.fixture
def place() -> Iterator[Path]:
    made = fresh_directory()
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_answered_and_is_lost_is_counted_and_a_start_that_shall_stop_for_it_stops(
    killed: Killed, place: Path, kind: str, damage: str
) -> None:
    for file in files_of(killed, KINDS[kind]):
        stopping, going_on = starts(killed, place, file, damage)

        assert stopping is None or (stopping.lost, stopping.back) == (0, 0), (file.name, stopping)
        assert going_on.is_counted or not going_on.lost, (file.name, going_on)
        assert going_on.report or not going_on.back, (file.name, going_on)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("pattern", HARMLESS)
def test_what_nothing_is_read_from_may_be_damaged(
    killed: Killed, place: Path, pattern: str, damage: str
) -> None:
    found = starts(killed, place, files_of(killed, pattern)[0], damage)

    assert found == (Found(0, 0, False, {}),) * 2


@pytest.mark.parametrize("damage", ["deleted", "zeroed"])
def test_a_note_of_the_log_that_is_gone_is_damage(killed: Killed, place: Path, damage: str) -> None:
    (note,) = files_of(killed, KINDS["note"])

    assert starts(killed, place, note, damage) == (None, Found(0, 0, False, {"notes_missing": 1}))


@pytest.mark.parametrize("damage", ["deleted", "cut", "zeroed", "older"])
def test_a_log_in_the_middle_is_told_with_what_it_held(killed: Killed, place: Path, damage: str) -> None:
    file = sorted(killed.directory.glob("rocksdb/*.log"))[2]

    stopping, going_on = starts(killed, place, file, damage)

    assert stopping is None
    assert going_on.lost > 0
    assert going_on.report["records_lost"] >= going_on.lost // FRAME_MESSAGES
    assert going_on.report.get("logs_missing", 0) == (damage == "deleted")
    assert going_on.report["noted_ms"] > 0


@pytest.mark.parametrize("damage", ["deleted", "cut", "zeroed", "one-bit", "doubled"])
def test_the_log_that_is_damaged_is_the_one_that_is_named(killed: Killed, place: Path, damage: str) -> None:
    *files, _ = sorted(killed.directory.glob("rocksdb/*.log"))
    for file in files:
        copy = place / file.name
        shutil.copytree(killed.directory, copy)
        DAMAGE[damage](copy / file.relative_to(killed.directory), killed.earlier)

        with pytest.raises(errors.StoreDamaged, match=f"the write-ahead log {file.name} is"):
            DrivenEngine({**SETTINGS, "storage.on_damage": "stop"}, directory=copy)


@pytest.mark.parametrize("damage", ["deleted", "cut", "older", "doubled", "zeroed", "one-bit"])
@pytest.mark.parametrize("kind", ["contents", "current"])
def test_the_table_of_contents_comes_back_from_its_mirror(
    killed: Killed, place: Path, kind: str, damage: str
) -> None:
    (file,) = files_of(killed, KINDS[kind])

    stopping, going_on = starts(killed, place, file, damage)

    assert going_on.lost == 0
    assert stopping is None or not going_on.report, "what is put right is damage"


@pytest.mark.parametrize("damage", ["deleted", "one-bit"])
def test_an_ack_lost_in_a_table_is_told_as_that_and_not_as_lost_messages(
    killed: Killed, place: Path, damage: str
) -> None:
    found = [starts(killed, place, file, damage) for file in sorted(killed.directory.glob(KINDS["table"]))]
    acks = [each for each in found if each[1].report.get("lost_acks")]

    assert max(going_on.back for _, going_on in acks) == 5, "of the frame that was acked in part"
    for stopping, going_on in acks:
        assert stopping is None, "an answered change is gone"
        assert (going_on.lost, going_on.is_counted) == (0, False)
    assert all(going_on.is_counted for _, going_on in found if going_on.lost)
