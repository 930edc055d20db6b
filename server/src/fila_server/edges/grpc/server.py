"""The gRPC server of the asyncio edge: what is served, and on which options.

FilaService   service.py     raw bytes to the core
all else      services.py    FilaAdmin, FilaAuth, FilaSink, health, reflection
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import grpc
from grpc import aio

from fila_server.access.door import Door
from fila_server.access.tls import Tls
from fila_server.broker.calls import Broker
from fila_server.config.schema import KIB, Address, Config
from fila_server.edges.grpc import service
from fila_server.edges.grpc.identity import Identity
from fila_server.edges.grpc.services import (
    CLIENT_PING_INTERVAL_MS_MIN,
    KEEPALIVE_MS,
    KEEPALIVE_TIMEOUT_MS,
    STREAMS_PER_CONNECTION_MAX,
    Services,
    received_bytes_max,
)
from fila_server.errors import PortTaken


class RpcServer:
    """Binds first, answers later, so that no port of the server answers before all are held."""

    def __init__(self, broker: Broker, config: Config, door: Door, tls: Tls) -> None:
        identity = Identity(door, encrypted=tls.is_on, certificates=tls.asks_for_certificates)
        self._tls = tls
        self._config = config
        self._broker = broker
        self._services = Services(broker, config, identity)
        self._server = aio.server(options=_options(config))
        # First come, first asked: the hot service goes in front.
        self._server.add_generic_rpc_handlers(
            (service.handlers(broker, config.limits.headers_max, identity), *self._services.handlers)
        )
        self.port = 0

    def bind(self) -> None:
        """Hold the port, or say who should change what."""
        address = self._config.server.listen_addr
        try:
            if self._tls.is_on:
                self.port = self._server.add_secure_port(address, self._credentials())
            else:
                self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise PortTaken("server.listen_addr", address, _why_not(address)) from error

    def _credentials(self) -> grpc.ServerCredentials:
        told = self._tls.files

        def current() -> grpc.ServerCertificateConfiguration:
            files = self._tls.files
            return grpc.ssl_server_certificate_configuration(
                [(files.key, files.certificate)], root_certificates=files.client_authorities
            )

        def changed() -> grpc.ServerCertificateConfiguration | None:
            # Asked at each handshake, in a thread of gRPC's; what was told last stays when nothing changed.
            nonlocal told
            if told is self._tls.files:
                return None
            told = self._tls.files
            return current()

        # The stubs do not know that None means "as before".
        fetcher: Any = changed
        return grpc.dynamic_ssl_server_credentials(
            current(), fetcher, require_client_authentication=self._tls.requires_certificates
        )

    async def serve(self) -> None:
        """Begin to answer."""
        await self._server.start()
        await self._services.say_serving()

    def listen(self) -> None:
        """Tell the core from now on that sockets are read."""
        self._broker.listen()

    async def say_not_serving(self) -> None:
        """Tell load balancers to go elsewhere while calls in hand finish."""
        await self._services.say_not_serving()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls; those in hand have `grace_s`."""
        await self._server.stop(grace_s)


def _why_not(address: Address) -> str:
    """Ask the system itself: gRPC only says that it could not bind."""
    try:
        [(family, kind, protocol, _, place), *_] = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(place)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return "the address cannot be bound"


def _options(config: Config) -> Sequence[tuple[str, int]]:
    return (
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", received_bytes_max(config)),
        ("grpc.max_send_message_length", -1),
        # Only as they are: 61 kB of gzip would become 60 MB before any bound of ours sees them.
        ("grpc.compression_enabled_algorithms_bitset", 1 << grpc.Compression.NoCompression.value),
        ("grpc.max_concurrent_streams", STREAMS_PER_CONNECTION_MAX),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", CLIENT_PING_INTERVAL_MS_MIN),
        # A window of one large frame: without it a batch waits for a round trip in its middle.
        ("grpc.http2.lookahead_bytes", 512 * KIB),
    )
