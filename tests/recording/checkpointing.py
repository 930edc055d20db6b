"""Checkpoints in processes of their own: a core can be put into the arena once a process, and begins there once.

What takes one up is forked (tests/forked_python), so that its libraries lie elsewhere in memory than those of the new
process that made it.

Also the program of such a process: `python -m tests.recording.checkpointing JSON`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fila_server.core.replay.replay import NotReplayable
from fila_server.history_files import checkpoints, columns
from tests import forked_python

ROOT = Path(__file__).resolve().parents[2]
RUN = "20260302T090000-abcdef"


class Pieces:
    """A recording in pieces, as files are."""

    def __init__(self, folder: Path, tables: Sequence[dict[str, pa.Table]]) -> None:
        self.folder = folder
        self.count = len(tables)
        for number, piece in enumerate(tables):
            for name in (columns.INPUTS, columns.DECISIONS):
                rows = piece.get(name, columns.SCHEMAS[name].empty_table())
                pq.write_table(rows, self.file(name, number))

    def file(self, name: str, number: int) -> Path:
        return self.folder / f"{name}-{number:03d}.parquet"

    def tables(self) -> list[dict[str, pa.Table]]:
        """The pieces, to be altered."""
        names = (columns.INPUTS, columns.DECISIONS)
        return [
            {name: pq.read_table(self.file(name, number)) for name in names} for number in range(self.count)
        ]

    def make(self, path: Path, through: int, start: Path | None = None, behind: int = -1) -> dict[str, Any]:
        """A checkpoint of the pieces up to `through`, from the base or from `start`, which is of those to `behind`."""
        return self._run("make", path, range(behind + 1, through + 1), start=str(start) if start else None)

    def verify(self, path: Path, behind: int, run: str = RUN) -> dict[str, Any]:
        """What comes behind the piece `behind`, from its checkpoint on."""
        return self._run("verify", path, range(behind + 1, self.count), run=run)

    def _run(self, what: str, path: Path, numbers: range, **more: Any) -> dict[str, Any]:
        wanted = {"what": what, "path": str(path), "run": RUN, **more}
        for name in (columns.INPUTS, columns.DECISIONS):
            wanted[name] = [str(self.file(name, number)) for number in numbers]
        python = sys.executable if what == "make" else forked_python.program()
        command = [python, "-m", "tests.recording.checkpointing", json.dumps(wanted)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answered: dict[str, Any] = json.loads(done.stdout)
        return answered


def _main(wanted: dict[str, Any]) -> dict[str, Any]:
    path = Path(wanted["path"])
    inputs, decisions = (
        (pq.read_table(file) for file in wanted[name]) for name in (columns.INPUTS, columns.DECISIONS)
    )
    try:
        if wanted["what"] == "make":
            reached = checkpoints.Reached(
                wanted["run"], wanted[columns.INPUTS][-1], wanted[columns.DECISIONS][-1]
            )
            start = Path(wanted["start"]) if wanted["start"] else None
            outcome = checkpoints.make(path, reached, start, inputs, decisions)
        else:
            outcome, _ = checkpoints.verify(path, wanted["run"], inputs, decisions)
    except (checkpoints.CheckpointRefused, NotReplayable) as refused:
        return {"refused": str(refused)}
    return {
        "passes": outcome.passes,
        "decisions": outcome.decisions,
        "deliveries": outcome.messages_delivered,
        "difference": str(outcome.difference) if outcome.difference else None,
    }


if __name__ == "__main__":
    print(json.dumps(_main(json.loads(sys.argv[1]))))
