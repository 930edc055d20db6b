"""The commands of the documents are right: each is accepted as it stands, and the tutorial's run, one after another."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fila_pipeline import schema
from fila_pipeline.main import _parser
from fila_pipeline.runs import JOBS
from pyspark_fila.columns import SCHEMA
from pyspark_fila.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs/tutorials/history-reports.md"
PAGES = [TUTORIAL, ROOT / "docs/pipeline.md"]


def commands(page: Path) -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    lines = [line.partition(" #")[0] for block in blocks for line in block.splitlines()]
    words = [shlex.split(line) for line in lines]
    return [line[1:] for line in words if line and line[0].endswith("fila-pipeline")]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_command_is_accepted(page):
    found = commands(page)
    assert found
    for arguments in found:
        _parser().parse_args(arguments)


def test_every_option_and_column_and_job_is_documented_and_nothing_else_is():
    text = (ROOT / "docs/pipeline.md").read_text()
    tables = [table.partition("\n\n")[0] for table in text.split("| option |")[1:]]
    documented = {
        name
        for options in tables
        for row in options.splitlines()[2:]
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert sorted(documented - {"load", "save", "start"}) == sorted(OPTIONS.keys() - {"path"})
    columns = text.partition("| column |")[2].partition("\n\n")[0]
    documented = [
        name for row in columns.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    assert sorted(documented) == sorted(SCHEMA.names)
    jobs = text.partition("| job |")[2].partition("\n\n")[0]
    documented = [name for row in jobs.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert documented == [*JOBS, "backtest", "checkpoint", "compact", "compare"]


def test_every_column_and_kind_of_the_history_is_documented():
    text = (ROOT / "docs/history.md").read_text()
    cells = {
        name
        for row in text.splitlines()
        if row.startswith("|")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    kinds = {*schema.KINDS, *schema.CHANGE_KINDS, *schema.INPUT_KINDS}
    assert cells == {*schema.DECISION_COLUMNS.names, *kinds}


@pytest.mark.soak
def test_the_tutorial_runs_as_it_is_written(tmp_path):
    """Its recording is the broker's own."""
    text = TUTORIAL.read_text()
    (recording,) = re.findall(r"^python bench/record.py (.*)$", text, re.MULTILINE)
    recorder = [str(ROOT / ".venv/bin/python"), str(ROOT / "bench/record.py"), *shlex.split(recording)]
    subprocess.run(recorder, cwd=tmp_path, check=True, timeout=600)
    (policy,) = re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "new.toml").write_text(policy)
    for arguments in commands(TUTORIAL):
        command = [sys.executable, "-m", "fila_pipeline.main", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, env=_environ(), timeout=600)
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=600)
    assert (tmp_path / "report/index.html").stat().st_size < 1_000_000
    assert (tmp_path / "verdict/policy/index.html").exists()


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "pipeline/src")}
