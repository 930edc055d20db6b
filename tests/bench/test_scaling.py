"""The scaling charts' table says what the largest size costs beside the smallest."""

import subprocess
import sys
from pathlib import Path

from scaling.scaling import DIMENSION_BY_NAME, Point, table

SCRIPT = Path(__file__).resolve().parents[2] / "bench/scaling/scaling.py"


def test_a_cost_is_told_beside_the_first_of_its_own_size():
    points = [
        Point("keys", 10, 1_000.0, 2.0, 1.0, 2.0),
        Point("keys", 1_000, 900.0, 3.0, 1.0, 2.0),
        Point("queues", 0, 1_000.0, 8.0, 1.0, 2.0),
    ]

    rows = table(points).splitlines()[2:]

    assert [row.split("|")[-2].strip() for row in rows] == ["1.00", "1.50", "1.00"]


def test_every_size_has_points_in_rising_order():
    for dimension in DIMENSION_BY_NAME.values():
        assert list(dimension.points) == sorted(dimension.points)
        assert len(dimension.points) == 4


def test_an_unknown_size_is_refused_before_anything_is_started():
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--only", "moons"], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 2
    assert "moons" in ran.stderr
    assert "keys" in ran.stderr
