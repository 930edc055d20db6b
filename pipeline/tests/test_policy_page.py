"""What the page of another policy says of how sure it is."""

from __future__ import annotations

import pandas as pd

from fila_pipeline.pages.policy import compare, policy_page


def came(p99_ms: float, seed: int = 0, slowness: float = 1.0) -> pd.DataFrame:
    """What came of one course for one key, most of whose messages wait for nothing."""
    waits = {"mean_ms": 300.0, "p40_ms": 0.0, "p60_ms": 700.0, "p95_ms": 900.0, "p99_ms": p99_ms}
    one = {
        "queue": "conv",
        "fairness_key": "acme",
        "seed": seed,
        "slowness": slowness,
        "delivered": 9,
        "dead_lettered": 0,
    }
    return pd.DataFrame([one | waits])


def compared() -> pd.DataFrame:
    alike = pd.concat([came(1000, seed) for seed in range(3)])
    return compare(came(1000), alike, alike, pd.concat([came(1500, slowness=1.1), came(400, slowness=0.9)]))


def test_the_range_of_a_forecast_is_that_of_slower_and_faster_consumers():
    (row,) = compared().itertuples()
    assert (row.policy_p99_ms, row.policy_p99_least_ms, row.policy_p99_most_ms) == (1000, 400, 1500)
    (plot,) = (figure.plot for figure in policy_page(compared(), 3, 0, 0, 0, 0).figures)
    bars = plot.series[0]
    assert (bars.y, bars.least, bars.most) == ([1.0], [0.4], [1.5])


def test_the_page_shows_p95_and_the_middle_fifth_and_no_single_median():
    (table,) = policy_page(compared(), 3, 0, 0, 0, 0).tables
    shown = table.rows.iloc[0]
    assert (shown["policy_p40_ms"], shown["policy_p60_ms"], shown["policy_p95_ms"]) == (0, 700, 900)
    assert not [name for name in compared().columns if "p50" in name]


def test_courses_of_which_nothing_was_drawn_are_told_to_be_the_same():
    said = " ".join(policy_page(compared(), 3, 0, 0, 0, 0).notes)
    assert "nothing had to be drawn, so all 3 courses are the same, and their spread says nothing" in said
    drawn = " ".join(policy_page(compared(), 3, 30, 0, 0, 0).notes)
    assert "of the 3 courses, which draw what was not recorded" in drawn


def test_how_well_the_model_repeats_the_recording_is_not_told_as_the_error_of_the_forecast():
    said = " ".join(policy_page(compared(), 3, 0, 0, 0, 0).notes)
    assert "the model repeats what happened: its p99 is 0% off" in said
    assert "That is not the error of the forecast" in said
