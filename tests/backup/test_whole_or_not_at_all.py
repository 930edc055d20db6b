"""Backups and restores over files alone: what is refused, and what is left when one is killed on the way."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fila_server import errors, opening
from fila_server.backup.last import backup_age_s
from fila_server.backup.restoring import restore_backup
from fila_server.backup.sums import FILE_NAME, read_sums
from fila_server.backup.taking import take_backup

STORE = {
    "rocksdb/CURRENT": b"MANIFEST-000005\n",
    "rocksdb/MANIFEST-000005": bytes(range(256)) * 9,
    "rocksdb/OPTIONS-000007": b"[Version]\n",
    "rocksdb/000004.log": b"written last",
    "rocksdb/000008.sst": b"records" * 1000,
    "rocksdb/000009.blob": b"payloads" * 200_000,
    "format": b"fila 2\n",
    "access-marker": b"fila access changes 3\n",
}
LEFT_BEHIND = {
    "rocksdb/LOG": b"talk",
    "rocksdb/LOCK": b"",
    "rocksdb/mirror": b"made anew",
    "ballast": b"nothing",
    "bootstrap-key": b"fila_secret",
}


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """What a stopped server leaves, as files; nobody opens them as a store here."""
    return laid_out(tmp_path / "data", STORE | LEFT_BEHIND)


@pytest.fixture
def backup(data_dir: Path, tmp_path: Path) -> Path:
    take_backup(data_dir, tmp_path / "backup")
    return tmp_path / "backup"


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_backup_that_is_whole_is_noted_in_the_data_directory_and_one_that_failed_is_not(data_dir, tmp_path):
    with pytest.raises(errors.StartError):
        take_backup(data_dir, data_dir / "within")
    assert backup_age_s(data_dir, time.time_ns() // 1_000_000) is None

    reported = take_backup(data_dir, tmp_path / "backup")

    assert reported.trouble == ""
    assert backup_age_s(data_dir, time.time_ns() // 1_000_000 + 1_000) >= 1
    assert not (tmp_path / "backup" / "last-backup").exists()


def test_a_backup_that_cannot_be_noted_is_whole_and_says_so(data_dir, tmp_path):
    (data_dir / "last-backup.new").mkdir()

    reported = take_backup(data_dir, tmp_path / "backup")

    assert "fila_backup_age_seconds" in reported.trouble
    restore_backup(tmp_path / "backup", tmp_path / "new")


def test_a_restored_directory_has_the_stores_files_and_none_that_a_start_makes_anew(backup, tmp_path):
    restore_backup(backup, tmp_path / "new")

    assert contents(tmp_path / "new") == STORE | {"fila.lock": (tmp_path / "new/fila.lock").read_bytes()}


def test_a_backup_holds_no_key_and_nobody_else_may_read_it(backup):
    assert b"fila_secret" not in b"".join(contents(backup).values())
    assert {path.stat().st_mode & 0o077 for path in [backup, *backup.rglob("*")]} == {0}


def test_sha256sum_can_judge_a_backup(backup):
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", FILE_NAME],
        cwd=backup,
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count(": OK") == len(STORE) + 1  # and backup.json


@pytest.mark.parametrize("name", [*STORE, "backup.json"])
def test_one_flipped_byte_refuses_a_restore_and_no_server_starts_on_what_is_left(backup, tmp_path, name):
    content = bytearray((backup / name).read_bytes())
    content[len(content) // 2] ^= 1
    (backup / name).write_bytes(content)

    with pytest.raises(errors.StartError, match="SHA-256 differs"):
        restore_backup(backup, tmp_path / "new")

    assert opening.is_restored_in_part(tmp_path / "new")


def test_a_file_that_is_missing_refuses_a_restore(backup, tmp_path):
    (backup / "rocksdb/000008.sst").unlink()

    with pytest.raises(errors.StartError, match=r"000008\.sst is missing"):
        restore_backup(backup, tmp_path / "new")


@pytest.mark.parametrize(
    "line", ["../../etc/passwd", "rocksdb/../../x.sst", "/etc/000001.sst", "rocksdb/LOCK", "ballast"]
)
def test_sums_that_name_what_no_backup_has_are_refused(backup, tmp_path, line):
    with (backup / FILE_NAME).open("a") as sums:
        sums.write(f"{'0' * 64}  {line}\n")

    with pytest.raises(errors.StartError, match="not a line that"):
        restore_backup(backup, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("there", ["rocksdb/CURRENT", "format", "ballast", "somebody's.txt"])
def test_a_restore_never_overwrites(backup, tmp_path, there):
    new = laid_out(tmp_path / "new", {there: b"mine"})

    with pytest.raises(errors.StartError, match="is not empty"):
        restore_backup(backup, new)
    assert contents(new)[there] == b"mine"


def test_a_restore_into_an_empty_disk_of_its_own_works(backup, tmp_path):
    (tmp_path / "new/lost+found").mkdir(parents=True)

    restore_backup(backup, tmp_path / "new")

    assert (tmp_path / "new/rocksdb/CURRENT").exists()


def test_a_backup_goes_to_a_directory_of_its_own(data_dir, tmp_path):
    other = laid_out(tmp_path / "other", {"notes.txt": b"mine"})

    with pytest.raises(errors.StartError, match="is not empty"):
        take_backup(data_dir, other)
    with pytest.raises(errors.StartError, match="lies in the data directory"):
        take_backup(data_dir, data_dir / "backup")
    with pytest.raises(errors.StartError, match="no data directory of a Fila server"):
        take_backup(other, tmp_path / "backup")
    assert contents(other) == {"notes.txt": b"mine"}


DIES_AT_FILE = """
import os, signal, sys
from pathlib import Path
from fila_server.backup import restoring, taking

what, source, target, files = sys.argv[1:]
left = int(files)
copy_file = taking.copy_file

def dying(*of):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return copy_file(*of)

def dying_at_last(*of):
    os.kill(os.getpid(), signal.SIGKILL)

taking.copy_file = restoring.copy_file = dying
taking.write_sums = dying_at_last
if what == "rename":
    restoring.shutil.rmtree = lambda path, ignore_errors=False: None if ignore_errors else dying_at_last()
{"take": taking.take_backup}.get(what, restoring.restore_backup)(Path(source), Path(target))
"""


def killed(what: str, source: Path, target: Path, files: int) -> None:
    """Run it in a process that kills itself at the n-th file, or at the last step."""
    command = [sys.executable, "-c", DIES_AT_FILE, what, str(source), str(target), str(files)]
    assert subprocess.run(command, check=False, timeout=30).returncode == -9


@pytest.mark.parametrize("files", [0, 3, len(STORE)])
def test_a_backup_that_was_killed_is_none(data_dir, tmp_path, files):
    killed("take", data_dir, tmp_path / "backup", files)

    with pytest.raises(errors.StartError, match="no whole backup"):
        read_sums(tmp_path / "backup")
    assert contents(data_dir).items() >= (STORE | LEFT_BEHIND).items()


@pytest.mark.parametrize("files", [0, 3, len(STORE)])
def test_no_server_starts_on_a_restore_that_was_killed_and_the_next_restore_ends_it(backup, tmp_path, files):
    new = tmp_path / "new"
    killed("restore", backup, new, files)
    assert opening.is_restored_in_part(new)

    restore_backup(backup, new)

    assert contents(new).items() >= STORE.items()
    assert not opening.is_restored_in_part(new)


def test_a_restore_that_was_killed_behind_its_last_rename_is_whole(backup, tmp_path):
    new = tmp_path / "new"
    killed("rename", backup, new, 100)

    assert contents(new).items() >= STORE.items()
    assert not opening.is_restored_in_part(new)
