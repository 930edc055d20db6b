"""Admissions as serving.py makes them, without keys and with them, for tests of the edge alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

from fila_server.access import keys
from fila_server.access.admission import Admission
from fila_server.access.directory import Directory
from fila_server.access.failures import Failures
from fila_server.access.records import GrantRecord, KeyRecord, PrincipalRecord
from fila_server.access.rights import ADMIN
from fila_server.core.requests.rights_table import Rights


async def _no_store(_kind: int, _frame: bytes) -> bytes:
    raise AssertionError("keys are off")


def open_admission() -> Admission:
    table = Rights()
    directory = Directory(_no_store, table, "data", wall_ms=lambda: 0, mono_ns=time.monotonic_ns)
    return Admission(table, directory, Failures(time.monotonic), is_on=False, wall_ms=lambda: 0)


async def _stored(_kind: int, _frame: bytes) -> bytes:
    return b""


async def keyed_admission(data_dir: Path) -> tuple[Admission, str]:
    """One with keys on, and the key of an admin."""
    table = Rights()
    table.switch_on()
    directory = Directory(_stored, table, str(data_dir), wall_ms=lambda: 1000, mono_ns=time.monotonic_ns)
    text, key = keys.make(os.urandom)
    grant = GrantRecord(rights=ADMIN, queue="*")
    await directory.change(
        [PrincipalRecord("anna", 1, grants=(grant,)), KeyRecord(key.id, "anna", key.digest, 1)], []
    )
    return Admission(table, directory, Failures(time.monotonic), is_on=True, wall_ms=lambda: 1000), text
