"""Every tutorial works, line by line, on a running server; so does what is Fila's on the pages for newcomers, and the
runbook.

A tutorial is a page of fenced blocks. A `python` or `lua` block whose first line is a comment
with a file's name becomes that file. In a `console` block a line after `$ ` is a command; what
follows it is what it prints, with `...` for what differs from run to run.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import forked_python
from tests.e2e.conftest import StartServer

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
COMING_FROM = FOLDER.parent / "coming-from"
NEEDS_SPARK = {"history-reports"}
"""Run by pipeline/tests, in the environment that has Spark."""
NOT_RUN_HERE = {"README"}
"""An index. BullMQ's program is JavaScript, which sdks/conformance runs; its commands are run here."""
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem not in NEEDS_SPARK)
MOVING_PAGES = sorted(page for page in COMING_FROM.glob("*.md") if page.stem not in NOT_RUN_HERE)
DOCUMENTED_ADDRESS = "localhost:5555"
COMMAND_S_MAX = 30.0

TIMEOUT = """
import subprocess, sys, time
from pathlib import Path

*_, seconds = sys.argv[1:5]
worker = subprocess.Popen(sys.argv[5:])
while worker.poll() is None and "works for" not in Path("worker.log").read_text():
    time.sleep(0.05)
time.sleep(float(seconds))
worker.terminate()
sys.exit(worker.wait())
"""
"""In place of `timeout` before a worker, whose time begins when it has begun to work: a busy machine starts it late."""

_BLOCK = re.compile(r"^```(?P<kind>python|lua|console)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE_NAME = re.compile(r"(?:#|--) (\w+\.(?:py|lua))")


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and what it prints."""

    command: str
    expected: str


def steps_of(console: str) -> list[Step]:
    steps = []
    for piece in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        lines = piece.splitlines()
        command = [lines.pop(0)]
        while command[-1].endswith("\\"):
            command.append(lines.pop(0))
        steps.append(Step("\n".join(command), "\n".join(lines).strip()))
    return steps


def agrees(expected: str, actual: str) -> bool:
    """Whether the output is the expected one: spaces count once, `...` stands for anything."""
    pattern = r".*?".join(
        r"\s+".join(re.escape(word) for word in part.split()).join(
            (r"\s*" if part[:1].isspace() else "", r"\s*" if part[-1:].isspace() else "")
        )
        for part in expected.split("...")
    )
    return re.fullmatch(pattern, actual.strip(), re.DOTALL) is not None


def test_the_tutorials_are_there() -> None:
    stems = [page.stem for page in PAGES]
    assert stems == ["fair-tenants", "provider-limits", "retries-and-dead-letters", "workers"]
    assert [page.stem for page in MOVING_PAGES] == ["bullmq", "celery", "kafka", "rabbitmq", "sqs"]


RUNBOOK = FOLDER.parent / "operations/runbook.md"

WALKS = [
    *(pytest.param(page, id=page.stem) for page in (*PAGES, RUNBOOK)),
    *(pytest.param(page, id=page.stem, marks=pytest.mark.soak) for page in MOVING_PAGES),
]


@pytest.mark.costly("ten to thirty commands, each a process")
@pytest.mark.timeout(240)  # a process for each command
@pytest.mark.parametrize("page", WALKS)
def test_the_tutorial_works_as_it_is_written(page: Path, start_server: StartServer, tmp_path: Path) -> None:
    server = start_server(FILA_TELEMETRY__OTLP_ENDPOINT="")
    folder = tmp_path / "tutorial"
    folder.mkdir()
    environ = _environ(folder, server.addresses["grpc"])

    for block in _BLOCK.finditer(page.read_text()):
        if block["kind"] == "console":
            for step in steps_of(block["body"]):
                _take(step, folder, environ)
            continue
        name = _FILE_NAME.match(block["body"])
        assert name is not None, f"a file's block begins with its name:\n{block['body']}"
        text = block["body"].replace(DOCUMENTED_ADDRESS, server.addresses["grpc"])
        (folder / name[1]).write_text(text)


def _take(step: Step, folder: Path, environ: dict[str, str]) -> None:
    ran = subprocess.run(
        ["bash", "-c", step.command],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
    printed = (ran.stdout + ran.stderr).strip()
    assert agrees(step.expected, printed), f"$ {step.command}\n{printed}\n\nthe page says:\n{step.expected}"
    assert ran.returncode == 0 or step.expected != "...", f"$ {step.command} failed:\n{printed}"


def _environ(folder: Path, address: str) -> dict[str, str]:
    """`fila` and `python` are the ones these tests run with."""
    programs = folder / ".bin"
    programs.mkdir()
    python = forked_python.program()
    for name, line in (
        ("python", f'exec "{python}" "$@"'),
        ("fila", f'exec "{python}" -c "from fila_cli.main import main; main()" "$@"'),
        ("timeout", f'exec "{python}" -c \'{TIMEOUT}\' "$@"'),
    ):
        program = programs / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    return kept | {"PATH": f"{programs}:{os.environ['PATH']}", "FILA_ADDR": address}
