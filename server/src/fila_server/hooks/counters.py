"""What the hooks of a queue have done, counted where it happens and read when somebody asks."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

DURATION_BOUNDS_NS = (
    2_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000,
)  # fmt: skip
"""Upper bounds of the histogram's buckets; one more bucket holds what took longer."""


@dataclass(slots=True)
class HookCounters:
    """Of one hook of a queue, since it first had a script: what an earlier one did stays. Only the stage writes."""

    runs: int = 0
    errors: int = 0
    fallbacks: int = 0
    """Messages the policy decided because the script did not: failures and calls an open circuit saved."""
    held: int = 0
    """Messages that were made to wait (hook_fallback = hold)."""
    clamped_weights: int = 0
    duration_sum_ns: int = 0
    duration_counts: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BOUNDS_NS) + 1))
    """Calls by bucket. Calls of one crossing share its time evenly."""
    last_error: str = ""
    """With the line of the script."""
    last_error_ms: int = 0
    """When, in milliseconds since 1970; 0 when there was none."""
    last_error_headers: dict[str, str] = field(default_factory=dict)
    """Of the message it failed on."""
    ignored_fields: dict[str, int] = field(default_factory=dict)
    """Answers by the name of a field they had and nobody reads."""
    log_lines: int = 0
    """Lines of fila.log that were written."""
    log_lines_dropped: int = 0

    def record_runs(self, count: int, elapsed_ns: int) -> None:
        self.runs += count
        self.duration_sum_ns += elapsed_ns
        self.duration_counts[bisect_left(DURATION_BOUNDS_NS, elapsed_ns // count)] += count


@dataclass(frozen=True, slots=True)
class HookStatus:
    """One script as inspect and telemetry see it."""

    hook: str
    """`on_enqueue` or `on_failure`."""
    breaker: str
    """`closed`, `open` or `half_open`."""
    counters: HookCounters
