"""What admins do with a client, without `await`; told in `fila.keys`."""

from __future__ import annotations

from collections.abc import Sequence

from fila.keys import LinkRight
from fila.principals import AuditRecord, Identity, NewTenantLink, Principal, TenantLink
from fila.settings import Duration
from fila.sync.limits import LimitCalls


class KeyCalls(LimitCalls):
    """The calls of FilaAuth, as methods of a client."""

    def create_key(self, name: str, *, expires_after: Duration = 0, as_tenant: str = "") -> str:
        """Make a key for `name`, and return it: nobody can read it again. 0 is for ever.

        With `as_tenant` its messages are bound to that fairness key; only for a name that is new. Raises Invalid,
        NotAllowed.
        """
        return self._run(self._client.create_key(name, expires_after=expires_after, as_tenant=as_tenant))

    def rotate_key(self, key_id: str, *, overlap: Duration = 0, expires_after: Duration = 0) -> str:
        """Make another key for the same name and return it; the old one ends after `overlap`. Raises NotFound."""
        return self._run(self._client.rotate_key(key_id, overlap=overlap, expires_after=expires_after))

    def revoke_key(self, key_id: str, *, force: bool = False) -> None:
        """Take a key away: what it holds open ends within a second. The last admin's only with `force`.
        Raises NotFound, Conflict."""
        self._run(self._client.revoke_key(key_id, force=force))

    def grant(
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
        return self._run(
            self._client.grant(
                name,
                produce=produce,
                consume=consume,
                manage=manage,
                view=view,
                cancel=cancel,
                admin=admin,
            )
        )

    def revoke_grant(
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
        return self._run(
            self._client.revoke_grant(
                name,
                produce=produce,
                consume=consume,
                manage=manage,
                view=view,
                cancel=cancel,
                admin=admin,
                force=force,
            )
        )

    def forget_principal(self, name: str, *, force: bool = False) -> Principal:
        """Forget `name` with its keys, rights, quotas and tenant, and return what it had. The last admin only with
        `force`. A name with nothing left goes by itself after a day. Raises NotFound, Conflict."""
        return self._run(self._client.forget_principal(name, force=force))

    def get_principal(self, name: str = "") -> Principal:
        """Return what is known of `name`; of this client's own key, unless it is given. Raises NotFound."""
        return self._run(self._client.get_principal(name))

    def who_am_i(self) -> Identity:
        """Say who the broker takes this client for, and what it may do; also while it asks for no keys."""
        return self._run(self._client.who_am_i())

    def list_principals(self, prefix: str = "") -> list[Principal]:
        """Return the names that begin so with their rights and keys, sorted by name; at most 10,000."""
        return self._run(self._client.list_principals(prefix))

    def set_quotas(
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
        return self._run(
            self._client.set_quotas(
                name,
                messages_per_second=messages_per_second,
                bytes_per_second=bytes_per_second,
                connections=connections,
                streams=streams,
                in_flight=in_flight,
                stored_bytes=stored_bytes,
            )
        )

    def list_audit(self, *, before: int = 0, limit: int = 0) -> list[AuditRecord]:
        """Return what admins did, newest first: at most `limit` records (0: 100, up to 1,000), with `before` those
        below that number. The newest 10,000 are kept."""
        return self._run(self._client.list_audit(before=before, limit=limit))

    def create_tenant_link(
        self, queue: str, fairness_key: str, *, ttl: Duration = 0, right: LinkRight = "view"
    ) -> NewTenantLink:
        """Make a key that shows one fairness key's numbers in one queue and may do nothing else; it is told once.
        0 is 7 days, 90 days are the most. Raises QueueNotFound, Conflict (the broker asks for no keys), NotAllowed."""
        return self._run(self._client.create_tenant_link(queue, fairness_key, ttl=ttl, right=right))

    def list_tenant_links(self, queue: str = "") -> list[TenantLink]:
        """Return the links of a queue, or of all that this client may manage; those that end soonest first."""
        return self._run(self._client.list_tenant_links(queue))

    def revoke_tenant_link(self, queue: str, link_id: str) -> None:
        """Take a link away: what it shows ends within a second. Raises NotFound."""
        self._run(self._client.revoke_tenant_link(queue, link_id))
