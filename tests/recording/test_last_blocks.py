"""What a core records as it closes is in files when the recorder has finished, on a machine that is busy, too."""

import os
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq

from fila_server.config.schema import History
from fila_server.core.history.tap import RecordedBlock, Recording
from fila_server.history_files import columns, signing, upkeep
from fila_server.history_files.recorder import Recorder
from tests.recording.recorded import RecordedEngine
from tests.waiting import until


def recorder_of(recording: Any, folder: Path, signer: signing.Signer | None = None) -> Recorder:
    return Recorder(recording, History(enabled=True, dir=str(folder)), signer=signer)


class ClosingCore:
    """A recording whose core closes just after the thread has found nothing in it."""

    def __init__(self, engine: RecordedEngine) -> None:
        self._engine = engine
        self._recording: Recording = engine.core.recording

    @property
    def closed(self) -> bool:
        return bool(self._recording.closed)

    def take(self, wait_ms: int) -> RecordedBlock | None:
        block = self._recording.take(wait_ms)
        if block is None and not self.closed:
            self._engine.remove()
        return block

    def cut(self) -> None:
        """Nothing is asked of a core that closes."""


def test_what_the_core_closes_with_is_written_though_it_comes_after_the_last_look(tmp_path: Path) -> None:
    engine = RecordedEngine()
    engine.create_queue("orders")
    offset = engine.enqueue("orders", b"x")
    recorder = recorder_of(ClosingCore(engine), tmp_path)

    recorder.start()
    until(lambda: recorder._recording.closed)
    assert recorder.finish(60)

    [file] = [entry["file"] for entry in upkeep.entries(tmp_path) if entry.get("table") == columns.DECISIONS]
    rows = pq.read_table(tmp_path / file).to_pylist()
    assert [row["offsets"] for row in rows if row["kind"] == "enqueued"] == [[offset]]


def test_once_the_core_is_closed_the_rest_is_written_at_the_priority_of_the_server(tmp_path: Path) -> None:
    """With the lowest one a busy machine would leave the last files open until there is no time left."""
    seen: list[int] = []

    class Noting(signing.Signer):
        def __init__(self) -> None:
            pass

        def signed(self, entry: Any) -> dict[str, Any]:
            seen.append(os.getpriority(os.PRIO_PROCESS, 0))
            return dict(entry)

    engine = RecordedEngine()
    engine.create_queue("orders")
    recorder = recorder_of(cast("Any", engine.core.recording), tmp_path, Noting())
    recorder.start()
    engine.remove()

    assert recorder.finish(60)
    assert set(seen) == {os.getpriority(os.PRIO_PROCESS, 0)}
