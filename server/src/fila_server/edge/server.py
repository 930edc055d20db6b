"""The edge's server: binds, starts the threads, and serves from the asyncio loop what they leave to it.

    socket ──► io-1 .. io-n (loop.pyx) ──hot calls──► the scheduler, and back: no GIL, no Python
                     ├──admin, health, reflection, frames for scripts──► python_calls.py, on the loop
                     └──Redis commands that no message passes──────────► redis_port.py

The threads let in who has a key and judge what they ask for (callers.pyx, submission.pyx, judging.pyx); whom they don't
let in is told why from here. What nghttp2 and the core don't do is in the modules beside, from the map in iothread.pxd
upwards: headers, messages, calls, status. The services that come to Python are in services/handlers.py.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fila.v1 import admin_pb2
from fila_server.access.admission import Admission
from fila_server.access.tls import Files, Tls
from fila_server.broker.calls import Broker
from fila_server.config.schema import Config
from fila_server.edge.library import check_library
from fila_server.edge.listening import bound
from fila_server.edge.python_calls import PythonCalls
from fila_server.edge.redis.port import RedisPort
from fila_server.edge.redis.sentinel import Group
from fila_server.errors import ConfigInvalid, FilaServerError, PortTaken, StartError
from fila_server.events import RING
from fila_server.services.handlers import Services, received_bytes_max
from fila_server.services.identity import Identity
from fila_server.services.status import status_of
from fila_server.telemetry.group import GroupReader, NodeCommands
from fila_server.telemetry.series import EdgeReading

if TYPE_CHECKING:
    from fila_server.core.runtime.engine import CoreEngine


class OfGroup(NamedTuple):
    """What a node knows of its group: for Redis clients, and for operators."""

    redis: Callable[[], Group]
    status: GroupReader
    node: NodeCommands


class EdgeServer:
    """Binds first, answers later, so that no port of the server answers before all are held. Make it before the engine
    starts."""

    def __init__(
        self,
        engine: CoreEngine,
        broker: Broker,
        config: Config,
        admission: Admission,
        tls: Tls,
        first_kept: int,
        group: OfGroup | None = None,
    ) -> None:
        """Descriptors from `first_kept` on are no connection's, whichever port it comes to. `group` is
        what a node knows of its group."""
        try:
            from fila_server.edge.io.edge import NativeEdge

            self._edge = NativeEdge(
                engine,
                threads=config.server.io_threads,
                message_bytes_max=received_bytes_max(config),
                unread_bytes_max=config.limits.unwritten_bytes_max,
                calls_outstanding_max=config.scheduler.outstanding_calls_max,
                first_kept=first_kept,
                serves_strangers=config.server.allow_anonymous,
                takes_plain_keys=config.server.allow_plaintext,
            )
        except (OSError, RuntimeError) as error:
            raise StartError(f"the threads that serve cannot be made: {error}") from error
        self._config = config
        self._broker = broker
        if tls.is_on:
            self._encrypt(tls, tls.files)
            tls.at_change(partial(self._encrypt, tls))
        identity = Identity(admission, encrypted=tls.is_on, certificates=tls.asks_for_certificates)
        self._services = Services(
            broker, config, identity, group.status if group else None, group.node if group else None
        )
        self._group = group
        self.troubles, self.schedules = self._services.troubles, self._services.schedules
        self._calls = PythonCalls(
            self._edge,
            broker,
            self._services.handlers,
            config.scheduler.outstanding_calls_max,
            identity.enter,
        )
        self._listeners: list[socket.socket] = []
        self._scripted: set[bytes] = set()
        self.port = 0

    def bind(self) -> None:
        """Hold the port, or say who should change what."""
        address = self._config.server.listen_addr
        try:
            self._listeners = bound(address, "server.listen_addr")
        except OSError as error:
            raise PortTaken.of("server.listen_addr", address, error) from error
        self.port = self._listeners[0].getsockname()[1]

    def listen_redis(
        self, data_dir: str, may_be_kept: Callable[[int], bool], admission: Admission
    ) -> RedisPort:
        """Hold the Redis port, whose clients the threads serve once they run. Raises PortTaken."""
        config = self._config
        port = RedisPort(
            self._edge,
            self._broker,
            config.redis,
            config.limits,
            data_dir,
            may_be_kept,
            admission,
            group=self._group.redis if self._group else None,
        )
        port.listen()
        self._calls.redis = port.take
        return port

    async def serve(self) -> None:
        """Begin to answer."""
        self._broker.mirror.listen(self._send_scripts)
        self._broker.unwritten.share(lambda: self._edge.unread_bytes, self._edge.set_elsewhere_bytes)
        asyncio.get_running_loop().add_reader(self._edge.event_fd, self._calls.take_events)
        await self._services.say_serving()
        # Beside everything else: it asks the system's packages, and nobody has to wait for what it says.
        asyncio.get_running_loop().run_in_executor(None, check_library)
        self._edge.start([listener.detach() for listener in self._listeners])
        self._listeners.clear()

    async def say_not_serving(self) -> None:
        """Tell load balancers to go elsewhere while calls in hand finish."""
        await self._services.say_not_serving()

    async def stop(self, grace_s: float, refusal: FilaServerError | None = None) -> None:
        """Take no more calls; those in hand have `grace_s`. `refusal` is what others are told; None: that the broker
        stops."""
        loop = asyncio.get_running_loop()
        if refusal is None:
            self._edge.drain(int(grace_s * 1000))
        else:
            details = status_of(refusal).SerializeToString()
            self._edge.drain(int(grace_s * 1000), refusal.message.encode(), details)
        await loop.run_in_executor(None, self._edge.join)
        self._calls.take_events()  # who is gone with the threads
        loop.remove_reader(self._edge.event_fd)

    def reading(self) -> EdgeReading:
        """What is held outside the core just now, for telemetry."""
        held, unwritten, hour = self._edge.counters(), self._broker.unwritten, self._services.recent_series
        return EdgeReading(
            connections=held["connections"],
            unread_bytes=held["unread_bytes"] + unwritten.held_bytes,
            unread_bytes_max=unwritten.bytes_max,
            events=len(RING),
            hour_bytes=hour.size,
        )

    def _encrypt(self, tls: Tls, files: Files) -> None:
        """Set new connections up with these; those that are there go on."""
        try:
            self._edge.set_tls(
                files.certificate,
                files.key,
                files.client_authorities or b"",
                needs_certificate=tls.requires_certificates,
                newest_only=tls.newest_only,
                ciphers=tls.ciphers.encode(),
            )
        except ValueError as error:
            raise ConfigInvalid(f"the files of [tls] do not fit together: {error}", key="tls") from None

    def _send_scripts(self, queue: str, config: admin_pb2.QueueConfig | None) -> None:
        name = queue.encode()
        is_scripted = config is not None and bool(config.on_enqueue_script)
        if is_scripted != (name in self._scripted):
            self._scripted ^= {name}
            self._edge.set_scripted(self._scripted)
