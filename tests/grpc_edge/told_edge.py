"""The edge's threads over a core whose passes a test runs, with the test as their loop: nothing is answered, and no
time goes by, until the test says so."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Sequence

from fila_server.access import keys
from fila_server.edge.io.edge import NativeEdge
from fila_server.edge.redis.port import REDIS_OPENED
from fila_server.edge.redis.socket_client import KNOWN
from tests.core.driven_engine import DrivenEngine

WAIT_S = 10.0
MESSAGE_BYTES_MAX = 1 << 20
UNREAD_BYTES_MAX = 16 << 20
CALLER = 7
"""The number of the one key that a test gives."""


class ToldEdge:
    """One thread, a gRPC and a Redis port."""

    def __init__(
        self,
        settings: dict[str, int | str] | None = None,
        calls_max: int = 1000,
        connections_max: int = 100_000,
        grants: Sequence[tuple[int, str, str]] = (),
    ) -> None:
        self.engine = DrivenEngine(settings)
        self.key = self._switch_keys_on(grants) if grants else ""
        self._edge = NativeEdge(
            self.engine.core,
            threads=1,
            message_bytes_max=MESSAGE_BYTES_MAX,
            unread_bytes_max=UNREAD_BYTES_MAX,
            calls_outstanding_max=calls_max,
            connections_max=connections_max,
        )
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        for listener in listeners:
            listener.setblocking(False)
        grpc, self.redis_address = (listener.getsockname() for listener in listeners)
        self.grpc_address = f"{grpc[0]}:{grpc[1]}"
        self._asking: socket.socket | None = None
        self._edge.listen_redis([listeners[1].detach()])
        self._edge.start([listeners[0].detach()])

    def _switch_keys_on(self, grants: Sequence[tuple[int, str, str]]) -> str:
        """The value of `authorization` of one key with these grants, which is CALLER at the Redis port."""
        rights = self.engine.core.rights
        rights.switch_on()
        encoded = [(right, queue.encode(), channel.encode()) for right, queue, channel in grants]
        rights.put_principal(CALLER, encoded, b"", 0, 0, 0)
        text, key = keys.make(lambda count: b"k" * count)
        rights.put_key(CALLER, CALLER, key.id.encode(), key.digest, 0)
        return f"Bearer {text}"

    # --- what the threads say, and are told -------------------------------------------------

    def told(self) -> tuple[int, int]:
        """What comes next, and of which client or call."""
        assert select.select([self._edge.event_fd], [], [], WAIT_S)[0], "nothing was told"
        ((what, token, *_),) = self._edge.take()
        return what, token

    def has_told(self) -> bool:
        return bool(self._edge.take())

    def let_in(self, token: int, client_is: int, caller: int = 0) -> None:
        self._edge.redis_reply(token, client_is, caller, b"")

    def redis_client(self, caller: int = 0) -> socket.socket:
        """A client of Redis that was let in, with a key or while keys are off."""
        client = socket.create_connection(self.redis_address, timeout=WAIT_S)
        what, token = self.told()
        assert what == REDIS_OPENED
        self.let_in(token, KNOWN, caller)
        return client

    def change_rights_of_another(self) -> None:
        """Rights have changed: the threads judge again what they keep open."""
        self.engine.core.rights.put_principal(CALLER + 1, [], b"", 0, 0, 0)

    def until_read(self) -> None:
        """Return when the thread has read all that clients of Redis sent before; no pass runs meanwhile. A second turn
        that answers this one comes after the first, in which it saw theirs."""
        if self._asking is None:
            self._asking = self.redis_client()
        for _ in range(2):
            self._asking.sendall(b"PING\r\n")
            assert self._asking.recv(100) == b"+PONG\r\n"

    def drain(self, message: bytes = b"", details: bytes = b"") -> None:
        """Begin to stop: send waiting clients home, with these words."""
        self._edge.drain(int(WAIT_S * 1000), message, details)

    # --- what clients hold ------------------------------------------------------------------

    def until_connected(self, count: int) -> None:
        """Return when so many connections stand."""
        self._until(lambda: self._edge.counters()["connections"] == count, f"{count} connections stood")

    def until_begun(self, count: int) -> None:
        """Return when so many calls and commands of clients were handed to the core, which has answered none."""
        self._until(lambda: self._edge.counters()["calls_outstanding"] == count, f"{count} calls were begun")

    # --- what has come to the core ----------------------------------------------------------

    def count(self, name: str) -> int:
        """One of the core's counters: `mailbox` is how many commands lie there, `commands` how many were taken. Threads
        put one in themselves each 0.1 s, that they read their sockets."""
        number = self.engine.core.counters()[name]
        assert isinstance(number, int)
        return number

    def until_waiting(self, count: int) -> None:
        """Return when so many commands lie in the mailbox, those of the threads themselves included; no pass runs
        meanwhile."""
        self._until(lambda: self.count("mailbox") >= count, "commands came")

    def until_blocked(self, count: int) -> None:
        """Return when so many clients of Redis wait for messages."""
        self._until(lambda: self._edge.counters()["redis_blocked"] == count, "reads waited")

    def run_until(self, holds: Callable[[], bool], what: str) -> None:
        """Run passes until something holds."""

        def now() -> bool:
            self.engine.others += self.engine.settle_down()
            return holds()

        self._until(now, what)

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        ends_s = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < ends_s, f"no {what}"
            time.sleep(0.001)

    def close(self) -> None:
        if self._asking is not None:
            self._asking.close()
        self._edge.drain(0)
        self._edge.join()
        self.engine.remove()
