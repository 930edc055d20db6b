"""What the disk itself takes: the floor of every figure that waits for it."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

_SYNCS = 200
_RECORD_BYTES = 1100


def sync_ms(folder: Path) -> float:
    """The median time until a record of 1.1 KB, appended to a file of this folder, is on the device.

    A log grows as this file does, so the length of the file is synced with it.
    """
    took_ns = []
    with tempfile.NamedTemporaryFile(dir=folder) as log:
        for _ in range(_SYNCS):
            began_ns = time.perf_counter_ns()
            os.write(log.fileno(), bytes(_RECORD_BYTES))
            os.fdatasync(log.fileno())
            took_ns.append(time.perf_counter_ns() - began_ns)
    return statistics.median(took_ns) / 1e6
