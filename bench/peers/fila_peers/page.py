"""The outcomes as tables: a section of a page, and what a terminal shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .results import Spread, Summary

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

Column = tuple[str, Callable[[Summary], str]]


def section(
    head: dict[str, Any], found: Sequence[Summary], versions: dict[str, str], charts: Sequence[str]
) -> str:
    """Everything that was measured, with what it was measured on."""
    machine = head["machine"]
    command = "make bench-peers QUICK=1" if head["sizes"] == "quick" else "make bench-peers"
    where = (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, Linux {machine['kernel']}"
    )
    lines = [
        f"Measured {machine['measured_at']} with `{command}`: {where}.",
        "",
        *_settings(found, versions),
        *(f"![{Path(chart).stem}](images/{chart})\n" for chart in charts),
    ]
    for workload in dict.fromkeys(summary.workload for summary in found):
        of_it = [summary for summary in found if summary.workload == workload]
        for case in dict.fromkeys(summary.case for summary in of_it):
            lines += [f"### {workload}: {case}", ""]
            lines += _table([summary for summary in of_it if summary.case == case], columns_of(workload))
    return "\n".join(lines).rstrip() + "\n"


def put_in(page: Path, text: str) -> None:
    """Replace what stands between the two marks of the page."""
    before, mark, rest = page.read_text().partition(BEGIN)
    _, closing, after = rest.partition(END)
    if not mark or not closing:
        raise ValueError(f"{page} has no lines {BEGIN} and {END} to write between")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def _settings(found: Sequence[Summary], versions: dict[str, str]) -> list[str]:
    rows = {}
    for summary in found:
        for outcome in summary.measured:
            rows[summary.peer, summary.durability] = outcome.settings
    lines = ["| peer | version | durability | settings |", "|---|---|---|---|"]
    for (peer, durability), settings in rows.items():
        lines.append(f"| {peer} | {versions.get(peer, '')} | {durability} | {settings} |")
    return [*lines, ""]


def columns_of(workload: str) -> list[Column]:
    """What matters of a load, by its name."""
    if workload == "latency":
        return [
            _latency("delivery_us", "p50"),
            _latency("delivery_us", "p99"),
            _latency("answer_us", "p50"),
            ("kept up", _kept_up),
            _server_us(),
        ]
    if workload == "noisy neighbour":
        return [_wait("p50"), _wait("p99"), ("came", _came)]
    if workload == "rate limit":
        return [
            ("wasted deliveries a message", _number("wasted", 2)),
            ("mean error", _percent("mean_error")),
            ("worst error", _percent("worst_error")),
        ]
    if workload == "backlog":
        return [
            ("fill/s", _number("fill_per_s")),
            ("drain/s", _number("per_s")),
            _resident("resident_full_bytes"),
        ]
    if workload == "recovery":
        return [
            ("listens after s", _number("restart_s", 2)),
            ("first delivery after s", _number("first_delivery_s", 2)),
            ("lost", _number("lost")),
        ]
    rate = "sent_per_s" if workload == "produce only" else "settled_per_s"
    return [
        ("messages/s", _number(rate)),
        _server_us(),
        _written(),
        _resident(),
        ("held back by", _bottleneck),
    ]


def _table(found: Sequence[Summary], columns: Sequence[Column]) -> list[str]:
    lines = ["| peer | durability | " + " | ".join(name for name, _ in columns) + " |"]
    lines.append("|---|---|" + "---:|" * len(columns))
    for summary in found:
        cells = [show(summary) for _, show in columns] if summary.measured else [_why_not(summary)]
        cells += [""] * (len(columns) - len(cells))
        lines.append(f"| {summary.peer} | {summary.durability} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _why_not(summary: Summary) -> str:
    last = summary.others[-1]
    why = re.sub(r"[|\n]", " ", last.why)[:160]
    return f"{last.state}: {why}"


def _show(spread: Spread | None, digits: int = 0, scale: float = 1.0) -> str:
    if spread is None:
        return ""
    middle, low, high = (f"{value * scale:,.{digits}f}" for value in (spread.median, spread.low, spread.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def _number(name: str, digits: int = 0) -> Callable[[Summary], str]:
    return lambda summary: _show(summary.of("numbers", name), digits)


def _percent(name: str) -> Callable[[Summary], str]:
    return lambda summary: _show(summary.of("numbers", name), 1, 100) + " %"


def _latency(which: str, quantile: str) -> Column:
    name = "delivery" if which == "delivery_us" else "answer"
    return f"{name} {quantile}, ms", lambda summary: _show(
        summary.of("numbers", f"{which}.{quantile}"), 2, 1e-3
    )


def _wait(quantile: str) -> Column:
    def show(summary: Summary) -> str:
        text = _show(summary.of("numbers", f"wait_us.{quantile}"), 1, 1e-3)
        sent, taken = (summary.of("numbers", name) for name in ("quiet_sent", "quiet_taken"))
        # What had not come counts with the time it had waited, which is less than it will have waited.
        return f"at least {text}" if sent and taken and taken.median < 0.99 * sent.median else text

    return f"quiet waits {quantile}, ms", show


def _came(summary: Summary) -> str:
    sent, taken = (summary.of("numbers", name) for name in ("quiet_sent", "quiet_taken"))
    return f"{taken.median:,.0f} of {sent.median:,.0f}" if sent and taken else ""


def _kept_up(summary: Summary) -> str:
    rate = summary.of("numbers", "settled_per_s")
    return "" if rate is None else ("yes" if rate.median >= 980 else f"no, {rate.median:,.0f}/s")


def server_us(summary: Summary) -> float | None:
    """The broker's processor time a message, in microseconds; the median of the rounds."""
    cpu, messages = summary.of("server", "cpu_s"), summary.of("numbers", "messages")
    return cpu.median * 1e6 / messages.median if cpu and messages and messages.median else None


def _server_us() -> Column:
    def show(summary: Summary) -> str:
        value = server_us(summary)
        return "" if value is None else f"{value:,.1f}"

    return "broker CPU us", show


def _written() -> Column:
    def show(summary: Summary) -> str:
        written, messages = summary.of("server", "written_bytes"), summary.of("numbers", "messages")
        return f"{written.median / messages.median:,.0f}" if written and messages and messages.median else ""

    return "written B/message", show


def _resident(name: str = "") -> Column:
    def show(summary: Summary) -> str:
        spread = summary.of("numbers", name) if name else summary.of("server", "resident_bytes")
        return _show(spread, 0, 1e-6)

    return "RSS MB", show


def _bottleneck(summary: Summary) -> str:
    return summary.measured[-1].bottleneck
