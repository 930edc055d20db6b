"""The six rights by name, what a grant is made of, and who is an admin. The judgement is core/requests/rights.pyx."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable

from fila_server.access.records import GrantRecord, PrincipalRecord
from fila_server.errors import Invalid, LimitExceeded

PRODUCE, CONSUME, MANAGE, ADMIN, VIEW, CANCEL = 1, 2, 4, 8, 16, 32
BIT_BY_NAME = {
    "produce": PRODUCE,
    "consume": CONSUME,
    "manage": MANAGE,
    "view": VIEW,
    "cancel": CANCEL,
    "admin": ADMIN,
}

GRANTS_MAX = 1_000
"""Of a principal; each is looked at once a queue."""
PATTERN_BYTES_MAX = 255
STARS_MAX = 4

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@/-]{0,127}")
_CERTIFICATE_NAME = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._:@/*-]{0,254}")
_PATTERN = re.compile(r"[A-Za-z0-9._*-]+")


def same(a: bytes, b: bytes) -> bool:
    """Compare two digests in a time that says nothing about them."""
    return hmac.compare_digest(a, b)


def names_of(bits: int) -> list[str]:
    """The names of rights, in the order of the table."""
    return [name for name, bit in BIT_BY_NAME.items() if bits & bit]


def is_admin(principal: PrincipalRecord) -> bool:
    """Whether it may do everything."""
    return any(grant.rights & ADMIN for grant in principal.grants)


def check_name(name: str) -> None:
    """A principal's name: letters and digits first, since it stands in lines people read, or a certificate's URI."""
    if not (_NAME.fullmatch(name) or _CERTIFICATE_NAME.fullmatch(name)):
        raise Invalid(
            "name",
            "must be 1 to 128 of A-Z a-z 0-9 . _ @ / - and begin with a letter or digit, or a name that certificates "
            "have, such as spiffe://corp/shop or *.corp.example",
        )


def grant(right: str, pattern: str) -> GrantRecord:
    """Read one grant; `pattern` is `queues` or, for consume, `queues:channels`."""
    bit = BIT_BY_NAME.get(right)
    if bit is None:
        raise Invalid("right", f"must be one of {', '.join(BIT_BY_NAME)}, got {right[:32]!r}")
    if bit == ADMIN:
        if pattern not in ("", "*"):
            raise Invalid("pattern", "is not for admin, who may do everything: leave it out")
        return GrantRecord(rights=ADMIN, queue="*")
    queue, colon, channel = pattern.partition(":")
    if colon and bit != CONSUME:
        raise Invalid("pattern", "names a channel, and only consume is given by channel")
    for part in (queue, channel) if colon else (queue,):
        _check_pattern(part)
    return GrantRecord(rights=bit, queue=queue, channel="" if channel == "*" else channel)


def pattern_of(queue: str, channel: str) -> str:
    """Queues and channels as `grant` reads them."""
    return f"{queue}:{channel}" if channel else queue


def _check_pattern(pattern: str) -> None:
    if len(pattern) > PATTERN_BYTES_MAX:
        raise LimitExceeded("pattern", f"must be at most {PATTERN_BYTES_MAX} bytes, got {len(pattern)}")
    if not _PATTERN.fullmatch(pattern):
        raise Invalid("pattern", f"must be made of A-Z a-z 0-9 . _ - and *, got {pattern[:64]!r}")
    if pattern.count("*") > STARS_MAX:
        raise Invalid("pattern", f"must have at most {STARS_MAX} stars, got {pattern.count('*')}")


def check_together(grants: Iterable[GrantRecord], tenant: str) -> None:
    """What grants of one principal may not be together. Raises Invalid, LimitExceeded."""
    grants = tuple(grants)
    if len(grants) > GRANTS_MAX:
        raise LimitExceeded("grants", f"must be at most {GRANTS_MAX} a name, got {len(grants)}")
    if tenant and any(each.rights & ~(PRODUCE | VIEW | CANCEL) for each in grants):
        raise Invalid(
            "as_tenant",
            "goes with produce, view and cancel only: a key that consumes or manages a queue sees all its tenants",
        )
