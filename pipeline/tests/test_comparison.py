"""What fairness bought: the page, what it counts, and logs that are not Fila's."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from fila_pipeline.comparison import by_tenant
from fila_pipeline.imported import ImportRefused, read_log
from fila_pipeline.main import main
from fila_pipeline.pages.comparison import comparison_page
from fila_pipeline.pages.page import render

MAPPING = """
time = "when"
took_ms = { size = 0.5, answer = 20 }
cost = "size"

[tenant]
column = "size"
classes = [{ name = "short", below = 1000 }, { name = "medium", up_to = 4000 }, { name = "long" }]
"""
LOG = "when,size,answer\n2026-03-02 14:00:00.5,999,1\n2026-03-02T14:00:01+00:00,1000,2\n1772460002,4001,3\n"


def served(
    course: str, tenant: str, p95_ms: float, slowness: float = 1.0, **more: object
) -> dict[str, object]:
    waits = {
        "mean_ms": p95_ms / 2,
        "p40_ms": 0.0,
        "p50_ms": 0.0,
        "p60_ms": 0.0,
        "p95_ms": p95_ms,
        "p99_ms": p95_ms,
    }
    one = {
        "course": course,
        "queue": "orders",
        "fairness_key": tenant,
        "slowness": slowness,
        "delivered": 9,
        "cost": 9.0,
    }
    return one | waits | {"contended_cost": 3.0} | more


def frame() -> pd.DataFrame:
    rows = []
    for course, acme, flood in (
        ("recorded", 900, 76_000),
        ("fair", 1000, 75_000),
        ("FIFO", 26_000, 20_000),
        ("new", 500, 80_000),
    ):
        for slowness, times in ((1.0, 1.0), (1.1, 1.5), (0.9, 0.5)):
            if course != "recorded" or slowness == 1:
                rows.append(served(course, "acme", acme * times, slowness))
                rows.append(served(course, "flood", flood * times, slowness, contended_cost=9.0, cost=90.0))
    rows.append(served("fair", "acme", 1e9, queue="orders.dlq"))
    return by_tenant(pd.DataFrame(rows), ["recorded", "fair", "FIFO", "new"])


def page(rows: pd.DataFrame, **more):
    return comparison_page(rows, "FIFO", "fair", "recorded", drawn=0, waited_before=0, **more)


def test_each_tenant_has_a_row_a_course_with_its_share_and_its_range():
    rows = frame()
    assert list(rows["tenant"].unique()) == ["flood", "acme"], "the one with most to do comes first"
    assert list(rows["course"][:4]) == ["recorded", "fair", "FIFO", "new"]
    assert set(rows["queue"]) == {"orders"}, "dead letters are no tenants"
    one = rows.set_index(["course", "tenant"]).loc[("fair", "acme")]
    assert (one["p95_ms"], one["p95_ms_least"], one["p95_ms_most"]) == (1000, 500, 1500)
    assert one["share"] == pytest.approx(0.25)


def test_the_means_of_several_starts_are_over_all_messages_and_a_tail_is_the_longest():
    rows = pd.DataFrame([served("fair", "acme", 100), served("fair", "acme", 1000, delivered=1)])
    (one,) = by_tenant(rows, ["fair"]).to_dict("records")
    assert (one["delivered"], one["mean_ms"], one["p95_ms"]) == (10, (9 * 50 + 500) / 10, 1000)


def test_the_page_says_in_one_sentence_who_waits_less_and_who_longer():
    said = page(frame()).answer
    assert said == (
        "In fair turns, against first in, first out, the p95 wait of acme falls from 26.0 s to 1.0 s, and that of "
        "flood rises from 20.0 s to 75.0 s."
    )
    alike = frame()
    alike["p95_ms"] = 100.0
    assert "are alike here" in page(alike).answer


def test_the_picture_has_first_in_first_out_and_fair_turns_and_each_policy_and_their_ranges():
    (shown,) = page(frame()).figures
    bars = shown.plot.series
    assert [each.name for each in bars] == ["first in, first out", "fair turns", "new"]
    assert bars[1].x == ["flood", "acme"]
    assert bars[1].y == [75, 1]
    assert (bars[1].least[1], bars[1].most[1]) == (0.5, 1.5)


def test_of_an_imported_log_the_page_says_what_was_assumed_and_shows_nothing_as_recorded():
    imported = page(frame(), assumed=["3 workers. That is an estimate."])
    assert imported.assumed[0] == "3 workers. That is an estimate."
    assert "recorded" not in set(imported.tables[0].rows["course"])
    assert "recorded" in set(page(frame()).tables[0].rows["course"])


def test_the_page_has_its_sentence_and_its_picture_before_what_they_rest_on():
    html = render(page(frame(), assumed=["3 workers."]), datetime(2026, 3, 2, tzinfo=UTC), "log.csv")
    seen = html.partition("<body>")[2]
    assert (
        seen.index('class="answer"')
        < seen.index('<svg class="plot"')
        < seen.index("3 workers.")
        < seen.index("<table>")
    )


def log(tmp_path: Path, text: str = LOG, mapping: str = MAPPING, workers: str = "2"):
    (tmp_path / "log.csv").write_text(text)
    (tmp_path / "mapping.toml").write_text(mapping)
    return read_log(str(tmp_path / "log.csv"), str(tmp_path / "mapping.toml"), workers)


def test_a_log_becomes_arrivals(tmp_path):
    found = log(tmp_path)
    assert found.arrivals.to_pylist() == [
        {"at_ms": 1772460000500, "tenant": "short", "cost": 999, "took_ms": 520},
        {"at_ms": 1772460001000, "tenant": "medium", "cost": 1000, "took_ms": 540},
        {"at_ms": 1772460002000, "tenant": "long", "cost": 4001, "took_ms": 2060},
    ]
    assert found.workers == 2
    assert any("0.5 x size + 20 x answer ms of one worker" in said for said in found.assumed)


def test_the_workers_are_estimated_by_what_the_log_keeps_busy(tmp_path):
    found = log(tmp_path, workers="estimate")
    assert found.workers == 3  # 3.12 s of work in 1.5 s keep 2.08 busy
    assert any("That is an estimate" in said and "2.08" in said for said in found.assumed)


@pytest.mark.parametrize(
    ("text", "mapping", "workers", "said"),
    [
        (LOG.replace(",1000,", ",,"), MAPPING, "2", "line 3: size is empty"),
        (
            LOG.replace("1772460002", "1772460000"),
            MAPPING,
            "2",
            "line 4: when goes back, from 2026-03-02T14:00:01",
        ),
        (LOG.replace(",1000,", ",many,"), MAPPING, "2", "line 3: size is 'many', which is no number"),
        (
            LOG.replace("2026-03-02 14:00:00.5", "today"),
            MAPPING,
            "2",
            "line 2: when is 'today', neither ISO 8601",
        ),
        (LOG.replace("999,1", "999,9e9"), MAPPING, "2", r"line 2: took_ms is 1.8e\+11, and must be from 0"),
        ("when,size\n", MAPPING, "2", "names the column answer, and .* has: when, size"),
        ("when,size,answer\n", MAPPING, "2", "has no rows below its heading"),
        (
            LOG,
            MAPPING.replace("time =", "at ="),
            "2",
            "at is not known; there are time, tenant, cost, took_ms",
        ),
        (LOG, 'time = "when"\ntenant = "size"\n', "2", "took_ms must be given"),
        (LOG, MAPPING.replace("20 }", "'x' }"), "2", "took_ms.answer must be a number"),
        (LOG, MAPPING.replace(', { name = "long" }', ""), "2", "line 4: size is 4001, above every class"),
        (LOG, "time =", "2", "is no TOML"),
        (LOG, MAPPING, "many", "--workers must be a number from 1 to 10,000, or estimate"),
        (LOG, MAPPING, "0", "--workers must be"),
    ],
)
def test_a_log_that_cannot_be_taken_is_refused_with_its_line_or_field(tmp_path, text, mapping, workers, said):
    with pytest.raises(ImportRefused, match=said):
        log(tmp_path, text, mapping, workers)


def test_a_log_of_a_million_tenants_is_refused_at_the_first_that_is_too_many(tmp_path):
    rows = "".join(f"1772460000,user{number},1\n" for number in range(1_000_000))
    with pytest.raises(
        ImportRefused, match=r"line 10002: tenant has more than 10,000 values: it is whom work is shared"
    ):
        log(tmp_path, "when,who,size\n" + rows, 'time = "when"\ntenant = "who"\ntook_ms = "size"\n')


def test_a_log_that_is_refused_starts_no_spark_and_leaves_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("fila_pipeline.main.session", lambda *_: pytest.fail("Spark was started"))
    (tmp_path / "log.csv").write_text(LOG.replace(",1000,", ",,"))
    (tmp_path / "mapping.toml").write_text(MAPPING)
    wanted = [
        "--import",
        str(tmp_path / "log.csv"),
        "--mapping",
        str(tmp_path / "mapping.toml"),
        "--workers",
        "2",
    ]
    assert main(["compare", *wanted, "--out", str(tmp_path / "out")]) == 2
    assert "log.csv, line 3: size is empty" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["compare", *wanted[:4], "--out", str(tmp_path / "out")]) == 2
    assert "--import needs --mapping FILE and --workers" in capsys.readouterr().err


def test_a_log_is_served_by_the_core_and_compared(spark, tmp_path, monkeypatch, capsys):
    """A flood of long ones, and short ones beside it: first in, first out these wait behind the flood."""
    rows = [f"{1772460000 + second},{size},1" for second in range(30) for size in [5000] * 5 + [100]]
    (tmp_path / "log.csv").write_text("\n".join(["when,size,answer", *rows]))
    (tmp_path / "mapping.toml").write_text(MAPPING)
    (tmp_path / "heavy.toml").write_text("[queues.imported]\nweights = { long = 100 }\n")
    monkeypatch.setattr("fila_pipeline.main.session", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    wanted = [
        "--import",
        str(tmp_path / "log.csv"),
        "--mapping",
        str(tmp_path / "mapping.toml"),
        "--workers",
        "2",
    ]
    out = tmp_path / "out"
    assert main(["compare", *wanted, "--policy", str(tmp_path / "heavy.toml"), "--out", str(out)]) == 0
    assert "the p95 wait of short falls from" in capsys.readouterr().out
    found = pd.read_parquet(out / "tenants.parquet").set_index(["course", "tenant"])
    assert set(found.index) == {
        (course, tenant) for course in ("recorded", "fair", "FIFO", "heavy") for tenant in ("short", "long")
    }
    assert found.loc[("fair", "short"), "p95_ms"] < 0.2 * found.loc[("FIFO", "short"), "p95_ms"]
    assert found.loc[("fair", "short"), "p95_ms"] == pytest.approx(
        found.loc[("recorded", "short"), "p95_ms"], abs=50
    )
    assert found.loc[("heavy", "short"), "p95_ms"] > found.loc[("fair", "short"), "p95_ms"]
    assert (found["delivered"].xs("long", level="tenant") == 150).all()
    assert found.loc[("fair", "long"), "p95_ms_least"] < found.loc[("fair", "long"), "p95_ms"]
    assert "decided the same again" in (out / "backtest/index.html").read_text()
