"""FilaSink: batches that are staged, then published once. Stage goes to the core as it is; the rest is read here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import Message

from fila.v1 import sink_pb2 as pb
from fila_server.access.table import RPCS
from fila_server.broker.calls import Broker
from fila_server.config.kinds import KIB
from fila_server.config.schema import Config
from fila_server.core.protocol import commands
from fila_server.errors import LimitExceeded
from fila_server.operations.requests import AdminRules
from fila_server.services.admin import authorize, parse
from fila_server.services.identity import Identity
from fila_server.services.status import Context, UnaryHandler, abort

SERVICE = "fila.v1.FilaSink"

LISTED_BYTES = 64
"""Of one attempt in a request, generously; what names the sink and the batch takes less than OTHER_BYTES."""
OTHER_BYTES = 4 * KIB


def handlers(broker: Broker, config: Config, identity: Identity) -> grpc.GenericRpcHandler:
    """Every method of the service, registered on raw bytes."""
    check = AdminRules(config.limits, config.sinks.attempts_max)
    bytes_max = OTHER_BYTES + LISTED_BYTES * config.sinks.attempts_max
    plain: dict[str, tuple[int, type[Message], Callable[[Any], None]]] = {
        "OpenSink": (commands.OPEN_SINK, pb.OpenSinkRequest, check.open_sink),
        "Publish": (commands.PUBLISH, pb.PublishRequest, check.sink_batch),
        "Drop": (commands.DROP_STAGED, pb.DropRequest, check.sink_batch),
        "ListSinks": (commands.LIST_SINKS, pb.ListSinksRequest, check.sinks),
    }
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: grpc.unary_unary_rpc_method_handler(_checked(name, broker, identity, bytes_max, *row))
        for name, row in plain.items()
    }
    methods["Stage"] = grpc.unary_unary_rpc_method_handler(_staging(broker, identity))
    return grpc.method_handlers_generic_handler(SERVICE, methods)


def _staging(broker: Broker, identity: Identity) -> UnaryHandler:
    """Judged by the queue and by the sink's own name: who may stage may not yet publish as another sink."""
    need, of_sink = RPCS["FilaSink/Stage"], RPCS["FilaSink/Publish"]

    async def handle(frame: bytes, context: Context) -> bytes:
        try:
            caller = identity.enter(context)
            broker.unwritten.check_write()

            def check(queue: str, sink: str) -> None:
                identity.admission.check(caller, need, queue)
                identity.admission.check(caller, of_sink, sink)

            return await broker.stage(frame, caller.number, check)
        except Exception as error:
            frame = b""  # see abort()
            await abort(context, error)

    return handle


def _checked(
    method: str,
    broker: Broker,
    identity: Identity,
    bytes_max: int,
    kind: int,
    request_type: type[Message],
    check: Callable[[Any], None],
) -> UnaryHandler:
    need = RPCS[f"FilaSink/{method}"]

    async def handle(frame: bytes, context: Context) -> bytes:
        try:
            caller = identity.enter(context)
            if len(frame) > bytes_max:
                raise LimitExceeded("request", f"must be at most {bytes_max} bytes, got {len(frame)}")
            request = parse(request_type, frame)
            check(request)
            authorize(identity.admission, caller, need, request)
            return await broker.call(kind, frame)
        except Exception as error:
            frame = b""  # see abort()
            await abort(context, error)

    return handle
