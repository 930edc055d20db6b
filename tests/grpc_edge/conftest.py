"""A server, for what no library does for the edge: the rules of gRPC and HTTP/2."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import RunningServer, launch, start_server, wait_until_started

__all__ = ["start_server"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for a module's tests."""
    folder = tmp_path_factory.mktemp("native")
    running = wait_until_started(
        launch(
            folder / "data",
            folder / "server.log",
            FILA_STORAGE__DURABILITY="os",
        )
    )
    yield running
    assert running.stop() == 0, running.log_file.read_text()
