"""Whether a run was good enough: the thresholds of the command line, and the account they are judged by.

Exit code 1 when a threshold is broken, when requests failed, or when there is nothing a threshold could be judged
by: a run that measured nothing has not passed.
"""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from locust.env import Environment
from locust.stats import RequestStats

from . import listening
from .options import options_of
from .shares import Account, Share, shares, worst_shortfall

ACCOUNT = Account()
"""What this process's users asked for and were served; on the leading process, of all processes."""

_LOG = logging.getLogger(__name__)
_REPORTED = "fila_account"

Verdict = tuple[bool, str]


@listening.at_start
def forget(environment: Environment, **_: object) -> None:
    """Called by locust at each start: the web page's second run is judged by itself."""
    del environment
    ACCOUNT.take()


def _hand_over(data: dict[str, Any]) -> None:
    data[_REPORTED] = ACCOUNT.take()


def _count_in(data: dict[str, Any]) -> None:
    ACCOUNT.add(data.get(_REPORTED, {}))


listening.between_processes(_hand_over, _count_in)


def judge(
    *,
    rows_like: str,
    weights: Mapping[str, float] | None = None,
    shared: bool = False,
    rate: Callable[[Any, RequestStats], Verdict] | None = None,
) -> None:
    """What this scenario is judged by: rows whose p99 --fail-p99-ms is meant for; whether its tenants compete, so that
    shares say something; a further judgement of a rate."""

    def decide(environment: Environment, **_: object) -> None:
        if not listening.leads(environment):
            return
        options = options_of(environment)
        verdicts = latency_verdicts(
            environment.stats, options.fail_p99_ms, options.fail_p99_rows or rows_like
        )
        if shared or options.fail_share_error:
            found = shares(ACCOUNT, weights)
            verdicts.append(share_verdict(found, options.fail_share_error))
            if getattr(options, "csv_prefix", None):
                write_shares(Path(f"{options.csv_prefix}_shares.csv"), found)
        if rate is not None:
            verdicts.append(rate(options, environment.stats))
        for passed, text in verdicts:
            _LOG.log(logging.INFO if passed else logging.ERROR, text)
        if not all(passed for passed, _ in verdicts):
            environment.process_exit_code = 1

    listening.at_end(decide)


def latency_verdicts(stats: RequestStats, most_ms: float, pattern: str) -> list[Verdict]:
    """One verdict a row that matches, on its p99 in milliseconds; none without a threshold."""
    if not most_ms:
        return []
    judged = [
        entry for entry in stats.entries.values() if re.search(pattern, entry.name) and entry.num_requests
    ]
    if not judged:
        return [(False, f"failed: no row matches {pattern!r}, so --fail-p99-ms has nothing to judge")]
    verdicts = []
    for entry in judged:
        p99 = entry.get_response_time_percentile(0.99)
        word = "ok" if p99 <= most_ms else "failed"
        verdicts.append(
            (p99 <= most_ms, f"{word}: p99 of {entry.name} is {p99:g} ms, allowed are {most_ms:g}")
        )
    return verdicts


def share_verdict(found: list[Share], most: float) -> Verdict:
    """On the tenant that lost most of its due; `most` is the part it may lose, 0: any."""
    worst = worst_shortfall(found)
    if worst is None:
        return not most, "no tenant was due enough to judge its share: let the run last longer"
    about = (
        f"of {len(found):,} tenants {worst.tenant} lost most of its due: {worst.shortfall:.1%} "
        f"(asked for {worst.asked:,.0f}, was due {worst.due:,.0f}, got {worst.served:,.0f})"
    )
    if not most:
        return True, about
    passed = worst.shortfall <= most
    return passed, f"{'ok' if passed else 'failed'}: {about}, allowed are {most:.1%}"


def write_shares(path: Path, found: list[Share]) -> None:
    """One line a tenant, the worst first."""
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["tenant", "asked", "due", "served", "shortfall"])
        for share in found:
            lines.writerow(
                [
                    share.tenant,
                    f"{share.asked:g}",
                    f"{share.due:.1f}",
                    f"{share.served:g}",
                    f"{share.shortfall:.4f}",
                ]
            )
