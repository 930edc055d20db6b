"""What a test costs is counted with its processes, and one that costs too much fails unless it says why."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import costs

ROOT = Path(__file__).parents[2]
RUN = """
import sys, pytest
from tests import costs
costs.CPU_S_MAX = 0.3
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", sys.argv[1]], plugins=[costs]))
"""
TESTS = """
import subprocess, sys, pytest

WORK = "import time\\nwhile time.process_time() < 0.5: pass\\nprint('done', flush=True)\\ninput()"

@pytest.fixture(scope="module")
def shared():
    subprocess.run([sys.executable, "-c", WORK], stdin=subprocess.DEVNULL)

def work():
    # Of a process that lives on, as the server of a module does.
    process = subprocess.Popen([sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()

def test_costly():
    work()

@pytest.mark.costly("it must")
def test_that_says_why():
    work()

def test_of_a_shared_fixture(shared):
    pass
"""


def test_a_test_that_costs_too_much_with_its_processes_fails_unless_its_marker_says_why(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    found = tmp_path / "costs.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "test_some.py")],
        cwd=ROOT, env={**os.environ, "FILA_COSTS": str(found)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "test_costly took 0." in done.stdout, done.stdout
    assert "3 passed" in done.stdout
    assert "1 error" in done.stdout
    rows = {
        row["test"].rpartition("::")[2].rpartition(": ")[2]: row["cpu_s"]
        for row in map(json.loads, found.open())
    }
    assert {name for name, cpu in rows.items() if cpu >= 0.4} == {
        "test_costly",
        "test_that_says_why",
        "shared",
    }


def test_the_table_has_a_line_a_file_and_the_costliest_tests(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "FOLDER", tmp_path)
    with pytest.raises(SystemExit, match="make test"):
        costs.main()
    (tmp_path / "one.jsonl").write_text(
        '{"test": "tests/a.py::test_x[a: b]", "s": 1.5, "cpu_s": 0.5}\n'
        '{"test": "tests/a.py: server", "s": 1, "cpu_s": 1}\n'
        '{"test": "tests/b.py::test_y", "s": 2, "cpu_s": 4}\n'
    )
    monkeypatch.setattr(costs, "TABLE", tmp_path / "table")
    costs.main()
    assert (tmp_path / "table").read_text().splitlines() == [
        "cpu_s\tseconds\ttests\tof",
        "4.0\t2.0\t1\ttests/b.py",
        "1.5\t2.5\t2\ttests/a.py",
        "4.0\t2.0\t1\ttests/b.py::test_y",
        "1.0\t1.0\t1\ttests/a.py: server",
        "0.5\t1.5\t1\ttests/a.py::test_x[a: b]",
    ]


def test_the_files_that_took_longest_last_time_are_run_first_each_in_its_own_order(tmp_path, monkeypatch):
    (tmp_path / "table").write_text(
        "cpu_s\tseconds\ttests\tof\n9.0\t2.0\t2\ttests/a.py\n1.0\t30.0\t2\ttests/c.py\n"
    )
    monkeypatch.setattr(costs, "TABLE", tmp_path / "table")
    monkeypatch.setenv("FILA_COSTS", str(tmp_path / "costs"))
    names = ["tests/a.py::x", "tests/a.py::w", "tests/new.py::x", "tests/c.py::x[a::b]", "tests/c.py::a"]
    items = [SimpleNamespace(nodeid=name) for name in names]
    costs.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == [*names[3:], *names[:3]]
