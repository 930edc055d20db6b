"""The first admin's key: made once, when no key was ever written, or told by the operator."""

from __future__ import annotations

import os
from pathlib import Path

from fila_server import errors
from fila_server.access import keys
from fila_server.access.marker import sync_directory, write_synced
from fila_server.access.records import GrantRecord, KeyRecord, PrincipalRecord
from fila_server.access.rights import ADMIN

FILE_NAME = "bootstrap-key"
PRINCIPAL = "admin"


def file_in(data_dir: str) -> Path:
    """Where the key is written."""
    return Path(data_dir) / FILE_NAME


def key_from_file(name: str) -> keys.Key:
    """Read the key that the operator chose. Raises ConfigInvalid."""
    try:
        text = Path(name).read_bytes()[:512].strip()
    except OSError as error:
        raise errors.ConfigInvalid(
            f"auth.bootstrap_key_file: {name} cannot be read: {error.strerror}", key="auth.bootstrap_key_file"
        ) from None
    key = keys.parse(text)
    if key is None:
        raise errors.ConfigInvalid(
            f"auth.bootstrap_key_file: {name} holds no key; one is fila_<id>_<secret>, the id of a-z and 0-9, the "
            "secret of 40 to 128 random letters and digits",
            key="auth.bootstrap_key_file",
        )
    return key


def new_key(data_dir: str) -> keys.Key:
    """Make a key and write it to DATA_DIR/bootstrap-key, which nobody else may read; never over another file."""
    text, key = keys.make(os.urandom)
    file = file_in(data_dir)
    try:
        write_synced(file, f"{text}\n", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        sync_directory(file.parent)
    except FileExistsError:
        raise errors.StartError(
            f"{file} is there, but no key was ever made in this directory. Move it away, then start again"
        ) from None
    except OSError as error:
        raise errors.StartError(f"{file} cannot be written: {error.strerror}") from None
    return key


def records_of(key: keys.Key, now_ms: int) -> list[PrincipalRecord | KeyRecord]:
    """The principal `admin` with this key."""
    return [
        PrincipalRecord(PRINCIPAL, now_ms, grants=(GrantRecord(rights=ADMIN, queue="*"),)),
        KeyRecord(key.id, PRINCIPAL, key.digest, now_ms, bootstrap=True),
    ]


def is_left(data_dir: str, known: dict[str, KeyRecord]) -> bool:
    """Whether the file is there with a key that is valid: worth a warning."""
    try:
        key = keys.parse(file_in(data_dir).read_bytes()[:512].strip())
    except OSError:
        return False
    return key is not None and key.id in known
