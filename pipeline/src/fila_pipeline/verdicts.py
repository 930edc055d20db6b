"""What a backtest came to, printed and as a page: decisions that follow, promises kept, files as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pandas as pd

from fila_pipeline.backtest import judge, judged_page, rows_of, verdict_page
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
    history: History, verdicts: Sequence[Verdict], out: str, evidence: Mapping[str, Evidence] | None = None
) -> Page:
    """Tell what came of a replay. `evidence`: what came of a look at each directory."""
    for verdict in verdicts:
        print(
            f"{_named(history, verdict.run)}: {verdict.outcome}, {verdict.passes:,} passes, "
            f"{verdict.decisions:,} decisions"
            + (f", from the checkpoint of {verdict.since} on" if verdict.since else "")
            + (f" ({verdict.said})" if verdict.said else "")
        )
    is_wrong = any(verdict.outcome in WRONG for verdict in verdicts)
    light: Light = "trouble" if is_wrong else "well"
    page = replace(verdict_page(verdicts, history.terms), notes=notes(history), light=light)
    page = with_evidence(page, evidence or {}, is_wrong=is_wrong)
    storage = Storage(history.spark, out)
    written(storage, "verdicts", rows_of(verdicts, history.terms))
    storage.write("index.html", render(page, datetime.now(UTC), history.directory))
    said("backtest", page, out)
    return page


def tell_judged(history: History, evidence: Mapping[str, Evidence], out: str) -> int:
    """Have the reference judge a history, and tell what came of it; returns the exit code."""
    judged = judge(history.spark, *history.directories)
    page = judged_page(judged, history.terms)
    for each in judged:
        counts = f"{each.judgement.deliveries:,} deliveries, the turn of {each.judgement.turns:,} judged"
        print(
            f"{_named(history, each.run)}: {each.outcome}, {counts}"
            + (f" ({each.said})" if each.said else "")
        )
    starts, broken, unjudged = (table.rows for table in page.tables)
    for each_broken in broken.get("broken", ()):
        print(f"broken: {each_broken}")
    for nothing in unjudged["not_judged"]:
        print(f"not judged: {nothing}")
    is_broken = len(broken) > 0
    storage = Storage(history.spark, out)
    written(storage, "judged", starts)
    page = with_evidence(replace(page, notes=notes(history)), evidence, is_wrong=is_broken)
    storage.write("index.html", render(page, datetime.now(UTC), history.directory))
    said("backtest", page, out)
    return DIFFERS if is_broken or any(each.wrong for each in evidence.values()) else 0


def _named(history: History, run: str) -> str:
    return f"{run}, {history.terms[run]}" if run in history.terms else run


def with_evidence(page: Page, evidence: Mapping[str, Evidence], *, is_wrong: bool) -> Page:
    """The page, and what came of a look at the files; is_wrong: what they hold is wrong anyway, which goes first."""
    if not evidence:
        return page
    told, noted, answers = [], [], []
    for directory, each in evidence.items():
        before = f"{directory}: " if len(evidence) > 1 else ""
        told += [f"{before}{wrong}" for wrong in each.wrong]
        noted += [f"{before}{note}" for note in each.noted]
        rest = "it is one node's part" if before else page.answer.rstrip(".")
        answers.append(f"{before}{each.answer(rest)}")
    for wrong in told:
        print(f"wrong: {wrong}")
    if told:
        answers = [answer for answer, each in zip(answers, evidence.values(), strict=True) if each.wrong]
    elif is_wrong:
        answers = [page.answer]
    elif len(evidence) > 1:
        answers = [page.answer, *answers]
    return replace(
        page,
        answer=" ".join(answers),
        notes=[*page.notes, *told[:NOTES_MAX], *noted],
        light="trouble" if told else page.light,
    )


def written(storage: Storage, table: str, rows: pd.DataFrame) -> None:
    """Write a table beside the page, where it has rows."""
    if len(rows):
        storage.write_table(table, storage.spark.createDataFrame(rows))


def said(name: str, page: Page, out: str) -> None:
    """Print the answer, and where its page is."""
    print(f"{name}: {page.answer}\n  {out.rstrip('/')}/index.html", flush=True)
