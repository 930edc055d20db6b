"""What admins do with keys, rights and quotas: a request in, the response out.

Each change is checked here, made durable with its record in one batch, then in force (access/directory.py).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from fila.v1 import auth_pb2 as pb
from fila_server import errors
from fila_server.access import keys, rights
from fila_server.access.admission import Admission, Caller
from fila_server.access.directory import KEYS_MAX, PRINCIPALS_MAX, Directory
from fila_server.access.directory import Record as AccessRecord
from fila_server.access.records import GrantRecord, KeyRecord, PrincipalRecord, QuotaRecord
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands, seam_frames
from fila_server.events import emit
from fila_server.operations.audit import Record, encode, record

EXPIRES_MS_MAX = 10 * 365 * 24 * 3600 * 1000
OVERLAP_MS_MAX = 90 * 24 * 3600 * 1000
AUDIT_DEFAULT, AUDIT_MAX = 100, 1_000
RATE_MIN, RATE_MAX = 0.001, 1e15
"""Of what a quota counts a second; a smaller one is never earned again, and reads as 0."""
PERMISSIONS_MAX = 100
"""Of one request."""

LINK_PREFIX = "link/"
"""Names of tenants' links begin so, and no others."""

_BIT_BY_RIGHT = {
    pb.RIGHT_PRODUCE: "produce",
    pb.RIGHT_CONSUME: "consume",
    pb.RIGHT_MANAGE: "manage",
    pb.RIGHT_VIEW: "view",
    pb.RIGHT_CANCEL: "cancel",
    pb.RIGHT_ADMIN: "admin",
}
_EVENT_BY_ACT = {
    "CreateKey": "access.key_created",
    "RotateKey": "access.key_rotated",
    "RevokeKey": "access.key_revoked",
    "Grant": "access.granted",
    "RevokeGrant": "access.grant_revoked",
    "SetQuotas": "access.quotas_set",
    "CreateTenantLink": "access.link_created",
    "RevokeTenantLink": "access.link_revoked",
    "ForgetPrincipal": "access.forgotten",
    "ForgetKey": "access.forgotten",
}
_RIGHT_BY_NAME = {name: right for right, name in _BIT_BY_RIGHT.items()}


class Keyring:
    """The calls of FilaAuth. The edge has judged the caller by the table of rights."""

    def __init__(self, broker: Broker, admission: Admission, limits: Limits) -> None:
        self._broker = broker
        self._admission = admission
        self._directory: Directory = admission.directory
        self._limits = limits
        self._now_ms = self._directory.wall_ms
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[Any]] = set()

    # --- keys -------------------------------------------------------------------------------

    async def create_key(self, request: pb.CreateKeyRequest, caller: Caller) -> bytes:
        _check_name(request.name)
        tenant_bytes = len(request.as_tenant.encode())
        if tenant_bytes > self._limits.fairness_key_bytes_max:
            raise errors.LimitExceeded(
                "as_tenant",
                f"must be at most {self._limits.fairness_key_bytes_max} bytes, got {tenant_bytes}",
            )
        expires_ms = self._end_of(request.expires_after_ms)
        return await self.in_turn(self._create(request, caller, expires_ms))

    async def _create(self, request: pb.CreateKeyRequest, caller: Caller, expires_ms: int) -> bytes:
        directory = self._directory
        known = directory.principals.get(request.name)
        put: list[AccessRecord] = []
        room = self.make_room(0 if known else 1)
        if known is None:
            put.append(PrincipalRecord(request.name, self._now_ms(), tenant=request.as_tenant))
        elif request.as_tenant and request.as_tenant != known.tenant:
            raise errors.Invalid(
                "as_tenant", f'is for a new name: "{request.name}" is there, with other rights'
            )
        text, key = keys.make(os.urandom)
        put.append(KeyRecord(key.id, request.name, key.digest, self._now_ms(), expires_ms))
        await self.change(put, [], record("CreateKey", request, caller), key.id, room=room)
        return pb.CreateKeyResponse(key=text, key_id=key.id).SerializeToString()

    async def rotate_key(self, request: pb.RotateKeyRequest, caller: Caller) -> bytes:
        if request.overlap_ms > OVERLAP_MS_MAX:
            raise errors.LimitExceeded("overlap_ms", f"must be at most {OVERLAP_MS_MAX} (90 days)")
        return await self.in_turn(self._rotate(request, caller, self._end_of(request.expires_after_ms)))

    async def _rotate(self, request: pb.RotateKeyRequest, caller: Caller, expires_ms: int) -> bytes:
        old = self._key(request.key_id)
        if self._is_link(old.principal):
            raise errors.Conflict(
                "this is the key of a tenant's link: make another link, and revoke this one"
            )
        room = self.make_room(0)
        ends_ms = self._now_ms() + max(1, request.overlap_ms)
        ends_ms = min(ends_ms, old.expires_ms) if old.expires_ms else ends_ms
        text, key = keys.make(os.urandom)
        new = KeyRecord(key.id, old.principal, key.digest, self._now_ms(), expires_ms)
        ending = msgspec.structs.replace(old, expires_ms=ends_ms)
        await self.change([new, ending], [], record("RotateKey", request, caller), key.id, room=room)
        return pb.RotateKeyResponse(key=text, key_id=key.id).SerializeToString()

    async def revoke_key(self, request: pb.RevokeKeyRequest, caller: Caller) -> bytes:
        return await self.in_turn(self._revoke(request, caller))

    async def _revoke(self, request: pb.RevokeKeyRequest, caller: Caller) -> bytes:
        key = self._key(request.key_id)
        self.check_admin_left(request.force, key, without_keys=frozenset((key.id,)))
        await self.change([], self.with_its_link(key), record("RevokeKey", request, caller), key.id)
        return pb.RevokeKeyResponse().SerializeToString()

    # --- rights and quotas ------------------------------------------------------------------

    async def grant(self, request: pb.GrantRequest, caller: Caller) -> bytes:
        _check_name(request.name)
        given = _grants_of(request.permissions)
        if not given:
            raise errors.Invalid("permissions", "must name at least one right")
        return await self.in_turn(self._grant(request, caller, given))

    async def _grant(self, request: pb.GrantRequest, caller: Caller, given: list[GrantRecord]) -> bytes:
        known = self._directory.principals.get(request.name)
        room: list[AccessRecord] = []
        if known is None:
            room = self.make_room(1)
            known = PrincipalRecord(request.name, self._now_ms())
        grants = tuple(dict.fromkeys((*known.grants, *given)))
        rights.check_together(grants, known.tenant)
        changed = msgspec.structs.replace(known, grants=grants)
        await self.change([changed], [], record("Grant", request, caller), room=room)
        return pb.GrantResponse(principal=self.shown(request.name)).SerializeToString()

    async def revoke_grant(self, request: pb.RevokeGrantRequest, caller: Caller) -> bytes:
        taken = _grants_of(request.permissions)
        return await self.in_turn(self._revoke_grant(request, caller, taken))

    async def _revoke_grant(
        self, request: pb.RevokeGrantRequest, caller: Caller, taken: list[GrantRecord]
    ) -> bytes:
        known = self.principal(request.name)
        for each in taken:
            if each not in known.grants:
                raise errors.Conflict(
                    f'"{request.name}" has no such right: {", ".join(rights.names_of(each.rights))} '
                    f"on {each.queue}; fila auth show lists what it has, and a grant is taken back as it was given"
                )
        left = tuple(each for each in known.grants if taken and each not in taken)
        changed = msgspec.structs.replace(known, grants=left)
        if rights.is_admin(known) and not rights.is_admin(changed):
            self.check_admin_left(request.force, None, without=known.name)
        await self.change([changed], [], record("RevokeGrant", request, caller))
        return pb.RevokeGrantResponse(principal=self.shown(request.name)).SerializeToString()

    async def set_quotas(self, request: pb.SetQuotasRequest, caller: Caller) -> bytes:
        quotas = request.quotas
        for field in ("messages_per_second", "bytes_per_second"):
            value = getattr(quotas, field)
            if value and not RATE_MIN <= value <= RATE_MAX:
                said = f"must be 0 (no bound), or from {RATE_MIN:g} to {RATE_MAX:g}, got {value:g}"
                raise errors.Invalid(f"quotas.{field}", said)
        return await self.in_turn(self._set_quotas(request, caller))

    async def _set_quotas(self, request: pb.SetQuotasRequest, caller: Caller) -> bytes:
        known = self.principal(request.name)
        quotas = request.quotas
        if quotas.stored_bytes and not known.tenant:
            raise errors.Invalid(
                "quotas.stored_bytes",
                f'is for names that are bound to a tenant, and "{request.name[:128]}" is not: whose the messages of '
                "others are is not stored with them. max_bytes bounds a queue",
            )
        if quotas.in_flight and known.tenant:
            raise errors.Invalid(
                "quotas.in_flight",
                f'is for names that consume, and "{request.name[:128]}" is bound to a tenant and does not. fila '
                "key cap bounds how many of a fairness key's messages are in flight in a queue",
            )
        bounds = QuotaRecord(
            quotas.messages_per_second,
            quotas.bytes_per_second,
            quotas.connections,
            quotas.streams,
            quotas.stored_bytes,
            quotas.in_flight,
        )
        await self.change(
            [msgspec.structs.replace(known, quotas=bounds)], [], record("SetQuotas", request, caller)
        )
        return pb.SetQuotasResponse(principal=self.shown(request.name)).SerializeToString()

    # --- reading ----------------------------------------------------------------------------

    async def list_principals(self, request: pb.ListPrincipalsRequest, _caller: Caller) -> bytes:
        names = sorted(name for name in self._directory.principals if name.startswith(request.prefix))
        return pb.ListPrincipalsResponse(principals=map(self.shown, names)).SerializeToString()

    async def get_principal(self, request: pb.GetPrincipalRequest, caller: Caller) -> bytes:
        name = request.name or caller.name
        if name != caller.name and not caller.is_admin:
            raise errors.PermissionDenied("admin: this key may look at its own name only; leave name out")
        if caller.number is None and not request.name:
            everything = pb.Permission(right=pb.RIGHT_ADMIN)
            reported = pb.Principal(name=caller.name, permissions=[everything])
            return pb.GetPrincipalResponse(principal=reported).SerializeToString()
        self.principal(name)
        return pb.GetPrincipalResponse(principal=self.shown(name)).SerializeToString()

    async def who_am_i(self, request: pb.WhoAmIRequest, caller: Caller) -> bytes:
        reported = pb.WhoAmIResponse(
            principal=caller.name, tenant=caller.tenant, key_id=caller.key_id, peer=caller.peer
        )
        config = self._broker.queue_configs.get(request.queue)
        may_produce = config is not None and self._admission.may_produce(caller, request.queue)
        if config is not None and may_produce and config.HasField("intake"):
            reported.intake.CopyFrom(config.intake)
        reported.auth_enabled = caller.number is not None
        if not reported.auth_enabled:
            reported.permissions.add(right=pb.RIGHT_ADMIN)
            return reported.SerializeToString()
        if (known := self._directory.principals.get(caller.name)) is not None:
            reported.permissions.extend(_permissions_of(known))
        key = self._directory.keys.get(caller.key_id)
        if key is not None and key.expires_ms:
            reported.expires_at.FromMilliseconds(key.expires_ms)
        return reported.SerializeToString()

    async def list_audit(self, request: pb.ListAuditRequest, _caller: Caller) -> bytes:
        most = min(request.limit or AUDIT_DEFAULT, AUDIT_MAX)
        page = seam_frames.AuditPage(below=request.before, most=most)
        reply = await self._broker.call(commands.AUDIT_READ, page.SerializeToString())
        answer = pb.ListAuditResponse()
        for stored in seam_frames.AuditRecords.FromString(reply).records:
            reported = answer.records.add(number=stored.number)
            reported.at.FromMilliseconds(stored.at_ms)
            try:
                act = msgspec.json.decode(stored.what, type=Record)
            except msgspec.MsgspecError:
                reported.act = "unreadable"
                continue
            reported.act, reported.principal, reported.key_id = act.act, act.principal, act.key_id
            reported.peer, reported.queue, reported.claimed_address = act.peer, act.queue, act.claimed_address
            reported.details.update(act.details)
        return answer.SerializeToString()

    # --- inside -----------------------------------------------------------------------------

    async def in_turn(self, change: Coroutine[Any, Any, bytes]) -> bytes:
        """One change after the other, each to its end even when its caller hangs up."""

        async def run() -> bytes:
            async with self._changing:
                return await change

        task = asyncio.ensure_future(run())
        self._changes.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[bytes]) -> None:
        self._changes.discard(task)
        if not task.cancelled():
            task.exception()  # read, so that an error nobody waits for any more is not logged as lost

    async def change(
        self,
        put: list[AccessRecord],
        drop: list[AccessRecord],
        reported: Record,
        key_id: str = "",
        *,
        room: Sequence[AccessRecord] = (),
    ) -> None:
        """Make a change durable with its record, put it in force, and tell it. Called in turn. `room` goes besides, so
        that there is some."""
        if key_id:
            reported = msgspec.structs.replace(reported, details={**reported.details, "key_id": key_id})
        if room:
            names = ", ".join(each.name if isinstance(each, PrincipalRecord) else each.id for each in room)
            reported = msgspec.structs.replace(reported, details={**reported.details, "forgotten": names})
        await self._directory.change(put, [*drop, *room], encode(reported))
        self._admission.look()
        about: dict[str, Any] = {name: text for name, text in reported.details.items() if text}
        about["name"] = about.get("name") or reported.queue
        emit(_EVENT_BY_ACT[reported.act], principal=reported.principal, peer=reported.peer, **about)

    def make_room(self, principals: int) -> list[AccessRecord]:
        """What may go so that there is room for a key and so many principals more: a key that ended a day ago, a name
        with nothing left. Raises LimitExceeded where nothing may."""
        directory = self._directory
        room: list[AccessRecord] = []
        if len(directory.keys) >= KEYS_MAX:
            ended = next(directory.long_over(), None)
            if ended is None:
                raise errors.LimitExceeded(
                    "keys", f"must be at most {KEYS_MAX}; revoke those that nobody uses"
                )
            room += self.with_its_link(ended)
        if len(directory.principals) - (len(room) > 1) + principals > PRINCIPALS_MAX:
            empty = next(directory.empty(), None)
            if empty is None:
                raise errors.LimitExceeded(
                    "principals",
                    f"must be at most {PRINCIPALS_MAX}; forget those that nobody needs (fila auth forget NAME)",
                )
            room.append(empty)
        return room

    def with_its_link(self, key: KeyRecord) -> list[AccessRecord]:
        """The key, and with a link's the principal that the link is."""
        return [key, self.principal(key.principal)] if self._is_link(key.principal) else [key]

    def check_admin_left(
        self,
        force: bool,
        key: KeyRecord | None,
        *,
        without_keys: frozenset[str] = frozenset(),
        without: str = "",
    ) -> None:
        if force:
            return
        directory, now_ms = self._directory, self._now_ms()
        if key is not None and not rights.is_admin(directory.principals[key.principal]):
            return
        if directory.admins(now_ms, without_keys=without_keys, without=without) == 0:
            raise errors.Conflict(
                "this is the last admin's key: make another admin first, or use force, after which only "
                "fila-server auth recover on the server's machine makes one"
            )

    def _end_of(self, after_ms: int) -> int:
        if after_ms > EXPIRES_MS_MAX:
            raise errors.LimitExceeded(
                "expires_after_ms", f"must be at most {EXPIRES_MS_MAX} (10 years), or 0 for ever"
            )
        return self._now_ms() + after_ms if after_ms else 0

    def _key(self, key_id: str) -> KeyRecord:
        key = self._directory.keys.get(key_id)
        if key is None:
            raise errors.NotFound(
                f'there is no key "{key_id[:64]}"; fila auth key list shows them', reason="KEY_NOT_FOUND"
            )
        return key

    def _is_link(self, name: str) -> bool:
        """By its record: a principal of before there were links may be named like one."""
        principal = self._directory.principals.get(name)
        return principal is not None and principal.link is not None

    def principal(self, name: str) -> PrincipalRecord:
        principal = self._directory.principals.get(name)
        if principal is None:
            raise errors.NotFound(
                f'there is no principal "{name[:128]}"; fila auth list shows them',
                reason="PRINCIPAL_NOT_FOUND",
            )
        return principal

    def shown(self, name: str) -> pb.Principal:
        record = self._directory.principals[name]
        reported = pb.Principal(name=name, tenant=record.tenant, quota_refusals=self._directory.refused(name))
        reported.connections, reported.streams, reported.in_flight = self._directory.in_use(name)
        reported.permissions.extend(_permissions_of(record))
        quotas = record.quotas
        reported.quotas.messages_per_second, reported.quotas.bytes_per_second = (
            quotas.messages_per_s,
            quotas.bytes_per_s,
        )
        reported.quotas.connections, reported.quotas.streams = quotas.connections, quotas.streams
        reported.quotas.in_flight = quotas.in_flight
        reported.quotas.stored_bytes, reported.stored_bytes = (
            quotas.stored_bytes,
            self._directory.stored(name),
        )
        for key in self._directory.keys_of(name):
            info = reported.keys.add(key_id=key.id, bootstrap=key.bootstrap)
            info.created_at.FromMilliseconds(key.created_ms)
            if key.expires_ms:
                info.expires_at.FromMilliseconds(key.expires_ms)
        return reported


def _check_name(name: str) -> None:
    rights.check_name(name)
    if name.startswith(LINK_PREFIX):
        raise errors.Invalid("name", f"must not begin with {LINK_PREFIX}: those are tenants' links")


def _permissions_of(record: PrincipalRecord) -> list[pb.Permission]:
    return [
        pb.Permission(
            right=_RIGHT_BY_NAME[right],
            queue="" if right == "admin" else each.queue,
            channel=each.channel,
        )
        for each in record.grants
        for right in rights.names_of(each.rights)
    ]


def _grants_of(permissions: Any) -> list[GrantRecord]:
    if len(permissions) > PERMISSIONS_MAX:
        raise errors.LimitExceeded("permissions", f"must be at most {PERMISSIONS_MAX} a request")
    given = []
    for permission in permissions:
        right = _BIT_BY_RIGHT.get(permission.right)
        if right is None:
            raise errors.Invalid("permissions.right", "must be produce, consume, manage, view or admin")
        if permission.channel and right != "consume":
            raise errors.Invalid("permissions.channel", "is for consume only")
        pattern = f"{permission.queue}:{permission.channel}" if permission.channel else permission.queue
        given.append(rights.grant(right, pattern))
    return given
