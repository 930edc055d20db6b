"""NATS JetStream: a work queue with a subject and a pull consumer a tenant, asked in turn."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import nats
from nats.errors import TimeoutError as NothingCame
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig
from nats.js.errors import NotFoundError

from fairness_suite.adapter import Ability, Message, Taken, Tenant, decoded, encoded

_STREAM = "SUITE"


class SubjectEach:
    abilities = frozenset({Ability.DELAYS})

    def __init__(self, address: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._tenants: list[str] = []
        self._next = 0
        self._connection: Any = None
        self.reconnect(address)

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    def reconnect(self, address: str) -> None:
        if self._connection is not None:
            # It would go on looking for the broker where that no longer listens.
            self._do(self._connection.close())
        self._connection = self._do(nats.connect(f"nats://{address}"))
        self._js: Any = self._connection.jetstream()
        self._do(self._subscribe())

    async def _subscribe(self) -> None:
        self._consumers = {
            name: await self._js.pull_subscribe_bind(consumer=name, stream=_STREAM) for name in self._tenants
        }

    def close(self) -> None:
        self._do(self._connection.close())
        self._loop.close()

    def open(self, tenants: Mapping[str, Tenant]) -> None:
        self._tenants = list(tenants)
        self._do(self._open())

    async def _open(self) -> None:
        with contextlib.suppress(NotFoundError):
            await self._js.delete_stream(_STREAM)
        config = StreamConfig(name=_STREAM, subjects=["suite.*"], retention=RetentionPolicy.WORK_QUEUE)
        await self._js.add_stream(config)
        for name in self._tenants:
            consumer = ConsumerConfig(
                durable_name=name,
                filter_subject=f"suite.{name}",
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=3_600,
            )
            await self._js.add_consumer(_STREAM, consumer)
        await self._subscribe()

    def send(self, messages: Sequence[Message]) -> None:
        self._do(self._send(messages))

    async def _send(self, messages: Sequence[Message]) -> None:
        for each in messages:
            await self._js.publish(f"suite.{each.tenant}", encoded(each))

    def take(self, most: int, wait_s: float) -> list[Taken]:
        taken: list[Taken] = self._do(self._take(most, wait_s))
        return taken

    async def _take(self, most: int, wait_s: float) -> list[Taken]:
        until, empty = time.monotonic() + wait_s, 0
        taken: list[Taken] = []
        while len(taken) < most:
            name = self._tenants[self._next]
            self._next = (self._next + 1) % len(self._tenants)
            try:
                (message,) = await self._consumers[name].fetch(1, timeout=0.02)
            except NothingCame:
                empty += 1
                if empty >= len(self._tenants):
                    if taken or time.monotonic() > until:
                        break
                    empty = 0
                continue
            empty = 0
            taken.append(Taken(decoded(message.data), message))
        return taken

    def settle(self, taken: Sequence[Taken]) -> None:
        self._do(self._settle(taken))

    async def _settle(self, taken: Sequence[Taken]) -> None:
        for each in taken:
            await each.handle.ack_sync()

    def give_back(self, taken: Sequence[Taken], after_s: float) -> None:
        self._do(self._give_back(taken, after_s))

    async def _give_back(self, taken: Sequence[Taken], after_s: float) -> None:
        for each in taken:
            await each.handle.nak(delay=after_s)
