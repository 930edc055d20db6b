"""Fila: one queue, whose fairness key, cost and throttle key are headers."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import grpc

from fairness_suite.adapter import Ability, Message, Taken, Tenant
from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc

_QUEUE = "fairness-suite"
_TIMEOUT_S = 60


class FilaQueue:
    abilities = frozenset(Ability)

    def __init__(self, address: str) -> None:
        self.reconnect(address)

    def reconnect(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        grpc.channel_ready_future(self._channel).result(timeout=_TIMEOUT_S)
        self._admin = admin_pb2_grpc.FilaAdminStub(self._channel)
        self._service = service_pb2_grpc.FilaServiceStub(self._channel)

    def close(self) -> None:
        self._channel.close()

    def open(self, tenants: Mapping[str, Tenant]) -> None:
        with contextlib.suppress(grpc.RpcError):
            self._admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=_QUEUE), timeout=_TIMEOUT_S)
        self._limits = {tenant.name: tenant.limit or tenant.name for tenant in tenants.values()}
        limited = {self._limits[each.name]: each.rate_per_s for each in tenants.values() if each.rate_per_s}
        for name, rate_per_s in limited.items():
            # A bucket of one token; its name is the throttle key that messages name.
            request = admin_pb2.SetConfigRequest(key=f"throttle.{name}", value=f"{rate_per_s:g},1")
            self._admin.SetConfig(request, timeout=_TIMEOUT_S)
        config = admin_pb2.QueueConfig(
            fairness_key_header="tenant",
            cost_header="cost",
            weights={tenant.name: tenant.weight for tenant in tenants.values()},
            throttle_key_headers=["limit"] if limited else [],
        )
        if any(tenant.in_order for tenant in tenants.values()):
            config.key_order = admin_pb2.KEY_ORDER_STRICT
        self._admin.CreateQueue(admin_pb2.CreateQueueRequest(name=_QUEUE, config=config), timeout=_TIMEOUT_S)

    def send(self, messages: Sequence[Message]) -> None:
        request = service_pb2.EnqueueBatchRequest(queue=_QUEUE)
        for each in messages:
            request.messages.add(
                headers={
                    "tenant": each.tenant,
                    "number": str(each.number),
                    "cost": str(each.cost),
                    "limit": self._limits[each.tenant],
                }
            )
        for result in self._service.EnqueueBatch(request, timeout=_TIMEOUT_S).results:
            if result.error.code:
                raise RuntimeError(result.error.message)

    def take(self, most: int, wait_s: float) -> list[Taken]:
        request = service_pb2.LeaseRequest(queue=_QUEUE, max_messages=most, wait_ms=int(wait_s * 1000))
        taken = []
        for each in self._service.Lease(request, timeout=_TIMEOUT_S).messages:
            message = Message(each.headers["tenant"], int(each.headers["number"]), int(each.headers["cost"]))
            handle = service_pb2.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id)
            taken.append(Taken(message, handle))
        return taken

    def settle(self, taken: Sequence[Taken]) -> None:
        request = service_pb2.AckBatchRequest(queue=_QUEUE, items=[each.handle for each in taken])
        self._service.AckBatch(request, timeout=_TIMEOUT_S)

    def give_back(self, taken: Sequence[Taken], after_s: float) -> None:
        for each in taken:
            request = service_pb2.NackRequest(
                queue=_QUEUE,
                message_id=each.handle.message_id,
                lease_id=each.handle.lease_id,
                delay_ms=int(after_s * 1000),
            )
            self._service.Nack(request, timeout=_TIMEOUT_S)
