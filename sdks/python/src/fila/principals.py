"""Names with rights, their keys, their bounds, and what admins did with them: what FilaAuth's calls answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One right on the queues whose names match."""

    right: str
    """"produce", "consume", "manage", "view", "cancel" or "admin"."""
    queue: str
    """A name or a pattern; empty for admin."""
    channel: str
    """For consume, the channels; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInfo:
    """A key, without its secret."""

    key_id: str
    created_at: datetime | None = None
    expires_at: datetime | None = None
    """None: never."""
    bootstrap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """Bounds of one name, all its keys together; 0 is none. Bytes are of its tenant's messages, in all queues."""

    messages_per_second: float
    bytes_per_second: float
    connections: int
    streams: int
    in_flight: int = 0
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A name with rights, and its keys. The last two are 0 without a bound on them."""

    name: str
    permissions: list[Permission]
    tenant: str
    """The fairness key its messages are bound to; empty for none."""
    keys: list[KeyInfo]
    quotas: Quotas
    connections: int
    streams: int
    quota_refusals: int
    stored_bytes: int = 0
    in_flight: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What a queue's messages keep of an HTTP sender's headers; `fila.IntakeSettings` explains each."""

    headers: list[str] = field(default_factory=list)
    dedup_headers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the broker takes this client for."""

    principal: str
    """`anonymous` while the broker asks for no keys."""
    permissions: list[Permission]
    tenant: str = ""
    key_id: str = ""
    expires_at: datetime | None = None
    """When the key ends; None: never."""
    auth_enabled: bool = False
    """The broker asks for keys."""
    peer: str = ""
    intake: Intake | None = None
    """Of the queue that was asked about, as the gateway asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One act of an admin."""

    number: int
    """Counts on from act to act."""
    act: str
    """The call."""
    at: datetime | None = None
    principal: str = ""
    key_id: str = ""
    """Empty for a certificate, and while keys are off."""
    peer: str = ""
    queue: str = ""
    """The queue, or the name, that it was done to."""
    details: dict[str, str] = field(default_factory=dict)
    """The request's other fields; values and scripts as digests."""
    claimed_address: str = ""
    """For whose browser or program the console or the HTTP gateway says it called; nobody has checked that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLink:
    """A link for a tenant, without its secret."""

    link_id: str
    queue: str
    fairness_key: str
    created_by: str = ""
    created_at: datetime | None = None
    expires_at: datetime | None = None
    """None: never."""
    right: str = ""
    """`view`, or `produce` of an address for webhooks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTenantLink:
    """A link that was just made."""

    key: str = field(repr=False)
    """The key itself; nobody can read it again."""
    link: TenantLink
