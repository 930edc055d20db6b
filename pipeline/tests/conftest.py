"""One Spark session a run, and one real broker, started when the first test asks for it.

What each test costs is measured as it is of the broker's own tests.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_process import BrokerProcess
from guarded import Guarded, start_guarded
from hypothesis import settings
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
LOADED = (
    "grpc",
    "pandas",
    "pyarrow.parquet",
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    *(f"pyspark.sql.worker.{name}" for name in ("create_data_source", "lookup_data_sources")),
    *(f"pyspark.sql.worker.{name}" for name in ("plan_data_source_read", "write_into_data_source")),
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.worker",
    "pyspark_fila",
    "scipy.stats",
)
"""What Spark's Python workers take. Of one kind a source sees by what is loaded that Spark asked for filters."""

# Property tests count examples, not milliseconds: on a busy machine a deadline fails what is right.
settings.register_profile("fila", deadline=None)
settings.load_profile("fila")


def pytest_configure(config: pytest.Config) -> None:
    # By its path: `tests` is this folder here.
    spec = importlib.util.spec_from_file_location("fila_costs", ROOT / "tests/costs.py")
    assert spec is not None
    assert spec.loader is not None
    costs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(costs)
    config.pluginmanager.register(costs)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to `make soak` what takes minutes; it is counted as deselected. Spark costs what it costs."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.costly("Spark plans and compiles each of its queries"))
    if os.environ.get("FILA_SOAK"):
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    if soak:
        config.hook.pytest_deselected(items=soak)
        items[:] = [item for item in items if item not in soak]


def _forked_python() -> Any:
    """By its path: `tests` is this folder here."""
    spec = importlib.util.spec_from_file_location("fila_forked", ROOT / "tests/forked_python/__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    paths = [str(ROOT / "pipeline/src"), str(ROOT / "sdks/python/src")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    # A worker loads pandas and Spark for a second or two, and each kind of work has workers of its own.
    os.environ["PYSPARK_PYTHON"] = _forked_python().program(LOADED)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("fila-tests")
        .config("spark.driver.memory", "1g")
        # Where a key must never show: test_keys.py reads both.
        .config("spark.ui.port", "0")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", str(tmp_path_factory.mktemp("events")))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.log.level", "ERROR")
        # A second file system without a network: what is under it is a disk, but nothing can open it by path.
        .config("spark.hadoop.fs.viewfs.mounttable.elsewhere.link./disk", "file:///")
        # Small data: planning and compiling would take longer than running.
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker of the root's environment: `make build` has built it."""
    folder = tmp_path_factory.mktemp("broker")
    running = BrokerProcess(ROOT, folder)
    running.start()
    yield running
    running.kill()


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    running = start_guarded(ROOT, tmp_path_factory.mktemp("guarded"))
    yield running
    running.broker.kill()


@pytest.fixture(params=["directory", "elsewhere"])
def address_of(request: pytest.FixtureRequest) -> Callable[[Path], str]:
    """How a command is told of a folder: by its path, and by the URL of a file system that Spark alone can open."""
    return str if request.param == "directory" else "viewfs://elsewhere/disk{}".format


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """A name of the test's own."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]
