"""FilaSink: batches that are staged, then published once. Stage goes to the core as it is; the rest is read here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import Message

from fila.v1 import sink_pb2 as pb
from fila_server import commands
from fila_server.broker.calls import Broker
from fila_server.config.schema import KIB, Config
from fila_server.edges.grpc.admin import parse
from fila_server.edges.grpc.service import Context, UnaryHandler, unary_handler
from fila_server.edges.grpc.status import abort
from fila_server.errors import LimitExceeded
from fila_server.operations.requests import AdminRules

SERVICE = "fila.v1.FilaSink"

LISTED_BYTES = 64
"""Of one attempt in a request, generously; what names the sink and the batch takes less than OTHER_BYTES."""
OTHER_BYTES = 4 * KIB


def handlers(broker: Broker, config: Config) -> grpc.GenericRpcHandler:
    """Every method of the service, registered on raw bytes."""
    check = AdminRules(config.limits, config.sinks.attempts_max)
    bytes_max = OTHER_BYTES + LISTED_BYTES * config.sinks.attempts_max
    plain: dict[str, tuple[int, type[Message], Callable[[Any], None]]] = {
        "OpenSink": (commands.OPEN_SINK, pb.OpenSinkRequest, check.open_sink),
        "Publish": (commands.PUBLISH, pb.PublishRequest, check.sink_batch),
        "Drop": (commands.DROP_STAGED, pb.DropRequest, check.sink_batch),
    }
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: grpc.unary_unary_rpc_method_handler(_checked(broker, bytes_max, *row))
        for name, row in plain.items()
    }
    methods["Stage"] = grpc.unary_unary_rpc_method_handler(unary_handler(broker, commands.STAGE))
    return grpc.method_handlers_generic_handler(SERVICE, methods)


def _checked(
    broker: Broker, bytes_max: int, kind: int, request_type: type[Message], check: Callable[[Any], None]
) -> UnaryHandler:
    async def handle(frame: bytes, context: Context) -> bytes:
        try:
            if len(frame) > bytes_max:
                raise LimitExceeded("request", f"must be at most {bytes_max} bytes, got {len(frame)}")
            check(parse(request_type, frame))
            return await broker.call(kind, frame)
        except Exception as error:
            frame = b""  # see abort()
            await abort(context, error)

    return handle
