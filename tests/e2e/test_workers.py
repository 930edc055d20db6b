"""`fila worker` and `fila.testing` with a real broker: what a program that uses them sees."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fila.sync import FilaClient
from fila.testing import Broker
from fila.worker import App

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]

COMMAND = [sys.executable, "-c", "from fila_cli.main import main; main()", "worker"]
WAIT_S_MAX = 20.0

PROGRAM = """
import os
from pathlib import Path
from fila.worker import App

app = App("localhost:1", shutdown_grace_s=2)
with Path("started").open("a") as started:
    started.write("x")

@app.worker("orders", concurrency=2)
def handle(order: dict) -> None:
    with Path("handled").open("a") as handled:
        handled.write(f"{order['n']}\\n")
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """As the fixture of fila.testing, with the server of this checkout."""
    with Broker(command=[sys.executable, "-m", "fila_server.main"]) as broker:
        yield broker


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_the_command_runs_a_programs_handlers_until_it_is_told_to_stop(
    broker: Broker, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    with FilaClient.connect(broker.address) as client:
        client.create_queue("orders")
        client.enqueue_many("orders", [b'{"n": %d}' % i for i in range(5)])

        worker = subprocess.Popen([*COMMAND, "shop:app", "--addr", broker.address], cwd=tmp_path)
        wait_until(lambda: text(tmp_path / "handled").count("\n") == 5)
        worker.send_signal(signal.SIGTERM)

        assert worker.wait(WAIT_S_MAX) == 0
        stats = client.get_stats("orders")
        assert (stats.acked_total, stats.in_flight, stats.active_consumers) == (5, 0, 0)


def test_a_changed_file_starts_the_worker_anew(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    with FilaClient.connect(broker.address) as client:
        client.create_queue("orders", exist_ok=True)
    worker = subprocess.Popen([*COMMAND, "shop:app", "--addr", broker.address, "--reload"], cwd=tmp_path)
    wait_until(lambda: text(tmp_path / "started") == "x")

    def is_anew() -> bool:
        # Changed again and again: it may not look at its files yet when it says that it has started.
        for _ in range(100):
            if text(tmp_path / "started") != "x":
                return True
            time.sleep(0.05)
        os.utime(tmp_path / "shop.py")
        return False

    time.sleep(1)
    os.utime(tmp_path / "shop.py")
    wait_until(is_anew)
    wait_until(lambda: text(tmp_path / "started").startswith("xx"))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(WAIT_S_MAX) == 0


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("nowhere:app", "there is no module 'nowhere' here; write it like shop:app"),
        ("shop:nothing", "'shop:nothing' is no fila.worker.App, but NoneType"),
        ("shop:os", "'shop:os' is no fila.worker.App, but module"),
    ],
)
def test_a_program_that_is_not_there_is_a_bad_usage(tmp_path: Path, program: str, said: str) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)

    ran = subprocess.run(
        [*COMMAND, program], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )

    assert ran.returncode == 2
    assert said in ran.stderr


def test_a_queue_that_is_not_there_ends_the_worker_with_a_line(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM.replace('"orders"', '"oders"'))

    command = [*COMMAND, "shop:app", "--addr", broker.address]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)

    assert ran.returncode == 1
    assert 'fila: queue "oders" does not exist' in ran.stderr


BLOCKED = """
import time
from pathlib import Path
from fila.worker import App

app = App("localhost:1")

@app.worker("blocked", concurrency=16)
async def handle(n: dict) -> None:
    with Path("started").open("a") as started:
        started.write("x")
    time.sleep(60)
"""


def test_a_worker_killed_while_one_handler_blocks_all_others_fails_that_ones_message_only(
    broker: Broker, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(BLOCKED)
    with FilaClient.connect(broker.address) as client:
        client.create_queue("blocked", disconnect_grace_ms=0)
        # The first round brings all of them back once, so that they are redelivered in the second.
        client.enqueue_many("blocked", [b"{}"] * 16)
        for attempts in (1, 2):
            worker = subprocess.Popen([*COMMAND, "shop:app", "--addr", broker.address], cwd=tmp_path)
            wait_until(lambda: client.get_stats("blocked").in_flight == 16)
            wait_until(lambda: len(text(tmp_path / "started")) == attempts)  # noqa: B023
            wait_until(lambda: [each.begun for each in client.list_consumers("blocked")] == [1])
            worker.kill()
            worker.wait(WAIT_S_MAX)
            wait_until(lambda: client.get_stats("blocked").in_flight == 0)

            counted = [letter.attempt_count for letter in client.peek("blocked", max_messages=20)]
            assert (len(counted), sum(counted)) == (16, attempts)


def test_a_payload_that_none_is_decoded_into_ends_the_worker_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from fila.worker import App\napp = App()\n@app.worker('q')\ndef handle(n: int): ...\n"
    )

    ran = subprocess.run([*COMMAND, "shop:app"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.returncode == 2
    assert "shop: handle can't be given a payload of type int: take bytes, str, dict" in ran.stderr
    assert "Traceback" not in ran.stderr


async def test_a_worker_shows_who_it_is_and_what_it_holds(broker: Broker) -> None:
    app = App(broker.address, name="till 4")
    go_on = asyncio.Event()

    @app.worker("till", concurrency=2)
    async def handle(payload: bytes) -> None:
        await go_on.wait()

    with FilaClient.connect(broker.address) as client:
        client.create_queue("till")
        client.enqueue_many("till", [b"1", b"2", b"3"])
        serving = asyncio.create_task(app.serve())
        async with asyncio.timeout(WAIT_S_MAX):
            while not (seen := [c for c in client.list_consumers("till") if (c.held, c.begun) == (2, 2)]):  # noqa: ASYNC110 - the broker has no event for it
                await asyncio.sleep(0.05)
        go_on.set()
        app.stop()
        await serving

    assert (seen[0].name, seen[0].window, seen[0].tracks_begun) == ("till 4", 2, True)


def test_a_broker_that_does_not_start_shows_what_it_said() -> None:
    with pytest.raises(
        RuntimeError, match=r"fila-server did not start; it said:\n.*no such setting|did not start"
    ):
        Broker(command=[sys.executable, "-c", "raise SystemExit('no such setting')"]).start()
