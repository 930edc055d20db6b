"""One flipped byte, anywhere: the start succeeds, the loss stays where the byte is, and it is known.

The store of these tests holds 400 records in each of three families, half in tables and half in the WAL.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.native.storeprobe import StoreProbe, StoreRefused, scan_wal_of

FRAMES, INDEX, SETTLED, QUEUES = 1, 2, 3, 6
FAMILIES = (FRAMES, INDEX, QUEUES)
FAMILY_COUNT = 11
DAMAGED = 7
RECORDS = 400
IN_TABLES = 200
WAL_BLOCK_BYTES = 32768
BATCH_BYTES = 6400
# What one block of a table may hold: keys of FRAMES, records of INDEX and of QUEUES.
BLOCK_RECORDS = {FRAMES: 30, INDEX: 15, QUEUES: 310}


def key(number: int) -> bytes:
    return b"k%08d" % number


def fill(store: StoreProbe, first: int, end: int) -> None:
    for number in range(first, end):
        payload = random.Random(number).randbytes(6000)
        store.write(
            [(FRAMES, key(number), payload), (INDEX, key(number), b"y" * 300), (QUEUES, key(number), b"z")]
        )


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sound") / "data"
    store = StoreProbe(str(directory))
    fill(store, 0, IN_TABLES)
    for family in range(FAMILY_COUNT):
        store.flush(family)
    fill(store, IN_TABLES, RECORDS)
    store.close()
    return directory


@pytest.fixture
def directory(sound: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "data"
    shutil.copytree(sound, copy)
    return copy


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << at % 8
    path.write_bytes(content)


def files(directory: Path, pattern: str) -> list[Path]:
    found = [path for path in sorted((directory / "rocksdb").glob(pattern)) if path.stat().st_size > 0]
    assert found, pattern
    return found


def numbers(store: StoreProbe, family: int) -> list[int]:
    return [int(found[1:]) for found, _ in store.scan(family, b"", skip_damage=True)]


def lost(store: StoreProbe) -> dict[int, int]:
    """Missing records by family; what is there must be right and in order."""
    missing = {}
    for family in FAMILIES:
        found = numbers(store, family)
        assert found == sorted(set(found))
        missing[family] = RECORDS - len(found)
    return missing


def test_a_flipped_byte_in_the_log_costs_what_its_block_holds_and_is_counted_exactly(directory: Path) -> None:
    (log,) = files(directory, "*.log")
    for seed in range(5):
        broken = directory.with_name(f"broken{seed}")
        shutil.copytree(directory, broken)
        size = log.stat().st_size
        flip(broken / "rocksdb" / log.name, random.Random(seed).randrange(size - 2 * WAL_BLOCK_BYTES))

        store = StoreProbe(str(broken))

        missing = lost(store)
        assert missing[FRAMES] == missing[INDEX] == missing[QUEUES]
        assert 1 <= missing[FRAMES] <= 2 + WAL_BLOCK_BYTES // BATCH_BYTES
        assert store.wal["records_lost"] == 3 * missing[FRAMES]
        assert store.wal["damaged_regions"] == 1
        assert store.wal["first_damaged_file"] == log.name
        store.close()


def test_what_follows_the_damage_in_the_log_is_kept(directory: Path) -> None:
    (log,) = files(directory, "*.log")
    flip(log, log.stat().st_size // 2)

    store = StoreProbe(str(directory))

    assert numbers(store, FRAMES)[-1] == RECORDS - 1
    store.close()


@pytest.mark.parametrize("part", range(1, 6))
def test_a_flipped_byte_within_a_batch_of_many_blocks_costs_that_batch_and_one_beside_it_at_most(
    tmp_path: Path, part: int
) -> None:
    store = StoreProbe(str(tmp_path))
    for number in range(30):
        store.write([(FRAMES, key(number), bytes([number]) * 100_000), (INDEX, key(number), b"x")])
    store.sync()
    store.close()
    (log,) = files(tmp_path, "*.log")
    flip(log, log.stat().st_size * part // 6)

    store = StoreProbe(str(tmp_path))

    there = numbers(store, FRAMES)
    assert len(there) in (28, 29)
    assert numbers(store, INDEX) == there
    assert store.wal["records_lost"] == 2 * (30 - len(there))
    assert not store.repaired[4]
    store.close()


def test_a_torn_end_of_the_log_is_no_damage(directory: Path) -> None:
    (log,) = files(directory, "*.log")
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - 100)

    store = StoreProbe(str(directory), stop_on_damage=True)

    assert lost(store) == {FRAMES: 1, INDEX: 1, QUEUES: 1}
    assert store.wal["tail_bytes_dropped"] > 0
    assert store.wal["damaged_regions"] == store.wal["records_lost"] == 0
    store.close()


def test_logs_that_a_power_cut_left_with_a_hole_between_them_are_no_damage(directory: Path) -> None:
    """The disk had written the newer log by itself when the power failed, and not the end of the older one."""
    store = StoreProbe(str(directory))
    fill(store, RECORDS, RECORDS + 20)
    store.flush(QUEUES)  # begins a new log, while the older one is still needed
    fill(store, RECORDS + 20, RECORDS + 40)
    store.close()
    older = files(directory, "*.log")[0]
    with older.open("r+b") as file:
        file.truncate(older.stat().st_size - 10_000)

    store = StoreProbe(str(directory), stop_on_damage=True)

    assert store.wal["records_lost"] == store.wal["damaged_regions"] == 0
    assert store.wal["records_unsynced"] == 3 * 2
    assert numbers(store, FRAMES)[-1] == RECORDS + 39
    store.close()


def test_a_start_may_be_told_to_stop_at_damage_and_then_changes_nothing(directory: Path) -> None:
    (log,) = files(directory, "*.log")
    flip(log, log.stat().st_size // 2)
    before = log.read_bytes()

    with pytest.raises(StoreRefused, match=r"write-ahead log .* is damaged.*storage\.on_damage") as refusal:
        StoreProbe(str(directory), stop_on_damage=True)

    assert refusal.value.status == DAMAGED
    assert log.read_bytes() == before
    assert scan_wal_of(str(directory))["damaged_regions"] == 1


@pytest.mark.parametrize("name", ["MANIFEST-*", "CURRENT"])
def test_a_flipped_byte_in_the_table_of_contents_costs_nothing(directory: Path, name: str) -> None:
    for seed in range(4):
        broken = directory.with_name(f"broken{seed}")
        shutil.copytree(directory, broken)
        (path,) = files(broken, name)
        flip(path, random.Random(seed).randrange(path.stat().st_size))

        store = StoreProbe(str(broken))

        assert store.repaired[0] > 0
        assert lost(store) == dict.fromkeys(FAMILIES, 0)
        store.close()


def test_a_damaged_mirror_harms_nobody(directory: Path) -> None:
    (mirror,) = files(directory, "mirror")
    flip(mirror, 200)

    store = StoreProbe(str(directory))

    assert not any(store.repaired)
    assert lost(store) == dict.fromkeys(FAMILIES, 0)
    store.close()


def test_a_flipped_byte_in_a_payload_costs_that_payload(directory: Path) -> None:
    (blob,) = files(directory, "*.blob")
    flip(blob, blob.stat().st_size // 2)

    store = StoreProbe(str(directory))

    assert lost(store) == {FRAMES: 1, INDEX: 0, QUEUES: 0}
    store.close()


def of_family(directory: Path, size_is: Callable[[int], bool]) -> Path:
    return next(path for path in files(directory, "*.sst") if size_is(path.stat().st_size))


@pytest.mark.parametrize("share", [0, 0.02, 0.25, 0.5, 0.9, 0.999])
def test_a_table_that_was_cut_is_one_table_lost_and_costs_no_other_family(
    directory: Path, share: float
) -> None:
    table = of_family(directory, lambda size: size > 4000)
    with table.open("r+b") as file:
        file.truncate(int(table.stat().st_size * share))

    store = StoreProbe(str(directory))

    _, _, _, tables_lost, _ = store.repaired
    assert tables_lost == 1
    missing = lost(store)
    assert sorted(missing.values()) == [0, 0, IN_TABLES]
    store.close()
    assert not any(StoreProbe(str(directory)).repaired)


def test_a_flipped_byte_in_a_table_costs_its_block_and_the_next_start_is_sound(directory: Path) -> None:
    for seed in range(3):
        broken = directory.with_name(f"broken{seed}")
        shutil.copytree(directory, broken)
        table = of_family(broken, lambda size: size > 50_000)
        flip(table, random.Random(seed).randrange(50_000))

        store = StoreProbe(str(broken))
        missing = lost(store)
        assert 1 <= missing[INDEX] <= BLOCK_RECORDS[INDEX]
        assert missing[FRAMES] == missing[QUEUES] == 0
        store.close()

        store = StoreProbe(str(broken))
        assert store.repaired[1] > 0, "the damaged block was met, so this start copies the store"
        assert lost(store) == missing
        store.compact(INDEX)
        store.write([(INDEX, b"new", b"")])
        store.close()

        store = StoreProbe(str(broken))
        assert not any(store.repaired)
        store.close()


def test_what_other_tables_hold_beside_a_damaged_block_is_kept(tmp_path: Path) -> None:
    """The block holds the last records of one queue and the first of the next one; older tables hold more of that."""
    directory = tmp_path / "data"
    store = StoreProbe(str(directory))
    for older in (True, False):
        for queue in "ab":
            numbers_ = range(100) if older else range(100, 200)
            store.write([(INDEX, f"{queue}{number:08d}".encode(), b"y" * 300) for number in numbers_])
        store.flush(INDEX)
    store.close()
    table = max(files(directory, "*.sst"), key=lambda path: (path.stat().st_size > 50_000, path.name))
    data_bytes = table.stat().st_size - 4000  # behind it stand the index and the properties
    worst = 0
    for place in range(-2, 3):
        broken = tmp_path / f"broken{place}"
        shutil.copytree(directory, broken)
        flip(broken / "rocksdb" / table.name, data_bytes // 2 + place * 1500)

        store = StoreProbe(str(broken))
        store.scan(INDEX, b"", skip_damage=True)
        store.close()
        store = StoreProbe(str(broken))
        kept = {key_ for key_, _ in store.scan(INDEX, b"", skip_damage=True)}
        store.close()

        gone = {f"{queue}{number:08d}".encode() for queue in "ab" for number in range(200)} - kept
        assert all(int(key_[1:]) >= 100 for key_ in gone), "records of the other table are gone"
        assert len(gone) <= BLOCK_RECORDS[INDEX]
        assert not (broken / "rocksdb.beside").exists()
        worst = max(worst, len(gone))
    assert worst, "no byte that was flipped lay in the data"


def test_a_table_that_cannot_be_opened_costs_that_table_only(directory: Path) -> None:
    table = of_family(directory, lambda size: size > 50_000)
    with table.open("r+b") as file:
        file.seek(-53, 2)
        file.write(bytes(53))

    store = StoreProbe(str(directory))

    assert lost(store) == {FRAMES: 0, INDEX: IN_TABLES, QUEUES: 0}
    assert store.repaired[3] == 1
    store.close()


def test_damage_in_a_table_stops_a_start_that_was_told_so(directory: Path) -> None:
    table = of_family(directory, lambda size: size > 50_000)
    with table.open("r+b") as file:
        file.seek(-53, 2)
        file.write(bytes(53))

    with pytest.raises(StoreRefused, match="restore it from a copy") as refusal:
        StoreProbe(str(directory), stop_on_damage=True)

    assert refusal.value.status == DAMAGED


def test_an_exchange_that_was_cut_off_is_finished_at_the_next_start(directory: Path) -> None:
    """The moment after the damaged store was set aside and before the copy took its place."""
    (directory / "rocksdb").rename(directory / "rocksdb.salvaged")
    (directory / "salvage").touch()

    store = StoreProbe(str(directory))

    assert lost(store) == dict.fromkeys(FAMILIES, 0)
    assert not (directory / "salvage").exists()
    store.close()
