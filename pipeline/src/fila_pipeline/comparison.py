"""What fairness bought: what was recorded, first in, first out, and other policies side by side, tenant by "
"tenant."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession

from fila_pipeline.backtest import SLOWNESSES, PolicyNotTried, all_segments, served
from fila_pipeline.imported import Imported
from fila_pipeline.replay import FIFO, RECORDED
from fila_pipeline.tasks import Wanted, in_tasks

FAIR = "fair"
"""The course under the policy that was recorded."""
DLQ = ".dlq"
KEYS = ["course", "queue", "tenant"]
WAITS = ["mean_ms", "p40_ms", "p50_ms", "p60_ms", "p95_ms", "p99_ms"]


@dataclass(frozen=True)
class Compared:
    """One row a course, queue and tenant, and what of the courses has to be told."""

    rows: pd.DataFrame
    """Waits and `share` as consumers were, and `_least` and `_most` of each over their SLOWNESSES."""
    drawn: int
    """Deliveries of a course whose handling was not recorded, at most."""
    waited_before: int
    """Deliveries of messages that kept their tenant's turn in the course FIFO."""


def compare_policies(
    spark: SparkSession, directories: Sequence[str], runs: Sequence[str], policies: Mapping[str, str]
) -> Compared:
    """Model these runs as they were, first in, first out, and under each policy (TOML, by its name).

    Raises PolicyNotTried, where a policy is refused or a recording cannot be modelled.
    """
    chosen = [each for each in all_segments(spark, directories) if each.run in runs]
    models: dict[str, str | None] = {FAIR: None, FIFO: None, **policies}
    wanted = [Wanted(RECORDED, segment) for segment in chosen]
    for name, policy in models.items():
        for slowness in (1.0, *SLOWNESSES):
            wanted += [Wanted(name, segment, policy, 0, slowness) for segment in chosen]
    came = in_tasks(spark, wanted)
    for each in came:
        if "refused" in each:
            raise PolicyNotTried(f"{each['course']}: {each['refused']}")
    frame = served(came).assign(course=[each["course"] for each in came for _ in each["served"]])
    return Compared(
        by_tenant(frame, [RECORDED, *models]),
        max(each.get("drawn", 0) for each in came),
        sum(each["waited_before"] for each in came if each["course"] == FIFO and each["slowness"] == 1),
    )


def by_tenant(frame: pd.DataFrame, courses: Sequence[str]) -> pd.DataFrame:
    """Return one row a course, queue and tenant, courses in this order, the tenant with most to do first.

    Of several starts of the broker a wait is that of the start where it was longest; means and shares are over all.
    """
    frame = frame[~frame["queue"].str.endswith(DLQ) & (frame["delivered"] > 0)]
    frame = frame.rename(columns={"fairness_key": "tenant"})
    frame = frame.assign(waited_ms=frame["mean_ms"] * frame["delivered"])
    by_speed = frame.groupby([*KEYS, "slowness"], as_index=False).agg(
        delivered=("delivered", "sum"),
        cost=("cost", "sum"),
        contended_cost=("contended_cost", "sum"),
        waited_ms=("waited_ms", "sum"),
        **{wait: (wait, "max") for wait in WAITS[1:]},
    )
    by_speed["mean_ms"] = by_speed["waited_ms"] / by_speed["delivered"]
    of_all = by_speed.groupby(["course", "queue", "slowness"])["contended_cost"].transform("sum")
    by_speed["share"] = by_speed["contended_cost"] / of_all.where(of_all > 0)
    told = by_speed[by_speed["slowness"] == 1].set_index(KEYS)[["delivered", "cost", *WAITS, "share"]]
    ranges = by_speed.groupby(KEYS)[[*WAITS, "share"]]
    least, most = ranges.min().add_suffix("_least"), ranges.max().add_suffix("_most")
    rows = told.join(least).join(most).reset_index()
    rows["_course"] = rows["course"].map({name: number for number, name in enumerate(courses)})
    rows["_weight"] = rows.groupby(["queue", "tenant"])["cost"].transform("max")
    ordered = rows.sort_values(["_weight", "queue", "tenant", "_course"], ascending=[False, True, True, True])
    return ordered.drop(columns=["_course", "_weight"]).reset_index(drop=True)


def make_history(imported: Imported, directory: Path) -> None:
    """Have a core serve a log, in a process of its own, and its history written to a directory."""
    with TemporaryDirectory(prefix="fila-import-") as folder:
        path = str(Path(folder, "arrivals.arrow"))
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, imported.arrivals.schema) as out:
            out.write_table(imported.arrivals)
        wanted: dict[str, Any] = {"what": "import", "arrivals": path, "workers": imported.workers}
        command = [
            sys.executable,
            "-m",
            "fila_pipeline.replay",
            json.dumps(wanted | {"directory": str(directory)}),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode != 0:
        raise RuntimeError(f"the import broke off:\n{done.stderr}")
