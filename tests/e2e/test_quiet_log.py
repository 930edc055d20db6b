"""What clients do is no error of the server: nobody is woken by those who break off, or send what is no request."""

from __future__ import annotations

import time

import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import StartServer
from tests.liveness.http2 import RawHttp2

pytestmark = pytest.mark.e2e

GARBAGE = b"\xff\xff\xff"


def test_clients_that_break_off_or_talk_nonsense_leave_no_error_in_the_log(start_server: StartServer) -> None:
    server = start_server()
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q"))
    batch = service_pb2.EnqueueBatchRequest(queue="q")
    for _ in range(1000):
        batch.messages.add(payload=b"x" * 4000)
    server.service.EnqueueBatch(batch)
    peek = admin_pb2.PeekMessagesRequest(queue="q", max_messages=1000)
    calls = [
        ("fila.v1.FilaAdmin/ReadLog", admin_pb2.ReadLogRequest(queue="q").SerializeToString()),
        ("fila.v1.FilaAdmin/PeekMessages", peek.SerializeToString()),
        ("fila.v1.FilaService/Consume", service_pb2.ConsumeRequest(queue="q", max_batch=100).SerializeToString()),
        ("fila.v1.FilaService/Lease", service_pb2.LeaseRequest(queue="q", max_messages=100).SerializeToString()),
        ("fila.v1.FilaAdmin/GetQueue", GARBAGE),
        ("fila.v1.FilaService/ConsumeSession", GARBAGE),
        ("fila.v1.FilaService/EnqueueStream", GARBAGE),
        ("grpc.health.v1.Health/Check", GARBAGE),
        ("grpc.health.v1.Health/Watch", b""),
        ("grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", GARBAGE),
    ]  # fmt: skip
    for _ in range(10):
        connection = RawHttp2(server.addresses["grpc"])
        for path, request in calls:
            connection.call(f"/{path}", request)
        time.sleep(0.05)  # so that some answers are under way, and some calls have not begun
        connection.close()
    assert server.stop() == 0

    assert [line for line in server.log if line["level"] in ("error", "critical", "warning")] == []
    assert "Traceback" not in server.log_file.read_text()
