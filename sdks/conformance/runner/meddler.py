"""A gRPC proxy that makes an SDK look as if it had a mistake: it changes what passes, as the mistake would.

What a faulty SDK would send or forget is changed between driver and broker; what it would hand wrongly to its
program is changed on the way back. So one planted fault serves every language, and no SDK carries code for it.
The faults are in faults.py.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from fila.v1 import admin_pb2, service_pb2

Change = Callable[[str, Any], Iterable[Any]]
"""From a method's name and a message to the messages that pass in its place; none swallows it."""

MESSAGE_BYTES_MAX = 64 << 20
OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
]

REQUESTS: dict[str, type[Message]] = {}
RESPONSES: dict[str, type[Message]] = {}
for _module in (service_pb2, admin_pb2):
    for _service in _module.DESCRIPTOR.services_by_name.values():
        for _method in _service.methods:
            REQUESTS[_method.name] = GetMessageClass(_method.input_type)
            RESPONSES[_method.name] = GetMessageClass(_method.output_type)


@dataclass(frozen=True)
class Fault:
    """A mistake an SDK could make, and the scenarios of which at least one must notice it."""

    name: str
    noticed_by: tuple[str, ...]
    request: Change | None = None
    response: Change | None = None
    without_details: bool = False
    """The error details get lost: what an SDK sees that does not read them."""
    swallowed: str | None = None
    """Errors of this method pass as its empty answer."""


class Meddler:
    """Passes every call on to the broker, with a fault planted."""

    def __init__(self, target: str, fault: Fault) -> None:
        self._target = target
        self._fault = fault
        self._server: grpc.aio.Server | None = None
        self._channel: grpc.aio.Channel | None = None
        self.address = ""
        self.frames: Counter[str] = Counter()
        """How many requests passed, by method."""

    async def start(self) -> None:
        """Begin to listen."""
        self._channel = grpc.aio.insecure_channel(self._target, OPTIONS)
        self._server = grpc.aio.server(options=OPTIONS)
        self._server.add_generic_rpc_handlers((_Everything(self),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()

    async def stop(self) -> None:
        """Close everything."""
        assert self._server is not None
        assert self._channel is not None
        await self._server.stop(0)
        await self._channel.close()

    async def pass_on(
        self, path: str, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[bytes]:
        """One call, whatever its kind: on the wire a unary call is a stream of one."""
        assert self._channel is not None
        method = path.rpartition("/")[2]
        call: Any = self._channel.stream_stream(path)(timeout=context.time_remaining())

        async def send() -> None:
            with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
                async for request in requests:
                    for changed in self._changed(self._fault.request, method, request, REQUESTS):
                        self.frames[method] += 1
                        await call.write(changed)
                await call.done_writing()

        sending = asyncio.create_task(send())
        try:
            async for response in call:
                for changed in self._changed(self._fault.response, method, response, RESPONSES):
                    yield changed
        except grpc.aio.AioRpcError as error:
            if self._fault.swallowed == method:
                yield b""
                return
            if not self._fault.without_details:
                context.set_trailing_metadata(tuple(error.trailing_metadata()))
            await context.abort(error.code(), error.details() or "")
        finally:
            call.cancel()
            sending.cancel()

    def _changed(
        self, change: Change | None, method: str, message: bytes, kinds: dict[str, type[Message]]
    ) -> list[bytes]:
        if change is None or method not in kinds:
            return [message]
        return [item.SerializeToString() for item in change(method, kinds[method].FromString(message))]


class _Everything(grpc.GenericRpcHandler):
    """Answers every method of every service."""

    def __init__(self, meddler: Meddler) -> None:
        self._meddler = meddler

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        async def handle(
            requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]
        ) -> AsyncIterator[bytes]:
            async for response in self._meddler.pass_on(details.method, requests, context):
                yield response

        return grpc.stream_stream_rpc_method_handler(handle)
