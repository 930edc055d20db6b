"""What `import fila` costs and offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fila


def test_the_generated_messages_alone_load_nothing_of_the_client() -> None:
    program = "import sys, fila.v1.service_pb2; print(*(m for m in sys.modules if m.startswith('fila.')))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {name for name in loaded.stdout.split() if not name.startswith("fila.v1")} == set()


def test_every_public_name_is_there() -> None:
    for name in fila.__all__:
        assert getattr(fila, name).__name__ == name
    assert set(fila.__all__) <= set(dir(fila))


def test_a_name_that_is_not_there_is_told_as_python_tells_it() -> None:
    with pytest.raises(AttributeError, match="module 'fila' has no attribute 'FilaCliend'"):
        _ = fila.FilaCliend  # type: ignore[attr-defined]
