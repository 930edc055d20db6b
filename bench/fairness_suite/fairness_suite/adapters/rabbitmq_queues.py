"""RabbitMQ with quorum queues: one for all tenants, or one each, asked in turn."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pika

from fairness_suite.adapter import Ability, Message, Taken, Tenant, decoded, encoded

_DURABLE = {"x-queue-type": "quorum"}
_PERSISTENT = pika.BasicProperties(delivery_mode=2)
_ELECTION_S = 60.0


class OneQueue:
    abilities: frozenset[Ability] = frozenset()

    def __init__(self, address: str) -> None:
        self._queues: list[str] = []
        self._next = 0
        self.reconnect(address)

    def reconnect(self, address: str) -> None:
        """After a crash a quorum queue elects a leader first, and the broker hangs up on those who ask too early."""
        self._address = address
        until = time.monotonic() + _ELECTION_S
        while True:
            self._connect()
            try:
                for queue in self._queues:
                    method, _, _ = self._channel.basic_get(queue)
                    if method is not None:
                        self._channel.basic_nack(method.delivery_tag, requeue=True)
            except pika.exceptions.AMQPError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
            else:
                return

    def _connect(self) -> None:
        host, _, port = self._address.rpartition(":")
        self._connection: Any = pika.BlockingConnection(
            pika.ConnectionParameters(host, int(port), heartbeat=0)
        )
        self._channel: Any = self._connection.channel()
        self._channel.confirm_delivery()

    def close(self) -> None:
        if self._connection.is_open:
            self._connection.close()

    def queue_of(self, tenant: str) -> str:
        """Where a tenant's messages go."""
        del tenant
        return "suite-all"

    def open(self, tenants: Mapping[str, Tenant]) -> None:
        for queue in self._queues:
            self._channel.queue_delete(queue)
        self._queues = list(dict.fromkeys(self.queue_of(name) for name in tenants))
        for queue in self._queues:
            self._channel.queue_declare(queue, durable=True, arguments=_DURABLE)

    def send(self, messages: Sequence[Message]) -> None:
        for each in messages:
            self._channel.basic_publish("", self.queue_of(each.tenant), encoded(each), _PERSISTENT)

    def take(self, most: int, wait_s: float) -> list[Taken]:
        until, empty = time.monotonic() + wait_s, 0
        taken: list[Taken] = []
        while len(taken) < most:
            queue = self._queues[self._next]
            self._next = (self._next + 1) % len(self._queues)
            method, _, body = self._channel.basic_get(queue)
            if method is not None:
                empty = 0
                taken.append(Taken(decoded(body), method.delivery_tag))
                continue
            empty += 1
            if empty >= len(self._queues):
                if taken or time.monotonic() > until:
                    break
                empty = 0
        return taken

    def settle(self, taken: Sequence[Taken]) -> None:
        for each in taken:
            self._channel.basic_ack(each.handle)

    def give_back(self, taken: Sequence[Taken], after_s: float) -> None:
        del after_s  # without a plugin it delays nothing
        for each in taken:
            self._channel.basic_nack(each.handle, requeue=True)


class QueueEach(OneQueue):
    def queue_of(self, tenant: str) -> str:
        return f"suite-{tenant}"
