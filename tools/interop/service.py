"""A server with one more service, grpc.testing.TestService: what gRPC's interoperability clients talk to.

    python -m tools.interop.service DESCRIPTORS       a FileDescriptorSet; further arguments are fila-server's

Its methods reach Python as those of FilaAdmin do, so all that is gRPC about them is the edge's.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from fila_server.main import main
from fila_server.services import handlers as services

SERVICE = "grpc.testing.TestService"
_STATUSES = {status.value[0]: status for status in grpc.StatusCode}


class TestService:
    """As grpc's description of its interoperability tests has it."""

    def __init__(self, classes: dict[str, Any]) -> None:
        self._classes = classes

    def handler(self) -> grpc.GenericRpcHandler:
        """All methods but UnimplementedCall."""
        kinds = {
            "EmptyCall": (grpc.unary_unary_rpc_method_handler, self._empty, "Empty"),
            "UnaryCall": (grpc.unary_unary_rpc_method_handler, self._unary, "SimpleRequest"),
            "StreamingOutputCall": (
                grpc.unary_stream_rpc_method_handler,
                self._streaming_output,
                "StreamingOutputCallRequest",
            ),
            "StreamingInputCall": (
                grpc.stream_unary_rpc_method_handler,
                self._streaming_input,
                "StreamingInputCallRequest",
            ),
            "FullDuplexCall": (
                grpc.stream_stream_rpc_method_handler,
                self._full_duplex,
                "StreamingOutputCallRequest",
            ),
        }
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                name: kind(
                    method,
                    request_deserializer=self._classes[f"grpc.testing.{request}"].FromString,
                    response_serializer=lambda message: message.SerializeToString(),
                )
                for name, (kind, method, request) in kinds.items()
            },
        )

    def _made(self, name: str, **fields: Any) -> Any:
        return self._classes[f"grpc.testing.{name}"](**fields)

    def _payload(self, size: int) -> Any:
        return self._made("Payload", body=bytes(size))

    async def _empty(self, _request: Any, _context: Any) -> Any:
        return self._made("Empty")

    async def _unary(self, request: Any, context: Any) -> Any:
        await _end_as_asked(request, context)
        server_id = "the only one" if request.fill_server_id else ""
        return self._made("SimpleResponse", payload=self._payload(request.response_size), server_id=server_id)

    async def _streaming_output(self, request: Any, context: Any) -> AsyncIterator[Any]:
        await _end_as_asked(request, context)
        for wanted in request.response_parameters:
            await asyncio.sleep(wanted.interval_us / 1e6)
            yield self._made("StreamingOutputCallResponse", payload=self._payload(wanted.size))

    async def _streaming_input(self, requests: AsyncIterator[Any], _context: Any) -> Any:
        size = 0
        async for request in requests:
            size += len(request.payload.body)
        return self._made("StreamingInputCallResponse", aggregated_payload_size=size)

    async def _full_duplex(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async for request in requests:
            async for answer in self._streaming_output(request, context):
                yield answer


async def _end_as_asked(request: Any, context: Any) -> None:
    if request.response_status.code:
        await context.abort(_STATUSES[request.response_status.code], request.response_status.message)


def _classes(descriptors: Path) -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes()).file
    for file in files:
        pool.Add(file)
    return dict(message_factory.GetMessageClassesForFiles([file.name for file in files], pool))


class WithTestService(services.Services):
    """The server's services, and this one."""

    added: grpc.GenericRpcHandler

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.handlers = (*self.handlers, self.added)


if __name__ == "__main__":
    WithTestService.added = TestService(_classes(Path(sys.argv.pop(1)))).handler()
    from fila_server.edge import server

    vars(server)["Services"] = WithTestService
    main()
