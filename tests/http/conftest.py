"""A gateway and the real server behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import RunningServer, queue, server, start_server
from tests.http.running_gateway import Gateway, start_bounded, start_by_command, wait_for_gateway

__all__ = ["queue", "server", "start_server"]


@pytest.fixture(scope="module")
def gateway(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One gateway for a module's tests."""
    running = wait_for_gateway(start_by_command(tmp_path_factory.mktemp("gateway"), server.addresses["grpc"]))
    yield running
    assert running.stop() == 0, running.log
    assert "Traceback" not in running.log


@pytest.fixture
def bounded_gateway(server: RunningServer, tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Gateways with bounds of the test's own."""
    gateways: list[Gateway] = []

    def start(**bounds: Any) -> Gateway:
        gateways.append(
            wait_for_gateway(start_bounded(tmp_path / "gateways", server.addresses["grpc"], **bounds))
        )
        return gateways[-1]

    yield start
    for running in gateways:
        running.process.kill()
        running.process.wait()
