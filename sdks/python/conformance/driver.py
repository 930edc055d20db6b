"""The conformance driver of the asynchronous client: the line protocol of sdks/conformance/PROTOCOL.md."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from translation import (
    LOOPS,
    admin_answer,
    admin_arguments,
    client_options,
    error_answer,
    message_answer,
    method_of,
    moment,
    new_message,
    plain,
    span_answer,
    stored_answer,
)

from fila import Consumer, FilaClient, FilaError, Message

Request = dict[str, Any]


class Taking:
    """A loop over a consumer, one step at a time. A step that outlives its request is the next one's."""

    def __init__(self, consumer: Consumer[Message]) -> None:
        self.consumer = consumer
        self._each: AsyncIterator[Any] | None = None
        self._step: asyncio.Future[Any] | None = None

    async def next(self, timeout_s: float, *, batches: bool = False) -> Any:
        """Return what the loop gives; None when the time is over. Raises StopAsyncIteration at its end."""
        if self._each is None:
            self._each = self.consumer.batches() if batches else aiter(self.consumer)
        if self._step is None:
            self._step = asyncio.ensure_future(anext(self._each))
        done, _ = await asyncio.wait({self._step}, timeout=timeout_s)
        if not done:
            return None
        step, self._step = self._step, None
        return step.result()

    async def leave(self) -> None:
        """Leave the loop, as `break` does."""
        if self._step is not None:
            self._step.cancel()
            await asyncio.wait({self._step})
        if self._each is not None:
            await self._each.aclose()  # type: ignore[attr-defined]
        self.consumer.close()


class Driver:
    """The clients, loops and messages that scenarios named."""

    def __init__(self) -> None:
        self.clients: dict[str, FilaClient] = {}
        self.events: dict[str, list[str]] = {}
        self.loops: dict[str, Taking] = {}
        self.messages: dict[int, Message] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self._handles = itertools.count(1)

    def hand_out(self, message: Message) -> dict[str, Any]:
        """Give a message its handle."""
        handle = next(self._handles)
        self.messages[handle] = message
        return {"handle": handle, **message_answer(message)}

    # One method an operation; the rest of FilaAdmin is one table (translation.py).

    async def connect(self, client: str, target: str, options: Request | None = None) -> Request:
        events = self.events.setdefault(client, [])
        self.clients[client] = await FilaClient.connect(
            target, on_connection=lambda event: events.append(event.kind), **client_options(options or {})
        )
        return {}

    async def close(self, client: str) -> Request:
        await self.clients[client].close()
        return {}

    async def cancel(self, request: int) -> Request:
        task = self.tasks.get(request)
        if task is not None:
            task.cancel()
        return {}

    async def enqueue(self, client: str, queue: str, **message: Any) -> Request:
        new = new_message(message)
        stored = await self.clients[client].enqueue(
            queue,
            new.payload,
            new.headers,
            delay_ms=new.delay_ms,
            deliver_at=new.deliver_at,
            ttl_ms=new.ttl_ms,
            dedup_key=new.dedup_key,
            replace=new.replace,
            max_wait_ms=new.max_wait_ms,
            fairness_key=new.fairness_key,
            weight=new.weight,
            cost=new.cost,
            priority=new.priority,
        )
        return stored_answer(stored)

    async def enqueue_many(self, client: str, queue: str, messages: list[Request]) -> Request:
        ids = await self.clients[client].enqueue_many(queue, [new_message(message) for message in messages])
        return {"results": [stored_answer(stored) for stored in ids]}

    async def consume(self, client: str, consumer: str, queue: str, **arguments: Any) -> Request:
        self.loops[consumer] = Taking(self.clients[client].consume(queue, **arguments))
        return {}

    async def receive(self, consumer: str, count: int = 1, timeout_ms: int = 5000) -> Request:
        loop, taken, ended = self.loops[consumer], list[Request](), False
        clock = asyncio.get_running_loop()
        deadline = clock.time() + timeout_ms / 1000
        while len(taken) < count and not ended:
            try:
                message = await loop.next(max(0.0, deadline - clock.time()))
            except StopAsyncIteration:
                ended = True
            else:
                if message is None:
                    break
                taken.append(self.hand_out(message))
        return {"messages": taken, "ended": ended}

    async def receive_batch(self, consumer: str, timeout_ms: int = 5000) -> Request:
        try:
            batch = await self.loops[consumer].next(timeout_ms / 1000, batches=True)
        except StopAsyncIteration:
            return {"messages": [], "ended": True}
        return {"messages": [self.hand_out(message) for message in batch or ()], "ended": False}

    async def leave(self, consumer: str) -> Request:
        await self.loops[consumer].leave()
        return {}

    async def lease(self, client: str, queue: str, max_messages: int = 1, **arguments: Any) -> Request:
        pulled = await self.clients[client].lease(queue, max_messages, **arguments)
        return {"messages": [self.hand_out(message) for message in pulled]}

    async def ack(self, handle: int) -> Request:
        await self.messages[handle].ack()
        return {}

    async def nack(self, handle: int, **arguments: Any) -> Request:
        await self.messages[handle].nack(**arguments)
        return {}

    async def reject(self, handle: int, error: str = "") -> Request:
        await self.messages[handle].reject(error)
        return {}

    async def release(self, handle: int) -> Request:
        await self.messages[handle].release()
        return {}

    async def limited(
        self, handle: int, retry_after_ms: int | None = None, throttle_key: str = "", error: str = ""
    ) -> Request:
        retry_after_s = None if retry_after_ms is None else retry_after_ms / 1000
        await self.messages[handle].limited(retry_after_s, limit=throttle_key, error=error)
        return {}

    async def span_of(self, handle: int, parent: bool = False) -> Request:
        return span_answer(self.messages[handle], parent)

    async def await_lost(self, handle: int, timeout_ms: int) -> Request:
        lost = asyncio.Event()
        self.messages[handle].on_lost(lost.set)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(lost.wait(), timeout_ms / 1000)
        return {"lost": lost.is_set(), "reason": self.messages[handle].lost}

    async def connection_events(self, client: str) -> Request:
        return {"events": self.events[client]}

    async def extend(self, handle: int, extend_ms: int) -> Request:
        return {"lease_expires_at_ms": moment(await self.messages[handle].extend(extend_ms))}

    async def ack_by_id(self, client: str, queue: str, message_id: str, **arguments: Any) -> Request:
        await self.clients[client].ack(queue, message_id, **arguments)
        return {}

    async def nack_by_id(self, client: str, queue: str, message_id: str, **arguments: Any) -> Request:
        await self.clients[client].nack(queue, message_id, **arguments)
        return {}

    async def extend_by_id(
        self, client: str, queue: str, message_id: str, extend_ms: int, channel: str | None = None
    ) -> Request:
        ends = await self.clients[client].extend(queue, message_id, extend_ms, channel=channel)
        return {"lease_expires_at_ms": moment(ends)}

    async def ack_many(self, client: str, handles: list[int]) -> Request:
        await self.clients[client].ack_many([self.messages[handle] for handle in handles])
        return {}

    async def nack_many(self, client: str, handles: list[int], **arguments: Any) -> Request:
        await self.clients[client].nack_many([self.messages[handle] for handle in handles], **arguments)
        return {}

    async def peek(self, client: str, queue: str, **arguments: Any) -> Request:
        messages = await self.clients[client].peek(queue, **arguments)
        return {"messages": [message_answer(message) for message in messages]}

    async def read_log(self, client: str, queue: str, max_messages: int = 1000, **arguments: Any) -> Request:
        taken: list[Request] = []
        async for message in self.clients[client].read_log(queue, **admin_arguments("read_log", arguments)):
            taken.append(message_answer(message))
            if len(taken) == max_messages:
                break
        return {"messages": taken}

    async def watch(self, operation: str, client: str, **arguments: Any) -> Request:
        items, most = LOOPS[operation]
        until = arguments.pop(most, None)
        taken: list[Any] = []
        loop = getattr(self.clients[client], operation)(**admin_arguments(operation, arguments))
        async with contextlib.aclosing(loop):
            async for item in loop:
                taken.append(plain(item))
                if len(taken) == until:
                    break
        return {items: taken}

    async def admin(self, operation: str, client: str, **arguments: Any) -> Request:
        if operation in LOOPS:
            return await self.watch(operation, client, **arguments)
        call: Callable[..., Awaitable[Any]] = getattr(self.clients[client], method_of(operation, arguments))
        return admin_answer(operation, await call(**admin_arguments(operation, arguments)))

    def start(self, request: Request) -> Awaitable[Request]:
        """Begin what a request asks for."""
        operation = request.pop("op")
        arguments = {name: value for name, value in request.items() if value is not None}
        method = None if operation.startswith("_") else getattr(self, operation, None)
        begun: Awaitable[Request] = (
            self.admin(operation, **arguments) if method is None else method(**arguments)
        )
        return begun

    async def answer(self, number: int, request: Request) -> None:
        """Carry out one request, and write its answer."""
        try:
            line: Request = {"ok": await self.start(request)}
        except asyncio.CancelledError:
            line = {"cancelled": True}
        except (AttributeError, KeyError) as unknown:
            line = {"unsupported": f"{type(unknown).__name__}: {unknown}"}
        except Exception as error:  # noqa: BLE001 - every error is an answer
            line = {"error": error_answer(error)}
        self.tasks.pop(number, None)
        write({"id": number, **line})

    async def end(self) -> None:
        """End what scenarios left open."""
        for loop in self.loops.values():
            await loop.leave()
        for client in self.clients.values():
            try:
                await asyncio.wait_for(client.close(), 5)
            except (FilaError, TimeoutError) as error:
                print(f"closing: {error}", file=sys.stderr)


def write(line: Request) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def main() -> None:
    """Serve the line protocol until the input ends."""
    reader = asyncio.StreamReader(limit=64 << 20)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    driver = Driver()
    write({"ready": True, "language": "python"})
    while line := await reader.readline():
        request = json.loads(line)
        number = request.pop("id")
        driver.tasks[number] = asyncio.create_task(driver.answer(number, request))
    await driver.end()


asyncio.run(main())
