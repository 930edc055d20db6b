"""Who a connection is: nobody until AUTH, where keys are asked for, and for how much and how long.

A failed AUTH leaves the earlier identity. A key that is revoked closes the connection; so do ten seconds without one.
The edge's threads see to the rest: 64 KiB without a key, and the end of the certificate that a connection came with.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from fila_server import errors
from fila_server.access.admission import NO_KEY, Admission, Caller
from fila_server.access.table import REDIS

WITHOUT_KEY_S_MAX = 10.0
BEFORE_AUTH = (b"AUTH", b"HELLO", b"QUIT")


class Entry:
    """One connection's identity. `end` is called when it loses it."""

    def __init__(
        self,
        admission: Admission,
        address: str,
        end: Callable[[], None],
        *,
        encrypted: bool,
        names: tuple[str, ...],
    ) -> None:
        """`names` are those of the client's certificate. Raises Unauthenticated where no key could help."""
        self._admission = admission
        self._address = address
        self._encrypted = encrypted
        self._end = end
        self._left: list[Callable[[], None]] = []
        self._names = names
        self._late: asyncio.TimerHandle | None = None
        self.caller: Caller | None = None
        self.begin()

    def begin(self) -> None:
        """Be the connection's caller before any AUTH. Raises Unauthenticated where no key could help."""
        self.leave()
        if not self._admission.is_on:
            self._become(self._admission.enter(None, self._address, encrypted=self._encrypted))
        elif self._names:
            # A certificate of nobody's may still be followed by AUTH.
            with contextlib.suppress(errors.Unauthenticated):
                self._become(
                    self._admission.enter(None, self._address, encrypted=self._encrypted, names=self._names)
                )

    def authenticate(self, key: bytes, name: str = "default") -> None:
        """Become the key's holder. Raises Unauthenticated, QuotaExceeded; the identity is then as before."""
        caller = self._admission.enter(key, self._address, encrypted=self._encrypted)
        if name not in ("default", caller.name):
            raise errors.Unauthenticated("the key is not that name's")
        self._become(caller)

    def _become(self, caller: Caller) -> None:
        give_back = self._admission.take_connection(caller)
        self.leave()
        self._stop_waiting()
        self.caller = caller
        self._left = [give_back, self._admission.hold(caller, 0, "", "", self._revoked)]

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

    def check(self, name: str, args: list[bytes]) -> None:
        """Judge a command by the table of rights. Raises one of errors.py."""
        if self.caller is None:
            if name.encode() not in BEFORE_AUTH:
                raise errors.Unauthenticated(NO_KEY)
            return
        need = REDIS[name]
        queue = args[int(need.queue) - 1].decode("utf-8", "replace") if need.queue else ""
        channel = args[int(need.channel) - 1].decode("utf-8", "replace") if need.channel else ""
        self._admission.check(self.caller, need, queue, channel)

    def sees(self, queue: str) -> bool:
        """Whether INFO may show the queue."""
        return self.caller is not None and not self.caller.tenant and self._admission.sees(self.caller, queue)

    def sees_channel(self, queue: str, channel: str) -> bool:
        """Whether INFO may show the channel of a queue that it shows."""
        return self.caller is not None and self._admission.sees_channel(self.caller, queue, channel)

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
        return self._admission.is_admin(self.caller) or (
            other.caller is not None and other.caller.name == self.caller.name
        )
