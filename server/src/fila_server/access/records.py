"""Keys and principals as they are stored, and the marker by which a missing one is noticed.

    "p/" name     a principal: grants, tenant, quotas
    "k/" id       a key: whose it is, the digest of its secret, when it ends
    "!"           the marker: how many changes there were, how many records there are, and a sum over them

The marker stands in the family ACCESS, in META, and its number of changes in the file DATA_DIR/access-marker, which
is written after the change is durable and before it is answered. So a record that is gone, an old table, or a whole
lost end of the log disagree with one of the three, and the server does not serve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

PRINCIPAL_PREFIX = b"p/"
KEY_PREFIX = b"k/"
MARKER_KEY = b"!"


class GrantRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rights (bits of core/requests/rights.pxd) on queues, and for consume on channels, that match."""

    rights: int
    queue: str
    channel: str = ""


class LinkRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of a principal that is a tenant's link: the queue it shows, and who made it."""

    queue: str
    created_by: str = ""


class QuotaRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bounds of one principal; 0 is none."""

    messages_per_s: float = 0.0
    bytes_per_s: float = 0.0
    connections: int = 0
    streams: int = 0
    stored_bytes: int = 0
    """Of its tenant's messages, in all queues."""
    in_flight: int = 0
    """Messages that its consumers hold leased, in all queues."""


class PrincipalRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody with a name and rights. `tenant` is the fairness key that its messages are bound to."""

    name: str
    created_ms: int
    grants: tuple[GrantRecord, ...] = ()
    tenant: str = ""
    quotas: QuotaRecord = QuotaRecord()
    link: LinkRecord | None = None


class KeyRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key. `expires_ms` and `revoked_ms` are Unix times; 0 is never."""

    id: str
    principal: str
    digest: bytes
    created_ms: int
    expires_ms: int = 0
    bootstrap: bool = False


class Marker(msgspec.Struct, frozen=True):
    """What the records must add up to. `changes` only grows; 0 says that no key was ever written."""

    changes: int
    count: int
    sum: str


_encoder = msgspec.json.Encoder()


def key_of(record: PrincipalRecord | KeyRecord) -> bytes:
    """Return the key under which a record is stored."""
    if isinstance(record, PrincipalRecord):
        return PRINCIPAL_PREFIX + record.name.encode()
    return KEY_PREFIX + record.id.encode()


def encode(record: msgspec.Struct) -> bytes:
    """Return a record's stored bytes."""
    return _encoder.encode(record)


def decode(key: bytes, value: bytes) -> PrincipalRecord | KeyRecord:
    """Read a stored record. Raises ValueError when it is none."""
    try:
        if key.startswith(PRINCIPAL_PREFIX):
            return msgspec.json.decode(value, type=PrincipalRecord)
        if key.startswith(KEY_PREFIX):
            return msgspec.json.decode(value, type=KeyRecord)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    raise ValueError(f"no record of a known kind: {key[:16]!r}")


def decode_marker(value: bytes) -> Marker:
    """Read a marker. Raises ValueError when it is none."""
    try:
        return msgspec.json.decode(value, type=Marker)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def marker_of(changes: int, stored: Mapping[bytes, bytes]) -> Marker:
    """Return the marker of these records."""
    return Marker(changes=changes, count=len(stored), sum=_sum(stored.items()))


def _sum(stored: Iterable[tuple[bytes, bytes]]) -> str:
    """Tells a missing, changed or older record; who can write the store can write this too."""
    total = hashlib.sha256()
    for key, value in sorted(stored):
        total.update(len(key).to_bytes(4) + key + len(value).to_bytes(4) + value)
    return total.hexdigest()
