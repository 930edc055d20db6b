"""Does what the broker decided follow from what it took in, and what would have come of it under another policy?

Each start of the broker is replayed for itself, in a process that has the broker's own core: `tasks` starts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import SparkSession

from fila_pipeline.history import lists_of
from fila_pipeline.pages.page import Page, Table
from fila_pipeline.replay import MISSING, RECORDED, BacktestMissing, core_is_here
from fila_pipeline.segments import OLDER_RULES, OTHER_BUILD, SAME, WRONG, Verdict, segments
from fila_pipeline.tasks import Wanted, in_tasks

if TYPE_CHECKING:
    from fila_server.history_files.judging import Judged
    from fila_server.history_files.segments import Segment

SEEDS = 5
"""Courses of a model: what is not known differs between them."""
SLOWNESSES = (1.1, 0.9)
"""Consumers that take a tenth longer, and a tenth less: a forecast says how far they would move it."""


def backtest(spark: SparkSession, *directories: str) -> list[Verdict]:
    """Verify every segment of a history. Raises BacktestMissing, and HistoryMissing."""
    if not core_is_here():
        raise BacktestMissing(MISSING)
    done = in_tasks(spark, [Wanted("verify", segment) for segment in all_segments(spark, directories)])
    return [Verdict(**told) for told in done]


def all_segments(spark: SparkSession, directories: Sequence[str]) -> list[Segment]:
    """The segments of a history, oldest first."""
    lists = lists_of(spark, directories)
    found = [segment for directory, entries in lists.items() for segment in segments(entries, directory)]
    return sorted(found, key=lambda segment: segment.run)


def judge(spark: SparkSession, *directories: str) -> list[Judged]:
    """Have the broker's reference judge every segment by what is promised. Raises BacktestMissing, HistoryMissing."""
    if not core_is_here():
        raise BacktestMissing(MISSING)
    from fila_server.history_files import judging

    done = in_tasks(spark, [Wanted("judge", segment) for segment in all_segments(spark, directories)])
    return [judging.from_json(told) for told in done]


class PolicyNotTried(Exception):
    """The policy is none, or this history cannot be modelled; the text says why."""


@dataclass(frozen=True)
class Courses:
    """What came of the segments by queue and key; columns as `fila_server.modelling.served` has them."""

    recorded: pd.DataFrame
    as_it_was: pd.DataFrame
    """The model under the recorded policy, with a column `seed`: how far it is from what happened."""
    with_policy: pd.DataFrame
    slowed: pd.DataFrame
    """The policy with consumers of each of SLOWNESSES."""
    drawn: int
    unknown: int
    refused: int
    script_failures: int


def check_policy(policy: str) -> None:
    """Raise PolicyNotTried for a policy that says what no policy can, and BacktestMissing where there is no core."""
    if not core_is_here():
        raise BacktestMissing(MISSING)
    from fila_server.modelling.policy import PolicyRefused, read_policy

    try:
        read_policy(policy)
    except PolicyRefused as refused:
        raise PolicyNotTried(str(refused)) from None


def try_policy(
    spark: SparkSession, directories: Sequence[str], policy: str, runs: Sequence[str], seeds: int
) -> Courses:
    """Model these runs under another policy, `seeds` times, and as often under the recorded one. Each course is a task.

    policy: TOML. Raises PolicyNotTried, where the policy is refused or a recording cannot be modelled.
    """
    from fila_server.modelling.policy import PolicyRefused, read_policy

    try:
        named = read_policy(policy).queues
    except PolicyRefused as refused:
        raise PolicyNotTried(str(refused)) from None
    chosen = [each for each in all_segments(spark, directories) if each.run in runs]
    wanted = [Wanted(RECORDED, segment) for segment in chosen]
    for seed in range(seeds):
        for segment in chosen:
            wanted.append(Wanted("as it was", segment, None, seed))
            wanted.append(Wanted("policy", segment, policy, seed))
    for slowness in SLOWNESSES:
        wanted += [Wanted("slowed", segment, policy, 0, slowness) for segment in chosen]
    came = in_tasks(spark, wanted)
    for each in came:
        if "refused" in each:
            raise PolicyNotTried(each["refused"])
    queues = sorted({row["queue"] for each in came for row in each["served"]})
    missing = sorted(set(named) - set(queues))
    if missing:
        raise PolicyNotTried(
            f"queues.{missing[0]}: nothing was delivered from a queue of this name; there are {', '.join(queues)}"
        )
    of = {
        course: [each for each in came if each["course"] == course]
        for course in (RECORDED, "as it was", "policy", "slowed")
    }
    return Courses(
        *(served(of[course]) for course in (RECORDED, "as it was", "policy", "slowed")),
        *(
            sum(each[name] for each in of["policy"])
            for name in ("drawn", "unknown", "refused_calls", "script_failures")
        ),
    )


def served(came: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return what came of courses, one row a course, queue and key; what was not counted of one is 0."""
    rows = [
        {"run": each["run"], "seed": each["seed"], "slowness": each["slowness"], **row}
        for each in came
        for row in each["served"]
    ]
    names = (
        "delivered",
        "acked",
        "nacked",
        "expired",
        "dead_lettered",
        "dropped",
        "cost",
        "contended_cost",
        "throttle_ms",
    )
    frame = pd.DataFrame(rows)
    for name in names:
        frame[name] = frame[name].fillna(0) if name in frame else 0
    return frame


def rows_of(verdicts: Sequence[Verdict], terms: Mapping[str, str]) -> pd.DataFrame:
    """One row a verdict; with its term, where the owners of a group recorded."""
    frame = pd.DataFrame([asdict(verdict) for verdict in verdicts])
    return frame.assign(term=[terms.get(verdict.run, "") for verdict in verdicts]) if terms else frame


def verdict_page(verdicts: Sequence[Verdict], terms: Mapping[str, str]) -> Page:
    """Say in a sentence whether what was recorded follows from what was taken in. `terms`: as a History has them."""
    table = Table(
        "Starts of the broker",
        "Each is replayed from what it found on its disk, up to its end or the first gap.",
        rows_of(verdicts, terms),
    )
    return Page("Backtest: does it follow?", answer(verdicts), tables=[table] if verdicts else [])


def judged_page(judged: Sequence[Judged], terms: Mapping[str, str]) -> Page:
    """Say in a sentence whether what was recorded keeps what is promised, and below it what was not judged."""
    from fila_server.history_files import judging

    starts = [
        {
            "run": each.run,
            **({"term": terms.get(each.run, "")} if terms else {}),
            "outcome": each.outcome,
            "deliveries": each.judgement.deliveries,
            "turns_judged": each.judgement.turns,
            "faults": each.judgement.faults,
            "said": each.said,
        }
        for each in judged
    ]
    broken = [{"run": each.run, "broken": wrong} for each in judged for wrong in each.judgement.wrong]
    unjudged = [{"not_judged": said} for said in judging.not_judged(judged)]
    tables = (
        (
            "Starts of the broker",
            "Each is judged from its beginning, up to its end or the first gap.",
            starts,
        ),
        ("Promises that were broken", "The first few of each start.", broken),
        ("Not judged", "What this says nothing about.", unjudged),
    )
    return Page(
        "Backtest: was every promise kept?",
        judging.answer(judged),
        tables=[Table(title, about, pd.DataFrame(rows)) for title, about, rows in tables],
    )


def answer(verdicts: Sequence[Verdict]) -> str:
    """Return the answer in a sentence or two."""
    wrong = [verdict for verdict in verdicts if verdict.outcome in WRONG]
    same = [verdict for verdict in verdicts if verdict.outcome == SAME]
    if wrong and wrong[0].outcome == OTHER_BUILD:
        return (
            f"It was recorded by another build, so it cannot be judged here. {wrong[0].run}: {wrong[0].said}."
        )
    if wrong:
        return f"It does not follow. {wrong[0].run}: {wrong[0].said}."
    older = [verdict for verdict in verdicts if verdict.outcome == OLDER_RULES]
    if older and not same:
        return f"It was decided under older rules. {older[0].run}: {older[0].said}."
    if not same:
        return "Nothing could be replayed: no start of the broker has its beginning in this history."
    decisions = sum(verdict.decisions for verdict in same)
    deliveries = sum(verdict.deliveries for verdict in same)
    rest = len(verdicts) - len(same) - len(older)
    cut = [verdict.said for verdict in same if verdict.said]
    return (
        f"The core decided the same again, {decisions:,} of {decisions:,} decisions, {deliveries:,} of them deliveries"
        + (f"; {len(older)} starts were decided under older rules" if older else "")
        + (f"; {rest} starts could not be replayed" if rest else "")
        + (f"; not all that was recorded could be followed: {cut[0]}." if cut else ".")
    )
