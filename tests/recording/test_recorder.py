"""A server that records: whole files that are listed, private, and true to what the broker says."""

import json
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.history_files import chain, columns, upkeep
from fila_server.history_files.files import CORE, RECORDED_BY
from fila_server.version import core_fingerprint, version
from tests.e2e.conftest import RunningServer, StartServer, start_server

__all__ = ["start_server"]

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]

SMALL_DISK_BYTES = 3 << 20
PATIENCE_S = 90.0
"""The thread that writes the history has the lowest priority, and beside others hardly ever a turn."""


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "history"


def recording(history: Path, **more: str) -> dict[str, str]:
    return {"FILA_HISTORY__ENABLED": "true", "FILA_HISTORY__DIR": str(history), **more}


def work(server: RunningServer, messages: int = 300, acked: int = 200) -> None:
    """Enqueue, lease, ack some and fail some."""
    config = admin.QueueConfig(fairness_key_header="tenant", max_attempts=2)
    server.admin.CreateQueue(admin.CreateQueueRequest(name="orders", config=config))
    batch = [
        {"payload": b"p" * 100, "headers": {"tenant": f"t{number % 7}"}, "queue": "orders"}
        for number in range(messages)
    ]
    server.service.EnqueueBatch(service.EnqueueBatchRequest(messages=batch))
    leased: list[Any] = []
    while len(leased) < acked:
        found = server.service.Lease(service.LeaseRequest(queue="orders", max_messages=50)).messages
        leased += found
    items = [{"message_id": m.id, "lease_id": m.metadata.lease_id} for m in leased]
    server.service.AckBatch(service.AckBatchRequest(queue="orders", items=items[:-20]))
    server.service.NackBatch(service.NackBatchRequest(queue="orders", items=items[-20:]))


def listed(history: Path, table: str) -> list[dict[str, Any]]:
    return [entry for entry in upkeep.entries(history) if entry.get("table") == table]


def read(history: Path, table: str) -> pa.Table:
    parts = [pq.read_table(history / entry["file"]) for entry in listed(history, table)]
    return pa.concat_tables(parts) if parts else columns.SCHEMAS[table].empty_table()


def counted(history: Path, queue: str) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for row in read(history, columns.DECISIONS).to_pylist():
        if row["queue"] == queue:
            kinds[row["kind"]] += len(row["offsets"])
    return kinds


def test_what_was_recorded_adds_up_to_the_brokers_own_books(start_server: StartServer, history: Path) -> None:
    server = start_server(**recording(history))
    work(server)
    stats = server.admin.GetStats(admin.GetStatsRequest(queue="orders"))
    assert server.stop() == 0

    kinds = counted(history, "orders")
    ended = kinds["acked"] + kinds["dead_lettered"] + kinds["dropped"]
    assert kinds["enqueued"] == 300
    assert kinds["enqueued"] - ended == stats.depth + stats.in_flight
    assert kinds["nacked"] == 20
    found = chain.check(history)
    assert (found.wrong, found.noted) == ([], [])
    assert found.files >= 3
    for entry in upkeep.entries(history):
        if "file" not in entry:
            continue
        facts = pq.read_metadata(history / entry["file"])
        assert facts.num_rows == entry["rows"]
        assert facts.metadata[b"fila.history.version"] == str(columns.VERSION).encode()
        assert facts.metadata[RECORDED_BY] == version().encode()
        assert facts.metadata[CORE] == core_fingerprint().encode()


@pytest.mark.needs("openssl", "module:cryptography")
def test_a_broker_with_a_key_signs_over_a_kill_what_it_lists(
    start_server: StartServer, history: Path, tmp_path: Path
) -> None:
    key, public = tmp_path / "history.pem", tmp_path / "history.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    key.chmod(0o600)
    signing = recording(history, FILA_HISTORY__SIGN_KEY_FILE=str(key), FILA_HISTORY__ROLL_MS="1000")
    server = start_server(**signing)
    work(server)
    deadline = time.monotonic() + PATIENCE_S
    while not listed(history, columns.INPUTS) and time.monotonic() < deadline:
        time.sleep(0.1)
    server.stop(signal.SIGKILL)
    server = start_server(**signing)
    assert server.stop() == 0

    entries = upkeep.entries(history)
    assert {len(entry.get("signature", "")) for entry in entries} == {88}
    assert [entry["gap"] for entry in entries if "gap" in entry] == [upkeep.KILLED]
    command = [sys.executable, "-m", "fila_server.main", "history", "verify", str(history)]
    told = subprocess.run(
        [*command, "--public-key", str(public)], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"Authentic: {len(entries)} entries are one chain" in told.stdout


def test_files_are_their_owners_alone(start_server: StartServer, history: Path) -> None:
    server = start_server(**recording(history))
    work(server)
    assert server.stop() == 0

    modes = {stat.S_IMODE(path.stat().st_mode) for path in history.rglob("*") if path.is_file()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in [history, *history.rglob("*")] if path.is_dir()}
    assert modes == {0o600}
    assert folders == {0o700}
    assert not [path for path in history.rglob("_*") if path.name != "_list"]


def test_files_are_closed_while_the_broker_runs(start_server: StartServer, history: Path) -> None:
    server = start_server(**recording(history, FILA_HISTORY__ROLL_MS="1000"))
    work(server)
    deadline = time.monotonic() + PATIENCE_S
    while counted(history, "orders")["acked"] < 180 and time.monotonic() < deadline:
        time.sleep(0.1)

    assert counted(history, "orders")["acked"] >= 180
    server.service.Enqueue(service.EnqueueRequest(queue="orders", payload=b"later"))
    while counted(history, "orders")["enqueued"] < 301 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert counted(history, "orders")["enqueued"] == 301


def test_a_broker_tells_of_a_message_that_is_done_what_its_files_have(
    start_server: StartServer, history: Path
) -> None:
    server = start_server(**recording(history, FILA_HISTORY__ROLL_MS="1000"))
    server.admin.CreateQueue(admin.CreateQueueRequest(name="orders"))
    message_id = server.service.Enqueue(service.EnqueueRequest(queue="orders", payload=b"p")).message_id
    [leased] = server.service.Lease(service.LeaseRequest(queue="orders", max_messages=1)).messages
    item = {"message_id": message_id, "lease_id": leased.metadata.lease_id}
    server.service.AckBatch(service.AckBatchRequest(queue="orders", items=[item]))
    asked = admin.GetMessageRequest(queue="orders", message_id=message_id, with_past=True)

    until_s = time.monotonic() + PATIENCE_S
    while (told := server.admin.GetMessage(asked)).past.missing:
        assert time.monotonic() < until_s, told
        assert told.past.missing.startswith("nothing of it is recorded")
        time.sleep(0.2)
    assert told.state == admin.GetMessageResponse.STATE_NOT_KNOWN
    assert [event.kind for event in told.past.events] == ["enqueued", "delivered", "acked"]
    assert told.past.offset == leased.metadata.offset
    asked.with_past = False
    assert not server.admin.GetMessage(asked).HasField("past")


def test_a_broker_that_is_killed_leaves_whole_files_and_a_gap(
    start_server: StartServer, history: Path, tmp_path: Path
) -> None:
    first = start_server(**recording(history, FILA_HISTORY__ROLL_MS="1000"))
    work(first)
    deadline = time.monotonic() + PATIENCE_S
    while not listed(history, columns.DECISIONS) and time.monotonic() < deadline:
        time.sleep(0.05)
    first.service.Enqueue(service.EnqueueRequest(queue="orders", payload=b"last words"))
    first.stop(signal.SIGKILL)
    whole = listed(history, columns.DECISIONS)
    second = start_server(**recording(history))
    second.service.Enqueue(service.EnqueueRequest(queue="orders", payload=b"again"))
    assert second.stop() == 0

    gaps = [entry for entry in upkeep.entries(history) if entry.get("gap")]
    assert [gap["gap"] for gap in gaps] == [upkeep.KILLED]
    assert gaps[0]["run"] == whole[0]["run"]
    found = chain.check(history)
    assert (found.wrong, found.noted) == ([], [])
    assert gaps[0]["first_at"] >= max(entry["last_at"] for entry in whole)
    for entry in upkeep.entries(history):
        if entry.get("file"):
            assert pq.read_table(history / entry["file"]).num_rows == entry["rows"]
    assert len({entry["run"] for entry in upkeep.entries(history)}) == 2


def test_a_full_disk_stops_the_history_and_never_the_broker(
    start_server: StartServer, small_disk: Path
) -> None:
    history = small_disk / "history"
    server = start_server(**recording(history, FILA_HISTORY__ROLL_MS="1000"))
    filler = small_disk / "filler"
    work(server)
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=64k"], capture_output=True, check=False)
    deadline = time.monotonic() + 30
    while server.event("history.stopped") is None and time.monotonic() < deadline:
        server.service.Enqueue(service.EnqueueRequest(queue="orders", payload=b"x", headers={"tenant": "a"}))
        time.sleep(0.05)
    assert server.event("history.stopped") is not None
    server.service.Enqueue(service.EnqueueRequest(queue="orders", payload=b"still served"), timeout=5)
    filler.unlink()
    while server.event("history.goes_on") is None and time.monotonic() < deadline + 30:
        server.service.Enqueue(service.EnqueueRequest(queue="orders", payload=b"x", headers={"tenant": "a"}))
        time.sleep(0.05)
    assert server.event("history.goes_on") is not None
    assert server.stop() == 0

    gaps = [entry for entry in upkeep.entries(history) if entry.get("gap")]
    assert any("No space left" in gap["gap"] for gap in gaps)
    for entry in upkeep.entries(history):
        if entry.get("file"):
            assert pq.read_table(history / entry["file"]).num_rows == entry["rows"]


def test_without_pyarrow_the_server_says_what_is_missing(tmp_path: Path) -> None:
    script = (
        "import sys, importlib.util as u\n"
        "found = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'pyarrow' else found(name, *a)\n"
        "from fila_server.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"FILA_HISTORY__ENABLED": "1", "FILA_DATA_DIR": str(tmp_path / "data"), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install pyarrow" in done.stderr


def test_the_oldest_files_go_first_and_their_entries_before_them(tmp_path: Path) -> None:
    for number in range(4):
        file = tmp_path / f"decisions/date=2026-01-01/hour=0{number}/r-{number}.parquet"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x" * 100)
        entry = {
            "version": 1,
            "file": str(file.relative_to(tmp_path)),
            "bytes": 100,
            "first_at": f"2026-01-01T0{number}:00:00+00:00",
            "last_at": f"2026-01-01T0{number}:30:00+00:00",
        }
        (tmp_path / "_list").mkdir(exist_ok=True)
        (tmp_path / f"_list/r-{number}.json").write_text(json.dumps(entry))

    assert upkeep.remove(tmp_path, upkeep.due(tmp_path, 250, 0, 0)) == 2
    assert [entry["file"][-9:] for entry in upkeep.entries(tmp_path)] == ["2.parquet", "3.parquet"]
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
