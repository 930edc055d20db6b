"""What a power cut leaves: everything that was synced, nothing out of order, and a store that opens.

A child process writes batches with growing numbers and prints each number once a sync that began after
its write has returned. Then its power is cut (tests/crash/powercut): what it printed must be there.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.crash import powercut
from tests.native.storeprobe import StoreProbe

FRAMES, INDEX = 1, 2

WRITER = """
import sys, threading, time
from tests.native.storeprobe import StoreProbe, StoreRefused

store = StoreProbe(sys.argv[1], memtable_bytes=1 << 20, wal_bytes_max=4 << 20)
store.start_upkeep()
written = 0

def commit():
    while True:
        number = written
        store.sync()
        print(number, flush=True)

def write(number):
    changes = [(1, b"k%08d" % number, b"x" * 5000), (2, b"k%08d" % number, b"y" * 100)]
    if number > 100:
        changes.append((1, b"k%08d" % (number - 100), None))
    while True:
        try:
            return store.write(changes)
        except StoreRefused:
            time.sleep(0.001)

threading.Thread(target=commit, daemon=True).start()
while True:
    write(written + 1)
    written += 1
"""


def start(data_dir: Path, seed: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(data_dir)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | powercut.environment(data_dir, seed),
        stdout=subprocess.PIPE,
        text=True,
    )


def answered_before_the_cut(process: "subprocess.Popen[str]", for_s: float) -> int:
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(for_s)
    powercut.cut(process.pid)
    answers = [first, *process.stdout.read().split("\n")]
    process.wait()
    return int([answer for answer in answers if answer.strip()][-1])


@pytest.mark.needs("cc")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_was_synced_survives_a_power_cut(tmp_path: Path, seed: int) -> None:
    answered = answered_before_the_cut(start(tmp_path / "data", seed), for_s=0.3 + 0.2 * seed)

    store = StoreProbe(str(tmp_path / "data"), stop_on_damage=True)
    indexed = [int(key[1:]) for key, _ in store.scan(INDEX)]
    payloads = [int(key[1:]) for key, _ in store.scan(FRAMES)]
    store.close()

    last = indexed[-1]
    assert indexed[:answered] == list(range(1, answered + 1)), "something answered is missing"
    assert payloads[-1] == last, "a batch was applied in part"
    if seed == 0:  # otherwise unanswered batches may be missing before one that the disk kept by chance
        assert indexed == list(range(1, last + 1))
        assert payloads == indexed[-100:], "a deletion was forgotten"


@pytest.mark.needs("cc")
def test_a_power_cut_forgets_what_was_not_synced(tmp_path: Path) -> None:
    """The judge of the tests above: a shim that forgets nothing would let all of them pass."""
    script = (
        "import os, sys, time\n"
        "folder = sys.argv[1]\n"
        "file = os.open(folder + '/kept', os.O_CREAT | os.O_WRONLY)\n"
        "os.write(file, b'synced'); os.fdatasync(file); os.write(file, b' and not')\n"
        "directory = os.open(folder, os.O_RDONLY)\n"
        "os.fsync(directory)\n"
        "open(folder + '/new', 'w').write('a name nobody confirmed')\n"
        "os.rename(folder + '/kept', folder + '/renamed')\n"
        "os.unlink(folder + '/old')\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "old").write_text("was there before")
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        env=os.environ | powercut.environment(folder),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    powercut.cut(process.pid)
    process.wait()

    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "kept": "synced",
        "old": "was there before",
    }
