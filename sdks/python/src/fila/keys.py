"""What admins do with a client: keys, and what their holders may do. Told in docs/security.md of the broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fila import methods
from fila.answers import answer
from fila.arguments import make, require_text
from fila.connection import Connection
from fila.methods import Method, Request, Response
from fila.principals import AuditRecord, Identity, NewTenantLink, Principal, TenantLink
from fila.settings import Duration
from fila.v1 import auth_pb2 as wire
from fila.values import duration_ms

LinkRight = Literal["view", "produce"]

_LINK_RIGHTS = {"view": wire.RIGHT_VIEW, "produce": wire.RIGHT_PRODUCE}


class KeyCalls:
    """The calls of FilaAuth, as methods of a client."""

    _connection: Connection

    async def _auth(self, method: Method[Request, Response], request: Request) -> Response:
        return await self._connection.call(method, request, {})

    async def create_key(self, name: str, *, expires_after: Duration = 0, as_tenant: str = "") -> str:
        """Make a key for `name`, and return it: nobody can read it again. 0 is for ever.

        With `as_tenant` its messages are bound to that fairness key; only for a name that is new. Raises Invalid,
        NotAllowed.
        """
        require_text("name", name)
        after_ms = duration_ms("expires_after", expires_after)
        request = make(wire.CreateKeyRequest, name=name, expires_after_ms=after_ms, as_tenant=as_tenant)
        return (await self._auth(methods.CREATE_KEY, request)).key

    async def rotate_key(self, key_id: str, *, overlap: Duration = 0, expires_after: Duration = 0) -> str:
        """Make another key for the same name and return it; the old one ends after `overlap`. Raises NotFound."""
        request = make(
            wire.RotateKeyRequest,
            key_id=key_id,
            overlap_ms=duration_ms("overlap", overlap),
            expires_after_ms=duration_ms("expires_after", expires_after),
        )
        return (await self._auth(methods.ROTATE_KEY, request)).key

    async def revoke_key(self, key_id: str, *, force: bool = False) -> None:
        """Take a key away: what it holds open ends within a second. The last admin's only with `force`.
        Raises NotFound, Conflict."""
        await self._auth(methods.REVOKE_KEY, make(wire.RevokeKeyRequest, key_id=key_id, force=force))

    async def grant(
        self,
        name: str,
        *,
        produce: Sequence[str] = (),
        consume: Sequence[str] = (),
        manage: Sequence[str] = (),
        view: Sequence[str] = (),
        cancel: Sequence[str] = (),
        admin: bool = False,
    ) -> Principal:
        """Give rights on queues by patterns such as "orders.*"; of consume also "orders.*:billing", a channel.

        Returns all that `name` has then. Raises Invalid.
        """
        permissions = _permissions(produce, consume, manage, view, cancel, admin)
        told = await self._auth(methods.GRANT, make(wire.GrantRequest, name=name, permissions=permissions))
        return answer(Principal, told.principal)

    async def revoke_grant(
        self,
        name: str,
        *,
        produce: Sequence[str] = (),
        consume: Sequence[str] = (),
        manage: Sequence[str] = (),
        view: Sequence[str] = (),
        cancel: Sequence[str] = (),
        admin: bool = False,
        force: bool = False,
    ) -> Principal:
        """Take rights back, named as they were given; none named are all. Raises NotFound, Conflict."""
        permissions = _permissions(produce, consume, manage, view, cancel, admin)
        told = await self._auth(
            methods.REVOKE_GRANT,
            make(wire.RevokeGrantRequest, name=name, permissions=permissions, force=force),
        )
        return answer(Principal, told.principal)

    async def get_principal(self, name: str = "") -> Principal:
        """Return what is known of `name`; of this client's own key, unless it is given. Raises NotFound."""
        told = await self._auth(methods.GET_PRINCIPAL, make(wire.GetPrincipalRequest, name=name))
        return answer(Principal, told.principal)

    async def who_am_i(self) -> Identity:
        """Say who the broker takes this client for, and what it may do; also while it asks for no keys."""
        told = await self._auth(methods.WHO_AM_I, wire.WhoAmIRequest())
        return answer(Identity, told)

    async def list_principals(self, prefix: str = "") -> list[Principal]:
        """Return the names that begin so with their rights and keys, sorted by name; at most 10,000."""
        told = await self._auth(methods.LIST_PRINCIPALS, make(wire.ListPrincipalsRequest, prefix=prefix))
        return [answer(Principal, each) for each in told.principals]

    async def set_quotas(
        self,
        name: str,
        *,
        messages_per_second: float = 0,
        bytes_per_second: float = 0,
        connections: int = 0,
        streams: int = 0,
        in_flight: int = 0,
        stored_bytes: int = 0,
    ) -> Principal:
        """Bound what `name` may use, all its keys together: enqueues a second, connections, streams and leased messages
        at a time, and, where it is bound to a tenant, in place of the last the bytes that are stored of the tenant's
        messages. All bounds anew; 0 is none. Raises NotFound, Invalid."""
        quotas = make(
            wire.Quotas,
            messages_per_second=messages_per_second,
            bytes_per_second=bytes_per_second,
            connections=connections,
            streams=streams,
            in_flight=in_flight,
            stored_bytes=stored_bytes,
        )
        told = await self._auth(methods.SET_QUOTAS, make(wire.SetQuotasRequest, name=name, quotas=quotas))
        return answer(Principal, told.principal)

    async def forget_principal(self, name: str, *, force: bool = False) -> Principal:
        """Forget `name` with its keys, rights, quotas and tenant, and return what it had. The last admin only with
        `force`. A name with nothing left goes by itself after a day. Raises NotFound, Conflict."""
        require_text("name", name)
        request = make(wire.ForgetPrincipalRequest, name=name, force=force)
        told = await self._auth(methods.FORGET_PRINCIPAL, request)
        return answer(Principal, told.principal)

    async def list_audit(self, *, before: int = 0, limit: int = 0) -> list[AuditRecord]:
        """Return what admins did, newest first: at most `limit` records (0: 100, up to 1,000), with `before` those
        below that number. The newest 10,000 are kept."""
        told = await self._auth(methods.LIST_AUDIT, make(wire.ListAuditRequest, before=before, limit=limit))
        return [answer(AuditRecord, each) for each in told.records]

    async def create_tenant_link(
        self, queue: str, fairness_key: str, *, ttl: Duration = 0, right: LinkRight = "view"
    ) -> NewTenantLink:
        """Make a key for one queue; it is told once.

        One with the right to `view` shows one fairness key's numbers and may do nothing else; a `ttl` of 0 is 7 days,
        90 days are the most. One to `produce` is the end of a webhook's address: it only sends, with this fairness
        key, or the queue's if it is empty; a `ttl` of 0 is for ever, 10 years are the most. Raises QueueNotFound,
        Conflict (the broker asks for no keys), NotAllowed.
        """
        if right not in _LINK_RIGHTS:
            raise ValueError(f"right must be 'view' or 'produce', got {right!r}")
        request = make(
            wire.CreateTenantLinkRequest,
            queue=queue,
            fairness_key=fairness_key,
            ttl_ms=duration_ms("ttl", ttl),
            right=_LINK_RIGHTS[right],
        )
        told = await self._auth(methods.CREATE_TENANT_LINK, request)
        return answer(NewTenantLink, told)

    async def list_tenant_links(self, queue: str = "") -> list[TenantLink]:
        """Return the links of a queue, or of all that this client may manage; those that end soonest first."""
        request = make(wire.ListTenantLinksRequest, queue=queue)
        told = await self._auth(methods.LIST_TENANT_LINKS, request)
        return [answer(TenantLink, link) for link in told.links]

    async def revoke_tenant_link(self, queue: str, link_id: str) -> None:
        """Take a link away: what it shows ends within a second. Raises NotFound."""
        request = make(wire.RevokeTenantLinkRequest, queue=queue, link_id=link_id)
        await self._auth(methods.REVOKE_TENANT_LINK, request)


def _permissions(
    produce: Sequence[str],
    consume: Sequence[str],
    manage: Sequence[str],
    view: Sequence[str],
    cancel: Sequence[str],
    admin: bool,
) -> list[wire.Permission]:
    permissions = [wire.Permission(right=wire.RIGHT_ADMIN)] if admin else []
    for right, patterns in (
        (wire.RIGHT_PRODUCE, produce),
        (wire.RIGHT_CONSUME, consume),
        (wire.RIGHT_MANAGE, manage),
        (wire.RIGHT_VIEW, view),
        (wire.RIGHT_CANCEL, cancel),
    ):
        if isinstance(patterns, str):
            raise TypeError(f"patterns must be a sequence, got {patterns!r}")
        for pattern in patterns:
            queue, _, channel = pattern.partition(":")
            permissions.append(wire.Permission(right=right, queue=queue, channel=channel))
    return permissions
