"""The README's first five minutes, typed as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import StartServer
from tools import terminal_picture

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]  # a process for each command

FIVE_MINUTES = (terminal_picture.ROOT / "README.md").read_text().split("## Five minutes")[1]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", FIVE_MINUTES, re.DOTALL)


def test_the_first_five_minutes_show_a_quiet_tenant_in_turn_and_a_limit(start_server: StartServer) -> None:
    server = start_server()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    environ |= {"FILA_ADDR": server.addresses["grpc"]}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"

    def typed(script: str, shell: str = "bash") -> str:
        ran = subprocess.run(
            [shell, "-c", script],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
            timeout=30,
        )
        return ran.stdout

    commands = terminal_picture.commands()
    taken = [typed(line) for line in commands][-1]

    assert [line.split()[-1] for line in commands[-1:]] == ["8"]
    assert re.findall(r"(\w+) order (\d)", taken) == [
        ("globex", "1"),
        ("acme", "1"),
        ("globex", "2"),
        ("acme", "2"),
        ("globex", "3"),
        ("acme", "3"),
        ("globex", "4"),
        ("globex", "5"),
    ]

    limited = typed(blocks("sh")[2])

    waited_s = re.search(r"real\s+0m([\d.]+)s", limited)
    assert waited_s is not None
    assert float(waited_s[1]) >= 3.5, (
        "twenty messages at five a second take four seconds, less what a bucket refills"
    )
    assert without_times(limited) == without_times(blocks("text")[0])

    hello = blocks("python")[0].replace("localhost:5555", server.addresses["grpc"])

    assert typed(hello, shell=sys.executable) == "{'tenant': 'acme'} b'hello'\n"


def without_times(printed: str) -> str:
    return re.sub(r"\d+m[\d.]+s", "...", printed)
