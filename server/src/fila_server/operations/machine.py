"""What this process uses of its machine, and what it may use."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STATM = Path("/proc/self/statm")
_CGROUP_BOUNDS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def cpu_ms() -> int:
    """Processor time since the process began, all threads together."""
    return time.process_time_ns() // 1_000_000


def memory_bytes() -> int:
    """Resident memory; 0 where the kernel does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0


def cpus() -> int:
    """Processors it may run on."""
    return len(os.sched_getaffinity(0))


def memory_bytes_max(bounds: tuple[Path, ...] = _CGROUP_BOUNDS) -> int:
    """The machine's memory, or the container's bound where that is less."""
    most = os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES
    for bound in bounds:
        try:
            most = min(most, int(bound.read_text()))
        except (OSError, ValueError):
            continue  # there is none, or it says "max"
    return most
