"""For the tests of programs that use Fila: a real broker as a pytest fixture, and handlers run without any.

    pytest_plugins = ["fila.testing"]              # in conftest.py: the fixtures fila_broker and fila_address

    def test_orders(fila_address): ...             # a broker of the test session, on a port of its own

    async def test_a_bad_order():
        outcome = await handle(app, "orders", b'{"id": 7}')
        assert outcome.kind == "reject"

The broker is the program `fila-server`, started as a process; nothing of it is imported.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from fila.worker.outcome import Outcome
from fila.worker.pipeline import Pipeline
from fila.worker.plan import WorkerPlan
from fila.worker.slots import make_executor
from fila.worker.timeouts import Timeouts
from fila.worker.work import WorkMessage

if TYPE_CHECKING:
    from fila.worker.app import App

START_S_MAX = 30.0
STOP_S_MAX = 10.0


class Broker:
    """A broker in a process of its own, on a free port of this machine, with its data in a folder that goes with it.

    settings  as environment names without FILA_: {"QUEUES__MAX_ATTEMPTS": "3"}
    command   how to start it; unless given, `fila-server` from the PATH
    """

    def __init__(
        self, settings: Mapping[str, str] | None = None, command: Sequence[str] | None = None
    ) -> None:
        self.address = ""
        """`host:port`, once it is started."""
        self._settings = settings or {}
        self._command = command
        self._folder = Path(tempfile.mkdtemp(prefix="fila-test-"))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Return when it answers. Raises RuntimeError with its log when it does not start."""
        command = self._command or self._found()
        given = {
            "FILA_SERVER__LISTEN_ADDR": "127.0.0.1:0",
            "FILA_REDIS__BIND_ADDRESS": "127.0.0.1:0",
            "FILA_METRICS__LISTEN_ADDR": "",
            "FILA_DATA_DIR": str(self._folder / "data"),
            **{f"FILA_{name}": value for name, value in self._settings.items()},
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
        log = self._folder / "log"
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(  # noqa: S603 - the program the test asked for
                command, env=inherited | given, cwd=self._folder, stdout=subprocess.DEVNULL, stderr=stderr
            )
        self.address = self._address_in(log)
        return self

    def _found(self) -> list[str]:
        path = shutil.which("fila-server")
        if path is None:
            raise RuntimeError("fila-server is not on the PATH: install the server first (docs/install.md)")
        return [path]

    def _address_in(self, log: Path) -> str:
        assert self._process is not None
        give_up_at = time.monotonic() + START_S_MAX
        while time.monotonic() < give_up_at and self._process.poll() is None:
            for line in log.read_text().splitlines():
                if '"server.started"' in line:
                    return str(json.loads(line)["grpc"])
            time.sleep(0.02)
        said = log.read_text()
        self.stop()
        raise RuntimeError(f"fila-server did not start; it said:\n{said[-4000:]}")

    def stop(self) -> None:
        """End it, and delete its data."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


async def handle(app: App, queue: str, payload: bytes, **message: Any) -> Outcome:
    """Run an app's handler for one message as a worker would, with decoding, middleware, timeout and verdicts, but
    without a broker. `message` are fields of `WorkMessage`, such as `headers` and `attempt_count`."""
    (outcome,) = await handle_batch(app, queue, [payload], **message)
    return outcome


async def handle_batch(app: App, queue: str, payloads: Sequence[bytes], **message: Any) -> list[Outcome]:
    """As `handle`, for a handler of batches: one outcome a message."""
    plan = _plan_for(app, queue)
    executor = make_executor(plan)
    try:
        works = [_work_message(plan, payload, offset, message) for offset, payload in enumerate(payloads, 1)]
        return await Pipeline(plan, app.middlewares, Timeouts()).handle(works, executor)
    finally:
        executor.close()


def _plan_for(app: App, queue: str) -> WorkerPlan:
    for plan in app.plans:
        if plan.queue == queue:
            return plan
    raise LookupError(
        f"no handler for {queue!r}; there are {', '.join(plan.queue for plan in app.plans) or 'none'}"
    )


def _work_message(plan: WorkerPlan, payload: bytes, offset: int, given: Mapping[str, Any]) -> WorkMessage:
    fields: dict[str, Any] = {
        "id": f"00000000-0000-7000-8000-{offset:012d}",
        "queue": plan.queue,
        "channel": plan.channel or "default",
        "payload": payload,
        "headers": {},
        "fairness_key": "default",
        "offset": offset,
        "attempt_count": 0,
        "redelivered": False,
        "enqueued_at": datetime.now(UTC),
    }
    return WorkMessage(**{**fields, **given})


def run(app: App, queue: str, payload: bytes, **message: Any) -> Outcome:
    """As `handle`, for tests without an event loop."""
    return asyncio.run(handle(app, queue, payload, **message))


try:
    import pytest
except ImportError:  # pragma: no cover - the rest works without pytest
    pass
else:

    @pytest.fixture(scope="session")
    def fila_broker() -> Iterator[Broker]:
        """A broker for the whole test session."""
        with Broker() as broker:
            yield broker

    @pytest.fixture
    def fila_address(fila_broker: Broker) -> str:
        """Where the session's broker listens; use a queue of its own in each test."""
        return fila_broker.address
