"""What a benchmark found, and the three ways to show it: a table, JSON, markdown.

A number without its machine and commit is a rumour, so both are part of every report.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One measured number of one benchmark."""

    benchmark: str
    case: str
    value: float
    unit: str
    reach: float | None = None
    """What the number should be at least (`better` = more) or at most (less)."""

    better: Literal["more", "less"] = "more"
    high: float | None = None
    """Of a ratio that has to be reached, the upper end of its 90 % interval, where that decides: a ratio is missed only
    if noise can't explain it."""

    details: dict[str, Any] = field(default_factory=dict)
    measured: str = ""
    """Commit and machine of the run it comes from: a page may be put together from several."""

    at: str = ""
    """When that was."""

    @property
    def reached(self) -> bool | None:
        if self.reach is None:
            return None
        if self.better == "less":
            return self.value <= self.reach
        return (self.value if self.high is None else self.high) >= self.reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where and on what the numbers were measured."""

    cpu: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    commit: str
    measured_at: str


def this_machine() -> Machine:
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        cpu=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(memory_bytes / 2**30, 1),
        kernel=platform.release().partition("-")[0],
        python=platform.python_version(),
        commit=_commit(),
        measured_at=now(),
    )


def now() -> str:
    """The minute, as a page shows it."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def table(findings: Sequence[Finding]) -> str:
    """Aligned text; details follow their number, since a rate means little without its backlog."""
    rows = [("BENCHMARK", "CASE", "MEASURED", "REACH", "", "DETAILS")]
    rows += [_row(finding) for finding in findings]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = []
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            row[1].ljust(widths[1]),
            row[2].rjust(widths[2]),
            row[3].rjust(widths[3]),
        ]
        lines.append("  ".join([*cells, row[4].ljust(widths[4]), row[5]]).rstrip())
    return "\n".join(lines)


def as_json(findings: Sequence[Finding], machine: Machine) -> str:
    listed = [{**asdict(finding), "reached": finding.reached} for finding in findings]
    return json.dumps({"machine": asdict(machine), "findings": listed}, indent=2)


def from_json(text: str) -> list[Finding]:
    return [
        Finding(**{key: value for key, value in entry.items() if key != "reached"})
        for entry in json.loads(text)["findings"]
    ]


def markdown(findings: Sequence[Finding], machine: Machine, methods: Mapping[str, str]) -> str:
    """The page `docs/benchmarks.md`; everything on it comes from a run, nothing from a hand.

    `methods` has, by section, the sentences that stand between its heading and its table.
    """
    head = [
        "# Benchmarks",
        "",
        "Written by `make bench MARKDOWN=docs/benchmarks.md` (`bench/run.py --markdown`); do not edit by hand.",
        "Broker and load generator share the machine, as they would not in production.",
        "",
        f"- Machine: {machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB, Linux {machine.kernel}",
        f"- Python {machine.python}",
        "",
    ]
    return "\n".join([*head, *_sections(findings, methods).values()])


def markdown_kept(page: str, findings: Sequence[Finding], methods: Mapping[str, str]) -> str:
    """The page with these benchmarks' sections written anew, and the others as they stand on it. New ones come last."""
    head, *written = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    sections = {section[3 : section.index("\n")]: section for section in written}
    sections.update(_sections(findings, methods))
    return head + "\n".join(section.rstrip("\n") + "\n" for section in sections.values())


def _sections(findings: Sequence[Finding], methods: Mapping[str, str]) -> dict[str, str]:
    sections = {}
    for name in dict.fromkeys(finding.benchmark for finding in findings):
        own = [finding for finding in findings if finding.benchmark == name]
        runs = dict.fromkeys(finding.measured for finding in own)
        times = sorted({finding.at for finding in own if finding.at})
        when = f", {' to '.join(dict.fromkeys([times[0], times[-1]]))}" if times else ""
        lines = [f"## {name}", "", f"Measured at {' and '.join(runs)}{when}.", ""]
        if name in methods:
            lines += [methods[name], ""]
        lines += ["| case | measured | to reach | | details |", "|---|---:|---:|---|---|"]
        for finding in own:
            _, case, value, reach, mark, details = _row(finding)
            lines.append(f"| {case} | {value} | {reach} | {mark} | {details} |")
        sections[name] = "\n".join([*lines, ""])
    return sections


def _row(finding: Finding) -> tuple[str, str, str, str, str, str]:
    reach, mark = "", ""
    if finding.reach is not None:
        sign = "≥" if finding.better == "more" else "≤"
        reach = f"{sign} {_number(finding.reach)}"
        mark = "ok" if finding.reached else "MISSED"
    details = ", ".join(f"{name} {_detail(value)}" for name, value in finding.details.items())
    value = f"{_number(finding.value)} {finding.unit}".strip()
    return finding.benchmark, finding.case, value, reach, mark, details


def _number(value: float) -> str:
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def _detail(value: object) -> str:
    return _number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _commit() -> str:
    def git(*arguments: str) -> str:
        here = Path(__file__).parent
        done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
    return (
        f"{commit} with uncommitted changes"
        if git("status", "--porcelain", "--untracked-files=no")
        else commit
    )
