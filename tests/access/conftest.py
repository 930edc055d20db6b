"""The servers of the tests of access."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.access.guarded_server import Guarded
from tests.e2e.conftest import launch, start_server, wait_until_started

__all__ = ["start_server"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One server with keys on, for a module's tests."""
    folder = tmp_path_factory.mktemp("guarded")
    running = wait_until_started(launch(folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true"))
    yield Guarded(running)
    assert running.stop() == 0, running.log_file.read_text()
