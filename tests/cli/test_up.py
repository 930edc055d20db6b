"""`fila up`: three programs by one command, which end together."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.ports import KeptPort

START_S_MAX = 50.0
NOT_LINUX = sys.platform != "linux" and not os.environ.get("CI")
FILA = "from fila_cli.main import main; main()"


def _answers(port: int, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture
def ports() -> Iterator[list[int]]:
    """Of the broker, the console and the gateway; of the Redis port and the metrics page."""
    with ExitStack() as held:
        yield [held.enter_context(closing(KeptPort())).port for _ in range(5)]


def _up(folder: Path, ports: list[int]) -> subprocess.Popen[str]:
    places = [
        f"--{name}=127.0.0.1:{port}" for name, port in zip(("broker", "console", "http"), ports, strict=False)
    ]
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "FILA_REDIS__LISTEN_ADDR": f"127.0.0.1:{ports[3]}",
        "FILA_METRICS__LISTEN_ADDR": f"127.0.0.1:{ports[4]}",
        "FILA_STORAGE__BALLAST_BYTES": "1048576",
    }
    command = [sys.executable, "-c", FILA, "up", f"--data-dir={folder / 'data'}", *places]
    return subprocess.Popen(command, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True)


def _wait_until_all_answer(ports: list[int]) -> None:
    give_up_at = time.monotonic() + START_S_MAX
    pages = ((ports[1], "/healthz"), (ports[2], "/readyz"))
    while not all(_answers(port, path) for port, path in pages):
        assert time.monotonic() < give_up_at, "the console and the gateway do not answer"
        time.sleep(0.1)


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_command_runs_broker_console_and_gateway_and_a_signal_stops_them(
    tmp_path: Path, ports: list[int], number: signal.Signals
) -> None:
    up = _up(tmp_path, ports)
    _wait_until_all_answer(ports)

    up.send_signal(number)
    said = up.communicate(timeout=30)[1]

    assert up.returncode == 0, said
    assert f"broker 127.0.0.1:{ports[0]}, console http://127.0.0.1:{ports[1]}" in said
    assert '"event":"server.stopped"' in said
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.e2e
@pytest.mark.skipif(NOT_LINUX, reason="other systems tell no child of its parent's end; in CI this fails")
def test_a_kill_takes_broker_console_and_gateway_along(tmp_path: Path, ports: list[int]) -> None:
    up = _up(tmp_path, ports)
    _wait_until_all_answer(ports)

    up.kill()
    said = up.communicate(timeout=30)[1]  # until the last of them closed it

    assert '"event":"server.stopped"' in said
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize("taken", ["broker", "console", "http"])
def test_a_port_that_is_taken_is_named_before_anything_starts(
    tmp_path: Path, ports: list[int], taken: str
) -> None:
    port = ports[("broker", "console", "http").index(taken)]
    with socket.create_server(("127.0.0.1", port)):
        up = _up(tmp_path, ports)
        said = up.communicate(timeout=START_S_MAX)[1]

    assert up.returncode == 1
    assert f"--{taken}: nothing can listen at 127.0.0.1:{port} (Address already in use)" in said
    assert not (tmp_path / "data").exists()


def test_one_port_for_two_of_them_is_refused(tmp_path: Path, ports: list[int]) -> None:
    up = _up(tmp_path, [ports[0], ports[0], *ports[2:]])
    assert f"--console: nothing can listen at 127.0.0.1:{ports[0]}" in up.communicate(timeout=START_S_MAX)[1]


@pytest.mark.e2e
def test_a_broker_that_ends_is_named_and_nothing_stays(tmp_path: Path, ports: list[int]) -> None:
    with socket.create_server(("127.0.0.1", ports[3])):
        up = _up(tmp_path, ports)
        said = up.communicate(timeout=START_S_MAX)[1]

    assert up.returncode == 1
    assert "the broker ended with exit code 1, and said why above" in said
    assert not _answers(ports[1], "/healthz")


def test_a_place_that_is_none_is_refused_with_one_that_is() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FILA, "up", "--http", "8081"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert "'8081' is no place to listen; write it like 127.0.0.1:8081" in ran.stderr
