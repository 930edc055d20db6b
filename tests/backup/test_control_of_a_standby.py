"""A standby's answer to backups, and how the owner that it becomes takes its place."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from fila_server import errors
from fila_server.backup.control import ControlThread, asked_for_checkpoint

WAIT_S = 30


class Store:
    """Makes a checkpoint when it may."""

    def __init__(self) -> None:
        self.may_make, self.is_asked = threading.Event(), threading.Event()
        self.may_make.set()

    def make(self, path: str) -> None:
        self.is_asked.set()
        assert self.may_make.wait(WAIT_S)
        Path(path).mkdir()


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def started(tmp_path, store):
    """Starts one, as often as it is asked to; they end with the test."""
    (tmp_path / "rocksdb").mkdir()
    made: list[ControlThread] = []

    def start() -> ControlThread:
        control = ControlThread(tmp_path, store.make, 0)
        made.append(control)
        while not listens(tmp_path):
            pass
        return control

    yield start
    for control in made:
        control.end()


def listens(data_dir: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        return asking.connect_ex(os.path.relpath(data_dir / "control")) == 0


def test_a_standby_makes_a_checkpoint_and_removes_it_when_it_was_copied(started, tmp_path):
    started()
    for _ in range(20):
        with asked_for_checkpoint(tmp_path) as checkpoint:
            assert checkpoint.is_dir()
        assert not checkpoint.exists()


def test_a_checkpoint_that_is_being_copied_outlives_the_takeover_and_is_the_only_one(started, tmp_path):
    standby = started()
    with asked_for_checkpoint(tmp_path) as checkpoint:
        standby.end()
        started()
        with (
            pytest.raises(errors.StartError, match="another backup is being taken"),
            asked_for_checkpoint(tmp_path),
        ):
            pass
        assert checkpoint.is_dir()
    with asked_for_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.is_dir()


def test_a_takeover_waits_for_a_checkpoint_that_is_being_made(started, tmp_path, store):
    standby = started()
    store.may_make.clear()
    copied: list[bool] = []

    def copy() -> None:
        with asked_for_checkpoint(tmp_path) as checkpoint:
            copied.append(checkpoint.is_dir())

    copying = threading.Thread(target=copy)
    copying.start()
    assert store.is_asked.wait(WAIT_S)
    ending = threading.Thread(target=standby.end)
    ending.start()
    ending.join(0.05)
    assert ending.is_alive()
    store.may_make.set()
    ending.join(WAIT_S)
    copying.join(WAIT_S)
    assert copied == [True]
