"""The pages: one file each, without network, opened in a real browser."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree, rmtree

import pandas as pd
import pytest
from browser import browsed, plots_drawn
from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.readwriter import DataFrameWriter

from fila_pipeline.history import HistoryMissing, open_history
from fila_pipeline.main import _parser, _report, main
from fila_pipeline.pages.page import Page, Table, amount, length, render
from fila_pipeline.pages.waiting import delays_page
from fila_pipeline.recording import HistoryWriter
from fila_pipeline.runs import JOBS, Choices, run_job
from fila_pipeline.schema import CAUSES
from fila_pipeline.storage import StorageUnreachable
from fila_pipeline.synthetic import START, noisy_neighbours, record

PAGE_BYTES_MAX = 300_000
REPORT_BYTES_MAX = 1_000_000


@pytest.fixture(scope="module")
def reports(spark, tmp_path_factory) -> Path:
    """Every job on thirty busy minutes."""
    folder = tmp_path_factory.mktemp("reports")
    record(noisy_neighbours(1800), folder / "history")
    history = open_history(spark, str(folder / "history"))
    assert _report(history, str(folder), Choices(), "Some decisions") == 0
    return folder


@pytest.mark.parametrize("name", list(JOBS))
def test_a_page_says_its_answer_and_draws_its_plots_alone(reports, tmp_path, name):
    page = reports / name / "index.html"
    text = page.read_text()
    assert page.stat().st_size <= PAGE_BYTES_MAX
    assert not re.search(r"<(?:script|link|img|iframe)", text)
    seen = browsed(page, tmp_path)
    assert re.search(r'<p class="answer">[A-Z0-9][^<]{20,}\.</p>', seen)
    drawn = plots_drawn(seen)
    assert drawn
    assert all(drawn)
    assert "<table>" in seen
    assert list((reports / name).glob("*.parquet")), "and the tables beside it"


def test_all_of_a_report_is_one_page_of_under_a_megabyte(reports):
    page = reports / "index.html"
    text = page.read_text()
    assert page.stat().st_size < REPORT_BYTES_MAX
    found = re.findall(r'class="light (\w+)">[a-z ]+</span> <a href="#(\w+)"', text)
    assert {name: light for light, name in found} == {
        "fairness": "well", "delays": "trouble", "throttles": "look", "retries": "look", "capacity": "look",
        "anomalies": "look",
    }  # fmt: skip
    assert text.index("<h2>Shares over time</h2>") < text.index('<div class="job"')
    assert all(f'<div class="job" id="{name}">' in text for name in JOBS)


def test_a_fair_scheduler_is_not_accused_of_what_floods_limits_and_failures_do(spark, reports):
    """A message that a bucket or a backoff took away and gave back is demanded once."""
    assert '<p class="answer">Fair: in ' in (reports / "fairness/index.html").read_text()
    keys = spark.read.parquet(str(reports / "fairness/keys.parquet")).collect()
    assert {row.fairness_key: round(row.ratio, 1) for row in keys if abs(row.ratio - 1) > 0.05} == {}


def test_a_flood_and_a_run_of_failures_are_out_of_the_ordinary_and_quiet_keys_are_not(spark, reports):
    found = spark.read.parquet(str(reports / "anomalies/anomalies.parquet")).collect()
    assert {(row.fairness_key, row.what) for row in found} == {
        ("initech", "arrivals"),
        ("umbrella", "failures"),
    }


def test_too_little_data_is_said_and_is_no_error(spark, tmp_path):
    HistoryWriter(tmp_path / "history", "empty").gap(START, START, "the disk was full")
    history = open_history(spark, str(tmp_path / "history"))
    for name in ("fairness", "delays", "throttles", "retries", "capacity", "anomalies"):
        page = run_job(name, history, str(tmp_path / name), Choices())
        assert page.answer.startswith("There is too little data: no "), page.answer
        assert "the disk was full" in (tmp_path / name / "index.html").read_text()


def test_one_tenants_hour_is_answered_by_cause(spark, reports, tmp_path):
    history = open_history(spark, str(reports / "history"))
    choices = Choices(key="hooli", since=START, until=START.replace(minute=8))
    page = run_job("delays", history, str(tmp_path), choices)
    assert "deliveries of hooli from 09:00 to 09:08 waited" in page.answer
    assert "because a bucket was empty" in page.answer


def test_a_wait_of_nearly_nothing_is_not_told_as_a_power_of_ten():
    waits = dict.fromkeys((f"wait_{cause}_ms" for cause in CAUSES), 26.0)
    row = {"queue": "q", "channel": "c", "fairness_key": "k", "messages": 1, "wait_ms": 130.0, **waits}
    times = dict.fromkeys(("p50_ms", "p95_ms", "p99_ms", "max_ms"), 26.0)
    page = delays_page(pd.DataFrame([row | times | {"hour": 0.0}]), pd.DataFrame([row | times]), "")
    assert not re.search(r"<td>[\d.]+e-\d+</td>", render(page, START, "h"))


def test_what_a_message_carries_cannot_become_html():
    rows = pd.DataFrame({"fairness_key": ["<script>alert(1)</script>"]})
    html = render(Page("<b>", "<i>", tables=[Table("t", "", rows)], notes=["<u>"]), START, "<hr>")
    assert not re.search(r"<(script|b|i|u|hr)>", html)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fairness", "--out", "o"], "--history"),
        (
            ["fairness", "--history", "h", "--out", "o", "--window", "0"],
            "whole seconds from 1 to 86400, got '0'",
        ),
        (["delays", "--history", "h", "--out", "o", "--from", "noon"], "must be ISO 8601"),
        (["capacity", "--history", "h", "--out", "o", "--p99-ms", "-1"], "a number above 0"),
        (["report", "--history", "h", "--out", "o", "--all", "--conf", "memory=1"], "must look like spark"),
        (["guess"], "invalid choice"),
    ],
)
def test_a_wrong_argument_is_named(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        _parser().parse_args(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_made_up_history_takes_no_spark(tmp_path, capsys):
    assert main(["synthetic", "--out", str(tmp_path / "h"), "--seconds", "20"]) == 0
    assert "a made-up history of" in capsys.readouterr().out
    assert list((tmp_path / "h/_list").glob("*.json"))


def test_a_made_up_history_goes_to_a_directory_and_to_no_url(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["synthetic", "--out", "s3a://bucket/h"]) == 2
    assert "must be a directory of this machine" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fairness", "--history", "MISSING"], "MISSING holds no history: it has no folder _list"),
        (["report", "--all", "--history", "MISSING"], "MISSING holds no history"),
        (["backtest", "--history", "THERE", "--policy", "MISSING"], "--policy .*MISSING cannot be read"),
        (["backtest", "--history", "THERE", "--policy", "TYPO"], "queues.orders.weigths"),
    ],
)
def test_a_history_or_a_policy_that_is_none_is_refused_before_spark_starts(
    tmp_path, capsys, monkeypatch, arguments, said
):
    monkeypatch.setattr("fila_pipeline.main.session", lambda *_: pytest.fail("Spark was started"))
    (tmp_path / "THERE/_list").mkdir(parents=True)
    (tmp_path / "TYPO").write_text("[queues.orders]\nweigths = { acme = 3 }\n")
    given = [str(tmp_path / word) if word.isupper() else word for word in arguments]
    assert main([*given, "--out", str(tmp_path / "out")]) == 2
    assert re.search(said, capsys.readouterr().err.splitlines()[-1])


S3_CLIENT = "spark.jars.packages=org.apache.hadoop:hadoop-aws:3.5.0"
NO_CLIENT = (
    "PySpark comes without what opens {}:// (Class org.apache.hadoop.fs.{} not found); give --conf {}, or its jars "
    "as --conf spark.jars=A.jar,B.jar"
)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3a://bucket/h", NO_CLIENT.format("s3a", "s3a.S3AFileSystem", S3_CLIENT)),
        ("s3://bucket/h", f"Spark calls it s3a:// and needs --conf {S3_CLIENT}"),
        (
            "gs://bucket/h",
            NO_CLIENT.format(
                "gs",
                "gs.GoogleHadoopFileSystem",
                "spark.jars.packages=GROUP:ARTIFACT:VERSION of what has it",
            ),
        ),
        ("s 3://bucket/h", "it is no URL (java.net.URISyntaxException: Illegal character in scheme name"),
        (
            "http://127.0.0.1:1/h",
            "files of http:// cannot be listed, nor written; give a directory, or the URL of an",
        ),
        ("viewfs://nowhere/h", "IOException: ViewFs: Cannot initialize: Empty Mount table"),
    ],
)
@pytest.mark.parametrize("flag", ["--history", "--out"])
def test_a_url_that_cannot_be_opened_is_refused_before_the_first_task_with_what_to_do(
    spark, tmp_path, capsys, monkeypatch, flag, url, said
):
    monkeypatch.setattr("fila_pipeline.main.session", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    (tmp_path / "_list").mkdir()
    given = {"--history": str(tmp_path), "--out": str(tmp_path / "out"), flag: url}
    assert main(["fairness", *(word for pair in given.items() for word in pair)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"fila-pipeline: {flag} {url} cannot be opened: {said}")
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert not (tmp_path / "out").exists()


def test_a_table_that_went_to_the_disks_of_executors_is_no_empty_answer(
    spark, reports, tmp_path, monkeypatch
):
    """A directory that not all machines of a cluster have mounted is as many: the driver's gets a mark alone."""

    def written_elsewhere(_: DataFrameWriter, path: str) -> None:
        Path(path).mkdir(parents=True)
        (Path(path) / "_SUCCESS").touch()

    monkeypatch.setattr(DataFrameWriter, "parquet", written_elsewhere)
    history = open_history(spark, str(reports / "history"))
    with pytest.raises(
        StorageUnreachable, match=r"the executors wrote by_hour\.parquet where .* --out is a directory"
    ):
        run_job("delays", history, str(tmp_path / "out"), Choices())


def test_a_history_that_executors_do_not_see_is_told_from_none(spark, reports, tmp_path, monkeypatch):
    directory = tmp_path / "history"
    copytree(reports / "history", directory)
    read = DataFrameReader.json

    def gone_meanwhile(reader: DataFrameReader, path: str) -> DataFrame:
        listed = read(reader, path)
        rmtree(path)
        return listed

    monkeypatch.setattr(DataFrameReader, "json", gone_meanwhile)
    with pytest.raises(HistoryMissing, match=r"not the same place everywhere: .* --history is a directory"):
        open_history(spark, str(directory))


@pytest.mark.costly("a Spark of its own")
def test_a_master_that_spark_does_not_know_is_named(tmp_path):
    (tmp_path / "_list").mkdir()  # a history that is none is named first, before Spark starts
    command = [
        sys.executable,
        "-m",
        "fila_pipeline.main",
        "compact",
        "--history",
        str(tmp_path),
        "--master",
        "moon",
    ]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith("fila-pipeline: Spark did not start with --master moon; ")


@pytest.mark.parametrize(
    ("ms", "said"), [(12.3, "12 ms"), (1500, "1.5 s"), (180_000, "3.0 min"), (9e6, "2.5 h")]
)
def test_lengths_of_time_are_for_people(ms, said):
    assert length(ms) == said


@pytest.mark.parametrize(("cost", "said"), [(0.25, "0.2"), (99.94, "99.9"), (1_679_183.9, "1,679,184")])
def test_costs_are_for_people(cost, said):
    assert amount(cost) == said
