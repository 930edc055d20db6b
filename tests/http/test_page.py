"""docs/http.md works, line by line."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.test_tutorials import agrees, steps_of

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.needs("curl", "module:fila_server.core.runtime.engine", "module:uvicorn"),
]

PAGE = Path(__file__).parents[2] / "docs/http.md"
DOCUMENTED = "localhost:8081"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_page_works_as_it_is_written(gateway, tmp_path):
    steps = [step for block in CONSOLE.findall(PAGE.read_text()) for step in steps_of(block)]
    assert len(steps) > 12

    for step in steps:
        command = step.command.replace(DOCUMENTED, f"127.0.0.1:{gateway.port}").replace(" -m 1 ", " -m 5 ")
        ran = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
        )
        # A stream on which nothing came at once says that it is alive.
        printed = ran.stdout.removeprefix(": alive\n\n") + ran.stderr
        assert agrees(step.expected, printed), f"$ {command}\n{printed}\n\nthe page says:\n{step.expected}"
