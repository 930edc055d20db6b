"""Clients that maintained generators make of the OpenAPI document work: every call is made, by every one of them.

`make test` makes the one in Python. Compilers of the other two take what three tests may, and a minute where nothing is
in Go's cache: they are left to `make soak` and to `make clients`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import launch, wait_until_started
from tests.http.generated.clients import GoClient, PythonClient, TypeScriptClient
from tests.http.generated.every_call import ask_all
from tests.http.running_gateway import start_by_command, wait_for_gateway

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Its address, and an admin's key of the broker behind it, which asks for keys."""
    folder = tmp_path_factory.mktemp("door")
    server = wait_until_started(launch(folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true"))
    gateway = wait_for_gateway(start_by_command(folder / "gateway", server.addresses["grpc"]))
    yield gateway.base, (folder / "data" / "bootstrap-key").read_text().strip()
    gateway.stop()
    server.stop()


def ask(client: Any, me: str) -> None:
    ask_all(client, me)
    assert not client.never, "a call of the document that nobody made"


@pytest.mark.timeout(180)
@pytest.mark.costly("a generator writes four hundred modules, and all of them are imported")
def test_a_client_in_python_makes_every_call(door: tuple[str, str], tmp_path: Path) -> None:
    client = PythonClient(tmp_path, *door)
    ask(client, "python")
    client.close()


@pytest.mark.soak
@pytest.mark.needs("node")
def test_a_client_in_typescript_makes_every_call_and_its_types_know_every_answer(door, tmp_path) -> None:
    client = TypeScriptClient(tmp_path, *door)
    ask(client, "typescript")
    client.close()
    client.judge()


@pytest.mark.soak
@pytest.mark.needs("go")
def test_a_client_in_go_makes_every_call(door: tuple[str, str], tmp_path: Path) -> None:
    client = GoClient(tmp_path, *door)
    ask(client, "go")
    client.close()
