"""All on the gRPC port but FilaService: the services that the edge's threads leave to Python.

FilaAdmin               admin.py
FilaSink                sinks.py; batches of messages, seldom and large
FilaAuth                auth.py: keys, rights, quotas, audit
grpc.health.v1          load balancers ask it, and are told when the server drains
grpc.reflection         so that any generic client finds its way; v1 and v1alpha differ in the name alone
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

# Imported for their side effect: reflection serves what the descriptor pool holds.
from fila.v1 import admin_pb2, auth_pb2, service_pb2, sink_pb2
from fila_server.broker.calls import Broker
from fila_server.config.kinds import MIB
from fila_server.config.schema import Config
from fila_server.operations.cluster import ClusterCalls, report_nodes
from fila_server.operations.forgetting import Forgetting, keep_forgetting
from fila_server.operations.group_commands import GroupCommands
from fila_server.operations.hour_file import HourFile
from fila_server.operations.keyring import Keyring
from fila_server.operations.schedules import Schedules
from fila_server.operations.series import RecentSeries, record
from fila_server.operations.troubles import Troubles
from fila_server.services import admin, auth, sinks
from fila_server.services.identity import Identity
from fila_server.services.keyed_reflection import KeyedReflection
from fila_server.telemetry.group import GroupReader, NodeCommands

SERVICES = (
    service_pb2.DESCRIPTOR.services_by_name["FilaService"].full_name,
    admin_pb2.DESCRIPTOR.services_by_name["FilaAdmin"].full_name,
    sink_pb2.DESCRIPTOR.services_by_name["FilaSink"].full_name,
    auth_pb2.DESCRIPTOR.services_by_name["FilaAuth"].full_name,
)

REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"

FRAME_OVERHEAD_BYTES = MIB
"""Room for field tags and a batch's own fields around the payloads the limits speak of."""

RECEIVED_BYTES_MIN = 65 * MIB
"""What gRPC lets in at least: beyond it gRPC itself refuses and cannot name field and bound, below it we do."""


class Services:
    """Their handlers, and how healthy the server says it is."""

    def __init__(
        self,
        broker: Broker,
        config: Config,
        identity: Identity,
        group: GroupReader | None = None,
        node: NodeCommands | None = None,
    ) -> None:
        """`group` is what a node knows of its group; None: this broker is alone."""
        self._health = health.aio.HealthServicer()
        self._broker, self._group = broker, group
        self._group_commands = GroupCommands(broker, group, node)
        self.recent_series = RecentSeries()
        self._hour = HourFile(self.recent_series, config.server.data_dir)
        self.troubles = Troubles()
        self.schedules = Schedules(broker, config.limits, identity.admission)
        keyring = Keyring(broker, identity.admission, config.limits)
        self._forgetting = Forgetting(identity.admission, keyring)
        self._working: list[asyncio.Future[None]] = []
        self.handlers: tuple[grpc.GenericRpcHandler, ...] = (
            admin.handlers(
                broker,
                config.limits,
                config.storage.durability,
                config.server.data_dir,
                identity,
                self.recent_series,
                self.troubles,
                self.schedules,
                config.history,
                ClusterCalls(group),
                self._group_commands,
            ),
            auth.handlers(broker, config, identity, keyring, self._forgetting),
            sinks.handlers(broker, config, identity),
            *_added_by(health_pb2_grpc.add_HealthServicer_to_server, self._health),
            *_reflection(identity),
        )

    async def say_serving(self) -> None:
        """Tell health checks that all services answer."""
        self._working = [
            asyncio.ensure_future(self._record()),
            asyncio.ensure_future(keep_forgetting(self._forgetting)),
        ]
        if self._group is not None:
            self._working.append(asyncio.ensure_future(report_nodes(self._group)))
            self._working.append(asyncio.ensure_future(self._group_commands.record_takeover()))
        for name in ("", *SERVICES):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def _record(self) -> None:
        await self._hour.load(time.monotonic(), time.time_ns() // 1_000_000)
        await record(self.recent_series, self._broker.call, lambda: self._broker.stirs, keep=self._hour.keep)

    async def say_not_serving(self) -> None:
        """Tell load balancers to go elsewhere while calls in hand finish; for good."""
        # Before the one that records is cancelled, which may be writing it.
        await self._hour.save()
        for each in self._working:
            each.cancel()
        await self._health.enter_graceful_shutdown()


def received_bytes_max(config: Config) -> int:
    """How long a message may be that is let in at all."""
    limits = config.limits
    headers_bytes = limits.headers_max * (limits.header_key_bytes_max + limits.header_value_bytes_max + 16)
    largest = max(limits.batch_bytes_max, limits.payload_bytes_max + headers_bytes) + FRAME_OVERHEAD_BYTES
    return max(largest, RECEIVED_BYTES_MIN)


class _Collector:
    """Stands where generated code expects a server, and keeps what it adds."""

    def __init__(self) -> None:
        self.handlers: list[grpc.GenericRpcHandler] = []

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        self.handlers.extend(handlers)

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """The same methods once more, for servers that look them up by name."""


def _added_by(add: Any, servicer: Any) -> list[grpc.GenericRpcHandler]:
    collector = _Collector()
    add(servicer, collector)
    return collector.handlers


def _reflection(identity: Identity) -> list[grpc.GenericRpcHandler]:
    servicer = KeyedReflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), identity)
    info = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return [
        *_added_by(reflection_pb2_grpc.add_ServerReflectionServicer_to_server, servicer),
        grpc.method_handlers_generic_handler(REFLECTION_V1, {"ServerReflectionInfo": info}),
    ]
