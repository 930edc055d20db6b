"""The distribution installs into a plain PySpark environment, where there is no Python SDK."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PIPELINE = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(PIPELINE)], check=True)
    (made,) = folder.glob("fila_spark-*.whl")
    return made


def test_the_wheel_owns_no_package_of_another_distribution(wheel):
    owned = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    packages = {name for name in owned if not name.endswith(".dist-info")}
    assert packages <= {"pyspark_fila", "fila_pipeline"}


def test_without_the_sdk_the_source_uses_the_copy_that_the_build_took_along(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    # Where the broker's core stands beside the pipeline, the SDK does, too: here it is taken away.
    code = (
        "import sys; sys.path = [path for path in sys.path if not path.endswith('sdks/python/src')]\n"
        "from pyspark_fila import DefaultSource, wire; print(DefaultSource.name(), wire.admin_pb2.__name__)"
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert ran.stdout.split() == ["fila", "pyspark_fila.wire_v1.admin_pb2"]


def test_beside_the_sdk_the_sdks_copy_is_used(wheel, tmp_path):
    """Two copies in one process would be a clash as soon as they differ."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "from pyspark_fila import wire; print(wire.admin_pb2.__name__)"
    paths = [str(tmp_path), str(PIPELINE.parent / "sdks/python/src")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert ran.stdout.split() == ["fila.v1.admin_pb2"]
