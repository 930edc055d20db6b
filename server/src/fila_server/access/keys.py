"""What a key is: `fila_<id>_<secret>`, of which only the id and a digest of the secret are kept.

The secret has 256 random bits, so a plain SHA-256 is as good as a slow hash against guessing, and a slow one
would be a way to keep the server busy.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

_KEY = re.compile(rb"fila_([a-z0-9]{1,32})_([A-Za-z0-9]{40,128})")
_ID_BYTES = 10
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Key:
    """A key in the hand of its owner. Never stored, never logged: only `text()` shows the secret."""

    id: str
    digest: bytes

    def __repr__(self) -> str:
        return f"Key({self.id})"


def make(random_bytes: Callable[[int], bytes]) -> tuple[str, Key]:
    """Return a new key's text, to be shown once, and what is kept of it."""
    key_id = _letters(random_bytes(_ID_BYTES))
    secret = _letters(random_bytes(_SECRET_BYTES))
    return f"fila_{key_id}_{secret}", Key(key_id, digest_of(secret.encode()))


def parse(text: bytes) -> Key | None:
    """Return what is kept of a key's text, or None for a text that is no key."""
    if len(text) > 256 or (match := _KEY.fullmatch(text)) is None:
        return None
    return Key(match[1].decode(), digest_of(match[2]))


def digest_of(secret: bytes) -> bytes:
    """Return the 32 bytes that stand for a secret."""
    return hashlib.sha256(secret).digest()


def _letters(raw: bytes) -> str:
    return base64.b32encode(raw).decode().rstrip("=").lower()
