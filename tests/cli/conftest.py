"""One command line, run against a fake broker."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest

from fila_cli import main
from tests.cli.fake_broker import FakeBroker, Ran


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    broker = FakeBroker()
    yield broker
    broker.stop()


@pytest.fixture
def fila(
    broker: FakeBroker, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Run one command line against the fake broker."""
    monkeypatch.setenv("FILA_ADDR", broker.address)

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main.run(list(arguments))
        return Ran(code, *capfd.readouterr())

    return run
