"""The comparison: what is measured again, what a number is made of, and that nothing is left running."""

import json
import sys
from dataclasses import asdict, replace

import psutil
import pytest
from fila_bench.report import Machine
from fila_peers import cells, page
from fila_peers.brokers import PEERS, running
from fila_peers.errors import OtherRun, PeerFailed
from fila_peers.measure import Outcome, bottleneck
from fila_peers.processes import Started, stop_all
from fila_peers.results import Results, summaries

from tests.waiting import until

MACHINE = Machine(
    cpu="c",
    cores=2,
    memory_gib=4,
    kernel="6",
    python="3.11",
    commit="abc",
    measured_at="2026-01-01 00:00 UTC",
)


def outcome(number=0, rate=100.0, state="measured", key="nats|synced|full life|1 KB", why=""):
    numbers = {"settled_per_s": rate, "messages": rate, "wait_us": {"p99": rate}}
    return Outcome(
        key, number, state, why=why, numbers=numbers, server={"cpu_s": 0.001, "written_bytes": 0.0}
    )


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "results.jsonl"
    Results(path, MACHINE, "quick").add(outcome(0))
    with path.open("a") as file:
        file.write('{"key": "nats|syn')

    again = Results(path, MACHINE, "quick")
    again.add(outcome(1))

    assert again.has("nats|synced|full life|1 KB", 0)
    assert not again.has("nats|synced|full life|1 KB", 2)
    assert len(Results(path, MACHINE, "quick").outcomes) == 2


def test_a_void_cell_is_measured_again_and_a_failed_one_is_not(tmp_path):
    results = Results(tmp_path / "results.jsonl", MACHINE, "quick")
    results.add(outcome(0, state="void", key="a|synced|w|c"))
    results.add(outcome(0, state="failed", key="b|synced|w|c"))

    assert not results.has("a|synced|w|c", 0)
    assert results.has("b|synced|w|c", 0)


@pytest.mark.parametrize(("what", "value"), [("commit", "def"), ("cpu", "other"), ("cores", 8)])
def test_results_of_another_commit_or_machine_are_not_mixed(tmp_path, what, value):
    path = tmp_path / "results.jsonl"
    Results(path, MACHINE, "quick")
    kept, *_ = path.read_text().splitlines()
    head = json.loads(kept)
    head["machine"][what] = value
    path.write_text(json.dumps(head) + "\n")

    with pytest.raises(OtherRun, match=f"{what} .*--anew"):
        Results(path, MACHINE, "quick")
    with pytest.raises(OtherRun, match="--anew"):
        Results(path, MACHINE, "full")


def test_a_cell_is_the_median_of_its_rounds_with_its_extremes():
    (summary,) = summaries([outcome(0, 90.0), outcome(1, 100.0), outcome(2, 400.0)])

    spread = summary.of("numbers", "settled_per_s")

    assert (spread.low, spread.median, spread.high) == (90.0, 100.0, 400.0)
    assert summary.of("numbers", "wait_us.p99").median == 100.0
    assert summary.of("numbers", "no such") is None


def test_what_was_measured_again_replaces_what_was_void():
    (summary,) = summaries([outcome(0, state="void"), outcome(0, 50.0)])

    assert [each.state for each in summary.measured] == ["measured"]
    assert not summary.others


def test_a_failed_cell_is_printed_as_failed_and_not_left_out():
    failed = outcome(state="failed", why="exited with 1 | no space\nleft")
    head = {"machine": asdict(MACHINE), "sizes": "quick"}

    text = page.section(head, summaries([failed]), {}, [])

    assert "| nats | synced | failed: exited with 1   no space left |" in text


def test_the_page_keeps_what_stands_around_the_marks(tmp_path):
    written = tmp_path / "page.md"
    written.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")

    page.put_in(written, "new\n")

    assert "old" not in written.read_text()
    assert written.read_text().startswith("before\n")
    assert written.read_text().endswith("\nafter\n")


@pytest.mark.parametrize(
    ("server", "client", "thread", "held_back_by"),
    [
        (1.2, 0.7, 0.5, "machine, mostly the broker"),
        (0.7, 1.2, 0.5, "machine, mostly its client"),
        (1.0, 0.3, 0.97, "one thread of the broker"),
        (0.3, 0.3, 0.3, "disk and round trips"),
    ],
)
def test_what_held_a_rate_back_is_told_from_processor_time(server, client, thread, held_back_by):
    assert bottleneck(server, client, thread, cores=2) == held_back_by


def test_peers_are_interleaved_load_by_load():
    keys = [cell.key.split("|") for cell in cells.planned(cells.QUICK, ["fila-grpc", "nats"], ["full life"])]
    first_case = [peer for peer, _, _, case in keys if case == keys[0][3]]

    assert first_case == ["fila-grpc", "fila-grpc", "nats", "nats"]
    assert {peer for peer, *_ in keys[: len(first_case)]} == {"fila-grpc", "nats"}


def test_no_peer_is_asked_for_tenants_it_cannot_tell_apart():
    planned = list(cells.planned(cells.FULL, list(PEERS), []))

    assert not [
        c.key for c in planned if c.peer.name == "redis-list" and c.case.workload == "noisy neighbour"
    ]
    assert not [c.key for c in planned if c.peer.name == "fila-redis" and c.case.workload == "rate limit"]
    assert len({cell.key for cell in planned}) == len(planned)


def sleeper(tmp_path, *words):
    return Started([sys.executable, "-c", *words], log=tmp_path / "log", env={}, cwd=tmp_path)


def test_a_broker_that_does_not_start_says_why(tmp_path):
    started = sleeper(tmp_path, "import sys; sys.exit('address in use')")

    with pytest.raises(PeerFailed, match="exited with 1 before it listened: address in use"):
        started.wait_until_open([1], timeout_s=20)
    started.stop()
    with pytest.raises(PeerFailed, match="cannot be started"):
        Started(["/no/such/broker"], log=tmp_path / "log", env={}, cwd=tmp_path)


def test_whatever_ends_a_run_stops_brokers_with_their_children(tmp_path):
    # The child waits for a line that never comes, until its parent is gone. `subprocess.run` would end it at once.
    child = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE).wait()"
    started = sleeper(tmp_path, child)
    until(lambda: len(started.family()) == 2)
    family = started.family()

    stop_all()

    assert not [process for process in family if _lives(process)]


def test_nothing_is_left_of_a_broker_that_does_not_come_to_listen(tmp_path):
    seen = []

    def start(folder, durability):
        started = Started(
            [sys.executable, "-c", "import time; time.sleep(60)"], log=folder / "log", env={}, cwd=folder
        )
        seen.append((folder, started.family()))
        raise PeerFailed("does not listen")

    peer = replace(PEERS["redis-stream"], start=start)
    with pytest.raises(PeerFailed, match="does not listen"), running(peer, "synced"):
        pass

    ((folder, family),) = seen
    assert not folder.exists()
    assert not [process for process in family if _lives(process)]


def _lives(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
