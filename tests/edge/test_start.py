"""Every way a start can go wrong: an exit code, and one line that says what to do."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fila_server import errors, main, opening, serving
from fila_server.config.kinds import Address, AddressOrOff
from fila_server.config.schema import Config, Metrics, Redis, Server
from fila_server.core.runtime.scheduler_thread import Engine
from fila_server.usage import EXIT_NOT_CLOSED
from tests.edge.fake_engine import FakeEngine

STORE_ERRORS = [
    (errors.DataDirInUse("DIR"), "data directory DIR is in use by another server. Stop that server, or"),
    (
        errors.DataDirUnwritable("DIR", "Read-only file system"),
        "cannot write to data directory DIR: Read-only",
    ),
    (
        errors.FormatTooNew("DIR", 9, 1),
        "data directory DIR has format 9, but this server reads up to 1. Start",
    ),
    (
        errors.StoreDamaged("DIR", "queue orders"),
        "data directory DIR is damaged: queue orders. Restore a copy, or",
    ),
    (RuntimeError("IO error:\n lost"), "cannot be opened: IO error: lost. Check the disk"),
]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stand in for the compiled core; what it is told to raise comes last in the list."""
    told: list[Any] = []

    class Engine(FakeEngine):
        def __init__(self, data_dir: str, settings: dict[str, int | str], **times: int) -> None:
            super().__init__()
            if told:
                raise told.pop()
            told.append((data_dir, settings, times))

    module = types.ModuleType("fila_server.core.runtime.scheduler_thread")
    module.Engine = Engine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fila_server.core.runtime.scheduler_thread", module)
    monkeypatch.setattr("fila_server.core.runtime.scheduler_thread", module)
    return told


def _run(tmp_path: Path, **environ: str) -> Any:
    env = {"FILA_SERVER__LISTEN_ADDR": "127.0.0.1:0", "FILA_DATA_DIR": str(tmp_path / "data"), **environ}
    return CliRunner().invoke(main.main, [], env=env)


@pytest.mark.parametrize(
    ("error", "line"), STORE_ERRORS, ids=[type(error).__name__ for error, _ in STORE_ERRORS]
)
def test_a_store_that_cannot_be_opened_exits_1_with_one_line(
    tmp_path: Path, opened: list[Any], error: Exception, line: str
) -> None:
    opened.append(error)

    result = _run(tmp_path)

    assert result.exit_code == 1
    assert line in result.stderr
    assert result.stderr.startswith("fila-server: ")
    assert result.stderr.count("\n") == 1


def test_a_data_directory_that_cannot_be_made_exits_1(tmp_path: Path, opened: list[Any]) -> None:
    (tmp_path / "data").write_text("a file")

    result = _run(tmp_path)

    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"fila-server: cannot write to data directory {tmp_path / 'data'}: File exists."
    )


def test_a_core_that_was_never_built_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fila_server.core.runtime.scheduler_thread", None)
    monkeypatch.delattr("fila_server.core.runtime.scheduler_thread")

    result = _run(tmp_path)

    assert result.exit_code == 1
    assert "Run `make build`" in result.stderr


class WatchedEngine(Engine):
    """The compiled core, and whether it was closed."""

    stopped = False

    def stop(self) -> None:
        super().stop()
        self.stopped = True


@pytest.fixture
def core(tmp_path: Path) -> WatchedEngine:
    return WatchedEngine(
        str(tmp_path / "data"), {}, mono_ns=time.monotonic_ns(), wall_ns=time.time_ns(), seed=1
    )


@pytest.mark.parametrize("setting", ["server.listen_addr", "redis.listen_addr"])
async def test_a_taken_port_closes_the_store_and_names_the_setting(core: WatchedEngine, setting: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = Address(f"127.0.0.1:{holder.getsockname()[1]}")
        free = Address("127.0.0.1:0")
        settings = _quiet(
            grpc=taken if setting.startswith("server") else free,
            redis=taken if setting.startswith("redis") else free,
        )

        with pytest.raises(errors.PortTaken, match=f"cannot listen on {taken}.*change {setting}"):
            await serving.serve(core, settings)

    assert core.stopped


async def test_a_host_that_is_not_ours_is_told_with_the_setting(core: WatchedEngine) -> None:
    elsewhere = _quiet(grpc=Address("192.0.2.1:1"), redis=Address("127.0.0.1:0"))

    with pytest.raises(errors.PortTaken, match=r"cannot assign requested address.*hange server.listen_addr"):
        await serving.serve(core, elsewhere)


def _quiet(grpc: Address, redis: Address) -> Config:
    return Config(
        server=Server(listen_addr=grpc, data_dir="nowhere"),
        redis=Redis(listen_addr=redis),
        metrics=Metrics(listen_addr=AddressOrOff("")),
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_and_closes_the_store(
    core: WatchedEngine, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_report_start", lambda *_: signal.raise_signal(number))
    free = Address("127.0.0.1:0")

    await asyncio.wait_for(serving.serve(core, _quiet(free, free)), 30)

    assert core.stopped


@pytest.mark.parametrize("hangs", ["time.sleep(60)", "ctypes.PyDLL(None).usleep(60_000_000)"])
def test_a_store_that_does_not_close_is_left_behind_with_an_exit_code_of_its_own(
    hangs: str, tmp_path: Path
) -> None:
    """Also where what hangs keeps the GIL, as the second does: Python's own timers would wait with it."""
    stuck = f"""
import ctypes, signal, sys, time
from fila_server import main, serving
from fila_server.core.runtime.scheduler_thread import Engine
from tests.edge.test_start import _quiet
from fila_server.config.kinds import Address

class StuckEngine(Engine):
    def stop(self):
        {hangs}

main.DRAIN_S_MAX = 0.3
engine = StuckEngine(sys.argv[1], {{}}, mono_ns=time.monotonic_ns(), wall_ns=time.time_ns(), seed=1)
serving._report_start = lambda *_: signal.raise_signal(signal.SIGTERM)
main.open_engine = lambda settings: engine
free = Address("127.0.0.1:0")
main.run(_quiet(free, free))
"""
    done = subprocess.run(
        [sys.executable, "-c", stuck, str(tmp_path / "data")], capture_output=True, timeout=45, check=False
    )

    assert done.returncode == EXIT_NOT_CLOSED == 3
    assert "left without closing the store" in done.stderr.decode()


def test_the_core_is_opened_with_flat_settings_and_the_time(tmp_path: Path, opened: list[Any]) -> None:
    opening.open_engine(Config(server=Server(data_dir=str(tmp_path / "deep" / "data"))))

    [(data_dir, settings, times)] = opened
    assert data_dir == str(tmp_path / "deep" / "data")
    assert settings["scheduler.quantum"] == 1000
    assert set(times) == {"mono_ns", "wall_ns", "seed"}
    assert 0 <= times["seed"] < 2**63


@pytest.mark.parametrize(
    ("name", "event"), [("rocksdb", "store.opening"), ("rocksdb.copying", "store.copying")]
)
def test_a_start_that_takes_long_says_what_it_is_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, event: str
) -> None:
    monkeypatch.setattr(opening, "OPENING_QUIET_S", 0.001)
    monkeypatch.setattr(opening, "OPENING_REPORTED_EVERY_S", 0.001)
    told = threading.Event()
    events = []

    def tell(what: str, **_: object) -> None:
        events.append(what)
        told.set()

    class SlowEngine(FakeEngine):
        def __init__(self, *_: object, **__: object) -> None:
            super().__init__()
            (tmp_path / name).mkdir()
            told.clear()
            assert told.wait(10)

    monkeypatch.setattr(opening, "log", types.SimpleNamespace(info=tell, warning=tell))
    opening._open_once(SlowEngine, Config(server=Server(data_dir=str(tmp_path))))  # type: ignore[arg-type]

    assert event in events


def test_what_only_serving_needs_is_not_imported_before_the_store_is_opened() -> None:
    """A start reads the store and imports at the same time; what main.py imports itself comes before both."""
    told = """import sys, fila_server.main
print(*sys.modules)
import fila_server.serving
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, timeout=45, check=True, text=True
    )

    imported, serving_too = map(set, map(str.split, done.stdout.splitlines()))
    assert "fila_server.main" in imported
    assert not imported & {
        "fila_server.serving",
        "fila_server.broker.calls",
        "grpc",
        "google.protobuf",
        "uvloop",
    }
    # Nor ever, what is not asked for: exceptions as tables, the metrics page, OTLP.
    assert "fila_server.serving" in serving_too
    assert not serving_too & {"rich.console", "pygments", "prometheus_client", "opentelemetry"}


@pytest.mark.parametrize(
    ("found", "event"),
    [("records_lost", "store.damage_found"), ("tail_bytes_dropped", "store.unsynced_end_dropped")],
)
def test_a_start_that_finds_the_log_short_says_until_when_it_knows(
    monkeypatch: pytest.MonkeyPatch, found: str, event: str
) -> None:
    lines: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(opening, "emit", lambda kind, **details: lines.append((kind, details)))

    opening._report_losses({found: 3, "noted_ms": 1_700_000_000_000, "logs_missing": 0}, "DIR")

    ((kind, details),) = lines
    assert kind == event
    assert details[found] == 3
    assert details["known_until"] == "2023-11-14T22:13:20+00:00"
    assert "after 2023-11-14T22:13:20+00:00" in details["detail"]


def test_a_start_that_finds_nothing_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "emit", lambda kind, **_: pytest.fail(kind))

    opening._report_losses({"records_lost": 0, "noted_ms": 0}, "DIR")
