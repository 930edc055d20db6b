"""A door and the real server behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import RunningServer, queue, server, start_server
from tests.http.running_door import Door, start_bounded, start_by_command, wait_for_door

__all__ = ["queue", "server", "start_server"]


@pytest.fixture(scope="module")
def door(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """One door for a module's tests."""
    running = wait_for_door(start_by_command(tmp_path_factory.mktemp("door"), server.addresses["grpc"]))
    yield running
    assert running.stop() == 0, running.log
    assert "Traceback" not in running.log


@pytest.fixture
def bounded_door(server: RunningServer, tmp_path: Path) -> Iterator[Callable[..., Door]]:
    """Doors with bounds of the test's own."""
    doors: list[Door] = []

    def start(**bounds: Any) -> Door:
        doors.append(wait_for_door(start_bounded(tmp_path / "doors", server.addresses["grpc"], **bounds)))
        return doors[-1]

    yield start
    for running in doors:
        running.process.kill()
        running.process.wait()
