"""Keys over restarts: what is lost or damaged never opens the door, and recovery is offline."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fila.v1 import admin_pb2, auth_pb2
from fila_server import errors
from fila_server.access import keys, records
from fila_server.access.directory import Directory
from fila_server.access.marker import FILE_NAME
from fila_server.access.records import GrantRecord, KeyRecord, PrincipalRecord
from fila_server.access.rights import ADMIN
from fila_server.core.protocol import commands, seam_frames
from fila_server.core.requests.rights_table import Rights
from tests.access.guarded_server import Guarded, refusal
from tests.e2e.conftest import StartServer, launch


class Store:
    """What the core keeps, as far as ACCESS_CHANGE and ACCESS_READ go."""

    def __init__(self) -> None:
        self.records: dict[bytes, bytes] = {}
        self.copy = b""
        self.refusal: errors.FilaServerError | None = None

    async def call(self, kind: int, frame: bytes) -> bytes:
        if self.refusal is not None:
            raise self.refusal
        if kind == commands.ACCESS_READ:
            told = seam_frames.AccessChange(marker=self.copy)
            for key, value in self.records.items():
                told.records.add(key=key, value=value)
            return bytes(told.SerializeToString())
        change = seam_frames.AccessChange.FromString(frame)
        if change.anew:
            self.records.clear()
        for record in change.records:
            if record.value:
                self.records[record.key] = record.value
            else:
                self.records.pop(record.key, None)
        self.records[records.MARKER_KEY] = self.copy = change.marker
        return b""


def sum_of(store: Store) -> records.Sum:
    return records.Sum({key: value for key, value in store.records.items() if key != records.MARKER_KEY})


def directory(store: Store, data_dir: Path) -> Directory:
    return Directory(store.call, Rights(), str(data_dir), wall_ms=lambda: 1000, mono_ns=lambda: 0)


ADMIN_RECORD = PrincipalRecord("anna", 1, grants=(GrantRecord(rights=ADMIN, queue="*"),))


@pytest.fixture
async def written(tmp_path: Path) -> Store:
    store = Store()
    keyring = directory(store, tmp_path)
    await keyring.load()
    key = keys.Key("first", bytes(32))
    await keyring.change([ADMIN_RECORD, KeyRecord(key.id, "anna", key.digest, 1)], [])
    await keyring.change([KeyRecord("second", "anna", bytes(32), 1)], [])
    return store


async def test_keys_are_found_again(written: Store, tmp_path: Path):
    again = directory(written, tmp_path)
    await again.load()
    assert sorted(again.keys) == ["first", "second"]
    assert again.was_ever_written
    assert again.admins(1000) == 2


def old_table(store: Store, _: Path) -> None:
    """As it was before the last change, the marker in both places too: a log whose end is lost."""
    del store.records[b"k/second"]
    store.records[records.MARKER_KEY] = store.copy = records.encode(sum_of(store).marker(1))


def exchanged(store: Store, _: Path) -> None:
    """Each of two records has the other's value."""
    first, second = store.records[b"k/first"], store.records[b"k/second"]
    store.records.update({b"k/first": second, b"k/second": first})


def all_gone(store: Store, _: Path) -> None:
    store.records.clear()
    store.copy = b""


DAMAGES: dict[str, Callable[[Store, Path], Any]] = {
    "a record is gone": lambda store, _: store.records.pop(b"k/second"),
    "a record is another": lambda store, _: store.records.update({b"k/second": b'{"id":"x"}'}),
    "two records are exchanged": exchanged,
    "the marker is gone": lambda store, _: store.records.pop(records.MARKER_KEY),
    "its copy is gone": lambda store, _: setattr(store, "copy", b""),
    "all is gone": all_gone,
    "the last change is gone": old_table,
    "the file is no marker": lambda _, data_dir: (data_dir / FILE_NAME).write_text("nonsense"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_loss_refuses_to_serve(written: Store, tmp_path: Path, damage: Callable[[Store, Path], Any]):
    damage(written, tmp_path)
    with pytest.raises(errors.AccessDamaged, match="auth recover"):
        await directory(written, tmp_path).load()


async def test_the_sum_goes_with_each_change_to_what_the_records_add_up_to(written: Store, tmp_path: Path):
    keyring = directory(written, tmp_path)
    await keyring.load()
    second = keyring.keys["second"]
    bob = PrincipalRecord("bob", 2)
    await keyring.change([bob, KeyRecord("second", "anna", bytes(32), 1, 9)], [keyring.keys["first"]])
    assert records.decode_marker(written.copy) == sum_of(written).marker(3)

    await keyring.change([second], [bob, KeyRecord("never", "bob", bytes(32), 1)])

    assert records.decode_marker(written.copy) == sum_of(written).marker(4)
    assert sorted(written.records) == [b"!", b"k/second", b"p/anna"]


async def test_what_the_store_refuses_changes_nothing_of_the_sum(written: Store, tmp_path: Path):
    keyring = directory(written, tmp_path)
    await keyring.load()
    written.refusal = errors.Overloaded("full")
    with pytest.raises(errors.Overloaded):
        await keyring.change([PrincipalRecord("bob", 2)], [keyring.keys["first"]])
    written.refusal = None

    await keyring.change([PrincipalRecord("carla", 2)], [])

    await directory(written, tmp_path).load()


async def test_a_sum_as_older_servers_wrote_it_is_read_and_replaced(written: Store, tmp_path: Path):
    total = hashlib.sha256()
    for key, value in sorted(written.records.items()):
        if key != records.MARKER_KEY:
            total.update(len(key).to_bytes(4) + key + len(value).to_bytes(4) + value)
    marker = records.encode(records.Marker(changes=2, count=3, sum=total.hexdigest()))
    written.records[records.MARKER_KEY] = written.copy = marker
    keyring = directory(written, tmp_path)
    await keyring.load()
    await keyring.change([KeyRecord("third", "anna", bytes(32), 1)], [])
    assert records.decode_marker(written.copy) == sum_of(written).marker(3)

    written.records[records.MARKER_KEY] = written.copy = marker
    with pytest.raises(errors.AccessDamaged, match="not those that were written last"):
        await directory(written, tmp_path).load()


async def test_a_crash_between_the_store_and_the_file_is_no_loss(written: Store, tmp_path: Path):
    (tmp_path / FILE_NAME).write_text("fila access changes 1\n")
    again = directory(written, tmp_path)
    await again.load()
    assert (tmp_path / FILE_NAME).read_text() == "fila access changes 2\n"


@pytest.mark.e2e
def test_keys_and_rights_outlive_the_server_and_recovery_drops_them(start_server: StartServer):
    running = start_server(FILA_AUTH__ENABLED="true")
    guarded = Guarded(running)
    anna = guarded.make_key("anna", "admin")
    first = guarded.admin_key
    assert running.stop() == 0

    running = start_server(running.data_dir, FILA_AUTH__ENABLED="true")
    guarded = Guarded(running)
    assert running.event("auth.bootstrap_key_left")
    assert guarded.admin_key == first
    guarded.client(anna.key).admin.ListQueues(admin_pb2.ListQueuesRequest())
    acts = [record.act for record in guarded.admin.auth.ListAudit(auth_pb2.ListAuditRequest()).records]
    assert acts == ["Grant", "CreateKey", "Bootstrap"]
    assert running.stop() == 0

    told = subprocess.run(
        [sys.executable, "-m", "fila_server.main", "auth", "recover", "--yes", "--data-dir", running.data_dir],
        capture_output=True, text=True, check=True, cwd=running.data_dir.parent,
    )  # fmt: skip
    assert told.stdout == f"the key of the principal admin is in {running.data_dir}/bootstrap-key\n"
    running = start_server(running.data_dir, FILA_AUTH__ENABLED="true")
    guarded = Guarded(running)
    assert guarded.admin_key != first
    for key in (first, anna.key):
        listed = guarded.client(key).admin.ListQueues
        assert refusal(lambda listed=listed: listed(admin_pb2.ListQueuesRequest()))[0] == "UNAUTHENTICATED"
    assert guarded.admin.auth.ListAudit(auth_pb2.ListAuditRequest()).records[0].act == "Recover"


@pytest.mark.e2e
def test_keys_that_were_deleted_from_the_directory_do_not_open_it(start_server: StartServer, tmp_path: Path):
    running = start_server(FILA_AUTH__ENABLED="true")
    assert running.stop() == 0
    for file in (running.data_dir / "rocksdb").iterdir():
        file.unlink()
    again = launch(running.data_dir, tmp_path / "again.log", FILA_AUTH__ENABLED="true")
    assert again.process.wait(30) == 1
    said = (tmp_path / "again.log").read_text()
    assert "store of keys is damaged" in said or "damaged" in said


@pytest.mark.e2e
def test_the_operators_own_first_key_is_taken_from_a_file(start_server: StartServer, tmp_path: Path):
    text, _ = keys.make(os.urandom)
    (tmp_path / "first-key").write_text(text + "\n")
    running = start_server(
        FILA_AUTH__ENABLED="true", FILA_AUTH__BOOTSTRAP_KEY_FILE=str(tmp_path / "first-key")
    )
    assert not (running.data_dir / "bootstrap-key").exists()
    Guarded(running).client(text).admin.ListQueues(admin_pb2.ListQueuesRequest())
    assert text not in running.log_file.read_text()
    assert text.split("_")[2] not in Path(f"/proc/{running.process.pid}/cmdline").read_bytes().decode()
