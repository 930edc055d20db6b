"""Fair or first in, first out: a real inference trace beside a tenant that floods ten times as much.

    bench/replay.py --data code.csv                             20 minutes of the trace, 60 times as fast, both orders
    bench/replay.py --data code.csv --minutes 57 --speed 120    all of it
    bench/replay.py --data code.csv --picture docs/images/replay.png

The trace is AzureLLMInferenceTrace_code.csv of the Azure Public Dataset (TIMESTAMP,ContextTokens,GeneratedTokens).
Prints each tenant's waiting time and share of served tokens, once with all messages under
one key and once with a key for each tenant, and draws both. Times are times of the trace:
a wait of one second at 60 times the speed is printed as a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from fila_bench.admin import Admin
from fila_bench.replay import (
    NOISY,
    QUEUE,
    Arrival,
    Served,
    Setup,
    Summary,
    flood,
    read_trace,
    replay,
    summarize,
)
from fila_bench.server import Server

_ROOT = Path(__file__).resolve().parents[1]
_ORDERS: tuple[tuple[str, dict[str, object]], ...] = (
    ("All messages under one key: first in, first out", {}),
    ("A key for each tenant: fair", {"fairness_key_header": "tenant"}),
)


def main() -> int:
    options = _options()
    if not options.data.exists():
        print(f"the trace is not at {options.data}: give its path with --data", file=sys.stderr)
        return 2
    real = read_trace(options.data, options.minutes)
    arrivals = sorted([*real, *flood(real, options.noise, options.seed)], key=lambda arrival: arrival.at_s)
    asked = sum(arrival.cost for arrival in real) / real[-1].at_s
    setup = Setup(speed=options.speed, workers=options.workers, tokens_per_s=asked * options.capacity)

    halves = []
    for title, config in _ORDERS:
        served = _run(config, arrivals, setup)
        summaries = summarize(served, arrivals)
        _print(title, summaries)
        halves.append((title, served, summaries))
    if options.json:
        listed = {title: [asdict(summary) for summary in summaries] for title, _, summaries in halves}
        options.json.write_text(json.dumps(listed, indent=2) + "\n")
    if options.picture:
        from fila_bench.picture import draw

        note = (
            f"Azure LLM inference trace 2023 (code), first {options.minutes:g} min at {options.speed:g} x; "
            f"{options.workers} workers serve {options.capacity:g} x what the trace asks for; the flood asks for "
            f"{options.noise:g} x"
        )
        draw(options.picture, halves, note)
        print(f"picture: {options.picture}")
    return 0


def _run(config: dict[str, object], arrivals: list[Arrival], setup: Setup) -> list[Served]:
    with Server() as server:
        with Admin(server.address) as admin:
            admin.create(QUEUE, cost_header="tokens", **config)
        return asyncio.run(replay(server.address, arrivals, setup))


def _print(title: str, summaries: list[Summary]) -> None:
    print(
        f"\n{title}\n{'TENANT':8}{'SERVED':>8}{'WAITING':>9}{'P50 S':>10}{'P95 S':>10}{'P99 S':>10}{'SHARE':>8}"
    )
    for each in summaries:
        numbers = f"{each.p50_s:>10.2f}{each.p95_s:>10.2f}{each.p99_s:>10.2f}{each.share:>8.1%}"
        print(f"{each.tenant:8}{each.requests:>8,}{each.waiting:>9,}{numbers}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, metavar="CSV", help="the trace")
    parser.add_argument("--minutes", type=float, default=20, help="how much of the trace [20]")
    parser.add_argument("--speed", type=float, default=60, help="seconds of the trace in a second [60]")
    parser.add_argument(
        "--noise", type=float, default=10, help=f"how many times as much {NOISY} asks for [10]"
    )
    parser.add_argument(
        "--capacity", type=float, default=6, help="workers' speed, in what the trace asks for [6]"
    )
    parser.add_argument("--workers", type=int, default=8, help="requests served at once [8]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--picture", type=Path, metavar="PNG", default=_ROOT / "docs" / "images" / "replay.png"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
