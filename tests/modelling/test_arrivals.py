"""Other people's logs, served by the core: who comes when it came, and is worked on for as long."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fila_server.history_files import columns, replaying
from fila_server.modelling import arrivals
from fila_server.modelling.served import Served

BEGAN_MS = 1_772_460_000_000


def recorded(
    directory: Path, rows: list[tuple[int, str, float, int]], workers: int
) -> dict[str, list[pa.Table]]:
    names = ("at_ms", "tenant", "cost", "took_ms")
    table = pa.Table.from_pylist(
        [dict(zip(names, (BEGAN_MS + row[0], *row[1:]), strict=True)) for row in rows]
    )
    arrivals.record(table, workers, directory)
    entries = [json.loads(path.read_text()) for path in sorted((directory / "_list").glob("[!_]*.json"))]
    assert not [entry for entry in entries if "gap" in entry]
    assert entries[-1]["end"]
    found: dict[str, list[pa.Table]] = {}
    for entry in entries[:-1]:
        found.setdefault(entry["table"], []).append(
            pq.read_table(directory / entry["file"], partitioning=None)
        )
    return found


def test_a_log_is_served_by_its_workers_and_the_core_decides_it_again(tmp_path: Path):
    """Two come at once for one worker, who takes a second for each; the third has nobody to wait for."""
    rows = [(0, "acme", 1.0, 1_000), (0, "acme", 2.5, 1_000), (7_200_000, "globex", 1.0, 40)]
    tables = recorded(tmp_path, rows, workers=1)
    served = Served()
    for part in tables[columns.DECISIONS]:
        served.take(part)
    found = {row["fairness_key"]: row for row in served.rows()}
    assert (found["acme"]["acked"], found["acme"]["max_ms"], found["acme"]["cost"]) == (2, 1_000, 3.5)
    assert (found["globex"]["acked"], found["globex"]["max_ms"]) == (1, 0)
    outcome = replaying.verify(tables[columns.INPUTS], tables[columns.DECISIONS])
    assert outcome.difference is None
    assert outcome.messages_delivered == 3


def test_as_many_are_worked_on_at_a_time_as_there_are_workers(tmp_path: Path):
    tables = recorded(tmp_path, [(0, f"t{number % 3}", 1.0, 100) for number in range(2_500)], workers=5)
    served = Served()
    for part in tables[columns.DECISIONS]:
        served.take(part)
    rows = served.rows()
    assert sum(row["acked"] for row in rows) == 2_500
    assert max(row["max_ms"] for row in rows) == 2_500 // 5 * 100 - 100
