"""One self-contained HTML page: no network, no script, no other file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from numbers import Integral
from typing import Any, Literal

import pandas as pd

from fila_pipeline.pages.plot import Plot, drawn

TABLE_ROWS_MAX = 200
Light = Literal["well", "look", "trouble", "unknown"]
LIGHTS: dict[Light, str] = {
    "well": "well", "look": "worth a look", "trouble": "trouble", "unknown": "too little data",
}  # fmt: skip
"""What a job found, in words; a colour alone says it to some."""

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; margin: 0;
  color: #1c2733; background: #f5f7f9; }
main { max-width: 1080px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 15px; font-weight: 600; color: #5b7083; margin: 0 0 6px; }
.answer { font-size: 24px; line-height: 1.35; font-weight: 600; margin: 0 0 18px; }
section { background: #fff; border: 1px solid #dde3e8; border-radius: 8px; padding: 16px 18px; margin: 18px 0; }
h2 { font-size: 16px; margin: 0 0 4px; }
p.about { color: #5b7083; margin: 0 0 10px; }
.note { border-left: 4px solid #d9822b; background: #fdf6ec; padding: 8px 14px; margin: 10px 0; }
.assumed { margin: 4px 18px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
th { text-align: right; color: #5b7083; font-weight: 600; border-bottom: 2px solid #dde3e8; padding: 5px 10px; }
td { text-align: right; border-bottom: 1px solid #edf0f3; padding: 4px 10px; }
th.text, td.text { text-align: left; }
footer { color: #5b7083; font-size: 13px; }
a { color: #1f5fa8; }
svg.plot { width: 100%; height: auto; display: block; font-size: 13px; }
.light { display: inline-block; min-width: 124px; font-size: 13px; font-weight: 600; color: #1c2733; }
.light::before { content: "\\25cf"; margin-right: 7px; font-size: 17px; vertical-align: -1px; color: #93a1ae; }
.light.well::before { color: #2e8b57; }
.light.look::before { color: #d9822b; }
.light.trouble::before { color: #b03a48; }
ul.jobs { list-style: none; margin: 0; padding: 0; }
ul.jobs li { padding: 6px 0; border-bottom: 1px solid #edf0f3; }
.job { margin-top: 44px; border-top: 3px solid #dde3e8; padding-top: 22px; }
"""


@dataclass(frozen=True)
class Figure:
    """A plot, with what it shows."""

    title: str
    about: str
    plot: Plot


@dataclass(frozen=True)
class Table:
    """Rows, the most telling first; the page shows TABLE_ROWS_MAX of them."""

    title: str
    about: str
    rows: pd.DataFrame


@dataclass(frozen=True)
class Page:
    """A job's report."""

    title: str
    answer: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = field(default_factory=list)
    assumed: Sequence[str] = ()
    """What the figures rest on, and stands below them."""
    light: Light = "look"


def moments(seconds: pd.Series) -> pd.Series:
    """Seconds since 1970 as moments for a time axis, UTC."""
    return pd.to_datetime(seconds, unit="s")


def called(rows: pd.DataFrame) -> list[str]:
    """What each row's key is called in a plot: with its queue and its channel where more than one of it is shown."""
    parts = [name for name in ("queue", "channel") if name in rows and rows[name].nunique() > 1]
    return [" / ".join(map(str, row)) for row in rows[[*parts, "fairness_key"]].itertuples(index=False)]


def render(page: Page, made_at: datetime, source: str) -> str:
    """Return the page's HTML: no script, and nothing from elsewhere."""
    return whole(page.title, body(page), made_at, source)


def body(page: Page) -> str:
    """What stands on a page."""
    parts = [f"<h1>{escape(page.title)}</h1>", f'<p class="answer">{escape(page.answer)}</p>']
    parts += [f'<p class="note">{escape(note)}</p>' for note in page.notes]
    parts += [section(each.title, each.about, drawn(each.plot)) for each in page.figures]
    parts += [f'<p class="assumed">{escape(each)}</p>' for each in page.assumed]
    parts += [section(each.title, each.about, _table(each.rows)) for each in page.tables]
    return "".join(parts)


def whole(title: str, content: str, made_at: datetime, source: str) -> str:
    """A file with this in it."""
    when = made_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main>{content}<footer>From {escape(source)}, {when}. Times are UTC.</footer></main></body></html>\n"
    )


def section(title: str, about: str, body: str) -> str:
    """A part of a page under a heading."""
    return f'<section><h2>{escape(title)}</h2><p class="about">{escape(about)}</p>{body}</section>'


def _table(rows: pd.DataFrame) -> str:
    if rows.empty:
        return "<p>None.</p>"
    shown = rows.head(TABLE_ROWS_MAX)
    texts = {name for name in shown.columns if shown[name].map(lambda value: isinstance(value, str)).any()}
    # A long name may break behind its words, so that a table of many columns is as wide as its numbers.
    names = {name: escape(str(name)).replace("_", "_<wbr>") for name in shown.columns}
    head = "".join(f"<th{_text(name, texts)}>{names[name]}</th>" for name in shown.columns)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_text(n, texts)}>{escape(_cell(v))}</td>" for n, v in zip(shown.columns, row, strict=True)
        )
        + "</tr>"
        for row in shown.itertuples(index=False)
    )
    more = len(rows) - len(shown)
    rest = f"<p class='about'>{more:,} more rows are in the Parquet files.</p>" if more else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{rest}'


def _text(name: str, texts: set[str]) -> str:
    return ' class="text"' if name in texts else ""


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and pd.isna(value)) or value is pd.NaT or value is pd.NA:
        return "-"
    if isinstance(value, pd.Timestamp | datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return (
            f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}" if abs(value) < 1 else f"{value:,.2f}"
        )
    return f"{value:,}" if isinstance(value, Integral) else str(value)


def length(milliseconds: float) -> str:
    """A length of time for people."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def amount(cost: float) -> str:
    """A cost, or a rate of it, for people."""
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.1f}"
