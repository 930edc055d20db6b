"""What the core is told of quotas for messages in flight, look by look."""

from __future__ import annotations

from pathlib import Path

from fila_server.access.directory import Directory
from fila_server.access.quotas import Quotas
from fila_server.access.records import PrincipalRecord, QuotaRecord
from fila_server.core.protocol import commands
from fila_server.core.requests.rights_table import Rights
from tests.access.holders import answer_to_holders


class Core:
    """Answers HOLDERS, and remembers the bounds that each call told."""

    def __init__(self) -> None:
        self.told: list[list[int]] = []

    async def call(self, kind: int, frame: bytes) -> bytes:
        if kind != commands.HOLDERS:
            return b""
        told, held = answer_to_holders(frame)
        self.told.append(told)
        return held


async def test_a_bound_that_is_taken_back_is_told_at_each_look_since_a_consumer_may_still_bring_the_old_one(
    tmp_path: Path,
):
    core, table = Core(), Rights()
    directory = Directory(core.call, table, str(tmp_path), wall_ms=lambda: 1000, mono_ns=lambda: 0)
    quotas = Quotas(core.call, table, directory, lambda: 0.0)
    await directory.change([PrincipalRecord("worker", 1, quotas=QuotaRecord(in_flight=3))], [])
    await quotas.look()

    await directory.change([PrincipalRecord("worker", 1)], [])
    for _ in range(3):
        await quotas.look()
    assert core.told == [[3], [0], [0], [0]]

    await directory.change([], [PrincipalRecord("worker", 1)])
    await quotas.look()
    assert len(core.told) == 4, "its consumers ended with it"


async def test_a_name_that_never_had_a_bound_is_not_told_of(tmp_path: Path):
    core, table = Core(), Rights()
    directory = Directory(core.call, table, str(tmp_path), wall_ms=lambda: 1000, mono_ns=lambda: 0)
    await directory.change([PrincipalRecord("worker", 1)], [])
    await Quotas(core.call, table, directory, lambda: 0.0).look()
    assert core.told == []
