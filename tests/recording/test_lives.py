"""What the history's files say of one message: its deliveries and failures, and never less than they have without a
word of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest

from fila.v1 import admin_pb2 as pb
from fila_server.config.schema import History
from fila_server.history_files import lives
from fila_server.history_files.columns import DECISIONS
from fila_server.history_files.files import RunFiles
from fila_server.operations.past import IS_OFF, NOTHING, Past
from tests.recording.recorded import RecordedEngine

QUIET_MS = 5


@pytest.fixture
def engine() -> Iterator[RecordedEngine]:
    made = RecordedEngine()
    made.create_queue("orders", fairness_key_header="tenant", max_attempts=2)
    made.create_queue("mail", fairness_key_header="tenant")
    yield made
    made.remove()


class Files:
    """Writes what an engine recorded so far as closed files."""

    def __init__(self, engine: RecordedEngine, directory: Path) -> None:
        self._engine = engine
        self._written = 0
        self._files = RunFiles(directory, "20260302T090000-abc", 1)

    def close(self) -> None:
        self._engine.take()
        for rows in self._engine.kept.get(DECISIONS, [])[self._written :]:
            bounds = pc.min_max(rows.column("at")).as_py()
            first, last = (int(bounds[name].timestamp() * 1000) for name in ("min", "max"))
            self._files.write({DECISIONS: rows}, first, last)
        self._written = len(self._engine.kept.get(DECISIONS, []))
        self._files.close()


@pytest.fixture
def files(engine: RecordedEngine, tmp_path: Path) -> Files:
    return Files(engine, tmp_path)


def life(
    engine: RecordedEngine, directory: Path, offset: int, *, since_ms: int = 0, to_its_end: bool = True
) -> lives.Life:
    since = datetime.fromtimestamp((since_ms or engine.wall_ms - 3_600_000) / 1000, UTC)
    return lives.life_of(directory, "orders", "default", offset, since, to_its_end=to_its_end)


def enqueue(engine: RecordedEngine, key: str = "acme", queue: str = "orders") -> int:
    return engine.enqueue(queue, headers={"tenant": key})


def fail_then_ack(engine: RecordedEngine) -> None:
    engine.advance(250)
    leased = engine.lease("orders")
    engine.advance(40)
    engine.nack("orders", leased)
    engine.sleep(60_000)
    leased = engine.lease("orders")
    engine.advance(QUIET_MS)
    engine.ack("orders", leased)


def test_a_life_has_each_delivery_with_its_wait_and_each_failure_with_its_error(
    engine: RecordedEngine, files: Files, tmp_path: Path
):
    enqueue(engine, queue="mail")
    offsets = [enqueue(engine) for _ in range(3)]
    fail_then_ack(engine)
    files.close()

    found = life(engine, tmp_path, offsets[1])
    kinds = [event.kind for event in found.events if event.kind != "delayed"]
    assert kinds == ["enqueued", "delivered", "nacked", "delivered", "acked"]
    delivered, nacked = (event for event in found.events[1:3])
    assert (delivered.waited_ms, nacked.held_ms, nacked.reason) == (250, 40, "no")
    assert (found.events[-1].held_ms, found.events[-1].attempts) == (QUIET_MS, 1)
    assert {event.fairness_key for event in found.events} == {"acme"}
    assert found.until == found.events[-1].at


def test_what_is_in_no_closed_file_yet_is_missing_and_until_when_is_said(
    engine: RecordedEngine, files: Files, tmp_path: Path
):
    offset = enqueue(engine)
    files.close()
    fail_then_ack(engine)

    assert [event.kind for event in life(engine, tmp_path, offset).events] == ["enqueued"]
    files.close()
    assert life(engine, tmp_path, offset).events[-1].kind == "acked"


def test_reading_ends_with_the_messages_end_and_begins_with_its_arrival(
    engine: RecordedEngine, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    offset = enqueue(engine)
    engine.ack("orders", engine.lease("orders"))
    files.close()
    ended_ms = engine.wall_ms
    for _ in range(3):
        engine.sleep(3_600_000)
        enqueue(engine)
        files.close()

    found = life(engine, tmp_path, offset, since_ms=ended_ms - 60_000)
    assert (found.events[-1].kind, found.is_cut) == ("acked", False)
    assert found.until is not None
    assert found.until.timestamp() * 1000 <= ended_ms
    later = life(engine, tmp_path, offset, since_ms=ended_ms + 1_000)
    assert later.events == []
    monkeypatch.setattr(lives, "READ_BYTES_MAX", 100)
    assert life(engine, tmp_path, offset, since_ms=ended_ms - 60_000).is_cut


def test_a_file_that_was_merged_tells_nothing_twice(engine: RecordedEngine, files: Files, tmp_path: Path):
    offset = enqueue(engine)
    files.close()
    [path] = tmp_path.glob("decisions/date=*/hour=*/*.parquet")
    path.with_name("merged.parquet").write_bytes(path.read_bytes())
    path.with_name("_half.parquet").write_bytes(b"not written to its end")

    assert [event.kind for event in life(engine, tmp_path, offset).events] == ["enqueued"]


# --- what the broker answers --------------------------------------------------------------------


def id_of(ms: int) -> str:
    text = f"{ms:012x}7000b000000000000000"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


async def told(
    directory: Path,
    ms: int,
    *,
    tenant: str = "",
    quotes: bool = True,
    enabled: bool = True,
    named: int = 0,
    **now: int,
) -> pb.MessagePast:
    request = pb.GetMessageRequest(queue="orders", message_id=id_of(ms), offset=named)
    here = pb.GetMessageResponse(**({"state": pb.GetMessageResponse.STATE_NOT_KNOWN} | now))  # type: ignore[arg-type]
    past = Past(History(enabled=enabled, dir=str(directory)))
    return await past.of(request, here, tenant, quotes=quotes)


async def test_without_a_history_it_says_so(tmp_path: Path):
    assert await told(tmp_path, 1, enabled=False) == pb.MessagePast(missing=IS_OFF)


async def test_a_message_that_is_done_is_found_by_the_moment_of_its_id(
    engine: RecordedEngine, files: Files, tmp_path: Path
):
    enqueue(engine)
    engine.advance(7)
    came_ms = engine.wall_ms
    offset = enqueue(engine)
    engine.advance(2_000)
    enqueue(engine)
    fail_then_ack(engine)
    files.close()

    past = await told(tmp_path, came_ms)
    assert (past.offset, past.missing, past.events[-1].kind) == (offset, "", "acked")
    assert [event.reason for event in past.events if event.kind == "nacked"] == ["no"]
    unquoted = await told(tmp_path, came_ms, quotes=False)
    assert [event.reason for event in unquoted.events if event.kind == "nacked"] == [""]
    assert (await told(tmp_path, came_ms + 2_001)).missing.startswith(f"{NOTHING} up to 20")


async def test_of_several_that_came_at_its_time_none_is_told_as_another(
    engine: RecordedEngine, files: Files, tmp_path: Path
):
    for _ in range(3):
        enqueue(engine)
    files.close()

    past = await told(tmp_path, engine.wall_ms)
    assert past.missing.startswith("3 messages came at about the time of its id")
    assert past.missing.endswith("one from 1 to 3")
    assert (await told(tmp_path, engine.wall_ms, named=3)).offset == 3
    assert (await told(tmp_path, engine.wall_ms, named=4)).missing.startswith(NOTHING), (
        "no other than of its time"
    )
    held = await told(tmp_path, engine.wall_ms, state=pb.GetMessageResponse.STATE_WAITING, offset=2)
    assert [(event.kind, held.offset) for event in held.events] == [("enqueued", 2)]


async def test_a_tenant_is_told_of_its_own_alone_and_not_who_had_it(
    engine: RecordedEngine, files: Files, tmp_path: Path
):
    came_ms = engine.wall_ms
    enqueue(engine)
    engine.advance(1)
    fail_then_ack(engine)
    files.close()

    own = await told(tmp_path, came_ms, tenant="acme")
    assert own.events[-1].kind == "acked"
    assert {(event.consumer_id, own.offset) for event in own.events} == {(0, 0)}
    assert await told(tmp_path, came_ms, tenant="globex") == pb.MessagePast(missing=NOTHING)


async def test_what_came_before_there_were_files_or_after_them_is_said(tmp_path: Path):
    assert (await told(tmp_path, 1_700_000_000_000)).missing == f"{NOTHING}, as no closed file is of its time"


@pytest.mark.parametrize("days", [0, 40])
def test_a_folder_of_an_hour_is_opened_only_from_the_arrival_on(tmp_path: Path, days: int):
    hour = datetime(2026, 3, 2, 9, tzinfo=UTC)
    folder = tmp_path / "decisions/date=2026-03-02/hour=09"
    folder.mkdir(parents=True)
    (folder / "broken.parquet").write_bytes(b"no parquet")

    since = hour + timedelta(days=days)
    if days:
        assert lives.life_of(tmp_path, "q", "default", 1, since, to_its_end=True) == lives.Life([], None)
    else:
        with pytest.raises(ValueError, match=r"(?i)parquet"):
            lives.life_of(tmp_path, "q", "default", 1, since, to_its_end=True)
