"""The few calls that prepare a benchmark; here convenience counts, not speed."""

from __future__ import annotations

from typing import Self

import grpc

from fila.v1 import admin_pb2, admin_pb2_grpc, messages_pb2, service_pb2, service_pb2_grpc

_CALL_TIMEOUT_S = 60


class Admin:
    """A blocking client: `with Admin(address) as admin: admin.create("orders", ...)`."""

    def __init__(self, address: str) -> None:
        options = [("grpc.max_receive_message_length", -1)]
        self._channel = grpc.insecure_channel(address, options=options)
        self._admin = admin_pb2_grpc.FilaAdminStub(self._channel)
        self._service = service_pb2_grpc.FilaServiceStub(self._channel)

    def __enter__(self) -> Self:
        grpc.channel_ready_future(self._channel).result(timeout=_CALL_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def create(self, queue: str, **config: object) -> None:
        request = admin_pb2.CreateQueueRequest(name=queue, config=admin_pb2.QueueConfig(**config))  # type: ignore[arg-type]
        self._admin.CreateQueue(request, timeout=_CALL_TIMEOUT_S)

    def set_config(self, key: str, value: str) -> None:
        self._admin.SetConfig(admin_pb2.SetConfigRequest(key=key, value=value), timeout=_CALL_TIMEOUT_S)

    def stats(self, queue: str, *, max_keys: int = 1) -> admin_pb2.GetStatsResponse:
        request = admin_pb2.GetStatsRequest(queue=queue, max_keys=max_keys)
        return self._admin.GetStats(request, timeout=_CALL_TIMEOUT_S)

    def enqueue(self, queue: str, headers: dict[str, str], payload: bytes) -> str:
        request = service_pb2.EnqueueRequest(queue=queue, headers=headers, payload=payload)
        return self._service.Enqueue(request, timeout=_CALL_TIMEOUT_S).message_id

    def lease(
        self, queue: str, count: int, *, channel: str = "", wait_ms: int = 0
    ) -> list[messages_pb2.Message]:
        request = service_pb2.LeaseRequest(queue=queue, channel=channel, max_messages=count, wait_ms=wait_ms)
        return list(self._service.Lease(request, timeout=_CALL_TIMEOUT_S).messages)
