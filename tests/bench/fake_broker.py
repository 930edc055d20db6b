"""A broker with no memory to speak of: answers the generator's hot calls first in, first out.

It stands in for fila-server (`FILA_BENCH_SERVER`), so that the generator is tested without
the product, and so that its own ceiling can be measured.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import grpc

from fila.v1 import admin_pb2, admin_pb2_grpc, messages_pb2, service_pb2, service_pb2_grpc

_DELIVERY_MESSAGES_MAX = 256
_OUTBOX_FRAMES_MAX = 2


class Queue:
    """Messages waiting, and the bell that rings when there are some."""

    def __init__(self) -> None:
        self.waiting: deque[messages_pb2.Message] = deque()
        self.arrived = asyncio.Event()


class Consumer:
    """How many messages one session may still hold."""

    def __init__(self, max_in_flight: int) -> None:
        self.room = max_in_flight
        self.has_room = asyncio.Event()
        self.has_room.set()

    def lease(self, count: int) -> None:
        self.room -= count
        if self.room == 0:
            self.has_room.clear()

    def settle(self, count: int) -> None:
        self.room += count
        self.has_room.set()


Outbox = asyncio.Queue[service_pb2.ConsumeSessionResponse]


class Service(service_pb2_grpc.FilaServiceServicer):
    def __init__(self) -> None:
        self._queue_by_name: dict[str, Queue] = {}
        self._offset = 0
        self._lease_id = 0

    def queue(self, name: str) -> Queue:
        return self._queue_by_name.setdefault(name, Queue())

    def _store(self, queue: str, message: Any) -> service_pb2.EnqueueResult:
        self._offset += 1
        kept = messages_pb2.Message(id=f"m{self._offset}", headers=message.headers, payload=message.payload)
        kept.metadata.offset = self._offset
        self.queue(message.queue or queue).waiting.append(kept)
        self.queue(message.queue or queue).arrived.set()
        return service_pb2.EnqueueResult(message_id=kept.id, offset=kept.metadata.offset)

    async def Enqueue(
        self, request: service_pb2.EnqueueRequest, context: object
    ) -> service_pb2.EnqueueResponse:
        result = self._store(request.queue, request)
        return service_pb2.EnqueueResponse(message_id=result.message_id, offset=result.offset)

    async def EnqueueStream(
        self, requests: AsyncIterator[service_pb2.EnqueueStreamRequest], context: object
    ) -> AsyncIterator[service_pb2.EnqueueStreamResponse]:
        async for request in requests:
            results = [self._store(request.batch.queue, message) for message in request.batch.messages]
            yield service_pb2.EnqueueStreamResponse(sequence=request.sequence, results=results)

    async def EnqueueBatch(
        self, request: service_pb2.EnqueueBatchRequest, context: object
    ) -> service_pb2.EnqueueBatchResponse:
        return service_pb2.EnqueueBatchResponse(
            results=[self._store(request.queue, message) for message in request.messages]
        )

    async def ConsumeSession(self, requests: Any, context: Any) -> None:  # type: ignore[override]
        opened = (await context.read()).open
        # grpc.aio takes one write at a time, and there are two who have something to say.
        outbox: Outbox = asyncio.Queue(_OUTBOX_FRAMES_MAX)
        await outbox.put(service_pb2.ConsumeSessionResponse(opened={"consumer_id": 1}))
        queue, consumer = self.queue(opened.queue), Consumer(opened.max_in_flight or 256)
        tasks = [
            asyncio.create_task(self._deliver(queue, consumer, outbox)),
            asyncio.create_task(_write(outbox, context)),
        ]
        try:
            while (request := await context.read()) is not grpc.aio.EOF:
                if request.HasField("ack"):
                    consumer.settle(len(request.ack.lease_ids))
                    settled = {"sequence": request.ack.sequence}
                    await outbox.put(service_pb2.ConsumeSessionResponse(settled=settled))
        finally:
            for task in tasks:
                task.cancel()

    async def _deliver(self, queue: Queue, consumer: Consumer, outbox: Outbox) -> None:
        while True:
            await consumer.has_room.wait()
            await queue.arrived.wait()
            delivery = service_pb2.ConsumeSessionResponse.Delivery()
            most = min(_DELIVERY_MESSAGES_MAX, consumer.room)
            while queue.waiting and len(delivery.messages) < most:
                message = queue.waiting.popleft()
                self._lease_id += 1
                message.metadata.lease_id = self._lease_id
                delivery.messages.append(message)
            if not queue.waiting:
                queue.arrived.clear()
            consumer.lease(len(delivery.messages))
            if delivery.messages:
                await outbox.put(service_pb2.ConsumeSessionResponse(delivery=delivery))


async def _write(outbox: Outbox, context: Any) -> None:
    while True:
        await context.write(await outbox.get())


class Admin(admin_pb2_grpc.FilaAdminServicer):
    async def CreateQueue(
        self, request: admin_pb2.CreateQueueRequest, context: object
    ) -> admin_pb2.CreateQueueResponse:
        return admin_pb2.CreateQueueResponse(queue_id=request.name)

    async def DeleteQueue(
        self, request: admin_pb2.DeleteQueueRequest, context: object
    ) -> admin_pb2.DeleteQueueResponse:
        return admin_pb2.DeleteQueueResponse()


async def serve() -> None:
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    service_pb2_grpc.add_FilaServiceServicer_to_server(Service(), server)  # type: ignore[abstract]
    admin_pb2_grpc.add_FilaAdminServicer_to_server(Admin(), server)  # type: ignore[abstract]
    server.add_insecure_port(os.environ["FILA_SERVER__LISTEN_ADDR"])
    await server.start()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    await over.wait()
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(serve())
