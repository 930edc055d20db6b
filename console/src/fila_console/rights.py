"""What a key may change, as the broker said it, so that a page offers nobody what would be refused.

The broker judges each call; this only decides what is shown. A right that ended since the page was made is refused by
the broker, in its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fila.principals import Identity

_OWN_ONLY = (".dlq",)
"""Ends of names that a pattern covers only where it ends so itself."""
_OWN_BEGINNING = "_fila"


def may(identity: Identity, rights: Sequence[str], queue: str) -> bool:
    """Whether a key has one of these rights on a queue, or on any for ""; a broker without keys lets everybody."""
    if not identity.auth_enabled:
        return True
    return any(
        each.right == "admin" or (each.right in rights and (not queue or _covers(each.queue, queue)))
        for each in identity.permissions
    )


def _covers(pattern: str, queue: str) -> bool:
    for end in _OWN_ONLY:
        if queue.endswith(end) and not pattern.endswith(end):
            return False
    if queue.startswith(_OWN_BEGINNING) and not pattern.startswith(_OWN_BEGINNING):
        return False
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), queue, re.DOTALL) is not None
