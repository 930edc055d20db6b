"""The whole screen: a line about the broker, the list or the explanation, and the keys that do something here."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fila_cli.cockpit.cockpit import Cockpit, Mode, Screen, in_words
from fila_cli.cockpit.views import (
    ACKED_FROM_WIDTH,
    ADDRESS_FROM_WIDTH,
    GOOD,
    HELD,
    QUIET,
    TROUBLE,
    count_text,
    grid,
    rate_text,
    sparkline,
)
from fila_cli.output import printable
from fila_cli.troubles import lever_of
from fila_cli.values import age_text

_HELP = (
    ("↑ ↓ j k", "choose a row"),
    ("Enter, →", "open: a queue's keys, then why a key waits"),
    ("Esc, ←", "back"),
    ("s, S", "sort by the next column; turn the order round"),
    ("/", "show only names with this text in them; Esc ends it"),
    ("p", "pause or resume what is chosen, asked once more"),
    ("w", "give a key a weight, asked once more"),
    ("c", "another channel's keys, and all channels' again"),
    ("d", "show dead-letter queues, or leave them out"),
    ("q, Ctrl-C", "leave"),
)
_LINES_AROUND = 5
"""Header, blank line, the table's head, footer, and one to spare."""


def render(cockpit: Cockpit, *, address: str, clock: str, now_s: float, width: int, height: int) -> Group:
    """Everything, for a screen of this size."""
    wrong = _wrong(cockpit, width)
    parts: list[RenderableType] = [_head(cockpit, address, clock, now_s, width), *wrong, Text("")]
    room = max(height - _LINES_AROUND - len(wrong), 1)
    if cockpit.mode is Mode.HELP:
        parts.append(_help())
    elif cockpit.screen is Screen.EXPLAIN:
        parts.append(_explanation(cockpit))
    else:
        parts += _list(cockpit, width, room)
    body = Group(*parts)
    return Group(Padding(body, (0, 0, 0, 0)), Text(""), _foot(cockpit, width))


def _head(cockpit: Cockpit, address: str, clock: str, now_s: float, width: int) -> Text:
    place = ["fila top"]
    if cockpit.queue:
        place.append(printable(cockpit.queue))
    if cockpit.channel:
        place.append(printable(cockpit.channel))
    if cockpit.screen is Screen.EXPLAIN:
        place.append(printable(cockpit.key))
    line = Text(" > ".join(place), style="bold")
    totals = _totals(cockpit, width)
    if totals:
        line.append(f"   {totals}", style="")
    if cockpit.silent_since_s is not None:
        silent = age_text(int((now_s - cockpit.silent_since_s) * 1000))
        line.append(f"   no answer for {silent}, trying again", style=TROUBLE)
    else:
        where = (
            f"   {address.removeprefix('http://')}  {clock}" if width >= ADDRESS_FROM_WIDTH else f"   {clock}"
        )
        if line.cell_len + len(where) <= width:
            line.append(where, style=QUIET)
    line.truncate(width, overflow="ellipsis")
    return line


def _wrong(cockpit: Cockpit, width: int) -> list[Text]:
    """The worst trouble and its lever, and how many more there are; or that all is well."""
    status = cockpit.status
    if status is None:
        return []
    if not status.troubles:
        return [Text(status.well, style=QUIET)] if status.well else []
    worst = status.troubles[0]
    more = len(status.troubles) - 1 + status.more_troubles
    style = QUIET if cockpit.silent_since_s is not None else TROUBLE
    lines = [Text(printable(worst.text), style=style), Text(f"  {lever_of(worst)}", style=QUIET)]
    if more:
        lines[0].append(f" And {more} more: fila status", style=QUIET)
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _totals(cockpit: Cockpit, width: int) -> str:
    if cockpit.screen is Screen.QUEUES:
        rows = cockpit.queues.rows
        into, out = sum(row.in_per_s for row in rows), sum(row.out_per_s for row in rows)
        pending = count_text(sum(row.depth for row in rows))
        line = f"{pending} pending  in {rate_text(into)}/s  out {rate_text(out)}/s"
        began = [row.totals_since for row in rows if row.totals_since]
        if began and width >= ACKED_FROM_WIDTH:
            line += f"  {count_text(sum(row.acked_total for row in rows))} acked since {min(began)}"
        return line
    stats = cockpit.keys.stats
    if stats is None or cockpit.screen is Screen.EXPLAIN:
        return ""
    out = sum(row.out_per_s for row in cockpit.keys.rows)
    keys = f"{count_text(stats.active_fairness_keys)} {'key' if stats.active_fairness_keys == 1 else 'keys'}"
    return f"{count_text(stats.depth)} pending  {keys}  out {rate_text(out)}/s"


def _list(cockpit: Cockpit, width: int, room: int) -> Sequence[RenderableType]:
    rows = cockpit.rows
    if not rows:
        has_asked = (
            bool(cockpit.queues.rows) if cockpit.screen is Screen.QUEUES else cockpit.keys.stats is not None
        )
        noun = "queue" if cockpit.screen is Screen.QUEUES else "key with anything pending"
        if cockpit.filter:
            return [Text(f"no {noun} with '{printable(cockpit.filter)}' in its name", style=QUIET)]
        return [Text(f"no {noun}" if has_asked or cockpit.silent_since_s is None else "", style=QUIET)]
    room = max(room - (len(rows) > room), 1)
    first = min(max(cockpit.chosen - room // 2, 0), max(len(rows) - room, 0))
    window = rows[first : first + room]
    table = grid(
        cockpit.columns, window, width=width, chosen=cockpit.chosen - first, sorted_by=cockpit.sorted_by
    )
    if len(window) == len(rows):
        return [table]
    return [table, Text(f"{first + 1} to {first + len(window)} of {len(rows)}", style=QUIET)]


def _explanation(cockpit: Cockpit) -> RenderableType:
    from fila_cli.explanation import explained

    if cockpit.explanation is None:
        return Text("asking", style=QUIET)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    strong = {"waits because": HELD, "next one goes": GOOD, "last one goes": GOOD}
    for name, value in explained(cockpit.key, cockpit.explanation):
        if name != "key":
            table.add_row(name, Text(printable(str(value)), style=strong.get(name, "")))
    row = next((row for row in cockpit.keys.rows if row.name == cockpit.key), None)
    if row is not None and row.trail.out:
        table.add_row("went, a second", Text(sparkline(row.trail.out, 40).lstrip(), style=GOOD))
    return table


def _help() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for keys, meaning in _HELP:
        table.add_row(Text(keys, style="bold"), meaning)
    return table


def _foot(cockpit: Cockpit, width: int) -> Text:
    if cockpit.mode is Mode.CONFIRMING and cockpit.pending is not None:
        return Text(f"{in_words(cockpit.pending)}? y, or any other key for no", style=HELD)
    if cockpit.mode is Mode.WEIGHING:
        return Text(f"weight, 1 to 1000, 0 for none of its own: {cockpit.typed}▏", style=HELD)
    if cockpit.mode is Mode.REASONING and cockpit.pending is not None:
        asked = f"{in_words(cockpit.pending)}: why, or nothing: {cockpit.typed}"
        return Text(f"{asked}▏  Enter goes on, Esc leaves it", style=HELD)
    if cockpit.mode is Mode.FILTERING:
        return Text(f"/{cockpit.typed}▏  Enter keeps it, Esc drops it", style=HELD)
    if cockpit.message:
        return Text(printable(cockpit.message), style=TROUBLE if cockpit.is_error else GOOD)
    keys = _keys_here(cockpit)
    line = Text("  ".join(keys), style=QUIET)
    while line.cell_len > width and len(keys) > 2:
        keys.pop(-3)  # help and the way out stay
        line = Text("  ".join(keys), style=QUIET)
    return line


def _keys_here(cockpit: Cockpit) -> list[str]:
    if cockpit.screen is Screen.EXPLAIN:
        return ["Esc back", "p pause", "w weigh", "? help", "q quit"]
    keys = ["Enter opens", "s sort", "/ filter", "p pause"]
    if cockpit.screen is Screen.KEYS:
        keys += ["w weigh", *(["c channel"] if cockpit.channels else []), "Esc back"]
    else:
        keys.append("d dead-letter queues")
    return [*keys, "? help", "q quit"]
