"""The index page of `report`: each job's answer, and the way to its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape

from fila_pipeline.pages.page import Page, render


def overview(
    pages: Mapping[str, Page], facts: str, notes: Sequence[str], made_at: datetime, source: str
) -> str:
    """Return the index page's HTML; each job's page is in the folder of its name."""
    html = render(Page("Fila: what the history says", facts, notes=notes), made_at, source)
    sections = "".join(
        f'<section><h2><a href="{escape(name)}/index.html">{escape(page.title)}</a></h2>'
        f"<p>{escape(page.answer)}</p></section>"
        for name, page in pages.items()
    )
    return html.replace("<footer>", f"{sections}<footer>", 1)
