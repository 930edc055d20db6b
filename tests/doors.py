"""A door as main.py has it while keys are off, for tests of the edges alone."""

from __future__ import annotations

import time

from fila_server.access.directory import Directory
from fila_server.access.door import Door
from fila_server.access.failures import Failures
from fila_server.access.tls import Tls
from fila_server.config.sections import Tls as TlsSettings
from fila_server.core.doors.rights_table import Rights

PLAIN = Tls(TlsSettings())


async def _no_store(_kind: int, _frame: bytes) -> bytes:
    raise AssertionError("keys are off")


def open_door() -> Door:
    table = Rights()
    directory = Directory(_no_store, table, "data", wall_ms=lambda: 0, mono_ns=time.monotonic_ns)
    return Door(table, directory, Failures(time.monotonic), is_on=False, wall_ms=lambda: 0)
