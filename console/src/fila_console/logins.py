"""Who is logged in: keys in memory, named by a random cookie, gone after twelve hours without use.

The console judges no right and stores nothing: a key is what the broker is called with, and the broker says what it
may do. The cookie's value is kept as its SHA-256, so that a look at this table gives nobody a login.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

IDLE_S_MAX = 12 * 3600.0
LOGINS_MAX = 10_000
"""The one used longest ago makes room for another."""


@dataclass(slots=True, eq=False)
class Login:
    """One browser, and its key for each broker it logged in to."""

    used_s: float
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """What a page's forms send back, to show that the page was ours."""
    keys: dict[str, str] = field(default_factory=dict, repr=False)
    """By the broker's name."""
    names: dict[str, str] = field(default_factory=dict)
    """The principal's name, by the broker's."""
    without_limits: set[str] = field(default_factory=set)
    """Brokers whose limits the key may not see, as they said last: their menus do not offer what would be refused."""

    def has_token(self, token: str) -> bool:
        """Whether `token` is this login's."""
        return hmac.compare_digest(token.encode(), self.csrf.encode())


class Logins:
    """All of them."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._logins: OrderedDict[bytes, Login] = OrderedDict()
        # Brokers that ask for no key are shown without a login; their forms' token is the same for everybody, and
        # still unknown to other pages.
        self.nobody = Login(used_s=0.0)

    def __len__(self) -> int:
        return len(self._logins)

    def begin(self, broker: str, key: str, name: str, cookie: str = "") -> str:
        """Log in; return the cookie's new value. A login that `cookie` names goes on with its other brokers."""
        before = self.of(cookie)
        login = Login(used_s=self._now_s())
        if before is not None:
            login.keys |= before.keys
            login.names |= before.names
            login.without_limits |= before.without_limits
            self.end(cookie)
        login.keys[broker] = key
        login.names[broker] = name
        value = secrets.token_urlsafe(32)
        while len(self._logins) >= LOGINS_MAX:
            self._logins.popitem(last=False)
        self._logins[_digest(value)] = login
        return value

    def of(self, cookie: str) -> Login | None:
        """Whose cookie this is; using it keeps it."""
        if not cookie:
            return None
        name = _digest(cookie)
        login = self._logins.get(name)
        if login is None:
            return None
        if self._now_s() - login.used_s > IDLE_S_MAX:
            del self._logins[name]
            return None
        login.used_s = self._now_s()
        self._logins.move_to_end(name)
        return login

    def end(self, cookie: str) -> None:
        """Log out, at every broker."""
        login = self._logins.pop(_digest(cookie), None)
        if login is not None:
            login.keys.clear()

    def forget_key(self, broker: str, key: str) -> None:
        """The broker does not know `key` any more: logins with it end there."""
        for login in self._logins.values():
            if login.keys.get(broker) == key:
                del login.keys[broker]

    def keys_in_use(self) -> set[tuple[str, str]]:
        """Brokers' names with keys that some login that is not over has."""
        oldest_s = self._now_s() - IDLE_S_MAX
        while self._logins and next(iter(self._logins.values())).used_s < oldest_s:
            self._logins.popitem(last=False)
        return {(broker, key) for login in self._logins.values() for broker, key in login.keys.items()}


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode(errors="replace")).digest()
