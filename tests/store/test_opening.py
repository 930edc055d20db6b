"""A data directory is taken, checked and given back; each way a start goes wrong has its own status and advice."""

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fila_server import errors
from fila_server.core.runtime.engine import CoreEngine
from tests.native.storeprobe import StoreProbe, StoreRefused

CONFIG = 8
IN_USE, UNWRITABLE, TOO_NEW = 4, 5, 6


def test_a_new_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path / "a" / "b"))

    assert store.created
    assert (tmp_path / "a" / "b" / "format").read_text() == "fila 2\n"
    store.close()


def test_an_old_directory_is_not_new(tmp_path: Path) -> None:
    StoreProbe(str(tmp_path)).close()

    store = StoreProbe(str(tmp_path))

    assert not store.created
    assert not any(store.repaired)
    store.close()


def test_a_directory_has_one_owner_at_a_time(tmp_path: Path) -> None:
    first = StoreProbe(str(tmp_path))

    with pytest.raises(StoreRefused, match=f"in use by process {os.getpid()}; stop that server") as refusal:
        StoreProbe(str(tmp_path))

    assert refusal.value.status == IN_USE
    first.close()
    StoreProbe(str(tmp_path)).close()


def _wait_until_opened(pid: int, path: Path) -> None:
    files = Path(f"/proc/{pid}/fd")
    gives_up_s = time.monotonic() + 30
    while time.monotonic() < gives_up_s and not any(
        os.path.realpath(file) == str(path) for file in files.iterdir()
    ):
        pass


def test_a_directory_of_a_killed_server_is_taken_once_its_last_child_lets_go(tmp_path: Path) -> None:
    """The child of a killed server holds the lock, until it sees that somebody else has opened the file."""
    tester = os.getpid()
    server = os.fork()
    if server == 0:
        lock = os.open(tmp_path / "fila.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, str(os.getpid()).encode())
        if os.fork() == 0:
            _wait_until_opened(tester, tmp_path / "fila.lock")
        os._exit(0)
    os.waitpid(server, 0)

    StoreProbe(str(tmp_path)).close()


def test_a_directory_is_given_back_although_a_child_was_forked_meanwhile(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    told, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        os.read(told, 1)  # until the parent closes its end: it has opened the directory anew, or failed to
        os._exit(0)
    try:
        store.close()

        StoreProbe(str(tmp_path)).close()
    finally:
        os.close(end)
        os.close(told)
        os.waitpid(child, 0)


def test_a_refused_start_leaves_the_owner_unharmed(tmp_path: Path) -> None:
    owner = StoreProbe(str(tmp_path))
    with pytest.raises(StoreRefused):
        StoreProbe(str(tmp_path))

    owner.write([(CONFIG, b"k", b"v")])

    assert owner.get(CONFIG, b"k") == b"v"
    owner.close()


def test_a_file_in_the_place_of_the_directory_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")

    with pytest.raises(StoreRefused, match=r"cannot be written.*set server\.data_dir") as refusal:
        StoreProbe(str(tmp_path / "data"))

    assert refusal.value.status == UNWRITABLE


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A directory nobody can write: for root, whom no mode keeps out, a disk mounted so."""
    folder = tmp_path / "data"
    folder.mkdir()
    if os.geteuid() == 0:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(folder)], check=True)
        yield folder
        subprocess.run(["umount", str(folder)], check=True)
        return
    folder.chmod(0o500)
    yield folder
    folder.chmod(0o700)


def test_a_read_only_directory_is_not_writable(read_only: Path) -> None:
    with pytest.raises(StoreRefused, match="check its owner and mode") as refusal:
        StoreProbe(str(read_only))

    assert refusal.value.status == UNWRITABLE


def test_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    StoreProbe(str(tmp_path)).close()
    (tmp_path / "format").write_text("fila 4\n")

    with pytest.raises(StoreRefused, match="format 4, this server knows up to 3") as refusal:
        StoreProbe(str(tmp_path))

    assert refusal.value.status == TOO_NEW
    assert (tmp_path / "format").read_text() == "fila 4\n"


def test_a_lost_format_file_is_written_anew_from_the_record(tmp_path: Path) -> None:
    StoreProbe(str(tmp_path)).close()
    (tmp_path / "format").unlink()

    StoreProbe(str(tmp_path)).close()

    assert (tmp_path / "format").read_text() == "fila 2\n"


def test_records_survive_a_restart(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    store.write([(CONFIG, b"a", b"1"), (CONFIG, b"b", b"2")])
    store.write([(CONFIG, b"a", None)])
    store.close()

    store = StoreProbe(str(tmp_path))

    assert store.scan(CONFIG) == [(b"b", b"2")]
    store.close()


def test_an_open_that_fails_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    owner = StoreProbe(str(tmp_path))
    before = descriptors()

    for _ in range(5):
        with pytest.raises(errors.DataDirInUse):
            CoreEngine(str(tmp_path), {}, mono_ns=1, wall_ns=1, seed=1)

    # What earlier tests left may be closed meanwhile.
    assert descriptors() - before == set()
    owner.close()


def descriptors() -> set[tuple[str, str]]:
    """The descriptors of this process, and what each leads to."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists them
            found.add((path.name, str(path.readlink())))
    return found
