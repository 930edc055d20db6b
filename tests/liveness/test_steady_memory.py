"""A server under a steady mixed load takes what it takes, and then no more."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import StartServer
from tests.liveness.steady import resident_mb, rise_mb_a_minute

MINUTES = float(os.environ.get("FILA_STEADY_MINUTES") or 180)
SAMPLE_EVERY_S = 10.0
RISE_MAX = 0.05


def test_memory_that_only_swings_does_not_rise() -> None:
    samples = [(10.0 * number, 150.0 + number % 7) for number in range(1080)]
    assert rise_mb_a_minute(samples) == pytest.approx(0.0, abs=0.001)


def test_a_leak_below_the_swings_is_seen_at_its_pace() -> None:
    samples = [(10.0 * number, 150.0 + number % 7 + number / 6 * 0.6) for number in range(1080)]
    assert rise_mb_a_minute(samples) == pytest.approx(0.6, abs=0.01)


def test_what_a_server_takes_in_its_first_half_hour_does_not_count() -> None:
    samples = [(10.0 * number, 300.0 if number >= 180 else 100.0 + number) for number in range(1080)]
    assert rise_mb_a_minute(samples) == pytest.approx(0.0, abs=0.001)


def test_a_line_takes_two_windows() -> None:
    with pytest.raises(ValueError, match="1 windows of 600 s"):
        rise_mb_a_minute([(10.0 * number, 150.0) for number in range(200, 220)])


@pytest.mark.e2e
@pytest.mark.soak
def test_memory_does_not_rise_under_hours_of_steady_mixed_load(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server()
    command = [
        sys.executable,
        "-m",
        "tests.liveness.steady",
        server.addresses["grpc"],
        server.addresses["redis"],
    ]
    samples: list[tuple[float, float]] = []
    curve = Path(os.environ.get("FILA_STEADY_CURVE") or tmp_path / "curve.tsv")
    began_s = time.monotonic()
    load = subprocess.Popen([*command, str(MINUTES * 60)], stdout=subprocess.PIPE, text=True)
    with curve.open("w") as file:
        while load.poll() is None:
            samples.append((time.monotonic() - began_s, resident_mb(server.process.pid)))
            file.write("{:.0f}\t{:.2f}\n".format(*samples[-1]))
            file.flush()
            time.sleep(SAMPLE_EVERY_S)
    done = int(load.communicate()[0])
    rise = rise_mb_a_minute(samples)
    print(f"{done} turns of the loops in {MINUTES:.0f} minutes; rises {rise:.3f} MB a minute; {curve}")
    assert load.returncode == 0
    assert done > MINUTES * 60
    assert rise <= RISE_MAX
