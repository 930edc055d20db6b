"""docs/telemetry.md and the Grafana dashboard say what the code says."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fila_server.telemetry import catalog

DOCS = Path(__file__).resolve().parents[2] / "docs"
DASHBOARD = json.loads((DOCS / "dashboards/fila.json").read_text())
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def test_the_page_has_the_table_of_all_metrics():
    page = DOCS / "telemetry.md"
    before, heading, _ = page.read_text().partition("## Every metric\n")
    introduction = page.read_text()[len(before) + len(heading) :].partition("| Metric |")[0]
    expected = before + heading + introduction + catalog.reference_table()
    if os.environ.get("FILA_UPDATE_GOLDEN"):
        page.write_text(expected)
    assert page.read_text() == expected


def names_on_the_page() -> dict[str, catalog.Metric]:
    return {
        metric.prometheus_name + suffix: metric
        for metric in catalog.METRICS
        for suffix in SUFFIXES[metric.kind]
    }


def panels() -> Iterator[dict[str, Any]]:
    for panel in DASHBOARD["panels"]:
        yield panel
        yield from panel.get("panels", [])


def expressions() -> Iterator[tuple[str, str]]:
    for panel in panels():
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["definition"]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_metric_and_label_the_dashboard_names_exists(where, expression):
    known = names_on_the_page()
    used = re.findall(
        r"\b(?:fila|process)_[a-z_]+\b(?=[\s{\[),]|$)", re.sub(r"by \([^)]*\)|\{[^}]*\}", "", expression)
    )
    assert used, expression

    for name in used:
        assert name in known or name.startswith("process_"), f"{where}: {name}"
    allowed = {"le"} | {
        attribute.replace(".", "_") for name in used if name in known for attribute in known[name].attributes
    }
    matched = re.findall(r"(\w+)(?:=~?|!=|!~)\"", expression)
    grouped = [
        label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")
    ]
    assert set(matched) | set(grouped) <= allowed, f"{where}: {expression}"


def test_counters_and_histograms_are_never_shown_as_they_stand():
    raw = {name for name, metric in names_on_the_page().items() if metric.kind != "gauge"}
    for where, expression in expressions():
        for name in raw:
            for found in re.finditer(rf"\b{name}\b", expression):
                before = expression[: found.start()]
                assert re.search(r"(rate|increase|label_values)\($", before), f"{where}: {expression}"


def rules() -> Iterator[tuple[str, str]]:
    alerts = yaml.safe_load((DOCS / "deploy/alerts.yml").read_text())
    for group in alerts["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


@pytest.mark.parametrize(("where", "expression"), [*expressions(), *rules()])
def test_no_sum_is_empty_because_one_of_its_parts_is_absent(where, expression):
    """A queue's counters come with their first event: adding what is absent gives nothing at all."""
    may_be_absent = {
        name
        for name, metric in names_on_the_page().items()
        if (catalog.QUEUE in metric.attributes and not metric.is_of_each) or metric is catalog.REFUSED
    }
    parts = re.split(r"\s\+\s", expression)
    for part in parts if len(parts) > 1 else []:
        if set(re.findall(r"fila_[a-z_]+", part)) & may_be_absent:
            assert "or vector(0)" in part, f"{where}: {expression}"


def test_panels_have_titles_units_and_places_of_their_own():
    titles = [panel["title"] for panel in panels()]
    assert len(set(titles)) == len(titles)
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert panel["description"]


def test_the_dashboard_answers_what_an_engineer_on_call_asks():
    text = json.dumps(DASHBOARD)
    for metric in (
        catalog.DEPTH, catalog.LATENCY, catalog.OLDEST, catalog.DEAD_LETTERED, catalog.REFUSED, catalog.WAITED,
        catalog.KEY_WAITED, catalog.KEY_RATIO, catalog.TOKENS, catalog.HOOK_ERRORS, catalog.HOOK_BREAKER,
        catalog.SYNC, catalog.STALLS, catalog.DISK_FREE, catalog.MAILBOX, catalog.CONSUMERS,
    ):  # fmt: skip
        assert metric.prometheus_name in text, metric.name
