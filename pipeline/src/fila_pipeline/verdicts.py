"""What a backtest came to, printed and as a page: decisions that follow, promises kept, files as they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pandas as pd

from fila_pipeline.backtest import judge, judged_page, verdict_page
from fila_pipeline.history import History
from fila_pipeline.pages.page import Light, Page, render
from fila_pipeline.runs import notes
from fila_pipeline.segments import WRONG, Verdict
from fila_pipeline.storage import Storage

if TYPE_CHECKING:
    from fila_server.history_files.evidence import Evidence

DIFFERS = 3
"""The exit code of a backtest that came to other decisions."""
NOTES_MAX = 10
"""Of what is wrong with files, on a page; all of it is printed."""


def tell_verdicts(
    history: History, verdicts: Sequence[Verdict], out: str, evidence: Evidence | None = None
) -> Page:
    """Tell what came of a replay."""
    for verdict in verdicts:
        print(
            f"{verdict.run}: {verdict.outcome}, {verdict.passes:,} passes, {verdict.decisions:,} decisions"
            + (f", from the checkpoint of {verdict.since} on" if verdict.since else "")
            + (f" ({verdict.said})" if verdict.said else "")
        )
    is_wrong = any(verdict.outcome in WRONG for verdict in verdicts)
    light: Light = "trouble" if is_wrong else "well"
    page = replace(verdict_page(verdicts), notes=notes(history), light=light)
    page = _with_evidence(page, evidence, is_wrong=is_wrong)
    storage = Storage(history.spark, out)
    written(storage, "verdicts", pd.DataFrame([asdict(verdict) for verdict in verdicts]))
    storage.write("index.html", render(page, datetime.now(UTC), history.directory))
    said("backtest", page, out)
    return page


def tell_judged(history: History, evidence: Evidence | None, out: str) -> int:
    """Have the reference judge a history, and tell what came of it; returns the exit code."""
    judged = judge(history.spark, history.directory)
    page = judged_page(judged)
    for each in judged:
        counts = f"{each.judgement.deliveries:,} deliveries, the turn of {each.judgement.turns:,} judged"
        print(f"{each.run}: {each.outcome}, {counts}" + (f" ({each.said})" if each.said else ""))
    starts, broken, unjudged = (table.rows for table in page.tables)
    for each_broken in broken.get("broken", ()):
        print(f"broken: {each_broken}")
    for nothing in unjudged["not_judged"]:
        print(f"not judged: {nothing}")
    is_broken = len(broken) > 0
    storage = Storage(history.spark, out)
    written(storage, "judged", starts)
    page = _with_evidence(replace(page, notes=notes(history)), evidence, is_wrong=is_broken)
    storage.write("index.html", render(page, datetime.now(UTC), history.directory))
    said("backtest", page, out)
    return DIFFERS if is_broken or (evidence is not None and evidence.wrong) else 0


def _with_evidence(page: Page, evidence: Evidence | None, *, is_wrong: bool) -> Page:
    """The page, and what came of a look at the files; is_wrong: what they hold is wrong anyway, which goes first."""
    if evidence is None:
        return page
    for wrong in evidence.wrong:
        print(f"wrong: {wrong}")
    answered = page.answer if is_wrong and not evidence.wrong else evidence.answer(page.answer.rstrip("."))
    told = [*page.notes, *evidence.wrong[:NOTES_MAX], *evidence.noted]
    return replace(page, answer=answered, notes=told, light="trouble" if evidence.wrong else page.light)


def written(storage: Storage, table: str, rows: pd.DataFrame) -> None:
    """Write a table beside the page, where it has rows."""
    if len(rows):
        storage.write_table(table, storage.spark.createDataFrame(rows))


def said(name: str, page: Page, out: str) -> None:
    """Print the answer, and where its page is."""
    print(f"{name}: {page.answer}\n  {out.rstrip('/')}/index.html", flush=True)
