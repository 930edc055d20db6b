"""A broker that answers whatever a test tells it to, and remembers what it was asked.

It speaks real gRPC in this process, built from the contract's own descriptors, so a renamed
field or call breaks here and not at a user's terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import code_pb2, error_details_pb2, status_pb2

from fila.v1 import admin_pb2, auth_pb2, service_pb2, sink_pb2

GOLDEN = Path(__file__).with_name("golden")


@dataclass(frozen=True)
class Refusal:
    """An error the fake answers with, reason included as the real broker sends it."""

    code: grpc.StatusCode
    text: str
    reason: str = ""
    owner: str = ""


class FakeBroker:
    """`broker.answers["GetStats"] = ...`, then run a command, then look at `broker.asked`."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, Any]] = []
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        for module, service in (
            (admin_pb2, "FilaAdmin"),
            (auth_pb2, "FilaAuth"),
            (service_pb2, "FilaService"),
            (sink_pb2, "FilaSink"),
        ):
            descriptor = module.DESCRIPTOR.services_by_name[service]
            handlers = {method.name: self._handler(method) for method in descriptor.methods}
            generic = grpc.method_handlers_generic_handler(descriptor.full_name, handlers)
            self._server.add_generic_rpc_handlers((generic,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def request(self, method: str) -> Any:
        """The one request of that method."""
        (found,) = [request for name, request in self.asked if name == method]
        return found

    def stop(self) -> None:
        self._server.stop(None)

    def _handler(self, method: Any) -> Any:
        request_type, answer_type = GetMessageClass(method.input_type), GetMessageClass(method.output_type)

        def answer(request: Any, context: grpc.ServicerContext) -> Message:
            self.asked.append((method.name, request))
            prepared: Any = self.answers.get(method.name, answer_type())
            if isinstance(prepared, Refusal):
                _refuse(prepared, context)
            answered: Message = prepared(request) if callable(prepared) else prepared
            return answered

        def answer_all(requests: Any, context: grpc.ServicerContext) -> Iterator[Message]:
            """A stream's answer is a list, or made of what is asked: a request, or the iterator of requests."""
            if not method.client_streaming:
                self.asked.append((method.name, requests))
            prepared: Any = self.answers.get(method.name, [])
            if isinstance(prepared, Refusal):
                _refuse(prepared, context)
            yield from prepared(requests) if callable(prepared) else prepared

        codec: dict[str, Any] = {
            "request_deserializer": request_type.FromString,
            "response_serializer": answer_type.SerializeToString,
        }
        if method.server_streaming and method.client_streaming:
            return grpc.stream_stream_rpc_method_handler(answer_all, **codec)
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(answer_all, **codec)
        return grpc.unary_unary_rpc_method_handler(answer, **codec)


def _refuse(refusal: Refusal, context: grpc.ServicerContext) -> NoReturn:
    status = status_pb2.Status(code=code_pb2.Code.Value(refusal.code.name), message=refusal.text)
    if refusal.reason:
        info = error_details_pb2.ErrorInfo(reason=refusal.reason, domain="fila")
        if refusal.owner:
            info.metadata["owner"] = refusal.owner
        status.details.add().Pack(info)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(refusal.code, refusal.text)
    raise AssertionError("abort raises")


class Ran(NamedTuple):
    """What the shell would have seen."""

    code: int
    out: str
    err: str


def assert_golden(name: str, actual: str) -> None:
    """Compare with a reviewed file; FILA_UPDATE_GOLDEN=1 rewrites it for the next review."""
    expected = GOLDEN / name
    if os.environ.get("FILA_UPDATE_GOLDEN"):
        expected.write_text(actual)
    assert actual == expected.read_text()
