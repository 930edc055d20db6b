"""What the cockpit shows, as rich renderables of a given width. Columns that matter less go first where it is narrow.

Colours stay within the sixteen that a terminal's own theme decides, so they can be read on dark and light.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from fila_cli.cockpit.looks import DLQ_SUFFIX, KeyRow, QueueRow
from fila_cli.output import printable
from fila_cli.values import age_text

_BARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 12
SHARE_WIDTH = 10
NARROW = 80
NAME_WIDTH_MIN = 8
ACKED_FROM_WIDTH = 120
ADDRESS_FROM_WIDTH = 90
"""Where it is narrower, what the broker does matters more than where it is."""

HELD = "yellow"
TROUBLE = "bold red"
GOOD = "green"
QUIET = "dim"
CHOSEN = "reverse"


@dataclass(frozen=True)
class Column:
    """One column: its cell, how wide it is at least, and from which width of the screen on it is shown."""

    name: str
    cell: Callable[[Any], Text]
    rank: Callable[[Any], Any] | None
    """What `s` sorts by, largest first; None cannot be sorted by."""
    from_width: int = 0
    is_number: bool = True


def sparkline(values: Sequence[float], width: int = SPARK_WIDTH) -> str:
    """The last `width` values as bars, the largest of them the highest; nothing is a bar's foot."""
    shown = list(values)[-width:]
    most = max(shown, default=0.0)
    bars = (
        _BARS[min(int(value / most * len(_BARS)), len(_BARS) - 1)] if most else _BARS[0] for value in shown
    )
    return "".join(bars).rjust(width)


def share_bar(share: float | None, due: float | None, width: int = SHARE_WIDTH) -> Text:
    """What a key gets as a bar, a mark where its due is, and both in figures; red when it gets under half."""
    if share is None:
        return Text("-".ljust(width), style=QUIET)
    style = TROUBLE if due is not None and share < due / 2 else ""
    cells = ["█"] * round(share * width) + ["·"] * (width - round(share * width))
    styles = [style or GOOD if cell == "█" else QUIET for cell in cells]
    text = f" {share:>4.0%}"
    if due is not None:
        at = min(round(due * width), width - 1)
        cells[at], styles[at] = "┃", style or "bold"
        text += f" of {due:.0%}"
    bar = Text()
    for cell, cell_style in zip(cells, styles, strict=True):
        bar.append(cell, style=cell_style)
    return bar.append(text, style=style)


def rate_text(per_s: float) -> str:
    """`0`, `3.5`, `1,234`."""
    return f"{per_s:,.0f}" if per_s >= 10 or not per_s else f"{per_s:.1f}"


def count_text(count: int) -> str:
    """In full up to six figures, then in millions: a column has to stay one."""
    return f"{count:,}" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


# --- queues ----------------------------------------------------------------------------------


def queue_state(row: QueueRow) -> Text:
    """What somebody should know of a queue, worst first."""
    if row.circuit == "open":
        return Text("circuit open", style=TROUBLE)
    if row.paused:
        return Text("paused", style=HELD)
    if row.circuit == "half_open":
        return Text("half open", style=HELD)
    if row.depth and not row.consumers and not row.out_per_s:
        return Text("nobody consumes", style=HELD if not row.name.endswith(DLQ_SUFFIX) else QUIET)
    return Text("")


def _number(count: int, style: str = "") -> Text:
    return Text(count_text(count), style=style if count else QUIET)


def _rate_cell(per_s: float) -> Text:
    return Text(rate_text(per_s), style="" if per_s else QUIET)


def _age(ms: int) -> Text:
    return Text(age_text(ms) if ms else "-", style="" if ms else QUIET)


QUEUE_COLUMNS = (
    Column("QUEUE", lambda row: Text(printable(row.name)), lambda row: row.name, is_number=False),
    Column(
        "DEPTH",
        lambda row: _number(row.depth, TROUBLE if row.name.endswith(DLQ_SUFFIX) else HELD),
        lambda row: row.depth,
    ),
    Column("FLIGHT", lambda row: _number(row.in_flight), lambda row: row.in_flight),
    Column("CONS", lambda row: _number(row.consumers), lambda row: row.consumers, 80),
    Column("KEYS", lambda row: _number(row.keys), lambda row: row.keys, 100),
    Column("OLDEST", lambda row: _age(row.oldest_ms), lambda row: row.oldest_ms, 74),
    Column("IN/S", lambda row: _rate_cell(row.in_per_s), lambda row: row.in_per_s),
    Column("", lambda row: Text(sparkline(row.trail.into), style="cyan"), None, 128, is_number=False),
    Column("OUT/S", lambda row: _rate_cell(row.out_per_s), lambda row: row.out_per_s),
    Column("", lambda row: Text(sparkline(row.trail.out), style=GOOD), None, 92, is_number=False),
    Column("ACKED/S", lambda row: _rate_cell(row.acked_per_s), lambda row: row.acked_per_s, 140),
    Column("DEAD", lambda row: _number(row.dead, TROUBLE), lambda row: row.dead),
    Column("STATE", queue_state, None, is_number=False),
)


# --- keys ------------------------------------------------------------------------------------


def key_state(row: KeyRow) -> Text:
    """Why a key is held back, if it is."""
    if row.paused:
        return Text("paused", style=HELD)
    if row.throttled:
        return Text("throttled", style=HELD)
    if row.cap:
        return Text(f"cap {row.cap}", style=HELD if row.in_flight >= row.cap else "")
    return Text("")


KEY_COLUMNS = (
    Column("KEY", lambda row: Text(printable(row.name)), lambda row: row.name, is_number=False),
    Column("PENDING", lambda row: _number(row.pending, HELD), lambda row: row.pending),
    Column("FLIGHT", lambda row: _number(row.in_flight), lambda row: row.in_flight, 74),
    Column("WEIGHT", lambda row: Text(str(row.weight)), lambda row: row.weight, 90),
    Column("OLDEST", lambda row: _age(row.oldest_ms), lambda row: row.oldest_ms),
    Column("OUT/S", lambda row: _rate_cell(row.out_per_s), lambda row: row.out_per_s, 80),
    Column("", lambda row: Text(sparkline(row.trail.out), style=GOOD), None, 110, is_number=False),
    Column("SHARE", lambda row: share_bar(row.share, row.due), lambda row: row.share or 0.0, is_number=False),
    Column("STATE", key_state, None, is_number=False),
)


# --- tables ----------------------------------------------------------------------------------


def shown_columns(columns: Sequence[Column], width: int) -> list[Column]:
    """Those that a screen of this width has room for."""
    return [column for column in columns if width >= column.from_width]


def grid(columns: Sequence[Column], rows: Sequence[Any], *, width: int, chosen: int, sorted_by: str) -> Table:
    """The rows as a table no wider than the screen: where there is too little room, names are cut. The chosen row's
    name is marked."""
    shown = shown_columns(columns, width)
    gap = 1 if width < NARROW else 2
    names = [
        f"{column.name}▾" if column.name and column.name == sorted_by else column.name for column in shown
    ]
    cells = [[column.cell(row) for column in shown] for row in rows]
    widths = [
        max(len(name), *(row[at].cell_len for row in cells)) if cells else len(name)
        for at, name in enumerate(names)
    ]
    widths[0] = max(min(widths[0], width - sum(widths[1:]) - len(widths) * gap), NAME_WIDTH_MIN)
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for column, name, column_width in zip(shown, names, widths, strict=True):
        justify: JustifyMethod = "right" if column.is_number else "left"
        table.add_column(Text(name), justify=justify, no_wrap=True, overflow="ellipsis", width=column_width)
    for number, row in enumerate(cells):
        if number == chosen:
            row[0] = Text(row[0].plain.ljust(widths[0]), style=CHOSEN)
        table.add_row(*row)
    return table
