"""What a look at the disk leaves behind: the level that passes go by, the ballast, and nothing that is not so."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused
from tests.store.test_disk_space import outsider

MIB = 1 << 20
SMALL_DISK_BYTES = 160 * MIB
FLOOR_BYTES = 64 * MIB
BALLAST_BYTES = 16 * MIB
LOOKS_A_SECOND = 10
RESOURCE_EXHAUSTED = 8


@pytest.fixture
def sound() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    driven.create_queue("q")
    yield driven
    driven.remove()


@pytest.fixture
def engine(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DrivenEngine]:
    monkeypatch.setattr("tests.core.driven_engine.fresh_directory", lambda: small_disk / "data")
    settings: dict[str, int | str] = {
        "storage.min_free_bytes": FLOOR_BYTES,
        "storage.ballast_bytes": BALLAST_BYTES,
    }
    driven = DrivenEngine(settings)
    driven.create_queue("q")
    yield driven
    driven.remove()


def look(engine: DrivenEngine, times: int = 1) -> None:
    for _ in range(times):
        assert engine.core.watch() is None


def ballast(engine: DrivenEngine) -> int:
    """The bytes of the disk that it takes."""
    path = engine.directory / "ballast"
    return path.stat().st_blocks * 512 if path.exists() else 0


def test_messages_are_refused_from_the_look_that_finds_too_little_to_the_look_that_finds_enough(
    engine: DrivenEngine, small_disk: Path
) -> None:
    engine.enqueue("q", b"before")
    taken = outsider(small_disk, FLOOR_BYTES - MIB)
    look(engine)
    with pytest.raises(Refused) as refused:
        engine.enqueue("q", b"refused")
    assert refused.value.code == RESOURCE_EXHAUSTED
    assert engine.ack("q", engine.lease("q")) == [0], "acks make room"

    taken.unlink()
    with pytest.raises(Refused):
        engine.enqueue("q", b"refused, too")
    look(engine)
    engine.enqueue("q", b"after")
    assert engine.payloads("q") == [b"after"]


def test_a_look_gives_the_ballast_up_and_where_that_is_not_enough_nothing_is_written(
    engine: DrivenEngine, small_disk: Path
) -> None:
    engine.enqueue("q")
    [leased] = engine.lease("q")
    assert ballast(engine) == BALLAST_BYTES
    taken = [outsider(small_disk, MIB)]
    look(engine)
    assert ballast(engine) == 0
    taken.append(outsider(small_disk, MIB))
    look(engine)
    written = {path: path.stat().st_size for path in engine.directory.rglob("*.log")}
    item = service.SettleItem(message_id=leased.id, lease_id=leased.metadata.lease_id)
    waiting = engine.submit(commands.ACK_BATCH, service.AckBatchRequest(queue="q", items=[item]))
    for _ in range(3):
        engine.advance(1000)
        engine.run_pass()
        engine.others += engine.core.drain()
        look(engine)
    with pytest.raises(LookupError):
        engine.answer_of(waiting)
    assert written == {path: path.stat().st_size for path in engine.directory.rglob("*.log")}

    for path in taken:
        path.unlink()
    look(engine)
    engine.others += engine.settle_down()
    assert engine.answer_of(waiting)[0] == 0


def test_the_ballast_comes_back_within_a_second_of_looks_once_there_is_room_for_twice_as_much(
    engine: DrivenEngine, small_disk: Path
) -> None:
    taken = outsider(small_disk, MIB)
    look(engine)
    taken.unlink()
    taken = outsider(small_disk, FLOOR_BYTES + 2 * BALLAST_BYTES - MIB)
    look(engine, 2 * LOOKS_A_SECOND)
    assert ballast(engine) == 0, "taking it would leave too little"

    taken.unlink()
    look(engine, LOOKS_A_SECOND)
    assert ballast(engine) == BALLAST_BYTES
    engine.enqueue("q")


@pytest.mark.parametrize("descriptors", ["there are some", "there are none"])
def test_a_look_at_what_is_in_order_finds_nothing_and_changes_nothing(
    sound: DrivenEngine, descriptors: str
) -> None:
    """Without descriptors a directory cannot be listed: that says nothing of what is in it."""
    sound.enqueue("q", b"stored")
    files = {path: path.stat().st_size for path in sound.directory.rglob("*") if path.is_file()}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == "there are none":
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        found = [sound.core.watch() for _ in range(2 * LOOKS_A_SECOND)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert set(found) == {None}
    assert files == {path: path.stat().st_size for path in sound.directory.rglob("*") if path.is_file()}
    sound.enqueue("q", b"goes on")
    assert sound.payloads("q") == [b"stored", b"goes on"]
