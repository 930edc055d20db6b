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

pytestmark = [pytest.mark.e2e]


def test_the_first_five_minutes_show_a_quiet_tenant_served_in_turn(start_server: StartServer) -> None:
    server = start_server()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    environ |= {"FILA_ADDR": server.addresses["grpc"]}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"

    commands = terminal_picture.commands()
    printed = [
        subprocess.run(
            ["bash", "-c", line], env=environ, capture_output=True, text=True, check=True, timeout=30
        ).stdout
        for line in commands
    ]

    assert [line.split()[-1] for line in commands[-1:]] == ["8"]
    assert re.findall(r"(\w+) order (\d)", printed[-1]) == [
        ("globex", "1"),
        ("acme", "1"),
        ("globex", "2"),
        ("acme", "2"),
        ("globex", "3"),
        ("acme", "3"),
        ("globex", "4"),
        ("globex", "5"),
    ]
