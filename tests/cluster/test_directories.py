"""A copy is put in place whole, wherever the process ends on the way."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fila_server import errors
from fila_server.cluster.directories import SET_ASIDE, Directories

NEW, OLD = {"CURRENT": "new", "000004.sst": "new"}, {"CURRENT": "old", "000003.sst": "old"}


class Ended(BaseException):
    """The process ends here."""


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "rocksdb").iterdir()}


def filled(folder: Path, files: dict[str, str]) -> None:
    (folder / "rocksdb").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / "rocksdb" / name).write_text(content)
    (folder / "format").write_text("fila 3\n")


@pytest.fixture
def directories(tmp_path):
    made = Directories(tmp_path / "data")
    made.data_dir.mkdir()
    return made


def taken(directories: Directories) -> None:
    """A copy comes, whole."""
    directories.begin(0)
    filled(directories.seeding, NEW)
    directories.finish()
    directories.put_in_place()


@pytest.mark.parametrize("had", [None, OLD])
def test_a_whole_copy_takes_the_place_of_what_was_there(directories, had):
    if had:
        filled(directories.data_dir, had)
        directories.say_damaged()
        assert directories.is_damaged
    taken(directories)
    assert contents(directories.data_dir) == NEW
    assert (directories.data_dir / "format").read_text() == "fila 3\n"
    assert not directories.is_damaged
    assert not directories.seeding.exists()
    if had:
        assert contents(directories.data_dir / SET_ASIDE) == OLD
    else:
        assert not (directories.data_dir / SET_ASIDE).exists()


def test_one_copy_is_set_aside_and_an_older_one_is_removed(directories):
    filled(directories.data_dir, OLD)
    taken(directories)
    (directories.data_dir / "rocksdb" / "second").write_text("second")
    taken(directories)
    assert "second" in contents(directories.data_dir / SET_ASIDE)
    assert contents(directories.data_dir) == NEW


def test_what_was_set_aside_is_given_up_where_a_copy_needs_its_room(directories):
    filled(directories.data_dir / SET_ASIDE, OLD)
    directories.begin(1)
    assert (directories.data_dir / SET_ASIDE).exists()
    directories.begin(shutil.disk_usage(directories.data_dir).total * 2)
    assert not (directories.data_dir / SET_ASIDE).exists()


STEPS = ("mkdir", "rename", "replace", "fsync", "unlink", "rmdir", "write", "open")


@pytest.mark.parametrize("had", [None, OLD])
def test_wherever_it_ends_the_next_start_finds_the_old_copy_or_none_or_the_whole_new_one(
    tmp_path, monkeypatch, had
):
    """Each change of the disk is one after which the process ends, in turn."""
    ends, steps, found = 0, 0, set[str]()

    def counted(name):
        real = getattr(os, name)

        def ended(*args, **named):
            nonlocal steps
            steps += 1
            if steps == ends:
                raise Ended
            return real(*args, **named)

        return ended

    while True:
        ends += 1
        directories = Directories(tmp_path / str(ends) / "data")
        directories.data_dir.mkdir(parents=True)
        if had:
            filled(directories.data_dir, had)
        steps = 0
        with monkeypatch.context() as patch:
            for name in STEPS:
                patch.setattr(os, name, counted(name))
            try:
                taken(directories)
                is_over = True
            except Ended:
                is_over = False
        if is_over:
            break
        again = Directories(directories.data_dir)
        again.clear_up()
        state = "none"
        if again.has_copy:
            state = "new" if contents(again.data_dir) == NEW else "old"
            assert contents(again.data_dir) in (NEW, had)
            assert (again.data_dir / "format").read_text() == "fila 3\n"
        elif had:
            assert contents(again.data_dir / SET_ASIDE) == had, "a copy was there, and is nowhere"
        found.add(state)
        assert not again.seeding.exists()
        taken(again)
        assert contents(again.data_dir) == NEW
    assert ends > 10
    assert found == {"old" if had else "none", "new"}


def test_no_other_process_has_the_directory_meanwhile(directories):
    with directories.locked():
        assert (directories.data_dir / "fila.lock").read_text() == str(os.getpid())
        with pytest.raises(errors.DataDirInUse), Directories(directories.data_dir).locked():
            pass
    with directories.locked():
        pass
