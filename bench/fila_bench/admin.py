"""The few calls that prepare a benchmark; here convenience counts, not speed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Self

import grpc

from fila.v1 import admin_pb2, admin_pb2_grpc, limit_pb2, messages_pb2, service_pb2, service_pb2_grpc

_CALL_TIMEOUT_S = 60
_BATCH_MESSAGES = 1_000


class Admin:
    """A blocking client: `with Admin(address) as admin: admin.create("orders", ...)`."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        options = [("grpc.max_receive_message_length", -1)]
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options=options)
        else:
            self._channel = grpc.secure_channel(address, credentials, options=options)
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

    def set_limit(self, limit: limit_pb2.Limit) -> None:
        self._admin.SetLimit(limit_pb2.SetLimitRequest(limit=limit), timeout=_CALL_TIMEOUT_S)

    def limit_state(self, name: str) -> limit_pb2.LimitState:
        """Of all its throttle keys together."""
        request = limit_pb2.ListLimitsRequest(prefix=name, max_limits=1)
        return self._admin.ListLimits(request, timeout=_CALL_TIMEOUT_S).limits[0]

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

    def enqueue_many(self, queue: str, messages: Iterable[tuple[dict[str, str], bytes]]) -> list[str]:
        """Store all of them, in batches the broker takes, and return their ids; the first refusal is raised."""
        ids = []
        pending = iter(messages)
        while batch := list(itertools.islice(pending, _BATCH_MESSAGES)):
            request = service_pb2.EnqueueBatchRequest(queue=queue)
            for headers, payload in batch:
                request.messages.add(headers=headers, payload=payload)
            for result in self._service.EnqueueBatch(request, timeout=_CALL_TIMEOUT_S).results:
                assert not result.error.code, result.error.message
                ids.append(result.message_id)
        return ids

    def ack(self, queue: str, message: messages_pb2.Message) -> None:
        lease_id = message.metadata.lease_id
        self._service.Ack(
            service_pb2.AckRequest(queue=queue, message_id=message.id, lease_id=lease_id),
            timeout=_CALL_TIMEOUT_S,
        )

    def cancel(self, queue: str, message_id: str) -> None:
        """Take a message back that waits; ValueError where it was not there."""
        request = service_pb2.CancelMessagesRequest(queue=queue, message_ids=[message_id])
        (outcome,) = self._service.CancelMessages(request, timeout=_CALL_TIMEOUT_S).outcomes
        if outcome != service_pb2.CancelMessagesResponse.OUTCOME_CANCELLED:
            raise ValueError(f"{message_id} was not cancelled: {outcome}")

    def ack_all(self, queue: str, messages: Iterable[messages_pb2.Message]) -> None:
        items = [
            service_pb2.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id) for each in messages
        ]
        self._service.AckBatch(service_pb2.AckBatchRequest(queue=queue, items=items), timeout=_CALL_TIMEOUT_S)

    def nack(self, queue: str, message: messages_pb2.Message, *, delay_ms: int) -> None:
        request = service_pb2.NackRequest(
            queue=queue, message_id=message.id, lease_id=message.metadata.lease_id, delay_ms=delay_ms
        )
        self._service.Nack(request, timeout=_CALL_TIMEOUT_S)

    def seek(self, queue: str, offset: int) -> None:
        self._admin.SeekChannel(
            admin_pb2.SeekChannelRequest(queue=queue, offset=offset), timeout=_CALL_TIMEOUT_S
        )
