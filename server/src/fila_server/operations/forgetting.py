"""Names are forgotten: by an admin's call with all they have, and by themselves once nothing is left of them.

    a key or link that has ended      goes a day later, a link with its name
    a name with nothing left          goes a day later, or when its room is needed (keyring.py)

Each goes in a change of its own, with a record: the audit keeps the name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain, islice

import structlog

from fila.v1 import auth_pb2 as pb
from fila_server import errors
from fila_server.access.admission import Admission, Caller
from fila_server.access.directory import DAY_MS
from fila_server.access.records import KeyRecord, PrincipalRecord
from fila_server.access.rights import is_admin
from fila_server.operations.audit import Record, record
from fila_server.operations.keyring import Keyring

LOOK_EVERY_S = 600.0
CHANGES_A_LOOK = 1_000
"""Each is a write that is synced."""

log = structlog.get_logger("fila_server.operations")


class Forgetting:
    """What goes from the records of keys. Belongs to the loop's thread."""

    def __init__(self, admission: Admission, keyring: Keyring) -> None:
        self._directory = admission.directory
        self._keyring = keyring

    async def forget(self, request: pb.ForgetPrincipalRequest, caller: Caller) -> bytes:
        """What a name has, which goes with it. Raises NotFound, and Conflict where no admin is left."""
        return await self._keyring.in_turn(self._forget(request, caller))

    async def _forget(self, request: pb.ForgetPrincipalRequest, caller: Caller) -> bytes:
        known = self._keyring.principal(request.name)
        reported = pb.ForgetPrincipalResponse(principal=self._keyring.shown(known.name))
        if is_admin(known):
            self._keyring.check_admin_left(request.force, None, without=known.name)
        if not request.validate_only:
            await self._keyring.change([], self._all_of(known), record("ForgetPrincipal", request, caller))
        return reported.SerializeToString()

    def _all_of(self, principal: PrincipalRecord) -> list[PrincipalRecord | KeyRecord]:
        return [*self._directory.keys_of(principal.name), principal]

    async def look(self) -> int:
        """Forget what is due, at most CHANGES_A_LOOK; return how many changes that took. Raises what the core says."""
        changes = 0
        for due in list(islice(self._due(), CHANGES_A_LOOK)):
            changes += 1
            await self._keyring.in_turn(self._drop(due))
        return changes

    def _due(self) -> Iterator[PrincipalRecord | KeyRecord]:
        until_ms = self._directory.wall_ms() - DAY_MS
        long_empty = (each for each in self._directory.empty() if each.empty_since_ms <= until_ms)
        return chain(self._directory.long_over(), long_empty, self._directory.unmarked())

    async def _drop(self, due: PrincipalRecord | KeyRecord) -> bytes:
        """Unless it was changed while this waited for its turn."""
        directory = self._directory
        if isinstance(due, KeyRecord):
            if directory.keys.get(due.id) is due:
                said = Record(act="ForgetKey", principal="", peer="", queue=due.principal)
                await self._keyring.change([], self._keyring.with_its_link(due), said, due.id)
        elif directory.principals.get(due.name) is due:
            if due.empty_since_ms:
                said = Record(act="ForgetPrincipal", principal="", peer="", queue=due.name)
                await self._keyring.change([], [due], said)
            else:
                # An older server kept no time: the day begins now.
                await directory.change([due], [])
        return b""


async def keep_forgetting(
    forgetting: Forgetting, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> None:
    """Look again and again, for ever."""
    while True:
        try:
            await forgetting.look()
        except errors.FilaServerError:  # the core is overloaded, or stops
            pass
        except Exception:
            log.exception("access.not_forgotten")
        await sleep(LOOK_EVERY_S)
