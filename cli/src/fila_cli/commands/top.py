"""`fila top`: queues, their keys, and why a key waits; live, or once."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from fila_cli.arguments import all_queues_option, complete_queue, is_listed
from fila_cli.output import Cell, Format, show, table
from fila_cli.session import Command, Session
from fila_cli.troubles import above, ask_what_is_wrong, told
from fila_cli.values import DURATION, age_text

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
    "PAUSED",
    "CIRCUIT",
)
_KEY_HEADINGS = (
    "KEY",
    "PENDING",
    "IN FLIGHT",
    "WEIGHT",
    "OLDEST",
    "OUT/S",
    "SHARE",
    "DUE",
    "PAUSED",
    "THROTTLED",
    "CAP",
)
_SPARE = ("ACKED/S", "CAP", "IN FLIGHT", "CONSUMERS", "KEYS", "WEIGHT", "OLDEST", "IN/S", "CIRCUIT")


@click.command(
    cls=Command,
    examples="""
    fila top
    fila top orders
    fila top --interval 5s
    fila top --once -o json
    fila top --once --all
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
@all_queues_option
@click.pass_obj
def top(session: Session, queue: str | None, interval_ms: int, *, once: bool, is_all: bool) -> None:
    """Watch all queues, or the fairness keys of QUEUE.

    Enter opens a queue's keys and then why one of them waits; p pauses, w weighs, / filters, s sorts, c shows one
    channel, ? lists all keys, q leaves.
    """
    if interval_ms < 1:
        raise click.BadParameter("must be at least 1ms", param_hint="'--interval'")
    interval_s = interval_ms / 1000
    is_seen = sys.stdout.isatty() and sys.stdin.isatty()
    if once or session.format is not Format.TABLE or not is_seen:
        _print_once(session, queue, interval_s, is_all=is_all)
        return
    from fila_cli.cockpit.cockpit import Cockpit
    from fila_cli.cockpit.driving import Driving

    Driving(session, Cockpit(queue=queue or ""), interval_s).run()


def _print_once(session: Session, queue: str | None, interval_s: float, *, is_all: bool) -> None:
    """Two looks, so that rates mean something."""
    rows = _key_rows(session, queue, interval_s) if queue else _queue_rows(session, interval_s)
    if not queue:
        rows = [
            row for row in rows if is_listed(row["queue"], row["depth"] + row["in_flight"], is_all=is_all)
        ]
    headings = _KEY_HEADINGS if queue else _QUEUE_HEADINGS
    lines = [[_cell(name, value) for name, value in row.items() if "total" not in name] for row in rows]
    shown = table(headings, lines, _SPARE, ("QUEUE", "KEY"))
    empty = f"nobody waits in {queue}" if queue else "there are no queues; 'fila queue create NAME' makes one"
    wrong = told(ask_what_is_wrong(session, queue or "")) if session.format is Format.TABLE else ""
    value = {"keys" if queue else "queues": rows}
    show(session.format, value, above(wrong, shown if rows else ""), empty=empty)


def _cell(name: str, value: Any) -> Cell:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "oldest_ms":
        return age_text(value)
    if name in ("share", "due"):
        return f"{value:.0%}"
    cell: Cell = round(value) if isinstance(value, float) else value
    return cell


def _queue_rows(session: Session, interval_s: float) -> list[dict[str, Any]]:
    from fila_cli.cockpit.cockpit import Call
    from fila_cli.cockpit.driving import ask
    from fila_cli.cockpit.looks import QueueLooks

    looks = QueueLooks()
    for pause_s in (interval_s, 0.0):
        looks.take(ask(session, Call("queues")), time.monotonic())
        time.sleep(pause_s)
    return [
        {
            "queue": row.name,
            "depth": row.depth,
            "in_flight": row.in_flight,
            "consumers": row.consumers,
            "keys": row.keys,
            "oldest_ms": row.oldest_ms or None,
            "in_per_second": round(row.in_per_s, 1),
            "out_per_second": round(row.out_per_s, 1),
            "acked_per_second": round(row.acked_per_s, 1),
            "dead": row.dead,
            "enqueued_total": row.enqueued_total,
            "acked_total": row.acked_total,
            "dead_lettered_total": row.dead_lettered_total,
            "totals_since": row.totals_since or None,
            "paused": row.paused,
            "circuit": row.circuit or None,
        }
        for row in sorted(looks.rows, key=lambda row: (-(row.depth + row.in_flight), row.name))
    ]


def _key_rows(session: Session, queue: str, interval_s: float) -> list[dict[str, Any]]:
    from fila_cli.cockpit.cockpit import Call
    from fila_cli.cockpit.driving import ask
    from fila_cli.cockpit.looks import KeyLooks

    looks = KeyLooks()
    for pause_s in (interval_s, 0.0):
        looks.take(ask(session, Call("keys", queue=queue)), time.monotonic())
        time.sleep(pause_s)
    return [
        {
            "key": row.name,
            "pending": row.pending,
            "in_flight": row.in_flight,
            "weight": row.weight,
            "oldest_ms": row.oldest_ms if row.pending else None,
            "out_per_second": round(row.out_per_s, 1),
            "share": row.share,
            "due": row.due,
            "paused": row.paused,
            "throttled": row.throttled,
            "cap": row.cap or None,
        }
        for row in looks.rows
    ]
