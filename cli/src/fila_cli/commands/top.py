"""`fila top`: queues, or one queue's keys, refreshed in place; rates are differences of counters."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fila_cli.arguments import complete_queue
from fila_cli.output import Cell, Format, show, table
from fila_cli.session import Command, Session
from fila_cli.values import DURATION, age_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fila.v1.admin_pb2 import GetStatsResponse

_QUEUES_MAX = 50
_KEYS_MAX = 30
_QUEUE_HEADINGS = (
    "QUEUE",
    "DEPTH",
    "IN FLIGHT",
    "CONSUMERS",
    "KEYS",
    "OLDEST",
    "IN/S",
    "OUT/S",
    "ACKED/S",
    "DEAD",
)
_KEY_HEADINGS = ("KEY", "PENDING", "IN FLIGHT", "WEIGHT", "OLDEST", "OUT/S", "SHARE", "PAUSED")


@dataclass(frozen=True, slots=True)
class _Sample:
    """One look at the broker: when, and each queue's numbers."""

    at_s: float
    stats_by_queue: dict[str, GetStatsResponse]


@click.command(
    cls=Command,
    examples="""
    fila top
    fila top orders
    fila top --interval 5s
    fila top --once
    """,
)
@click.argument("queue", required=False, shell_complete=complete_queue)
@click.option(
    "--interval", "interval_ms", type=DURATION, default="1s", show_default=True, help="Time between two looks"
)
@click.option(
    "--once",
    is_flag=True,
    help="Print one look and stop; also when the output is no terminal, or with -o json",
)
@click.pass_obj
def top(session: Session, queue: str | None, interval_ms: int, *, once: bool) -> None:
    """Watch all queues, or the fairness keys of QUEUE. Ctrl-C ends it."""
    if interval_ms < 1:
        raise click.BadParameter("must be at least 1ms", param_hint="'--interval'")
    pairs = _looks(session, queue, interval_ms / 1000)
    if once or session.format is not Format.TABLE or not sys.stdout.isatty():
        before, now = next(pairs)
        headings, rows = _rows(queue, before, now)
        noun = "keys" if queue else "queues"
        named = [heading.lower().replace(" ", "_").replace("/s", "_per_second") for heading in headings]
        show(
            session.format,
            {noun: [dict(zip(named, row, strict=True)) for row in rows]},
            table(headings, rows),
        )
        return

    from rich.live import Live

    try:
        with Live(screen=True, auto_refresh=False) as live:
            for before, now in pairs:
                live.update(_screen(session, queue, before, now), refresh=True)
    except KeyboardInterrupt:
        return


def _looks(session: Session, queue: str | None, interval_s: float) -> Iterator[tuple[_Sample, _Sample]]:
    """Pairs of neighbouring samples; the first pair is one interval apart too, so its rates mean something."""
    import grpc

    before = _look(session, queue)
    while True:
        time.sleep(interval_s)
        try:
            now = _look(session, queue)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            continue  # a broker that restarts is what people watch for: the last look stays on the screen
        yield before, now
        before = now


def _look(session: Session, queue: str | None) -> _Sample:
    import grpc

    from fila.v1 import admin_pb2

    at_s = time.monotonic()
    if queue is not None:
        names = [queue]
    else:
        listed = session.admin.ListQueues(admin_pb2.ListQueuesRequest(), timeout=session.timeout_s).queues
        busiest = sorted(listed, key=lambda each: (-(each.depth + each.in_flight), each.name))
        names = [each.name for each in busiest[:_QUEUES_MAX]]
    stats_by_queue = {}
    for name in names:
        request = admin_pb2.GetStatsRequest(queue=name, max_keys=_KEYS_MAX if queue else 1)
        try:
            stats_by_queue[name] = session.admin.GetStats(request, timeout=session.timeout_s)
        except grpc.RpcError as error:
            # A queue may be deleted between the listing and this look.
            if queue is not None or error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
    return _Sample(at_s, stats_by_queue)


def _rows(queue: str | None, before: _Sample, now: _Sample) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    elapsed_s = max(now.at_s - before.at_s, 1e-3)
    if queue is not None:
        return _KEY_HEADINGS, _key_rows(before.stats_by_queue[queue], now.stats_by_queue[queue], elapsed_s)
    return _QUEUE_HEADINGS, [
        _queue_row(name, before.stats_by_queue.get(name, stats), stats, elapsed_s)
        for name, stats in now.stats_by_queue.items()
    ]


def _queue_row(
    name: str, before: GetStatsResponse, now: GetStatsResponse, elapsed_s: float
) -> tuple[Cell, ...]:
    return (
        name,
        now.depth,
        now.in_flight,
        now.active_consumers,
        now.active_fairness_keys,
        age_text(now.oldest_age_ms),
        _rate(before.enqueued_total, now.enqueued_total, elapsed_s),
        _rate(before.delivered_total, now.delivered_total, elapsed_s),
        _rate(before.acked_total, now.acked_total, elapsed_s),
        now.dead_lettered_total,
    )


def _key_rows(before: GetStatsResponse, now: GetStatsResponse, elapsed_s: float) -> list[tuple[Cell, ...]]:
    earlier = {key.key: key for key in before.per_key_stats}
    served = {
        key.key: max(0.0, key.served_cost_total - earlier[key.key].served_cost_total)
        for key in now.per_key_stats
        if key.key in earlier
    }
    total = sum(served.values())
    rows: list[tuple[Cell, ...]] = []
    for key in now.per_key_stats:
        delivered_before = earlier[key.key].delivered_total if key.key in earlier else key.delivered_total
        share = f"{served.get(key.key, 0) / total:.0%}" if total else "-"
        rate = _rate(delivered_before, key.delivered_total, elapsed_s)
        paused = "yes" if key.paused else "no"
        rows.append(
            (
                key.key,
                key.pending_count,
                key.in_flight,
                key.weight,
                age_text(key.oldest_age_ms),
                rate,
                share,
                paused,
            )
        )
    return rows


def _rate(before: int, now: int, elapsed_s: float) -> int:
    # Counters start again with the broker.
    return round(max(0, now - before) / elapsed_s)


def _screen(session: Session, queue: str | None, before: _Sample, now: _Sample) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    headings, rows = _rows(queue, before, now)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        numeric = bool(rows) and isinstance(rows[0][i], int | float)
        grid.add_column(heading, justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    title = f"{queue or 'all queues'} at {session.address}, {time.strftime('%H:%M:%S')}   Ctrl-C ends"
    return Group(Text(title, style="dim"), Text(""), grid)
