"""A client of the Redis protocol whose socket a thread has: who it is, and what its commands get as replies."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

import structlog

from fila_server import errors
from fila_server.edge.redis import reply_bytes as replies
from fila_server.edge.redis import verbs
from fila_server.edge.redis.client import Host, Session
from fila_server.edge.redis.entry import Entry

log = structlog.get_logger("fila_server.edge")

KNOWN: Final = 1
QUITS: Final = 2
SPEAKS_3: Final = 4
LEAVES_AT_ONCE: Final = 8
"""As bridge.pxd has them (ClientIs)."""


class Orders(Protocol):
    """The threads, as a client orders them (edge.pyi)."""

    def redis_reply(self, token: int, client_is: int, caller: int, reply: bytes) -> None: ...
    def redis_end(self, token: int, at_once: bool) -> None: ...


class RedisClient:
    """What commands see of it (edge/redis/client.py). Belongs to the loop's thread."""

    def __init__(self, server: Host, edge: Orders, token: int, reported: list[bytes]) -> None:
        """`told` is what its thread knows: name, value, name, value, ..."""
        self.server = server
        self.broker = server.broker
        self._edge = edge
        self._token = token
        about = list(zip(reported[::2], reported[1::2], strict=True))
        self._peer = _peer(next(value for name, value in about if name == b":peer"))
        self._is_encrypted = any(name == b":tls" for name, _ in about)
        self._names = tuple(
            value.decode("utf-8", "replace") for name, value in about if name in (b":dns", b":uri")
        )
        self.session = Session(self._peer, server.now())
        self.entry: Entry
        self._running: asyncio.Future[bytes] | None = None
        self._quits = 0
        self._is_gone = False

    def come_in(self, descriptor: int) -> None:
        """Take the client in, or tell it that there are too many."""
        refused: errors.FilaServerError | None = None
        try:
            # The thread sees to it that a certificate's end is the connection's.
            self.entry = Entry(
                self.server.admission,
                self._peer[0],
                self.end,
                encrypted=self._is_encrypted,
                names=self._names,
            )
        except errors.FilaServerError as error:
            refused = error
        if not self.server.may_be_kept(descriptor):
            # Closed at once: to linger would keep the descriptor, of which there are too few.
            self._turn_away(_TOO_MANY, LEAVES_AT_ONCE)
        elif refused is not None:
            self._turn_away(replies.refusal(refused), LEAVES_AT_ONCE)
        elif not self.server.admit(self):
            self._turn_away(_TOO_MANY, 0)
        else:
            self.await_key()
            self._reply(b"")

    def carry_out(self, args: list[bytes], argc: int) -> None:
        """One command; `args` may hold fewer than `argc` where no command takes so many."""
        if self._is_gone:
            return
        try:
            reply = verbs.run(self, args, argc)
        except errors.FilaServerError as error:
            reply = replies.refusal(error)
        except Exception:
            log.exception("redis.command_failed")
            reply = replies.INTERNAL
        if isinstance(reply, bytes):
            self._reply(reply)
        else:
            # Never cancelled: to stop a SET half-way would leave the broker's mirror behind the core.
            self._running = asyncio.ensure_future(reply)
            self._running.add_done_callback(self._finish)

    def _finish(self, work: asyncio.Future[bytes]) -> None:
        self._running = None
        try:
            reply = work.result()
        except errors.FilaServerError as error:
            reply = replies.refusal(error)
        except asyncio.CancelledError:
            reply = replies.refusal(errors.Unavailable("the server is shutting down"))
        except Exception:
            log.exception("redis.command_failed")
            reply = replies.INTERNAL
        self._reply(reply)

    def _reply(self, reply: bytes) -> None:
        if self._is_gone:
            return
        caller = self.entry.caller
        client_is = KNOWN if caller is not None else 0
        client_is |= SPEAKS_3 if self.session.protocol == replies.RESP3 else 0
        number = caller.number if caller is not None else None
        self._edge.redis_reply(self._token, client_is | self._quits, number or 0, reply)

    def _turn_away(self, why: bytes, how: int) -> None:
        self._edge.redis_reply(self._token, QUITS | how, 0, why)

    def await_key(self) -> None:
        """Close after a while unless a key comes, where one is needed."""
        self.entry.await_key(self.abort)

    def quit(self) -> None:
        """Start nothing more; the connection closes when the replies that are owed have left."""
        self._quits = QUITS

    def end(self) -> None:
        """Its key is gone: end a waiting read, answer what runs, close."""
        self._edge.redis_end(self._token, False)

    def abort(self) -> None:
        """Close at once, whatever is owed."""
        self._edge.redis_end(self._token, True)

    def gone(self) -> None:
        """Its connection is closed."""
        self._is_gone = True
        if hasattr(self, "entry"):
            self.entry.close()
        self.server.forget(self)


_TOO_MANY = replies.error_reply("ERR", "max number of clients reached")


def _peer(text: bytes) -> tuple[str, int]:
    """Of `ipv4:127.0.0.1:4711` or `ipv6:[::1]:4711`."""
    host, _, port = text.decode("ascii").partition(":")[2].rpartition(":")
    return host.strip("[]"), int(port)
