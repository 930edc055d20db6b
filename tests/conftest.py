"""What every test may rely on.

`@pytest.mark.needs("redis-cli", "module:atheris")` names programs and modules a test cannot do without. Where one
is missing the test is skipped at home and fails in CI: a skipped test is not a green test.
"""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

from tests.ports import KeptPort

# Property tests count examples, not milliseconds: on a busy machine a deadline fails what is right.
settings.register_profile("fila", deadline=None)
settings.load_profile("fila")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to `make soak` what is marked so; it is counted as deselected."""
    if os.environ.get("FILA_SOAK"):
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    if soak:
        config.hook.pytest_deselected(items=soak)
        items[:] = [item for item in items if item not in soak]


def _is_missing(need: str) -> bool:
    kind, _, name = need.rpartition(":")
    if kind == "module":
        return importlib.util.find_spec(name) is None
    return shutil.which(name) is None


def pytest_runtest_setup(item: pytest.Item) -> None:
    needs = [need for marker in item.iter_markers("needs") for need in marker.args]
    missing = [need for need in needs if _is_missing(need)]
    if not missing:
        return
    do_without(f"{', '.join(missing)} not found: make setup installs it, or says what to install")


def do_without(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)  # on a developer's machine alone: in CI the lines above fail


@pytest.fixture
def kept_port() -> Iterator[KeptPort]:
    """A port that is this test's, also with no listener."""
    with closing(KeptPort()) as kept:
        yield kept


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A disk of its own, `SMALL_DISK_BYTES` of the test's module large; only root may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={request.module.SMALL_DISK_BYTES}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        do_without("a small disk cannot be mounted here: root may")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
