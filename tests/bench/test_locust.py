"""The load tests' own arithmetic, and that a run whose thresholds are broken says so by its exit code."""

import subprocess
import sys
from pathlib import Path

import pytest
from fila_locust.schedule import Schedule
from fila_locust.shares import Account, max_min, shares, worst_shortfall

ROOT = Path(__file__).resolve().parents[2]


def test_a_late_request_keeps_the_moment_it_was_meant_to_begin():
    schedule = Schedule(rate_per_s=10, began=100.0)

    assert [schedule.next(now) for now in (100.0, 105.0, 105.0)] == pytest.approx([100.0, 100.1, 100.2])


def test_without_a_rate_a_request_is_meant_to_begin_when_the_last_one_ended():
    schedule = Schedule(rate_per_s=0, began=100.0)

    assert [schedule.next(now) for now in (100.0, 107.5)] == [100.0, 107.5]


def test_users_that_start_together_do_not_send_in_step():
    assert Schedule(rate_per_s=2, began=10.0, offset=0.5).next(10.0) == 10.25


def test_what_a_content_tenant_leaves_goes_to_the_others_by_weight():
    wants = {"quiet": 10.0, "heavy": 1_000.0, "light": 1_000.0}

    given = max_min(wants, {"heavy": 2.0}, total=100.0)

    assert given == pytest.approx({"quiet": 10.0, "heavy": 60.0, "light": 30.0})


def account_of(rows):
    account = Account()
    for second, tenant, asked, served in rows:
        account.asked(second, tenant, asked)
        account.served(second, tenant, served)
    return account


def test_a_quiet_tenant_that_gets_all_it_asked_for_has_lost_nothing():
    rows = [(s, "quiet", 20, 20) for s in range(10)] + [(s, "noisy", 500, 80) for s in range(10)]

    worst = worst_shortfall(shares(account_of(rows)))

    assert worst.shortfall == 0


def test_a_quiet_tenant_served_by_its_part_of_the_queue_has_lost_most_of_its_due():
    rows = [(s, "quiet", 20, 4) for s in range(10)] + [(s, "noisy", 480, 96) for s in range(10)]

    worst = worst_shortfall(shares(account_of(rows)))

    assert worst.tenant == "quiet"
    assert worst.shortfall == pytest.approx(0.8)


def test_a_tenant_that_comes_late_has_no_claim_on_what_was_served_before():
    early = [(s, "early", 100, 100) for s in range(10)]
    late = [(s, t, 100, 50) for s in range(10, 20) for t in ("early", "late")]

    assert worst_shortfall(shares(account_of(early + late))).shortfall == 0


def test_what_worker_processes_counted_is_one_account():
    producers, consumers, all_of_it = Account(), Account(), Account()
    producers.asked(5.2, "a", 3)
    consumers.served(5.9, "a", 2)

    all_of_it.add(producers.take())
    all_of_it.add(consumers.take())

    assert all_of_it.bin_by_second == {5: {"a": [3.0, 2.0]}}
    assert producers.take() == {}


# Two tenants of 50 messages a second and one of 2,000, before consumers that manage 400 together.
NOISY = [
    "noisy-neighbour",
    "-u",
    "5",
    "--tenants",
    "2",
    "--user-rate",
    "50",
    "--work-ms",
    "5",
    "--fail-share-error",
    "0.3",
]


def run(*arguments):
    command = [sys.executable, str(ROOT / "bench/locust/load_test.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


@pytest.mark.slow
@pytest.mark.e2e
def test_a_fair_queue_passes_and_leaves_its_reports():
    reports = ROOT / "build/locust/noisy-neighbour"

    ran = run(*NOISY, "-t", "4s", "--processes", "2", "--fail-p99-ms", "2000")

    assert ran.returncode == 0, ran.stderr
    assert "ok: p99 of enqueue to delivery (quiet)" in ran.stderr
    assert "<html" in (reports / "report.html").read_text()
    assert "EnqueueBatch (noisy)" in (reports / "run_stats.csv").read_text()
    assert "noisy000" in (reports / "run_shares.csv").read_text()


@pytest.mark.slow
@pytest.mark.e2e
def test_first_in_first_out_breaks_the_share_threshold():
    ran = run(*NOISY, "-t", "4s", "--fifo")

    assert ran.returncode == 1
    assert "failed: of 3 tenants t0000" in ran.stderr


@pytest.mark.slow
@pytest.mark.e2e
def test_a_p99_above_its_threshold_fails_and_so_does_one_that_nothing_was_measured_for():
    slow = run("mixed", "-t", "4s", "-u", "4", "--fail-p99-ms", "0.01")
    unmatched = run("mixed", "-t", "1s", "-u", "4", "--fail-p99-ms", "5000", "--fail-p99-rows", "no such row")

    assert (slow.returncode, unmatched.returncode) == (1, 1)
    assert "failed: p99 of Enqueue (load)" in slow.stderr
    assert "nothing to judge" in unmatched.stderr


def test_a_queue_that_may_be_somebody_elses_is_refused():
    ran = run("mixed", "-H", "localhost:1", "--queue", "orders")

    assert ran.returncode == 2
    assert "--queue must begin with locust-" in ran.stderr
