"""The conformance driver of the synchronous client: a thread a request.

The line protocol is told in sdks/conformance/PROTOCOL.md.
"""

from __future__ import annotations

import itertools
import json
import queue as queues
import sys
import threading
import time
from collections.abc import Iterator
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

from fila.errors import FilaError
from fila.sync import Consumer, FilaClient, Message

Request = dict[str, Any]
THREAD_STACK_BYTES = 256 << 10


class Taking:
    """A loop over a consumer on a thread of its own, which takes a step whenever somebody asks for one."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self._asked: queues.SimpleQueue[bool] = queues.SimpleQueue()
        self._given: queues.SimpleQueue[Any] = queues.SimpleQueue()
        self._asking = False
        self._thread: threading.Thread | None = None

    def next(self, timeout_s: float, *, batches: bool = False) -> Any:
        """Return what the loop gives; None when the time is over. Raises StopIteration at its end."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, args=(batches,), daemon=True)
            self._thread.start()
        if not self._asking:
            self._asked.put(True)
            self._asking = True
        try:
            given = self._given.get(timeout=timeout_s)
        except queues.Empty:
            return None
        self._asking = False
        if isinstance(given, BaseException):
            raise given
        return given

    def _loop(self, batches: bool) -> None:
        each: Iterator[Any] = iter(self.consumer.batches() if batches else self.consumer)
        try:
            while self._asked.get():
                self._given.put(next(each))
        except StopIteration:
            self._given.put(StopIteration())
        except Exception as error:  # noqa: BLE001 - it is the loop's answer
            self._given.put(error)
        finally:
            each.close()  # type: ignore[attr-defined]

    def leave(self) -> None:
        """Leave the loop, as `break` does."""
        self._asked.put(False)
        if self._asking:  # the thread waits for a message: only closing ends that
            self.consumer.close()
        if self._thread is not None:
            self._thread.join(10)
        self.consumer.close()


class Driver:
    """The clients, loops and messages that scenarios named."""

    def __init__(self) -> None:
        self.clients: dict[str, FilaClient] = {}
        self.events: dict[str, list[str]] = {}
        self.loops: dict[str, Taking] = {}
        self.messages: dict[int, Message] = {}
        self._handles = itertools.count(1)
        self._writing = threading.Lock()

    def hand_out(self, message: Message) -> Request:
        """Give a message its handle."""
        handle = next(self._handles)
        self.messages[handle] = message
        return {"handle": handle, **message_answer(message)}

    def connect(self, client: str, target: str, options: Request | None = None) -> Request:
        events = self.events.setdefault(client, [])
        self.clients[client] = FilaClient.connect(
            target, on_connection=lambda event: events.append(event.kind), **client_options(options or {})
        )
        return {}

    def close(self, client: str) -> Request:
        self.clients[client].close()
        return {}

    def enqueue(self, client: str, queue: str, **message: Any) -> Request:
        new = new_message(message)
        stored = self.clients[client].enqueue(
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

    def enqueue_many(self, client: str, queue: str, messages: list[Request]) -> Request:
        ids = self.clients[client].enqueue_many(queue, [new_message(message) for message in messages])
        return {"results": [stored_answer(stored) for stored in ids]}

    def consume(self, client: str, consumer: str, queue: str, **arguments: Any) -> Request:
        self.loops[consumer] = Taking(self.clients[client].consume(queue, **arguments))
        return {}

    def receive(self, consumer: str, count: int = 1, timeout_ms: int = 5000) -> Request:
        taken: list[Request] = []
        deadline = time.monotonic() + timeout_ms / 1000
        while len(taken) < count:
            try:
                message = self.loops[consumer].next(max(0.001, deadline - time.monotonic()))
            except StopIteration:
                return {"messages": taken, "ended": True}
            if message is None:
                break
            taken.append(self.hand_out(message))
        return {"messages": taken, "ended": False}

    def receive_batch(self, consumer: str, timeout_ms: int = 5000) -> Request:
        try:
            batch = self.loops[consumer].next(timeout_ms / 1000, batches=True)
        except StopIteration:
            return {"messages": [], "ended": True}
        return {"messages": [self.hand_out(message) for message in batch or ()], "ended": False}

    def leave(self, consumer: str) -> Request:
        self.loops[consumer].leave()
        return {}

    def lease(self, client: str, queue: str, max_messages: int = 1, **arguments: Any) -> Request:
        pulled = self.clients[client].lease(queue, max_messages, **arguments)
        return {"messages": [self.hand_out(message) for message in pulled]}

    def ack(self, handle: int) -> Request:
        self.messages[handle].ack()
        return {}

    def nack(self, handle: int, **arguments: Any) -> Request:
        self.messages[handle].nack(**arguments)
        return {}

    def reject(self, handle: int, error: str = "") -> Request:
        self.messages[handle].reject(error)
        return {}

    def release(self, handle: int) -> Request:
        self.messages[handle].release()
        return {}

    def limited(
        self, handle: int, retry_after_ms: int | None = None, throttle_key: str = "", error: str = ""
    ) -> Request:
        retry_after_s = None if retry_after_ms is None else retry_after_ms / 1000
        self.messages[handle].limited(retry_after_s, limit=throttle_key, error=error)
        return {}

    def span_of(self, handle: int, parent: bool = False) -> Request:
        return span_answer(self.messages[handle], parent)

    def await_lost(self, handle: int, timeout_ms: int) -> Request:
        lost = threading.Event()
        self.messages[handle].on_lost(lost.set)
        return {"lost": lost.wait(timeout_ms / 1000), "reason": self.messages[handle].lost}

    def connection_events(self, client: str) -> Request:
        return {"events": self.events[client]}

    def extend(self, handle: int, extend_ms: int) -> Request:
        return {"lease_expires_at_ms": moment(self.messages[handle].extend(extend_ms))}

    def ack_by_id(self, client: str, queue: str, message_id: str, **arguments: Any) -> Request:
        self.clients[client].ack(queue, message_id, **arguments)
        return {}

    def nack_by_id(self, client: str, queue: str, message_id: str, **arguments: Any) -> Request:
        self.clients[client].nack(queue, message_id, **arguments)
        return {}

    def extend_by_id(
        self, client: str, queue: str, message_id: str, extend_ms: int, channel: str | None = None
    ) -> Request:
        ends = self.clients[client].extend(queue, message_id, extend_ms, channel=channel)
        return {"lease_expires_at_ms": moment(ends)}

    def ack_many(self, client: str, handles: list[int]) -> Request:
        self.clients[client].ack_many([self.messages[handle] for handle in handles])
        return {}

    def nack_many(self, client: str, handles: list[int], **arguments: Any) -> Request:
        self.clients[client].nack_many([self.messages[handle] for handle in handles], **arguments)
        return {}

    def peek(self, client: str, queue: str, **arguments: Any) -> Request:
        messages = self.clients[client].peek(queue, **arguments)
        return {"messages": [message_answer(message) for message in messages]}

    def read_log(self, client: str, queue: str, max_messages: int = 1000, **arguments: Any) -> Request:
        log = self.clients[client].read_log(queue, **admin_arguments("read_log", arguments))
        return {"messages": [message_answer(message) for message in itertools.islice(log, max_messages)]}

    def watch(self, operation: str, client: str, **arguments: Any) -> Request:
        items, most = LOOPS[operation]
        until = arguments.pop(most, None)
        loop = getattr(self.clients[client], operation)(**admin_arguments(operation, arguments))
        return {items: [plain(item) for item in itertools.islice(loop, until)]}

    def admin(self, operation: str, client: str, **arguments: Any) -> Request:
        if operation in LOOPS:
            return self.watch(operation, client, **arguments)
        call = getattr(self.clients[client], method_of(operation, arguments))
        return admin_answer(operation, call(**admin_arguments(operation, arguments)))

    def answer(self, request: Request) -> None:
        """Carry out one request, and write its answer."""
        number, operation = request.pop("id"), request.pop("op")
        arguments = {name: value for name, value in request.items() if value is not None}
        method = None if operation.startswith("_") else getattr(self, operation, None)
        try:
            line: Request = {
                "ok": method(**arguments) if method is not None else self.admin(operation, **arguments)
            }
        except (AttributeError, KeyError) as unknown:
            line = {"unsupported": f"{type(unknown).__name__}: {unknown}"}
        except Exception as error:  # noqa: BLE001 - every error is an answer
            line = {"error": error_answer(error)}
        self.write({"id": number, **line})

    def write(self, line: Request) -> None:
        """Write one line."""
        with self._writing:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def end(self) -> None:
        """End what scenarios left open."""
        for loop in self.loops.values():
            loop.leave()
        for client in self.clients.values():
            try:
                client.close()
            except FilaError as error:
                print(f"closing: {error}", file=sys.stderr)


def main() -> None:
    """Serve the line protocol until the input ends."""
    threading.stack_size(THREAD_STACK_BYTES)
    driver = Driver()
    driver.write({"ready": True, "language": "python-sync"})
    for line in sys.stdin:
        threading.Thread(target=driver.answer, args=(json.loads(line),), daemon=True).start()
    driver.end()


main()
