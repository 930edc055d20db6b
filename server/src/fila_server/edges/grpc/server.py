"""The gRPC server: what is served, on which options, and who is healthy.

FilaService   service.py     raw bytes to the core
FilaAdmin     admin.py       parsed and checked here
grpc.health.v1, reflection   so that any generic client finds its way
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

import grpc
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

# Imported for their side effect: reflection serves what the descriptor pool holds.
from fila.v1 import admin_pb2, service_pb2
from fila_server.broker.calls import Broker
from fila_server.config.schema import KIB, MIB, Address, Config
from fila_server.edges.grpc import admin, service
from fila_server.errors import PortTaken

SERVICES = (
    service_pb2.DESCRIPTOR.services_by_name["FilaService"].full_name,
    admin_pb2.DESCRIPTOR.services_by_name["FilaAdmin"].full_name,
)

FRAME_OVERHEAD_BYTES = MIB
"""Room for field tags and a batch's own fields around the payloads the limits speak of."""

RECEIVED_BYTES_MIN = 65 * MIB
"""What gRPC lets in at least: beyond it gRPC itself refuses and cannot name field and bound, below it we do."""

STREAMS_PER_CONNECTION_MAX = 10_000

KEEPALIVE_MS = 30_000
KEEPALIVE_TIMEOUT_MS = 20_000
"""A consumer whose machine vanished is noticed, and its unwritten messages freed, in 50 s."""

CLIENT_PING_INTERVAL_MS_MIN = 5_000


class RpcServer:
    """Binds first, answers later, so that no port of the server answers before all are held."""

    def __init__(self, broker: Broker, config: Config) -> None:
        self._config = config
        self._health = health.aio.HealthServicer()
        self._server = aio.server(options=_options(config))
        # First come, first asked: the hot service goes in front.
        self._server.add_generic_rpc_handlers(
            (
                service.handlers(broker, config.limits.headers_max),
                admin.handlers(broker, config.limits, config.storage.durability),
            )
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server
        )
        self.port = 0

    def bind(self) -> None:
        """Hold the port, or say who should change what."""
        address = self._config.server.listen_addr
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise PortTaken("server.listen_addr", address, _why_not(address)) from error

    async def serve(self) -> None:
        """Begin to answer."""
        await self._server.start()
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)

    async def say_not_serving(self) -> None:
        """Tell load balancers to go elsewhere while calls in hand finish."""
        await self._health.enter_graceful_shutdown()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls; those in hand have `grace_s`."""
        await self._server.stop(grace_s)

    async def _set_health(self, status: health_pb2.HealthCheckResponse.ServingStatus) -> None:
        for name in ("", *SERVICES):
            await self._health.set(name, status)


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
    limits = config.limits
    headers_bytes = limits.headers_max * (limits.header_key_bytes_max + limits.header_value_bytes_max + 16)
    largest = max(limits.batch_bytes_max, limits.payload_bytes_max + headers_bytes) + FRAME_OVERHEAD_BYTES
    largest = max(largest, RECEIVED_BYTES_MIN)
    return (
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", largest),
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
