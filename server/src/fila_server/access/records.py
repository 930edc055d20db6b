"""Keys and principals as they are stored, and the marker by which a missing one is noticed.

    "p/" name     a principal: grants, tenant, quotas
    "k/" id       a key: whose it is, the digest of its secret, when it ends
    "!"           the marker: how many changes there were, how many records there are, and a sum over them

The sum is that of a number for each record, 4,096 bits of SHAKE-256 of its key and value, modulo 2^4096. A change adds
what it puts and takes off what it drops, so it costs the same among ten records and ten thousand. To find other records
of the same sum is as hard as to find two texts of one SHA-256.

The marker stands in the family ACCESS, in META, and its number of changes in the file DATA_DIR/access-marker, which
is written after the change is durable and before it is answered. So a record that is gone, an old table, or a whole
lost end of the log disagree with one of the three, and the server does not serve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

PRINCIPAL_PREFIX = b"p/"
KEY_PREFIX = b"k/"
MARKER_KEY = b"!"

_SUM_BYTES = 512
_SUM_END = 1 << 8 * _SUM_BYTES
_OLD_SUM_CHARS = 64
"""Of a SHA-256 over all records in order, as servers before 0.1.0 wrote it: read once, and replaced by the next
change."""


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
    empty_since_ms: int = 0
    """Since when nothing is left but the name; 0 while there is something."""


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


class Sum:
    """The records, as they come and go, in a number of one size."""

    def __init__(self, stored: Mapping[bytes, bytes] | None = None) -> None:
        self._total = 0
        self._count = 0
        for key, value in (stored or {}).items():
            self.put(key, value)

    def copy(self) -> Sum:
        """Return one that goes on from here."""
        other = Sum()
        other._total, other._count = self._total, self._count
        return other

    def put(self, key: bytes, value: bytes) -> None:
        """Take in a record."""
        self._total = (self._total + _number_of(key, value)) % _SUM_END
        self._count += 1

    def drop(self, key: bytes, value: bytes) -> None:
        """Take out a record that was put in as it is."""
        self._total = (self._total - _number_of(key, value)) % _SUM_END
        self._count -= 1

    def marker(self, changes: int) -> Marker:
        """Return the marker of the records that are in."""
        return Marker(changes=changes, count=self._count, sum=self._total.to_bytes(_SUM_BYTES).hex())


def _number_of(key: bytes, value: bytes) -> int:
    text = len(key).to_bytes(4) + key + len(value).to_bytes(4) + value
    return int.from_bytes(hashlib.shake_256(text).digest(_SUM_BYTES))


def is_marker_of(marker: Marker, stored: Mapping[bytes, bytes]) -> bool:
    """Whether these are the records of the marker: one that is missing, changed or older is told by their sum. Who can
    write the store can write this too."""
    if len(marker.sum) != _OLD_SUM_CHARS:
        return marker == Sum(stored).marker(marker.changes)
    total = hashlib.sha256()
    for key, value in sorted(stored.items()):
        total.update(len(key).to_bytes(4) + key + len(value).to_bytes(4) + value)
    return (marker.count, marker.sum) == (len(stored), total.hexdigest())
