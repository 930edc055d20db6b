"""Who a connection is: nobody until AUTH, where keys are asked for, and for how much and how long.

A failed AUTH leaves the earlier identity. A key that is revoked closes the connection; so do 64 KiB or ten seconds
without one, and the end of the certificate it came with.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable
from typing import Any

from fila_server import errors
from fila_server.access.door import NO_KEY, Caller, Door
from fila_server.access.table import REDIS

INPUT_BYTES_MAX = 64 * 1024
"""Before AUTH: enough for any AUTH or HELLO."""
WITHOUT_KEY_S_MAX = 10.0
LOOK_EVERY_S_MAX = 3600.0
BEFORE_AUTH = (b"AUTH", b"HELLO", b"QUIT")


class Entry:
    """One connection's identity. `end` is called when it loses it."""

    def __init__(
        self,
        door: Door,
        peer: tuple[str, int] | None,
        end: Callable[[], None],
        *,
        encrypted: bool,
        names: tuple[str, ...],
        ends_s: float | None = None,
    ) -> None:
        """`names` are those of the client's certificate, which ends at `ends_s` in Unix seconds. Raises Unauthenticated
        where no key could help."""
        self._door = door
        self._address = peer[0] if peer else "127.0.0.1"
        self._encrypted = encrypted
        self._end = end
        self._left: list[Callable[[], None]] = []
        self.received_bytes = 0
        """Since it was last nobody."""
        self._names = names
        self._watch: asyncio.TimerHandle | None = None
        self._late: asyncio.TimerHandle | None = None
        if ends_s is not None:
            self._until_certificate_ends(ends_s)
        self.caller: Caller | None = None
        self.begin()

    def begin(self) -> None:
        """Be whoever the connection is before any AUTH. Raises Unauthenticated where no key could help."""
        self.leave()
        self.received_bytes = 0
        if not self._door.is_on:
            self._become(self._door.enter(None, self._address, encrypted=self._encrypted))
        elif self._names:
            # A certificate of nobody's may still be followed by AUTH.
            with contextlib.suppress(errors.Unauthenticated):
                self._become(
                    self._door.enter(None, self._address, encrypted=self._encrypted, names=self._names)
                )

    @property
    def number(self) -> int | None:
        """The caller's number for the core."""
        assert self.caller is not None, "asked before AUTH is refused"
        return self.caller.number

    def is_too_much(self, unstarted: int, command: int) -> bool:
        """Whether nobody sent more than an AUTH needs: of what was begun, or of the next `command` alone, in bytes.
        What lies behind is not counted: the key may be in front of it."""
        return self.caller is None and max(self.received_bytes - unstarted, command) > INPUT_BYTES_MAX

    def authenticate(self, key: bytes, name: str = "default") -> None:
        """Become the key's holder. Raises Unauthenticated, QuotaExceeded; the identity is then as before."""
        caller = self._door.enter(key, self._address, encrypted=self._encrypted)
        if name not in ("default", caller.name):
            raise errors.Unauthenticated("the key is not that name's")
        self._become(caller)

    def _become(self, caller: Caller) -> None:
        give_back = self._door.take_connection(caller)
        self.leave()
        self._stop_waiting()
        self.caller = caller
        self._left = [give_back, self._door.hold(caller, 0, "", "", self._revoked)]

    def await_key(self, late: Callable[[], None]) -> None:
        """Call `late` unless a key comes in time, where one is needed. Asked again, the time begins anew."""
        self._stop_waiting()
        if self.caller is None:
            self._late = asyncio.get_running_loop().call_later(WITHOUT_KEY_S_MAX, late)

    def _stop_waiting(self) -> None:
        # The timer would keep whatever it calls, for all of its time, though the connection is long gone.
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _revoked(self, _error: errors.FilaServerError) -> None:
        self.leave()
        self._end()

    def leave(self) -> None:
        """Be nobody."""
        self.caller = None
        for leave in self._left:
            leave()
        self._left = []

    def close(self) -> None:
        """The connection is over."""
        self.leave()
        self._stop_waiting()
        if self._watch is not None:
            self._watch.cancel()

    def _until_certificate_ends(self, ends_s: float) -> None:
        left_s = ends_s - time.time()
        if left_s <= 0:
            self._revoked(errors.Unauthenticated("the certificate has ended"))
            return
        # In steps, since the clock may be set meanwhile.
        self._watch = asyncio.get_running_loop().call_later(
            min(left_s, LOOK_EVERY_S_MAX), self._until_certificate_ends, ends_s
        )

    def check(self, name: str, args: list[bytes]) -> None:
        """Judge a command by the table of rights. Raises one of errors.py."""
        if self.caller is None:
            if name.encode() not in BEFORE_AUTH:
                raise errors.Unauthenticated(NO_KEY)
            return
        need = REDIS[name]
        queue = args[int(need.queue) - 1].decode("utf-8", "replace") if need.queue else ""
        channel = args[int(need.channel) - 1].decode("utf-8", "replace") if need.channel else ""
        self._door.check(self.caller, need, queue, channel)

    def sees(self, queue: str) -> bool:
        """Whether INFO may show the queue."""
        return self.caller is not None and not self.caller.tenant and self._door.sees(self.caller, queue)

    def sees_channel(self, queue: str, channel: str) -> bool:
        """Whether INFO may show the channel of a queue that it shows."""
        return self.caller is not None and self._door.sees_channel(self.caller, queue, channel)

    @property
    def is_tenant(self) -> bool:
        """Whether it is told about one fairness key only."""
        return self.caller is not None and bool(self.caller.tenant)

    @property
    def user(self) -> str:
        """The name in CLIENT LIST."""
        return self.caller.name if self.caller is not None and self.caller.number is not None else "default"

    def sees_client(self, other: Entry) -> bool:
        """Whether CLIENT LIST may show another connection: its own name's, or all of an admin's."""
        if self.caller is None:
            return False
        return self._door.is_admin(self.caller) or (
            other.caller is not None and other.caller.name == self.caller.name
        )

    def hold_read(
        self, queue: str, channel: str, end: Callable[[errors.FilaServerError], None]
    ) -> Callable[[], None]:
        """A read that waits: ended when the right to it is taken back."""
        assert self.caller is not None
        need = REDIS["HMGET"]
        return self._door.hold(self.caller, need.right, queue, channel, end)


def end_of(tls: Any) -> float | None:
    """When the client's certificate ends, in Unix seconds; None where there is none."""
    certificate: Any = tls.getpeercert() if isinstance(tls, ssl.SSLObject) else None
    return ssl.cert_time_to_seconds(certificate["notAfter"]) if certificate else None


def names_of(tls: Any) -> tuple[str, ...]:
    """DNS and URI names of the client's certificate; its common name says nothing."""
    if not isinstance(tls, ssl.SSLObject):
        return ()
    certificate = tls.getpeercert() or {}
    told: Any = certificate.get("subjectAltName", ())
    return tuple(name for kind, name in told if kind in ("DNS", "URI"))
