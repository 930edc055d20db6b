"""All principals and keys, in memory and durable, and the compiled table that judges by them.

    change  ──►  the core writes records, marker and audit in one batch, synced  ──►  DATA_DIR/access-marker
            ──►  here and in core/requests/rights  ──►  answered

One change at a time. A caller told "done" finds it in force; admission.py judges what is open again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from fila_server import errors
from fila_server.access import records, rights
from fila_server.access.ends import Ends
from fila_server.access.marker import read_changes, write_changes
from fila_server.access.records import KeyRecord, PrincipalRecord, QuotaRecord
from fila_server.core.protocol import commands, seam_frames
from fila_server.core.requests.rights_table import Rights

KEYS_MAX = 10_000
PRINCIPALS_MAX = 10_000
DAY_MS = 24 * 3600 * 1000
"""How long what has ended, or has nothing left, is kept."""

Call = Callable[[int, bytes], Awaitable[bytes]]
Record = PrincipalRecord | KeyRecord


class Directory:
    """Owns the records. All methods belong to the loop's thread."""

    def __init__(
        self,
        call: Call,
        table: Rights,
        data_dir: str,
        *,
        wall_ms: Callable[[], int],
        mono_ns: Callable[[], int],
    ) -> None:
        self._call = call
        self._table = table
        self._data_dir = Path(data_dir)
        self.wall_ms = wall_ms
        self._mono_ns = mono_ns
        self._numbers = itertools.count(1)
        self._stored: dict[bytes, bytes] = {}
        self._sum = records.Sum()
        self._changes = 0
        self._change = asyncio.Lock()
        self.principals: dict[str, PrincipalRecord] = {}
        self.keys: dict[str, KeyRecord] = {}
        self._keys_by_principal: dict[str, dict[str, KeyRecord]] = {}
        self._ends = Ends()
        self._empty: dict[str, None] = {}
        """Names with nothing left, those first that have been so for longest."""
        self._number_by_principal: dict[str, int] = {}
        self._ever_bounded: set[int] = set()
        """Numbers of principals that have, or had, a bound on what they hold in flight."""
        self._caller_by_key: dict[str, int] = {}
        self._caller_by_name: dict[str, int] = {}

    # --- at the start -----------------------------------------------------------------------

    async def load(self) -> None:
        """Read everything. Raises AccessDamaged when something of it may be missing."""
        try:
            reply = await self._call(commands.ACCESS_READ, b"")
        except errors.FilaServerError as error:
            raise _damaged(f"it cannot be read ({error})") from error
        reported = seam_frames.AccessChange.FromString(reply)
        stored = {record.key: record.value for record in reported.records}
        own_marker = stored.pop(records.MARKER_KEY, b"")
        self._check(stored, own_marker, reported.marker)
        for key, value in stored.items():
            try:
                self._keep(records.decode(key, value))
            except ValueError as error:
                raise _damaged(f"a record cannot be read ({error})") from None
        self._stored, self._sum = stored, records.Sum(stored)
        self._empty = dict.fromkeys(
            sorted(self._empty, key=lambda name: self.principals[name].empty_since_ms)
        )
        for principal in self.principals.values():
            self._report(principal)
        for each in self.keys.values():
            self._report(each)
        self.look()

    def _check(self, stored: Mapping[bytes, bytes], own: bytes, copy: bytes) -> None:
        seen = read_changes(self._data_dir)
        if not own and not copy and not stored:
            if seen:
                raise _damaged("all of it is gone")
            return
        if own != copy or not own:
            raise _damaged("its marker is missing or differs from its copy")
        try:
            marker = records.decode_marker(own)
        except ValueError as error:
            raise _damaged(f"its marker cannot be read ({error})") from None
        if not records.is_marker_of(marker, stored):
            raise _damaged("records are missing, or are not those that were written last")
        if marker.changes < seen:
            raise _damaged(f"the last {seen - marker.changes} changes are missing")
        self._changes = marker.changes
        if marker.changes > seen:
            write_changes(self._data_dir, marker.changes)

    @property
    def was_ever_written(self) -> bool:
        """Whether there was ever a key: then none is made by itself again."""
        return self._changes > 0

    # --- changes ----------------------------------------------------------------------------

    async def change(self, put: list[Record], drop: list[Record], audit: bytes = b"") -> None:
        """Make a change durable, then put it in force. The caller has checked that it may be made.

        With it goes since when a name of the change has nothing left.
        """
        async with self._change:
            put = self._with_empty(put, drop)
            total = self._sum.copy()
            frame = seam_frames.AccessChange(audit=audit)
            values: dict[bytes, bytes] = {}
            for record in drop:
                values[records.key_of(record)] = b""
            for record in put:
                values[records.key_of(record)] = records.encode(record)
            for key, value in values.items():
                frame.records.add(key=key, value=value)
                if key in self._stored:
                    total.drop(key, self._stored[key])
                if value:
                    total.put(key, value)
            marker = total.marker(self._changes + 1)
            frame.marker = records.encode(marker)
            await self._call(commands.ACCESS_CHANGE, frame.SerializeToString())
            await asyncio.to_thread(write_changes, self._data_dir, marker.changes)
            self._sum, self._changes = total, marker.changes
            for key, value in values.items():
                if value:
                    self._stored[key] = value
                else:
                    self._stored.pop(key, None)
            for record in drop:
                self._forget(record)
            for record in put:
                self._keep(record)
                self._report(record)

    def _with_empty(self, put: list[Record], drop: list[Record]) -> list[Record]:
        """What is put, and of each name in the change whether something is left of it."""
        after = {record.name: record for record in put if isinstance(record, PrincipalRecord)}
        gone = {record.name for record in drop if isinstance(record, PrincipalRecord)}
        keys = [record for record in put if isinstance(record, KeyRecord)]
        for name in {
            *after,
            *(record.principal for record in (*drop, *keys) if isinstance(record, KeyRecord)),
        }:
            record = after.get(name) or self.principals.get(name)
            if record is None or name in gone:
                continue
            dropped = {each.id for each in drop if isinstance(each, KeyRecord)}
            has_keys = any(each.principal == name for each in keys) or any(
                key_id not in dropped for key_id in self._keys_by_principal.get(name, ())
            )
            since_ms = 0 if has_keys or has_something(record) else record.empty_since_ms or self.wall_ms()
            if since_ms != record.empty_since_ms:
                after[name] = msgspec.structs.replace(record, empty_since_ms=since_ms)
        return [*after.values(), *keys]

    def _keep(self, record: Record) -> None:
        if isinstance(record, PrincipalRecord):
            self.principals[record.name] = record
            if not record.empty_since_ms:
                self._empty.pop(record.name, None)
            else:
                self._empty.setdefault(record.name)
        else:
            self.keys[record.id] = record
            self._keys_by_principal.setdefault(record.principal, {})[record.id] = record

    def _forget(self, record: Record) -> None:
        if isinstance(record, PrincipalRecord):
            self.principals.pop(record.name, None)
            self._empty.pop(record.name, None)
            number = self._number_by_principal.pop(record.name, None)
            if number is not None:
                self._table.drop_principal(number)
                self._ever_bounded.discard(number)  # its consumers end
            self._drop_caller(self._caller_by_name.pop(record.name, 0))
        else:
            self.keys.pop(record.id, None)
            of_its_principal = self._keys_by_principal.get(record.principal, {})
            of_its_principal.pop(record.id, None)
            if not of_its_principal:
                self._keys_by_principal.pop(record.principal, None)
            self._ends.drop(record.id)
            self._drop_caller(self._caller_by_key.pop(record.id, 0))

    def _drop_caller(self, caller: int) -> None:
        if caller:
            self._table.drop_key(caller)

    async def begin_anew(self, put: list[Record], audit: bytes) -> None:
        """Drop all there is, readable or not, and begin with these records. For an offline recovery."""
        try:
            seen = read_changes(self._data_dir)
        except errors.AccessDamaged:
            seen = 0
        reported: bytes = b""
        with contextlib.suppress(errors.FilaServerError):
            reported = seam_frames.AccessChange.FromString(await self._call(commands.ACCESS_READ, b"")).marker
        with contextlib.suppress(ValueError):
            seen = max(seen, records.decode_marker(reported).changes)
        stored = {records.key_of(record): records.encode(record) for record in put}
        frame = seam_frames.AccessChange(audit=audit, anew=True)
        for key, value in stored.items():
            frame.records.add(key=key, value=value)
        frame.marker = records.encode(records.Sum(stored).marker(seen + 1))
        await self._call(commands.ACCESS_CHANGE, frame.SerializeToString())
        write_changes(self._data_dir, seen + 1)

    # --- what is in force -------------------------------------------------------------------

    def _report(self, record: Record) -> None:
        """Put it into the table, a key behind its principal: one without is nobody's."""
        if isinstance(record, KeyRecord):
            number = self._number_by_principal.get(record.principal)
            if number is None:
                return
            caller = self._caller_by_key.setdefault(record.id, next(self._numbers))
            is_over = self._ends.put(record.id, record.expires_ms)
            self._table.put_key(caller, number, record.id.encode(), record.digest, record.expires_ms, is_over)
            return
        number = self._number_by_principal.setdefault(record.name, next(self._numbers))
        if record.quotas.in_flight:
            self._ever_bounded.add(number)
        self._table.put_principal(
            number,
            [(grant.rights, grant.queue.encode(), grant.channel.encode()) for grant in record.grants],
            record.tenant.encode(),
            record.quotas.messages_per_s,
            record.quotas.bytes_per_s,
            self._mono_ns(),
            record.quotas.connections,
            record.quotas.streams,
            record.quotas.stored_bytes,
            record.quotas.in_flight,
        )
        self.caller_of_name(record.name)

    def look(self) -> None:
        """Judge the ends of keys by the clock as it stands: what a key that is over holds open ends as if it were
        revoked, and one whose end lies ahead again, because the clock was set back, is good again."""
        for key_id, is_over in self._ends.look(self.wall_ms()):
            self._table.put_over(self._caller_by_key[key_id], is_over)

    def keys_of(self, name: str) -> list[KeyRecord]:
        """A principal's keys, the oldest first, those that are over among them."""
        return sorted(self._keys_by_principal.get(name, {}).values(), key=lambda key: key.created_ms)

    def long_over(self) -> Iterator[KeyRecord]:
        """Keys that ended a day ago or earlier, those that ended first first: the clock may have been wrong before."""
        return map(self.keys.__getitem__, self._ends.over_since(self.wall_ms() - DAY_MS))

    def empty(self) -> Iterator[PrincipalRecord]:
        """Names with nothing left, those first that have been so for longest."""
        return map(self.principals.__getitem__, self._empty)

    def unmarked(self) -> Iterator[PrincipalRecord]:
        """Names with nothing left that were stored without the time, by servers before 0.1.0."""
        for name, principal in self.principals.items():
            if not (principal.empty_since_ms or has_something(principal) or name in self._keys_by_principal):
                yield principal

    def find(self, key_id: str, digest: bytes) -> tuple[int, KeyRecord | None]:
        """The caller of a key's holder, and the key; (0, None) unless id and secret belong together.

        The caller of a key whose time is over is 0.
        """
        caller = self._table.find(key_id.encode(), digest, self.wall_ms())
        record = self.keys.get(key_id)
        if record is None or not rights.same(record.digest, digest):
            return 0, None
        return max(caller, 0), record

    def caller_of_name(self, name: str) -> int:
        """The caller of a principal that is known by its certificate; 0 when there is no such principal."""
        if name not in self.principals:
            return 0
        if name not in self._caller_by_name:
            caller = self._caller_by_name[name] = next(self._numbers)
            number = self._number_by_principal[name]
            self._table.put_key(caller, number, b"cert:" + name.encode(), bytes(32), 0)
        return self._caller_by_name[name]

    def refused(self, name: str) -> int:
        """Frames of a principal that were beyond its quotas, since the start."""
        number = self._number_by_principal.get(name)
        return self._table.refused(number) if number is not None else 0

    def in_use(self, name: str) -> tuple[int, int, int]:
        """(connections, streams, messages in flight) of a principal now, over both protocols; the last is 0 where no
        quota bounds it."""
        number = self._number_by_principal.get(name)
        return self._table.in_use(number) if number is not None else (0, 0, 0)

    def stored(self, name: str) -> int:
        """Bytes that the broker stores of a principal's tenant, where a quota bounds them; else 0."""
        record, number = self.principals.get(name), self._number_by_principal.get(name)
        if record is None or number is None or not record.quotas.stored_bytes:
            return 0
        return self._table.stored(number)

    def bounded_tenants(self) -> dict[str, list[int]]:
        """Tenants with a bound on what they store, and the numbers of the principals that are bound to them."""
        found: dict[str, list[int]] = {}
        for name, record in self.principals.items():
            if record.tenant and record.quotas.stored_bytes:
                found.setdefault(record.tenant, []).append(self._number_by_principal[name])
        return found

    def bounded_holders(self) -> dict[int, int]:
        """How many messages principals may have in flight, by their numbers, where a quota says or once said.

        0 = no bound any more: a consumer that came with the old one may open at any time, and the core has to hear that
        it does not hold.
        """
        return dict.fromkeys(self._ever_bounded, 0) | {
            self._number_by_principal[name]: record.quotas.in_flight
            for name, record in self.principals.items()
            if record.quotas.in_flight
        }

    def admins(self, now_ms: int, *, without_keys: frozenset[str] = frozenset(), without: str = "") -> int:
        """How many keys of admins are valid now, some left out."""
        return sum(
            rights.is_admin(self.principals[key.principal])
            for key in self.keys.values()
            if key.id not in without_keys
            and key.principal != without
            and key.principal in self.principals
            and not _is_over(key, now_ms)
        )


def has_something(principal: PrincipalRecord) -> bool:
    """Whether it has anything but keys: a right, a bound, a link, or a tenant that binds its messages."""
    return bool(principal.grants or principal.tenant or principal.link or principal.quotas != QuotaRecord())


def _is_over(key: KeyRecord, now_ms: int) -> bool:
    return bool(key.expires_ms) and key.expires_ms <= now_ms


def _damaged(what: str) -> errors.AccessDamaged:
    return errors.AccessDamaged(
        f"the store of keys is damaged: {what}. To serve could let somebody in whose key was taken away. Restore "
        "the data directory from a copy, or make a new admin key with fila-server auth recover, which drops all keys"
    )
