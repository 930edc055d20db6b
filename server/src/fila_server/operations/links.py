"""Links: keys that look at one fairness key of one queue, or enqueue there, and do nothing else.

A link is a principal of its own, `link/ID`, with the right `view` or `produce` on one queue, a small quota of streams
and one key. One that views is bound to its tenant and ends; one that produces is the end of an address that a sender of
webhooks is given, and may be for ever. So the judgement, the expiry and the revocation are those of any key.
"""

from __future__ import annotations

import os

from fila.v1 import auth_pb2 as pb
from fila_server import errors
from fila_server.access import keys
from fila_server.access.admission import Admission, Caller
from fila_server.access.directory import DAY_MS
from fila_server.access.records import GrantRecord, KeyRecord, LinkRecord, PrincipalRecord, QuotaRecord
from fila_server.access.rights import PRODUCE, VIEW
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits
from fila_server.operations import rules
from fila_server.operations.audit import record
from fila_server.operations.keyring import EXPIRES_MS_MAX, LINK_PREFIX, Keyring

TTL_DEFAULT_MS = 7 * DAY_MS
TTL_MS_MAX = 90 * DAY_MS
LINKS_MAX = 5_000
"""Half of the keys there may be, so that links leave room for others."""
LINKS_A_QUEUE_MAX = 1_000
STREAMS_MAX = 8
"""At a time, of one link: its holder is a stranger, and watchers are few."""

_BIT_BY_RIGHT = {pb.RIGHT_VIEW: VIEW, pb.RIGHT_PRODUCE: PRODUCE}
_RIGHT_BY_BIT = {bit: right for right, bit in _BIT_BY_RIGHT.items()}

Link = tuple[PrincipalRecord, KeyRecord, LinkRecord]


class TenantLinks:
    """Makes, lists and revokes them. The edge has judged the caller by the table of rights."""

    def __init__(self, broker: Broker, admission: Admission, limits: Limits, keyring: Keyring) -> None:
        self._broker = broker
        self._admission = admission
        self._limits = limits
        self._keyring = keyring

    async def create(self, request: pb.CreateTenantLinkRequest, caller: Caller) -> bytes:
        """Raises Conflict while no keys are asked for, QueueNotFound, Invalid, LimitExceeded."""
        rules.check_name("queue", request.queue)
        if caller.number is None:
            raise errors.Conflict(
                "a link is a key, and this broker asks for none, so it would keep nobody out: switch auth.enabled on"
            )
        if request.queue not in self._broker.queue_configs:
            raise errors.QueueNotFound(request.queue)
        if request.right not in (pb.RIGHT_UNSPECIFIED, *_BIT_BY_RIGHT):
            raise errors.Invalid("right", "must be view or produce: a link is for nothing else")
        is_to_produce = request.right == pb.RIGHT_PRODUCE
        if not request.fairness_key and not is_to_produce:
            raise errors.Invalid("fairness_key", "must not be empty")
        size, most = len(request.fairness_key.encode()), self._limits.fairness_key_bytes_max
        if size > most:
            raise errors.LimitExceeded("fairness_key", f"must be at most {most} bytes, got {size}")
        most_ms, said = (EXPIRES_MS_MAX, "10 years") if is_to_produce else (TTL_MS_MAX, "90 days")
        if request.ttl_ms > most_ms:
            raise errors.LimitExceeded("ttl_ms", f"must be at most {most_ms} ({said}), got {request.ttl_ms}")
        return await self._keyring.in_turn(self._create(request, caller))

    async def _create(self, request: pb.CreateTenantLinkRequest, caller: Caller) -> bytes:
        now_ms = self._admission.directory.wall_ms()
        links = self._links()
        # Those that ended a day ago are on their way out (forgetting.py).
        kept = [link for link in links if not 0 < link[1].expires_ms <= now_ms - DAY_MS]
        if len(kept) >= LINKS_MAX:
            raise errors.LimitExceeded("links", f"must be at most {LINKS_MAX}; revoke those that nobody uses")
        if sum(link.queue == request.queue for _, _, link in kept) >= LINKS_A_QUEUE_MAX:
            raise errors.LimitExceeded(
                "links", f"of one queue must be at most {LINKS_A_QUEUE_MAX}; revoke those that nobody uses"
            )
        room = self._keyring.make_room(1)
        text, key = keys.make(os.urandom)
        right = request.right or pb.RIGHT_VIEW
        ttl_ms = request.ttl_ms or (TTL_DEFAULT_MS if right == pb.RIGHT_VIEW else 0)
        expires_ms = now_ms + ttl_ms if ttl_ms else 0
        principal = PrincipalRecord(
            LINK_PREFIX + key.id,
            now_ms,
            grants=(GrantRecord(rights=_BIT_BY_RIGHT[right], queue=request.queue),),
            tenant=request.fairness_key,
            quotas=QuotaRecord(streams=STREAMS_MAX),
            link=LinkRecord(request.queue, caller.name),
        )
        made = KeyRecord(key.id, principal.name, key.digest, now_ms, expires_ms)
        await self._keyring.change(
            [principal, made], [], record("CreateTenantLink", request, caller), key.id, room=room
        )
        assert principal.link is not None
        return pb.CreateTenantLinkResponse(
            key=text, link=_reported((principal, made, principal.link))
        ).SerializeToString()

    async def listed(self, request: pb.ListTenantLinksRequest, caller: Caller) -> bytes:
        """Those of one queue, or of all that the caller may manage. Raises QueueNotFound."""
        found = [
            link
            for link in self._links()
            if link[2].queue == (request.queue or link[2].queue)
            and self._admission.may_manage(caller, link[2].queue)
        ]
        if not found:
            self._check_there(request.queue)
        found.sort(key=lambda link: (not link[1].expires_ms, link[1].expires_ms, link[1].id))
        return pb.ListTenantLinksResponse(links=map(_reported, found)).SerializeToString()

    async def revoke(self, request: pb.RevokeTenantLinkRequest, caller: Caller) -> bytes:
        """Raises NotFound. A link of a queue that is gone can be revoked, too."""
        return await self._keyring.in_turn(self._revoke(request, caller))

    async def _revoke(self, request: pb.RevokeTenantLinkRequest, caller: Caller) -> bytes:
        for principal, key, link in self._links():
            if key.id == request.link_id and link.queue == request.queue:
                await self._keyring.change(
                    [], [key, principal], record("RevokeTenantLink", request, caller), key.id
                )
                return pb.RevokeTenantLinkResponse().SerializeToString()
        self._check_there(request.queue)
        raise errors.NotFound(
            f'queue "{request.queue}" has no link "{request.link_id[:64]}"; fila auth link list shows them',
            reason="LINK_NOT_FOUND",
        )

    def _check_there(self, queue: str) -> None:
        if queue and queue not in self._broker.queue_configs:
            raise errors.QueueNotFound(queue)

    def _links(self) -> list[Link]:
        directory = self._admission.directory
        found: list[Link] = []
        for key in directory.keys.values():
            principal = directory.principals.get(key.principal)
            if principal is not None and principal.link is not None:
                found.append((principal, key, principal.link))
        return found


def _reported(link: Link) -> pb.TenantLink:
    principal, key, made = link
    reported = pb.TenantLink(
        link_id=key.id, queue=made.queue, fairness_key=principal.tenant, created_by=made.created_by
    )
    reported.right = _RIGHT_BY_BIT[principal.grants[0].rights]
    reported.created_at.FromMilliseconds(key.created_ms)
    if key.expires_ms:
        reported.expires_at.FromMilliseconds(key.expires_ms)
    return reported
