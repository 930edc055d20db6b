"""What a real broker recorded: the jobs run on it, it adds up to the broker's books, and its core decides it again."""

from __future__ import annotations

import json
import time
import zipfile
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from broker_process import BrokerProcess
from browser import browsed, plots_drawn
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from recordings import closed_recording, more_work, skewed_work, some_work

from fila_pipeline import main, schema
from fila_pipeline.backtest import PolicyNotTried, answer, backtest, try_policy
from fila_pipeline.checkpoint import checkpoint, sweep
from fila_pipeline.events import per_message
from fila_pipeline.history import live_entries, open_history
from fila_pipeline.jobs.fairness import fairness
from fila_pipeline.main import _parser, _run
from fila_pipeline.pages.fairness import fairness_page
from fila_pipeline.pages.policy import compare, policy_answer, policy_page
from fila_pipeline.runs import JOBS, Choices, run_job
from fila_pipeline.segments import (
    DIFFERENT,
    NO_BASE,
    NOTHING_NEW,
    OLDER_RULES,
    OTHER_VERSION,
    REFUSED,
    SAME,
    segments,
)

ROOT = Path(__file__).resolve().parents[2]

ELSEWHERE_IN_SOAK = pytest.mark.parametrize(
    "address_of", ["directory", pytest.param("elsewhere", marks=pytest.mark.soak)], indirect=True
)
"""Every command is tried with URLs of another file system in one test; the long runs try each of its outcomes there."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    return closed_recording(tmp_path_factory.mktemp("recorded"), lambda broker, _: some_work(broker))


def test_the_broker_writes_the_columns_that_the_jobs_read() -> None:
    from fila_server.history_files import columns

    readers = {schema.DECISIONS: schema.DECISION_COLUMNS, schema.CHANGES: schema.CHANGE_COLUMNS}
    for table, read in readers.items():
        assert {field.name: field.type for field in read} == {
            field.name: field.type for field in columns.SCHEMAS[table]
        }
    assert set(columns.KINDS[1:]) == set(schema.KINDS)
    assert set(columns.CHANGE_KINDS[1:]) == set(schema.CHANGE_KINDS)
    assert set(columns.INPUT_KINDS[1:]) == set(schema.INPUT_KINDS)


def test_every_message_ends_once_or_is_still_pending(spark: SparkSession, recorded) -> None:
    directory, stats = recorded
    history = open_history(spark, str(directory))
    assert not history.gaps
    assert not history.skipped
    each = per_message(history.decisions.where("queue = 'orders'"), "offset")
    final = each.where(f.col("kind").isin(*schema.FINAL))
    came = each.where("kind = 'enqueued'").select("offset")
    enqueued = came.count()
    assert enqueued == came.distinct().count() == 1060
    assert final.count() == final.select("offset").distinct().count()
    assert final.join(came, "offset", "left_anti").count() == 0
    assert enqueued - final.count() == stats.depth + stats.in_flight


def test_jobs_and_backtest_count_the_deliveries_that_the_broker_counts(
    spark: SparkSession, recorded, tmp_path: Path
) -> None:
    """A delivery that has no end is in the sum, too: here 7 come back untouched and 5 are kept."""
    directory, stats = recorded
    history = open_history(spark, str(directory))
    run_job("retries", history, str(tmp_path / "retries"), Choices())
    run_job("delays", history, str(tmp_path / "delays"), Choices())
    ends = pd.read_parquet(tmp_path / "retries/keys.parquet").sum(numeric_only=True)
    (verdict,) = backtest(spark, str(directory))

    assert (ends["returned"], ends["in_flight"]) == (7, 5) == (7, stats.in_flight)
    assert ends["acked"] + ends["nacked"] + ends["expired"] + 7 + 5 == ends["delivered"]
    assert pd.read_parquet(tmp_path / "delays/by_key.parquet")["messages"].sum() == ends["delivered"]
    assert verdict.deliveries == ends["delivered"] == stats.leased_total


# Of these, `make test` runs the first two on this recording in the test of what the broker counts, and the third in the
# test of every command.
IN_OTHER_TESTS = ("delays", "retries", "throttles")


@pytest.mark.parametrize(
    "job", [pytest.param(job, marks=[pytest.mark.soak] if job in IN_OTHER_TESTS else []) for job in JOBS]
)
def test_every_job_runs_on_it(spark: SparkSession, recorded, tmp_path: Path, job: str) -> None:
    page = run_job(job, open_history(spark, str(recorded[0])), str(tmp_path / job), Choices(window_s=1))
    assert "too little data" not in page.title or job == "anomalies"
    assert (tmp_path / job / "index.html").exists()


@pytest.fixture(scope="module")
def favoured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tenants with a backlog all the time; the core serves one of them as if it had weight 5."""
    return closed_recording(tmp_path_factory.mktemp("favoured"), lambda broker, _: skewed_work(broker))[0]


@pytest.mark.parametrize(("weight", "said"), [(5, "Fair: in "), (1, "Not fair: acme got")])
def test_a_core_that_serves_a_key_too_often_is_found_in_what_it_recorded(
    spark: SparkSession, favoured: Path, weight: int, said: str
) -> None:
    """What it did is fair where acme weighs 5; where it should weigh 1, it is a fault of the core."""
    weights = f.when(f.col("fairness_key") == "acme", weight).otherwise(f.col("weight")).cast("int")
    decisions = open_history(spark, str(favoured)).decisions
    (first,) = decisions.agg(f.min(f.unix_micros("at"))).first() or (0,)
    # Ten times as slow, so that there are windows enough of a second.
    slower = f.timestamp_micros(f.unix_micros("at") * 10 - 9 * first)
    found = fairness(decisions.withColumn("weight", weights).withColumn("at", slower), 1)
    found.shares.cache()
    parts = (found.shares, found.windows, found.keys, found.starvation)
    page = fairness_page(*(part.toPandas() for part in parts))
    assert page.answer.startswith(said), page.answer


def test_the_core_decides_it_again(spark: SparkSession, recorded) -> None:
    (verdict,) = backtest(spark, str(recorded[0]))
    assert verdict.outcome == SAME, verdict
    assert verdict.deliveries > 900
    assert "decided the same again" in answer([verdict])


def test_another_policy_is_compared_key_by_key_with_what_happened(
    spark: SparkSession, recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fila_pipeline.backtest.SLOWNESSES", (1000.0, 1.0))
    directory = str(recorded[0])
    (verdict,) = backtest(spark, directory)
    wider = "[limits]\nopenai = { rate = 10000, burst = 1000 }\n"
    courses = try_policy(spark, [directory], wider, [verdict.run], seeds=2)
    compared = compare(courses.recorded, courses.as_it_was, courses.with_policy, courses.slowed)
    compared = compared.set_index("fairness_key")

    assert set(compared.index) == {"acme", "flood", "hooli"}
    assert set(courses.with_policy["seed"]) == {0, 1}
    held = courses.as_it_was.groupby("fairness_key")["throttle_ms"].sum()
    assert held["hooli"] > 0
    assert courses.with_policy.groupby("fairness_key")["throttle_ms"].sum()["hooli"] == 0
    assert compared.loc["acme", "model_delivered"] == pytest.approx(
        compared.loc["acme", "recorded_delivered"], rel=0.1
    )
    means = courses.slowed.groupby("slowness")["mean_ms"].sum()
    # The same numbers, summed in another order.
    first = courses.with_policy[courses.with_policy["seed"] == 0]["mean_ms"].sum()
    assert means[1.0] == pytest.approx(first, rel=1e-9)
    assert means[1000.0] != means[1.0], "consumers of another speed make another course"
    page = policy_page(compared.reset_index(), 2, courses.drawn, courses.unknown, courses.refused, 0)
    assert page.answer == policy_answer(compared.reset_index())
    assert any(note.startswith("A model:") for note in page.notes)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            "[queues.order]\nmax_attempts = 1\n",
            "nothing was delivered from a queue of this name; there are orders",
        ),
        (
            "[queues.orders]\non_failure_script = 'function on_failure(msg) end'\n",
            'history.headers = "policy"',
        ),
        ("[limits]\nopenai = 1\n", "limits.openai must be"),
    ],
)
def test_a_policy_that_cannot_be_tried_says_why(
    spark: SparkSession, recorded, policy: str, said: str
) -> None:
    directory = str(recorded[0])
    (run,) = {entry.run for entry in live_entries(spark, directory) if entry.run}
    with pytest.raises(PolicyNotTried, match=said):
        try_policy(spark, [directory], policy, [run], seeds=1)


@pytest.mark.timeout(600)
def test_every_command_takes_and_writes_urls_of_another_file_system(
    spark: SparkSession,
    recorded,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As of an object store: Spark can open it, and nothing else can. All jobs are read and written alike; one stands
    for them.
    """
    monkeypatch.setattr(main, "JOBS", {"throttles": JOBS["throttles"]})
    directory = _copied(recorded[0], tmp_path / "history")
    history, out = (f"viewfs://elsewhere/disk{path}" for path in (directory, tmp_path / "out"))
    asked_for = tmp_path / "new.toml"
    asked_for.write_text("[limits]\nopenai = 'none'\n")
    compared = ["backtest", "--policy", str(asked_for), "--seeds", "1", "--history", history, "--out"]
    for asked in (
        ["report", "--all", "--history", history, "--out", out],
        [*compared, f"{out}/verdict"],
        ["checkpoint", "--history", history],
        ["compact", "--remove-replaced", "--history", history],
    ):
        assert _run(spark, _parser().parse_args(asked)) == 0
    printed = capsys.readouterr().out
    pages = {
        str(path.parent.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("index.html")
    }
    assert pages == {".", "throttles", "backtest", "verdict", "verdict/policy"}
    index, verdict, policy = (
        browsed(tmp_path / "out" / page / "index.html", tmp_path / "profile")
        for page in (".", "verdict", "verdict/policy")
    )
    assert index.count('/index.html">By itself</a>') == 2
    assert "The core decided the same again" in verdict
    (bars,) = plots_drawn(policy)
    assert bars
    assert printed.count(f": {SAME}, ") == 3
    assert list((directory / "checkpoints").glob("*.checkpoint"))


def _rewritten(directory: Path, table: str, change: Any) -> None:
    """One file of a table with one row changed, as somebody might who wants to look innocent."""
    (file, *_) = sorted((directory / table).rglob("*.parquet"))
    rows = pq.read_table(file)
    listed = rows.to_pylist()
    change(listed)
    pq.write_table(pa.Table.from_pylist(listed, schema=rows.schema), file)


def _copied(directory: Path, to: Path) -> Path:
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            target = to / path.relative_to(directory)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return to


def test_a_recording_of_older_rules_says_so_where_it_does_not_follow_and_never_that_it_differs(
    spark: SparkSession, recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = _copied(recorded[0], tmp_path / "history")

    def favour(rows: list[dict[str, Any]]) -> None:
        delivered = [row for row in rows if row["kind"] == schema.DELIVERED and row["fairness_key"] == "acme"]
        delivered[len(delivered) // 2]["fairness_key"] = "flood"

    def age(rows: list[dict[str, Any]]) -> None:
        head = json.loads(rows[0]["data"])
        del head["rules"]
        rows[0]["data"] = json.dumps(head).encode()

    _rewritten(directory, schema.INPUTS, age)
    asked = ["backtest", "--history", str(directory), "--out", str(tmp_path / "out")]
    assert _run(spark, _parser().parse_args(asked)) == 0
    assert f": {SAME}, " in capsys.readouterr().out

    _rewritten(directory, schema.DECISIONS, favour)
    assert _run(spark, _parser().parse_args(asked)) == 0
    printed = capsys.readouterr().out
    assert f": {OLDER_RULES}, " in printed
    assert "It was decided under older rules." in printed
    assert DIFFERENT not in printed


def test_a_delivery_that_the_core_would_not_make_is_printed_and_ends_the_command_with_3(
    spark: SparkSession, recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = _copied(recorded[0], tmp_path / "history")

    def favour(rows: list[dict[str, Any]]) -> None:
        delivered = [row for row in rows if row["kind"] == schema.DELIVERED and row["fairness_key"] == "acme"]
        delivered[len(delivered) // 2]["fairness_key"] = "flood"

    _rewritten(directory, schema.DECISIONS, favour)
    asked = ["backtest", "--history", str(directory), "--out", str(tmp_path / "out")]
    assert _run(spark, _parser().parse_args(asked)) == 3
    printed = capsys.readouterr().out
    assert f": {DIFFERENT}, " in printed
    assert "recorded delivered of orders/default key 'flood'" in printed
    assert "It does not follow." in (tmp_path / "out/index.html").read_text()


@ELSEWHERE_IN_SOAK
def test_the_reference_judges_what_the_broker_recorded_and_names_what_it_does_not(
    spark: SparkSession, recorded, tmp_path: Path, address_of, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a head its files are hashed too: here, or where Spark reads them."""
    from fila_server.history_files import chain, judge

    directory = _copied(recorded[0], tmp_path / "history")
    asked = ["backtest", "--against", "reference", "--head", chain.check(directory).head]
    asked += ["--history", address_of(directory), "--out", str(tmp_path / "out")]
    assert _run(spark, _parser().parse_args(asked)) == 0
    printed = capsys.readouterr().out
    assert ": promises kept, " in printed
    assert "backtest: Consistent: " in printed
    page = (tmp_path / "out/index.html").read_text()
    for said in judge.NOT_JUDGED:
        assert f"not judged: {said}" in printed
        assert escape(said) in page

    def twice(rows: list[dict[str, Any]]) -> None:
        at = [row["kind"] for row in rows].index(schema.DELIVERED)
        rows.insert(at + 1, rows[at])

    _rewritten(directory, schema.DECISIONS, twice)
    assert _run(spark, _parser().parse_args(asked)) == 3
    printed = capsys.readouterr().out
    assert "broken: delivered of orders/default" in printed
    assert "was changed: its hash is not the one that was listed" in printed


def test_a_history_without_its_beginning_cannot_be_replayed(
    spark: SparkSession, recorded, tmp_path: Path
) -> None:
    directory = _copied(recorded[0], tmp_path / "history")

    def behead(rows: list[dict[str, Any]]) -> None:
        del rows[: next(i for i, row in enumerate(rows) if row["kind"] == "base_ends") + 1]

    _rewritten(directory, schema.INPUTS, behead)
    (verdict,) = backtest(spark, str(directory))
    assert verdict.outcome == NO_BASE
    assert "Nothing could be replayed" in answer([verdict])


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "is damaged: "),
        (lambda path: path.unlink(), "is listed, and missing"),
    ],
    ids=["truncated", "missing"],
)
def test_a_recording_that_cannot_be_read_is_refused_and_says_which_file(
    spark: SparkSession, recorded, tmp_path: Path, address_of, harm: Any, said: str
) -> None:
    directory = _copied(recorded[0], tmp_path / "history")
    (file, *_) = sorted((directory / schema.INPUTS).rglob("*.parquet"))
    harm(file)
    (verdict,) = backtest(spark, address_of(directory))
    assert verdict.outcome == REFUSED
    assert verdict.said.startswith(f"{file.relative_to(directory)} {said}")
    assert checkpoint(spark, address_of(directory), None) == [verdict]


def test_a_segment_ends_at_the_first_gap(spark: SparkSession, recorded, tmp_path: Path) -> None:
    directory = _copied(recorded[0], tmp_path / "history")
    entries = live_entries(spark, str(directory), replaced=True)
    run = next(entry.run for entry in entries if entry.run)
    (directory / "_list/gap.json").write_text(
        f'{{"version": 1, "run": "{run}", "gap": "a disk", "first_at": "2020-01-01T00:00:00+00:00", '
        f'"last_at": "2020-01-01T00:00:01+00:00"}}'
    )
    assert segments(live_entries(spark, str(directory), replaced=True), str(directory)) == []


def test_decisions_whose_inputs_were_not_closed_are_told_and_not_passed_over(
    spark: SparkSession, rolled
) -> None:
    """A broker that leaves while it closes a stretch's files lists some of them: here not the last inputs."""
    listed = live_entries(spark, str(rolled), replaced=True)
    (*_, last) = [entry for entry in listed if entry.table == schema.DECISIONS]
    for entry in listed:
        if entry.table == schema.INPUTS and entry.last_at >= last.first_at:
            (rolled / schema.LIST / f"{Path(entry.file).stem}.json").unlink()
    count = last.messages
    assert count > 0

    (verdict,) = backtest(spark, str(rolled))
    assert verdict.outcome == SAME
    assert verdict.said.startswith(f"{count:,} decisions after ")
    assert f"could be followed: {count:,} decisions after " in answer([verdict])
    assert verdict.decisions + count == sum(
        entry.messages for entry in listed if entry.table == schema.DECISIONS
    )


@pytest.fixture
def rolled(tmp_path: Path) -> Path:
    """A recording in several files, as a broker leaves them that runs for long."""

    def work(broker: BrokerProcess, directory: Path) -> None:
        some_work(broker)
        # The recorder's thread has the lowest priority: on a busy machine it closes a file late.
        while schema.INPUTS not in {
            json.loads(path.read_text()).get("table") for path in (directory / schema.LIST).glob("[!_]*.json")
        }:
            time.sleep(0.05)
        more_work(broker)

    return closed_recording(tmp_path, work, roll_ms=1000)[0]


def _forget(directory: Path, through: str) -> None:
    """Remove files and their entries, oldest first, as retention does."""
    for path in sorted((directory / schema.LIST).glob("[!_]*.json")):
        entry = json.loads(path.read_text())
        if entry.get("table") == schema.INPUTS and entry["file"] <= through:
            last_at = entry["last_at"]
    for path in sorted((directory / schema.LIST).glob("[!_]*.json")):
        entry = json.loads(path.read_text())
        if entry.get("file") and entry["last_at"] <= last_at:
            path.unlink()
            (directory / entry["file"]).unlink()


# `make test` makes a checkpoint on another file system, in the test of every command; the long runs follow one there.
@ELSEWHERE_IN_SOAK
def test_a_run_whose_beginning_is_gone_is_followed_from_a_checkpoint(
    spark: SparkSession, rolled, address_of
) -> None:
    directory = address_of(rolled)
    (whole,) = backtest(spark, directory)
    (segment,) = segments(live_entries(spark, directory), directory)
    assert len(segment.inputs) > 1
    first, second = (
        next(entry for entry in live_entries(spark, directory) if entry.file == file)
        for file in (segment.inputs[0], segment.inputs[1])
    )
    (made,) = checkpoint(spark, directory, datetime.fromisoformat(second.first_at))
    assert (made.outcome, whole.outcome) == (SAME, SAME)
    _forget(rolled, first.file)

    (verdict,) = backtest(spark, directory)
    assert (verdict.outcome, bool(verdict.since)) == (SAME, True)
    assert made.deliveries + verdict.deliveries == whole.deliveries
    assert verdict.deliveries > 0
    (later,) = checkpoint(spark, directory, None)
    assert (later.outcome, later.deliveries) == (SAME, verdict.deliveries)
    (nothing,) = checkpoint(spark, directory, None)
    assert nothing.outcome == NOTHING_NEW
    assert sweep(spark, directory) == []
    assert len(list((rolled / "checkpoints").glob("*.checkpoint"))) == 2
    with pytest.raises(PolicyNotTried, match="no base"):
        try_policy(spark, [directory], "[queues.orders]\nmax_attempts = 1\n", [verdict.run], seeds=1)


def test_a_checkpoint_of_another_version_is_not_taken_up_and_says_so(spark: SparkSession, rolled) -> None:
    directory = str(rolled)
    (segment,) = segments(live_entries(spark, directory), directory)
    entry = next(entry for entry in live_entries(spark, directory) if entry.file == segment.inputs[1])
    checkpoint(spark, directory, datetime.fromisoformat(entry.first_at))
    _forget(rolled, segment.inputs[0])
    (path,) = (rolled / "checkpoints").iterdir()
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["head.json"] = json.dumps(json.loads(parts["head.json"]) | {"version": "0.0.9"}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)

    (verdict,) = backtest(spark, directory)
    assert verdict.outcome == NO_BASE
    assert "written by the core of Fila 0.0.9" in verdict.said


def test_a_recording_of_another_version_is_named_and_not_replayed(spark: SparkSession, rolled) -> None:
    for path in rolled.glob("inputs/*/*/*.parquet"):
        rows = pq.read_table(path, partitioning=None)
        facts = {**pq.ParquetFile(path).metadata.metadata, b"fila.history.recorded_by": b"0.0.9"}
        pq.write_table(rows.replace_schema_metadata(facts), path)
    (verdict,) = backtest(spark, str(rolled))
    assert verdict.outcome == OTHER_VERSION
    assert "Fila 0.0.9 recorded it" in verdict.said
    assert checkpoint(spark, str(rolled), None) == [verdict]
    assert not (rolled / "checkpoints").exists()
