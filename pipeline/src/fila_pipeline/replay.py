"""One segment in this process: fed through the broker's own core again, judged by its reference, or modelled.

It needs `fila-server` beside it (`fila-spark[backtest]`), of the version that recorded. The core seeds its maps once,
so a process follows one segment and ends: `tasks` starts it by `python -m`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fila_server.history_files.segments import Segment

RECORDED, FIFO = "recorded", "FIFO"
"""Two kinds of courses: what was recorded, and a model in which a queue has no tenants: first in, first out."""
MISSING = (
    "backtest replays through the broker's own core, and fila-server is not installed here: "
    "install it in this environment too (docs/install.md), or run make pipeline-core in a checkout"
)


class BacktestMissing(Exception):
    """The broker's core is not installed beside the pipeline."""


def core_is_here() -> bool:
    """Return whether the broker's core is installed beside the pipeline."""
    return importlib.util.find_spec("fila_server") is not None


def course(segment: Segment, kind: str, policy: str | None, seed: int, slowness: float) -> dict[str, Any]:
    """What came of one segment: as recorded, or in a model; `refused` says why it cannot be told.

    kind: what to call it; RECORDED and FIFO mean something.
    """
    from fila_server.history_files import replaying
    from fila_server.history_files.segments import FileUnreadable, tables
    from fila_server.modelling import course as modelled
    from fila_server.modelling.policy import Policy, PolicyRefused, read_policy
    from fila_server.modelling.served import Served

    told: dict[str, Any] = {"run": segment.run, "course": kind, "seed": seed, "slowness": slowness}
    if kind == RECORDED:
        served = Served()
        for part in tables(segment, segment.decisions):
            served.take(part)
        return told | {"served": served.rows()}
    try:
        came = modelled.run(
            tables(segment, segment.inputs),
            tables(segment, segment.decisions),
            read_policy(policy) if policy is not None else Policy(fifo=kind == FIFO),
            seed,
            slowness,
        )
    except (
        FileUnreadable,
        PolicyRefused,
        modelled.NotModelled,
        replaying.NoBase,
        replaying.NotReplayable,
    ) as refused:
        return told | {"refused": str(refused)}
    return told | {
        "served": came.served,
        "drawn": came.drawn,
        "unknown": came.unknown,
        "refused_calls": came.refused,
        "script_failures": came.script_failures,
        "waited_before": came.waited_before,
    }


def import_log(arrivals: str, workers: int, directory: str) -> int:
    """Write the history of a core that serves arrivals, an Arrow file; returns when they ended, in ms since 1970."""
    import pyarrow as pa

    from fila_server.modelling.arrivals import record

    with pa.memory_map(arrivals) as file:
        return record(pa.ipc.open_file(file).read_all(), workers, Path(directory))


def _main(argument: str) -> None:
    given: dict[str, Any] = json.loads(argument)
    if given["what"] == "import":
        print(import_log(given["arrivals"], given["workers"], given["directory"]))
        return
    from fila_server.history_files.segments import Segment

    listed = given["segment"]
    segment = Segment(
        **listed | {table: tuple(listed[table]) for table in ("inputs", "decisions", "changes")}
    )
    print(json.dumps(_told(segment, given)))


def _told(segment: Segment, given: dict[str, Any]) -> dict[str, Any]:
    if given["what"] == "judge":  # no core is loaded for that
        from fila_server.history_files import judging

        return judging.as_json(judging.judge(segment))
    if given["what"] in ("verify", "checkpoint"):
        from fila_server.history_files.verifying import verify, write_checkpoint

        return asdict(verify(segment) if given["what"] == "verify" else write_checkpoint(segment))
    return course(segment, given["what"], given["policy"], given["seed"], given["slowness"])


if __name__ == "__main__":
    _main(sys.argv[1])
