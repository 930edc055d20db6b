"""What the store costs, alone: frames written, acked and deleted as the core does it, at a given backlog.

    python -m bench.store --backlog 100 --frames-per-s 1500 --seconds 8 [--set memtable_bytes=33554432 ...]

One frame = one record of 100 messages of 1 KB, an index record of 3 KB, a lease record and a settled
record; `backlog` frames later it is deleted in full. A second thread syncs without pause, as the
commit thread does. The rate is held, so that two settings can be compared by the processor time and
the disk writes they need for the same work. After the load everything is deleted ("drained").
"""

import argparse
import json
import os
import resource
import shutil
import struct
import tempfile
import threading
import time
from pathlib import Path

from tests.native.storeprobe import StoreProbe, StoreRefused

FRAMES, INDEX, SETTLED, LEASES = 1, 2, 3, 4
STATUS_STALLED = 1


def key(number: int) -> bytes:
    """A queue's name with its length, then the first offset of the frame."""
    return b"\x06orders" + struct.pack(">Q", number)


def bytes_written_to_disk() -> int:
    """Of this process, background threads of the engine included."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Load:
    """The core's writes: a frame with its three small records, and the deletion of the one `backlog` frames before."""

    def __init__(self, store: StoreProbe, backlog: int, frame_bytes: int) -> None:
        self.store = store
        self.backlog = backlog
        self.payload = os.urandom(frame_bytes)
        self.index = os.urandom(3000)
        self.written = 0
        self.deleted = 0
        self.refused = 0
        self.longest_write_s = 0.0

    def changes(self, number: int, with_put: bool) -> list[tuple[int, bytes, bytes | None]]:
        changes: list[tuple[int, bytes, bytes | None]] = []
        if with_put:
            changes += [
                (FRAMES, key(number), self.payload),
                (INDEX, key(number), self.index),
                (LEASES, key(number), bytes(200)),
                (SETTLED, key(number), bytes(40)),
            ]
        old = number - self.backlog
        if old >= 0:
            changes += [(family, key(old), None) for family in (FRAMES, INDEX, LEASES, SETTLED)]
        return changes

    def step(self, number: int, with_put: bool = True) -> None:
        while True:
            began = time.perf_counter()
            try:
                self.store.write(self.changes(number, with_put))
            except StoreRefused as refusal:
                if refusal.status != STATUS_STALLED:
                    raise
                self.refused += 1
                time.sleep(0.005)
                continue
            self.longest_write_s = max(self.longest_write_s, time.perf_counter() - began)
            return


class Committer:
    """A second thread that syncs without pause, and how long each sync took."""

    def __init__(self, store: StoreProbe) -> None:
        self.syncs_s: list[float] = []
        self._store = store
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._commit)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _commit(self) -> None:
        while not self._done.is_set():
            began = time.perf_counter()
            self._store.sync()
            self.syncs_s.append(time.perf_counter() - began)
            time.sleep(0.0005)

    def percentile_ms(self, per_cent: int) -> float:
        return round(sorted(self.syncs_s)[len(self.syncs_s) * per_cent // 100] * 1e3, 2)


def run(
    directory: str,
    backlog: int,
    frames_per_s: int,
    seconds: float,
    frame_bytes: int,
    settings: dict[str, int],
) -> dict[str, float]:
    """Write the backlog, hold the rate for so long, delete everything; say what it took."""
    store = StoreProbe(directory, **settings)  # type: ignore[arg-type]  # names are checked by the probe
    load = Load(store, backlog, frame_bytes)
    store.set_live_frame_bytes(backlog * frame_bytes)
    store.start_upkeep()
    committer = Committer(store)
    committer.start()
    for number in range(backlog):  # the backlog itself is not part of what is measured
        load.step(number)
    count = int(frames_per_s * seconds)
    result = measured(store, load, committer, range(backlog, backlog + count), frames_per_s, frame_bytes)
    for number in range(backlog + count, 2 * backlog + count):
        load.step(number, with_put=False)
    committer.stop()
    store.set_live_frame_bytes(0)
    time.sleep(2.5)
    held = store.held()
    result |= {f"drained_{name}_mb": round(held[name] / 1e6) for name in ("tables", "wal")}
    result["reclaimed"], result["rewritten"] = store.upkeep_round()
    store.close()
    return result


def measured(
    store: StoreProbe,
    load: Load,
    committer: Committer,
    numbers: range,
    frames_per_s: int,
    frame_bytes: int,
) -> dict[str, float]:
    """Write these frames at this rate, and say what that took."""
    stored_bytes = frame_bytes + 3240  # with the other three records of a frame
    cpu, disk, began = time.process_time(), bytes_written_to_disk(), time.perf_counter()
    committer.syncs_s.clear()
    peak = {"memtables": 0, "wal": 0, "disk": 0, "tables": 0, "resident": 0}
    for number in numbers:
        load.step(number)
        if number % 200 == 0:
            store.set_live_frame_bytes(load.backlog * frame_bytes)
            held = store.held() | {"resident": resident_bytes()}
            peak = {name: max(peak[name], held[name]) for name in peak}
            ahead = (number - numbers.start) / frames_per_s - (time.perf_counter() - began)
            if ahead > 0:
                time.sleep(ahead)
    took, cpu, disk = time.perf_counter() - began, time.process_time() - cpu, bytes_written_to_disk() - disk
    count = len(numbers)
    result: dict[str, float] = {
        "frames_per_s": round(count / took),
        "cpu_us_per_frame": round(cpu / count * 1e6, 1),
        "disk_written_per_stored_byte": round(disk / (count * stored_bytes), 2),
        "refused": load.refused,
        "longest_write_ms": round(load.longest_write_s * 1e3, 1),
        "sync_p50_ms": committer.percentile_ms(50),
        "sync_p99_ms": committer.percentile_ms(99),
        "live_mb": round(load.backlog * stored_bytes / 1e6),
    }
    result |= {f"peak_{name}_mb": round(value / 1e6) for name, value in peak.items()}
    result["peak_process_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--backlog", type=int, default=100, help="frames between write and delete")
    parser.add_argument("--frames-per-s", type=int, default=1500)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--frame-bytes", type=int, default=105_000)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="OPTION=NUMBER", help="StoreOptions, see store.pxd"
    )
    parser.add_argument("--dir", default=None, help="directory on the disk to measure")
    arguments = parser.parse_args()
    settings = {name: int(value) for name, value in (pair.split("=") for pair in arguments.set)}
    directory = tempfile.mkdtemp(prefix="fila-bench-store-", dir=arguments.dir)
    try:
        result = run(
            directory,
            arguments.backlog,
            arguments.frames_per_s,
            arguments.seconds,
            arguments.frame_bytes,
            settings,
        )
    finally:
        shutil.rmtree(directory)
    print(json.dumps({"backlog": arguments.backlog, **settings, **result}))


if __name__ == "__main__":
    main()
