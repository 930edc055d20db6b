"""The page of `report`: for each job a light and an answer, the shares of the keys, and then all of every job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape

from fila_pipeline.pages.page import LIGHTS, Page, body, section, whole
from fila_pipeline.pages.plot import drawn

TITLE = "Fila: what the history says"


def overview(
    pages: Mapping[str, Page], facts: str, notes: Sequence[str], made_at: datetime, source: str
) -> str:
    """Return the HTML of the whole report; each job's page is in the folder of its name, too, with its tables."""
    parts = [f"<h1>{TITLE}</h1>", f'<p class="answer">{escape(facts)}</p>']
    parts += [f'<p class="note">{escape(note)}</p>' for note in notes]
    said = "".join(
        f'<li><span class="light {page.light}">{LIGHTS[page.light]}</span> '
        f'<a href="#{escape(name)}">{escape(page.title)}</a><br>{escape(page.answer)}</li>'
        for name, page in pages.items()
    )
    parts.append(f'<section><h2>Answers</h2><ul class="jobs">{said}</ul></section>')
    if "fairness" in pages:
        parts += [section(each.title, each.about, drawn(each.plot)) for each in pages["fairness"].figures[:1]]
    parts += [
        f'<div class="job" id="{escape(name)}">{body(page)}'
        f'<p class="about"><a href="{escape(name)}/index.html">By itself</a>, beside its tables as Parquet.</p></div>'
        for name, page in pages.items()
    ]
    return whole(TITLE, "".join(parts), made_at, source)
