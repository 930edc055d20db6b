"""Plots: where values stand, what is written beside them, and that nothing of a name becomes markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pandas as pd
import pytest

from fila_pipeline.pages.axes import Axis, axis_of
from fila_pipeline.pages.overview import overview
from fila_pipeline.pages.page import Figure, Page, Table, called
from fila_pipeline.pages.plot import POINTS_MAX, Plot, drawn

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def texts(axis: Axis) -> list[str]:
    return [text for _, text in axis.ticks()]


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        (axis_of([0, 97], from_zero=True), ["0", "20", "40", "60", "80", "100"]),
        (axis_of([0.1, 0.42], from_zero=True, is_part=True), ["0%", "10%", "20%", "30%", "40%"]),
        (axis_of([2.0, 70_000.0], is_log=True), ["1", "10", "100", "1,000", "10,000"]),
        (axis_of(["b", "a", "b"]), ["b", "a"]),
        (axis_of([0.001, 0.004], from_zero=True), ["0.000", "0.001", "0.002", "0.003", "0.004"]),
        (axis_of([]), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_beside_an_axis_stand_round_numbers(axis, said):
    assert texts(axis) == said
    assert all(0 <= at <= 1 for at, _ in axis.ticks())


def test_an_axis_of_time_has_a_few_moments_of_the_day():
    times = [pd.Timestamp("2026-03-02 14:00") + pd.Timedelta(minutes=each) for each in range(61)]
    assert texts(axis_of(times)) == ["14:00", "14:10", "14:20", "14:30", "14:40", "14:50", "15:00"]
    assert axis_of(times).at(times[30]) == 0.5


def rectangles(svg: str) -> list[tuple[float, float]]:
    """Where each bar begins, and how long it is."""
    found = re.findall(
        r'<rect x="([0-9.]+)" y="[0-9.]+" width="([0-9.]+)" height="[0-9.]+" fill="[^"]+"><title>', svg
    )
    return [(float(x), float(wide)) for x, wide in found]


def test_stacked_bars_begin_where_those_before_them_end():
    plot = Plot(bars="stacked", is_flat=True)
    plot.bar(["a", "b"], [1.0, 2.0], "one")
    plot.bar(["a", "b"], [3.0, float("nan")], "two")
    first, second, third = rectangles(drawn(plot))
    assert third[0] == pytest.approx(first[0] + first[1], abs=0.2)
    assert second[1] == pytest.approx(2 * first[1], abs=0.3)
    assert third[1] == pytest.approx(3 * first[1], abs=0.3)


def test_a_line_has_a_gap_where_nothing_is_known_and_no_more_points_than_a_screen_shows():
    plot = Plot()
    plot.line(range(5), [1.0, 2.0, float("nan"), 4.0, 5.0], "short")
    plot.line(range(10_000), [1.0] * 5_000 + [90.0] + [1.0] * 4_999, "long")
    short, long = re.findall(r'<path d="(M[^"]+)" fill="none"', drawn(plot))
    assert short.count("M") == 2
    assert long.count("L") + long.count("M") <= POINTS_MAX
    top = min(float(each) for each in re.findall(r" ([0-9.]+)", long))
    assert top < 60, "the one high point of ten thousand is drawn"


def test_a_bar_and_a_point_say_their_numbers_and_no_name_becomes_markup():
    plot = Plot(y_title="<i>")
    plot.bar(["<b>x"], [1234.5], "<script>", least=[1000.0], most=[2000.0])
    plot.line(["<b>x"], [0.5], "<u>", points=True)
    svg = drawn(plot)
    assert "<title>&lt;script&gt;, &lt;b&gt;x: 1,234</title>" in svg
    assert "<title>&lt;u&gt;, &lt;b&gt;x: 0.5</title>" in svg
    assert not re.search(r"<(script|b|u|i)>", svg)


def test_a_key_of_several_queues_is_told_with_its_queue():
    rows = pd.DataFrame({"queue": ["q", "r"], "channel": ["c", "c"], "fairness_key": ["a", "a"]})
    assert called(rows) == ["q / a", "r / a"]
    assert called(rows.head(1)) == ["a"]


def test_the_report_is_one_page_with_a_light_for_each_job_and_the_shares_at_its_top():
    plot = Plot()
    plot.line([1, 2], [3.0, 4.0], "acme")
    pages = {
        "delays": Page("Delays", "They waited.", [Figure("Waits", "", plot)], light="trouble"),
        "fairness": Page(
            "Fairness", "Fair.", [Figure("Shares", "", plot)], [Table("t", "", rows())], light="well"
        ),
        "retries": Page("Retries: too little data", "There is too little data.", light="unknown"),
    }
    html = overview(pages, "7 decisions.", ["a gap"], NOW, "<h>")
    top = html.partition('<div class="job"')[0]
    lights = re.findall(r'class="light (\w+)">([a-z ]+)</span> <a href="#(\w+)"', top)
    assert lights == [
        ("trouble", "trouble", "delays"), ("well", "well", "fairness"), ("unknown", "too little data", "retries"),
    ]  # fmt: skip
    assert "<h2>Shares</h2>" in top
    assert "<h2>Waits</h2>" not in top
    assert re.findall(r'<div class="job" id="(\w+)">', html) == list(pages)
    assert html.count("a gap") == 1
    assert "From &lt;h&gt;," in html


def rows() -> pd.DataFrame:
    return pd.DataFrame({"fairness_key": ["acme"], "served": [3]})
