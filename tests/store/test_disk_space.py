"""Disk that is not needed is given back, and a disk that fills up is met before the storage engine meets it."""

import os
import uuid
from pathlib import Path

import pytest

from tests.native.storeprobe import DiskProbe, StoreProbe, StoreRefused

FRAMES = 1
STALLED, FULL = 1, 2
ROOMY, LOW, CRITICAL = 0, 1, 2
MIB = 1 << 20
SLACK_BYTES = 64 * MIB
FRAME = os.urandom(100_000)


SMALL_DISK_BYTES = 160 * 1024 * 1024


def key(number: int) -> bytes:
    return b"k%08d" % number


def write(store: StoreProbe, changes: list[tuple[int, bytes, bytes | None]]) -> None:
    while True:
        try:
            store.write(changes)
        except StoreRefused as refusal:
            if refusal.status != STALLED:
                raise
        else:
            return


def fill(store: StoreProbe, frame_count: int) -> None:
    for number in range(frame_count):
        write(store, [(FRAMES, key(number), FRAME)])
    store.flush(FRAMES)


def test_a_drained_queue_gives_its_disk_back(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    fill(store, 1500)
    write(store, [(FRAMES, key(number), None) for number in range(1500)])

    store.set_live_frame_bytes(0)
    store.upkeep_round()

    assert store.held()["tables"] < SLACK_BYTES
    store.close()


def test_a_few_live_frames_do_not_pin_the_dead_ones(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    fill(store, 2000)
    live = range(0, 2000, 20)
    write(store, [(FRAMES, key(number), None) for number in range(2000) if number not in live])

    store.set_live_frame_bytes(len(live) * len(FRAME))
    reclaimed, rewritten = store.upkeep_round()

    assert (reclaimed, rewritten) == (1, 1)
    assert store.held()["tables"] < 1.5 * len(live) * len(FRAME) + SLACK_BYTES
    assert all(store.get(FRAMES, key(number)) == FRAME for number in live)
    store.close()


def test_a_quiet_store_has_a_short_log(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    for number in range(500):
        write(store, [(FRAMES, key(number), FRAME), (FRAMES, key(number - 1), None)])
    assert store.held()["wal"] > 32 * MIB

    store.upkeep_round()
    assert store.held()["wal"] > 32 * MIB, "it may be in the midst of work"
    store.upkeep_round()

    assert store.held()["wal"] < 32 * MIB
    store.close()


def test_upkeep_leaves_a_store_alone_that_is_mostly_live(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    fill(store, 300)

    store.set_live_frame_bytes(300 * len(FRAME))

    assert store.upkeep_round() == (0, 0)
    store.close()


def outsider(disk: Path, leave_bytes: int) -> Path:
    """Somebody else's file takes all but so much."""
    space = os.statvfs(disk)
    path = disk / f"outsider-{uuid.uuid4().hex}"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - leave_bytes)
    return path


def test_below_the_floor_the_disk_is_low_and_the_ballast_is_given_up_only_later(small_disk: Path) -> None:
    disk = DiskProbe(str(small_disk), min_free_bytes=64 * MIB, ballast_bytes=16 * MIB)
    assert (disk.check(), disk.ballast_held) == (ROOMY, True)

    outsider(small_disk, 60 * MIB)
    assert (disk.check(), disk.ballast_held) == (LOW, True)

    outsider(small_disk, 12 * MIB)
    assert (disk.check(), disk.ballast_held) == (LOW, False)
    assert disk.free_bytes == 28 * MIB


def test_without_ballast_the_last_megabytes_are_critical_until_there_is_room_again(small_disk: Path) -> None:
    disk = DiskProbe(str(small_disk), min_free_bytes=64 * MIB, ballast_bytes=16 * MIB)
    taken = outsider(small_disk, 1 * MIB)
    disk.check()
    rest = outsider(small_disk, 1 * MIB)
    assert disk.check() == CRITICAL
    assert not disk.restore_ballast()

    taken.unlink()
    rest.unlink()

    assert disk.check() == ROOMY
    assert disk.restore_ballast()


def test_a_start_on_a_full_disk_says_what_it_needs_and_harms_nothing(small_disk: Path) -> None:
    store = StoreProbe(str(small_disk / "data"))
    write(store, [(FRAMES, b"k", FRAME)])
    store.close()
    taken = outsider(small_disk, 1 * MIB)

    with pytest.raises(StoreRefused, match="a start needs 17 MiB, and 1 MiB are free; make room") as refusal:
        StoreProbe(str(small_disk / "data"))
    assert refusal.value.status == FULL
    taken.unlink()

    store = StoreProbe(str(small_disk / "data"))
    assert store.get(FRAMES, b"k") == FRAME
    store.close()
