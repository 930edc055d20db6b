"""A server that tests fork is to its clients, its files and who waits for it what a new process is."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import prepared
from tests.e2e.conftest import launch, wait_until_started

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="nothing is forked where something is preloaded"),
]


def _holds(pid: int) -> set[str]:
    """What it holds open, beside the standard three."""
    held: set[str] = set()
    for opened in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            held |= {str(opened.readlink())} if int(opened.name) > 2 else set()
    return held


def _libraries(pid: int) -> set[str]:
    """The compiled modules that it has loaded."""
    paths = (line.split()[-1] for line in Path(f"/proc/{pid}/maps").read_text().splitlines())
    return {path for path in paths if path.endswith(".so") and "/fila_server/" in path}


def test_a_forked_server_loads_no_compiled_module_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FILA_SOAK", raising=False)
    server = wait_until_started(launch(tmp_path / "data", tmp_path / "server.log"))
    source = _libraries(prepared._sources[sys.executable]._process.pid)
    loaded = _libraries(server.process.pid)

    assert server.stop() == 0
    assert source
    assert loaded - source == set()


def test_a_forked_server_holds_open_nothing_of_what_it_was_forked_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("FILA_SOAK", raising=False)
    server = wait_until_started(launch(tmp_path / "data", tmp_path / "server.log"))
    assert isinstance(server.process, prepared.Forked)
    source = _holds(prepared._sources[sys.executable]._process.pid)
    held = _holds(server.process.pid)

    assert server.stop() == 0
    assert source
    assert held
    assert not source & held


def test_who_waits_for_a_forked_server_sees_how_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FILA_SOAK", raising=False)
    server = wait_until_started(launch(tmp_path / "data", tmp_path / "server.log"))
    assert server.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(0.01)
    server.process.send_signal(signal.SIGKILL)

    assert server.process.wait(30) == -signal.SIGKILL
    assert server.process.poll() == -signal.SIGKILL
    refused = launch(tmp_path / "data", tmp_path / "refused.log", FILA_SCHEDULER__QUANTUM="lots")
    assert refused.process.wait(30) == 2
    assert "quantum" in refused.log_file.read_text()
