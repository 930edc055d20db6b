"""A client that knows nothing of Fila: everything it needs comes from reflection, as with grpcurl."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.e2e.conftest import RunningServer

pytestmark = pytest.mark.e2e


class GenericClient:
    """Builds its own descriptor pool from what the server says, and speaks JSON."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel: Any = channel
        self._stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        self._pool = descriptor_pool.DescriptorPool()
        self._known: set[str] = set()

    def services(self) -> list[str]:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        [response] = self._stub.ServerReflectionInfo(iter([request]))
        return [service.name for service in response.list_services_response.service]

    def call(self, method: str, document: dict[str, Any]) -> dict[str, Any]:
        service_name, method_name = method.split("/")
        self._learn(reflection_pb2.ServerReflectionRequest(file_containing_symbol=service_name))
        service = self._pool.FindServiceByName(service_name)
        found = service.FindMethodByName(method_name)
        request = json_format.ParseDict(document, message_factory.GetMessageClass(found.input_type)())
        reply_class = message_factory.GetMessageClass(found.output_type)
        path, frame = f"/{method}", request.SerializeToString()
        if found.server_streaming:
            call = self._channel.unary_stream(path)(frame, timeout=10)
            reply = reply_class.FromString(next(call))
            call.cancel()
        else:
            reply = reply_class.FromString(self._channel.unary_unary(path)(frame, timeout=10))
        return json_format.MessageToDict(reply, preserving_proto_field_name=True)

    def _learn(self, request: Any) -> None:
        [response] = self._stub.ServerReflectionInfo(iter([request]))
        files = [
            descriptor_pb2.FileDescriptorProto.FromString(blob)
            for blob in response.file_descriptor_response.file_descriptor_proto
        ]
        for file in files:
            if file.name in self._known:
                continue
            self._known.add(file.name)
            for dependency in file.dependency:
                self._learn(reflection_pb2.ServerReflectionRequest(file_by_filename=dependency))
            self._pool.Add(file)


def test_reflection_lists_the_services(server: RunningServer) -> None:
    assert set(GenericClient(server.channel()).services()) == {
        "fila.v1.FilaService",
        "fila.v1.FilaAdmin",
        "fila.v1.FilaSink",
        "fila.v1.FilaAuth",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }


def test_a_client_without_proto_files_can_do_the_whole_round(server: RunningServer) -> None:
    client = GenericClient(server.channel())

    client.call("fila.v1.FilaAdmin/CreateQueue", {"name": "generic"})
    stored = client.call(
        "fila.v1.FilaService/Enqueue",
        {"queue": "generic", "headers": {"tenant": "acme"}, "payload": "aGVsbG8="},
    )
    delivered = client.call("fila.v1.FilaService/Consume", {"queue": "generic"})["message"]
    client.call(
        "fila.v1.FilaService/Ack",
        {
            "queue": "generic",
            "message_id": delivered["id"],
            "lease_id": delivered["metadata"]["lease_id"],
        },
    )
    stats = client.call("fila.v1.FilaAdmin/GetStats", {"queue": "generic"})

    assert delivered["id"] == stored["message_id"]
    assert delivered["payload"] == "aGVsbG8="
    assert delivered["headers"] == {"tenant": "acme"}
    assert int(stats.get("depth", 0)) == 0
    assert int(stats.get("in_flight", 0)) == 0


@pytest.mark.parametrize("service", ["", "fila.v1.FilaService", "fila.v1.FilaAdmin"])
def test_a_stock_health_probe_finds_the_server_serving(server: RunningServer, service: str) -> None:
    health: Any = health_pb2_grpc.HealthStub(server.channel())

    answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)

    assert answer.status == health_pb2.HealthCheckResponse.SERVING
