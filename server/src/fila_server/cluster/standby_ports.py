"""A standby's ports for clients: each call is refused, and told where the owner is.

    gRPC     UNAVAILABLE, reason NOT_OWNER, `owner` in ErrorInfo; health says NOT_SERVING. While no owner is known, how
             the group is (GetClusterStatus), unless that takes a key: no key is judged here
    Redis    -READONLY, but to those that greet, and to those that ask who serves (standby_redis.py)

One thread serves them until the node owns. It holds CONNECTIONS_MAX clients: one more, and the oldest of them ends,
which had its answer long ago. What all of them together may cost is bounded by Allowance, so that none can keep the
node from following its log.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from fila_server import errors
from fila_server.access.tls import Files, Tls
from fila_server.cluster.standby_redis import Conversation
from fila_server.config.kinds import Address
from fila_server.config.schema import Config
from fila_server.edge.grpc.refusing import RefusingSession
from fila_server.edge.listening import bound, keep
from fila_server.edge.redis import sentinel
from fila_server.edge.redis.sentinel import Group
from fila_server.services.status import status_of

log = structlog.get_logger("fila_server.cluster.standby_ports")

CONNECTIONS_MAX = 256
HANDSHAKE_S_MAX = 3.0
REPORTED_S = 0.3
"""An answer is given again for so long: it costs more than a refusal."""
HOLDS_S = 3.0
"""So long clients wait for this node to serve, at most: a planned move is over sooner (watching.FRESH_MS)."""
LEAVES_S = 0.2
"""After clients were told to leave, what is on its way from them is still taken."""
COST_A_SECOND = 4000.0
"""A call or command costs 1, and so does each KiB that clients send. Some 0.1 s of a core."""


class Allowance:
    """What clients may cost: beyond it each one that sends something waits, a second at most."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._left, self._at_s = COST_A_SECOND, now_s()

    def spend(self, calls: int, size: int) -> float:
        """For how many seconds the one who sent this is not heard; 0 within the bound."""
        now_s = self._now_s()
        earned = (now_s - self._at_s) * COST_A_SECOND
        left = min(COST_A_SECOND, self._left + earned) - calls - size / 1024
        self._left, self._at_s = max(left, -COST_A_SECOND), now_s
        return max(0.0, -self._left / COST_A_SECOND)


class _Client(asyncio.Protocol):
    """A connection of either port."""

    def __init__(self, ports: StandbyPorts, connection: socket.socket) -> None:
        self._ports, self._connection = ports, connection
        self._transport: asyncio.Transport | None = None
        self._is_full = self._waits = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ports.clients.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self._ports.clients.discard(self)
        self._ports.end(self._connection)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        answer, calls, goes_on = self._answer(data)
        transport.write(answer)
        if not goes_on:
            transport.close()
        elif wait_s := self._ports.allowance.spend(calls, len(data)):
            self._waits = True
            transport.pause_reading()
            asyncio.get_running_loop().call_later(wait_s, self._waited)

    def _answer(self, data: bytes) -> tuple[bytes, int, bool]:
        """What to write, how many calls were refused by it, and whether the connection goes on."""
        raise NotImplementedError

    def leave(self) -> None:
        """Say that the connection is about to end."""

    def pause_writing(self) -> None:
        """Who does not read is not heard."""
        self._is_full = True
        assert self._transport is not None
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._is_full = False
        self._hear_again()

    def _waited(self) -> None:
        self._waits = False
        self._hear_again()

    def _hear_again(self) -> None:
        if self._transport is not None and not (self._is_full or self._waits or self._transport.is_closing()):
            self._transport.resume_reading()


class _GrpcClient(_Client):
    def __init__(self, ports: StandbyPorts, connection: socket.socket) -> None:
        super().__init__(ports, connection)
        self._session = RefusingSession()

    def _answer(self, data: bytes) -> tuple[bytes, int, bool]:
        session, before = self._session, self._session.calls
        session.says(*self._ports.refusal)
        session.tells(self._ports.reported())
        answer, goes_on = session.take(data)
        return answer, session.calls - before, goes_on

    def leave(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._session.leave())


class _RedisClient(_Client):
    def __init__(self, ports: StandbyPorts, connection: socket.socket) -> None:
        super().__init__(ports, connection)
        self._conversation = Conversation(ports.group)

    def _answer(self, data: bytes) -> tuple[bytes, int, bool]:
        try:
            answer, commands = self._conversation.take(data, self._ports.readonly)
        except ValueError:
            return b"-ERR Protocol error: this is no command of a Redis client\r\n", 1, False
        if sentinel.SWITCHED in self._conversation.channels:
            self._ports.subscribers.add(self)
        return answer, commands, not self._conversation.quits

    def connection_lost(self, error: Exception | None) -> None:
        self._ports.subscribers.discard(self)
        super().connection_lost(error)

    def hear(self, before: Address, now: Address) -> None:
        """Another node serves."""
        said = self._conversation.switched((before.host, before.port), (now.host, now.port))
        if self._transport is not None and not self._transport.is_closing() and not self._is_full:
            self._transport.write(said)


class StandbyPorts:
    """Both ports, from now until `close`."""

    def __init__(
        self, settings: Config, group: Callable[[], Group], status: Callable[[], bytes] = lambda: b""
    ) -> None:
        """Hold the ports and begin to answer. `group`, from any thread, is what is known now, and `status` the answer
        to GetClusterStatus. Raises PortTaken and ConfigInvalid."""
        self.group = group
        self._status = status
        self._reported, self._reported_s = b"", float("-inf")
        self.allowance = Allowance()
        self.clients: set[_Client] = set()
        self.subscribers: set[_RedisClient] = set()
        """Those that hear when another node serves."""
        self._redis_owner: Address | None = None
        """The last one that was known."""
        self.refusal: tuple[bytes, bytes, bytes] = (b"", b"", b"")
        self.readonly = b""
        self.owner: str | None = None
        self._tell(errors.NotOwner(""))
        self._tls = Tls(settings.tls)
        self._context = self._new_context(settings) if self._tls.is_on else None
        self._places: dict[socket.socket, None] = {}
        """The oldest first."""
        self._grpc = _held("server.listen_addr", settings.server.listen_addr)
        self._redis: list[socket.socket] = []
        if settings.redis.enabled:
            try:
                self._redis = _held("redis.listen_addr", settings.redis.listen_addr)
            except errors.PortTaken:
                _close(self._grpc)
                raise
        self._hands_on, self._rests = False, threading.Event()
        self._is_held = False
        self._accepting: list[asyncio.Task[None]] = []
        self._lets_in: asyncio.TimerHandle | None = None
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="fila-standby", daemon=True)
        self._thread.start()

    def _new_context(self, settings: Config) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3 if self._tls.newest_only else ssl.TLSVersion.TLSv1_2
        context.set_ciphers(self._tls.ciphers)
        context.set_alpn_protocols(["h2"])
        if self._tls.asks_for_certificates:
            context.verify_mode = ssl.CERT_REQUIRED if self._tls.requires_certificates else ssl.CERT_OPTIONAL

        def load(_: Files | None = None) -> None:
            context.load_cert_chain(settings.tls.cert_file, settings.tls.key_file)
            if self._tls.asks_for_certificates:
                context.load_verify_locations(settings.tls.client_ca_file)

        load()
        self._tls.at_change(load)
        return context

    def name_owner(self, owner: str, redis: str = "") -> None:
        """Which address serves from here on, and its Redis port's; empty: none is known."""
        if not self._is_held:
            self._name(owner, redis)

    def _name(self, owner: str, redis: str) -> None:
        if owner != self.owner:
            self.owner = owner
            self._tell(errors.NotOwner(owner))
        if redis and redis != self._redis_owner:
            before, self._redis_owner = self._redis_owner, Address(redis)
            self._loop.call_soon_threadsafe(self._switch, before or self._redis_owner, self._redis_owner)

    def reported(self) -> bytes:
        """How the group is, where nobody is known who could answer that better. Asked on the loop's thread."""
        if self.owner:
            return b""
        if (now_s := time.monotonic()) - self._reported_s >= REPORTED_S:
            self._reported, self._reported_s = self._status(), now_s
        return self._reported

    def _switch(self, before: Address, now: Address) -> None:
        for each in tuple(self.subscribers):
            each.hear(before, now)

    def _tell(self, error: errors.NotOwner) -> None:
        details = base64.b64encode(status_of(error).SerializeToString()).rstrip(b"=")
        message = urllib.parse.quote(error.message, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}").encode()
        self.refusal = (b"%d" % error.status, message, details)
        self.readonly = b"-READONLY " + error.message.encode() + b"\r\n"

    @property
    def ports(self) -> tuple[int, int]:
        """Of gRPC and of Redis; 0 where Redis is off."""
        return self._grpc[0].getsockname()[1], self._redis[0].getsockname()[1] if self._redis else 0

    def hold(self, own: str, redis: str = "") -> None:
        """This node is about to serve, at these addresses: nobody who connects is refused until it does, and those who
        are there are told to connect again. If it does not serve within HOLDS_S, calls are refused as before. Any
        thread; blocks until nobody is let in."""
        with contextlib.suppress(RuntimeError):  # it serves already: the loop is closed
            self._is_held = True
            self._name(own, redis)
            asyncio.run_coroutine_threadsafe(self._hold(), self._loop).result(HOLDS_S)

    async def _hold(self) -> None:
        if self._lets_in is not None:
            self._lets_in.cancel()
        loop = asyncio.get_running_loop()
        self._lets_in = loop.call_later(HOLDS_S, self._let_in)
        await _end(self._accepting)
        for client in tuple(self.clients):
            client.leave()
        loop.call_later(LEAVES_S, self._end_all)

    def _end_all(self) -> None:
        for connection in tuple(self._places):
            self.end(connection)

    def _let_in(self) -> None:
        if self._stopped.is_set():
            return
        self._is_held = False
        self._accepting = [asyncio.ensure_future(self._accept(each, _GrpcClient)) for each in self._grpc]
        self._accepting += [asyncio.ensure_future(self._accept(each, _RedisClient)) for each in self._redis]

    def hand_on(self) -> None:
        """Leave the ports to the node that serves. Nobody who connects meanwhile is refused, and those who are there
        are told to connect again."""
        self._hands_on = True
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._rests.wait()
        keep("server.listen_addr", self._grpc)
        if self._redis:
            keep("redis.listen_addr", self._redis)

    def close(self) -> None:
        """Answer nobody any more. Once this returns the ports are free."""
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _run(self) -> None:
        loop = self._loop
        loop.set_exception_handler(lambda _, what: log.debug("cluster.client_failed", detail=str(what)))
        try:
            loop.run_until_complete(self._serve())
        finally:
            _close(list(self._places) if self._hands_on else self._grpc + self._redis + list(self._places))
            loop.close()

    async def _serve(self) -> None:
        self._let_in()
        watching = asyncio.ensure_future(self._tls.watch())
        await self._stopped.wait()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await _end([*self._accepting, watching])
        if self._hands_on:
            self._rests.set()
            for client in tuple(self.clients):
                client.leave()
            await asyncio.sleep(LEAVES_S)

    async def _accept(self, listener: socket.socket, protocol: type[_Client]) -> None:
        loop = asyncio.get_running_loop()
        serving: set[asyncio.Task[None]] = set()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:  # no descriptor is left, or the client is gone
                await asyncio.sleep(0.1)
                continue
            while len(self._places) >= CONNECTIONS_MAX:
                self.end(next(iter(self._places)))
            self._places[connection] = None
            task = asyncio.ensure_future(self._greet(connection, protocol))
            serving.add(task)
            task.add_done_callback(serving.discard)
            # Where many knock, none of them waits for the loop: others have their turn between any two.
            await asyncio.sleep(self.allowance.spend(1, 0))

    async def _greet(self, connection: socket.socket, protocol: type[_Client]) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                partial(protocol, self, connection),
                connection,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_S_MAX if self._context else None,
            )
        except (OSError, asyncio.CancelledError):
            self.end(connection)

    def end(self, connection: socket.socket) -> None:
        """Its transport hears of it, and closes it."""
        self._places.pop(connection, None)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _held(setting: str, address: Address) -> list[socket.socket]:
    try:
        return bound(address, setting)
    except OSError as error:
        raise errors.PortTaken.of(setting, address, error) from error


def _close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()
