"""A load of every kind of call, each answer of which a witness writes down.

Actors run until they are cancelled or the server is gone. What a call that was not answered
did, nobody knows: the witness is told before a call that it was asked, and after it what came back.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from grpc import aio

from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.crash.witness import ANY, NEVER, Copy, QueueBook, Witness

VISIBILITY_MS = 1_000
BACKLOG_MAX = 1_500
REFUSED = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT)
GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
Session = service_pb2.ConsumeSessionRequest
Actor = Callable[[], Awaitable[None]]


async def _until(happened: Callable[[], bool]) -> None:
    while True:
        if happened():
            return
        await asyncio.sleep(0.005)


class Load:
    """Queues, and the actors that use them, over many lives of one server."""

    def __init__(
        self, witness: Witness, seed: int, durability: admin_pb2.Durability = admin_pb2.DURABILITY_UNSPECIFIED
    ) -> None:
        self.witness = witness
        self.random = random.Random(seed)
        self.durability = durability
        self.work = QueueBook("")
        self.orders = QueueBook("")
        self.drained = QueueBook("")
        self.log = QueueBook("")
        self.temporary: dict[str, QueueBook | None] = {}
        """Queues that come and go: None where there is none; a name is missing while nobody knows."""
        self.doubtful: dict[str, list[QueueBook | None]] = {}
        self.generation = 0
        self.sequences = itertools.count(1)  # of acks and nacks; no two of a session may be one
        self.service: Any = None
        self.admin: Any = None

    # --- queues ---------------------------------------------------------------------------

    async def new_queues(self) -> None:
        """A generation of queues: the log of one does not grow for ever."""
        self.generation += 1
        n = self.generation
        self.work = QueueBook(f"work{n}", ("default", "audit"))
        self.orders = QueueBook(f"orders{n}")
        self.drained = QueueBook(f"drained{n}")
        self.log = QueueBook(f"log{n}", is_log=True)
        retry = {"kind": admin_pb2.RetryPolicy.KIND_FIXED, "base_ms": 20}
        await self._create(self.work, max_attempts=3, retry=retry, channels=["default", "audit"])
        await self._create(self.orders)
        await self._create(self.drained)
        await self._create(self.log, retention={"soft_period_ms": 3_600_000})

    async def old_queues_go(self) -> None:
        for book in (self.work, self.orders, self.drained, self.log):
            await self.admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=book.name), timeout=10)

    async def _create(self, book: QueueBook, **config: Any) -> None:
        given = admin_pb2.QueueConfig(
            visibility_timeout_ms=VISIBILITY_MS,
            fairness_key_header="key",
            durability=self.durability,
            **config,
        )
        await self.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=book.name, config=given), timeout=10)

    # --- a life ---------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def connected(self, address: str) -> AsyncIterator[None]:
        options = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_receive_message_length", -1),
            ("grpc.enable_retries", 0),
        ]
        async with aio.insecure_channel(address, options=options) as channel:
            self.service = service_pb2_grpc.FilaServiceStub(channel)
            self.admin = admin_pb2_grpc.FilaAdminStub(channel)
            yield

    def start(self) -> list[asyncio.Task[None]]:
        actors: list[Actor] = [
            self.unary_producer, self.unary_producer, self.batch_producer, self.stream_producer,
            self.session_consumer, self.ordered_consumer, self.puller, self.dead_letter_keeper,
            self.purger, self.seeker, self.queue_maker, self.configurer, self.canceller,
        ]  # fmt: skip
        return [asyncio.ensure_future(self._until_gone(actor)) for actor in actors]

    def died(self) -> None:
        """A delivery on its way was lost twice at most: written, and written again after it expired."""
        self.witness.interruptions += 2
        if self.work.is_redriving:  # nobody knows what it moved
            self.work.is_redriving = False
            self.work.redrives += 1

    async def _until_gone(self, actor: Actor) -> None:
        try:
            await actor()
        except aio.AioRpcError as error:
            if error.code() not in GONE and error.details() != "Internal error from Core":
                self.witness.wrong(f"{actor.__name__} was answered {error.code()}: {error.details()}")
        except (asyncio.InvalidStateError, asyncio.CancelledError):
            pass
        except Exception as error:  # noqa: BLE001 - in a task nobody would hear of it
            self.witness.wrong(f"{actor.__name__} failed: {error!r}")

    # --- producers ------------------------------------------------------------------------

    def _message(self, book: QueueBook, **options: Any) -> service_pb2.EnqueueMessage:
        tag = self.witness.sending(book)
        return service_pb2.EnqueueMessage(
            queue=book.name,
            headers={"key": self.random.choice(("a", "b", "c"))},
            payload=tag,
            options=service_pb2.EnqueueOptions(**options) if options else None,
        )

    async def _room(self, book: QueueBook) -> None:
        await _until(lambda: sum(len(book.owed(channel)) for channel in book.channels) <= BACKLOG_MAX)

    async def unary_producer(self) -> None:
        while True:
            book = self.random.choice((self.work, self.orders, self.drained))
            delay = {"delay_ms": self.random.randrange(1, 800)} if book is self.work else {}
            message = self._message(book, **(delay if self.random.random() < 0.2 else {}))
            request = service_pb2.EnqueueRequest(
                queue=book.name, headers=message.headers, payload=message.payload, options=message.options
            )
            self.witness.enqueued(book, message.payload, await self._enqueued(book, message, request))
            await asyncio.sleep(0.002)

    async def _enqueued(self, book: QueueBook, message: Any, request: Any) -> Any:
        try:
            return await self.service.Enqueue(request)
        except aio.AioRpcError as error:
            if error.code() not in REFUSED:
                raise
            return service_pb2.EnqueueResult(error={"code": error.code().value[0]})

    async def batch_producer(self) -> None:
        while True:
            # More than one queue in a frame.
            books = [self.random.choice((self.work, self.orders)) for _ in range(20)]
            messages = [self._message(book) for book in books]
            response = await self.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(messages=messages))
            for book, message, result in zip(books, messages, response.results, strict=True):
                self.witness.enqueued(book, message.payload, result)
            await self._room(self.work)
            await self._room(self.orders)
            await asyncio.sleep(0.01)

    async def stream_producer(self) -> None:
        call = self.service.EnqueueStream()
        sent: dict[int, list[Any]] = {}

        async def read() -> None:
            while (response := await call.read()) is not aio.EOF:
                for message, result in zip(sent.pop(response.sequence), response.results, strict=True):
                    self.witness.enqueued(self.work, message.payload, result)

        reading = asyncio.ensure_future(read())
        try:
            for sequence in range(1, 1 << 30):
                messages = [self._message(self.work) for _ in range(10)]
                sent[sequence] = messages
                batch = service_pb2.EnqueueBatchRequest(queue=self.work.name, messages=messages)
                await call.write(service_pb2.EnqueueStreamRequest(sequence=sequence, batch=batch))
                await _until(lambda: len(sent) <= 4 or reading.done())
                await self._room(self.work)
                await asyncio.sleep(0.01)
        finally:
            await asyncio.gather(reading, return_exceptions=True)

    # --- consumers ------------------------------------------------------------------------

    def _delivered(self, book: QueueBook, channel: str, message: Any, in_order: bool = False) -> Copy | None:
        return self.witness.delivered(book, channel, message, time.time_ns(), in_order=in_order)

    async def session_consumer(self) -> None:
        """Acks most, fails some, forgets some; leaves at times, cleanly or not."""
        while True:
            call = self.service.ConsumeSession()
            await call.write(Session(open={"queue": self.work.name, "max_in_flight": 200}))
            ends_after = self.random.randrange(200, 2_000)
            held: dict[int, Copy] = {}
            asked: dict[int, list[Copy]] = {}
            nacked: dict[int, list[Copy]] = {}
            while ends_after > 0:
                response = await call.read()
                if response is aio.EOF:
                    return
                if response.HasField("settled"):
                    nacked.pop(response.settled.sequence, None)
                    self._settled(asked.pop(response.settled.sequence, []), response.settled, held)
                for message in response.delivery.messages:
                    ends_after -= 1
                    copy = self._delivered(self.work, "default", message)
                    if copy is not None:
                        held[message.metadata.lease_id] = copy
                await self._settle_some(call, held, asked, nacked)
            # What it received a moment ago the server may not have reported written yet, and then puts back as if
            # it had never been sent; a nack that nobody read changes nothing about that.
            for copy in itertools.chain(held.values(), *nacked.values()):
                copy.may_repeat = True
            self.witness.interruptions += 2
            if self.random.random() < 0.5:
                await call.write(Session(close={"release": True}))
            call.cancel()

    async def _settle_some(
        self, call: Any, held: dict[int, Copy], asked: dict[int, list[Copy]], nacked: dict[int, list[Copy]]
    ) -> None:
        leases = list(held)
        self.random.shuffle(leases)
        acks, nacks = leases[: len(leases) * 3 // 4], leases[len(leases) * 3 // 4 :: 2]
        if acks:
            sequence = next(self.sequences)
            asked[sequence] = [held.pop(lease) for lease in acks]
            for copy in asked[sequence]:
                copy.asked = True
            await call.write(Session(ack={"sequence": sequence, "lease_ids": acks}))
        if nacks:
            sequence = next(self.sequences)
            nacked[sequence] = [held.pop(lease) for lease in nacks]
            await call.write(Session(nack={"sequence": sequence, "lease_ids": nacks, "error": "not today"}))

    def _settled(self, copies: list[Copy], settled: Any, held: dict[int, Copy]) -> None:
        # A lease lost meanwhile (expired, gone to the dead letters) leaves it open what became of it.
        if settled.failures or not copies:
            return
        for copy in copies:
            self.witness.acked(copy)
        self.witness.count("settled", len(copies))

    async def ordered_consumer(self) -> None:
        """One stream that acks everything: what it sees first, a key's order is."""
        call = self.service.Consume(service_pb2.ConsumeRequest(queue=self.orders.name, max_batch=50))
        while (response := await call.read()) is not aio.EOF:
            items = []
            copies = []
            for message in response.messages:
                copy = self._delivered(self.orders, "default", message, in_order=self.witness.keeps_leases)
                if copy is not None:
                    copies.append(copy)
                    items.append({"message_id": message.id, "lease_id": message.metadata.lease_id})
            await self._ack(self.orders, "default", copies, items)

    async def puller(self) -> None:
        while True:
            request = service_pb2.LeaseRequest(
                queue=self.work.name, channel="audit", max_messages=100, wait_ms=200
            )
            response = await self.service.Lease(request)
            nacks, items, copies = [], [], []
            for message in response.messages:
                copy = self._delivered(self.work, "audit", message)
                if copy is None:
                    continue
                item = {"message_id": message.id, "lease_id": message.metadata.lease_id}
                if self.random.random() < 0.1:
                    nacks.append(item | {"error": "broken", "delay_ms": self.random.choice((0, 30))})
                elif self.random.random() < 0.97:
                    items.append(item)
                    copies.append(copy)
            await self._ack(self.work, "audit", copies, items)
            if nacks:
                await self.service.NackBatch(
                    service_pb2.NackBatchRequest(queue=self.work.name, channel="audit", items=nacks)
                )
                self.witness.count("nacked", len(nacks))
            await asyncio.sleep(0.01)

    async def _ack(self, book: QueueBook, channel: str, copies: list[Copy], items: list[Any]) -> None:
        if not items:
            return
        for copy in copies:
            copy.asked = True
        request = service_pb2.AckBatchRequest(queue=book.name, channel=channel, items=items)
        for copy, result in zip(copies, (await self.service.AckBatch(request)).results, strict=True):
            if not result.code:
                self.witness.acked(copy)
                self.witness.count("settled")

    async def dead_letter_keeper(self) -> None:
        """Settles a few dead letters, sends the others back."""
        dlq = f"{self.work.name}.dlq"
        while True:
            await asyncio.sleep(self.random.uniform(0.05, 0.25))
            response = await self.service.Lease(service_pb2.LeaseRequest(queue=dlq, max_messages=10))
            for message in response.messages:
                letter = message.metadata.dead_letter
                copy = self._delivered(self.work, letter.source_channel, message)
                if letter.source_queue != self.work.name or letter.attempts != 3:
                    self.witness.wrong(f"a dead letter of {self.work.name} says {letter}")
                if copy is None or self.random.random() < 0.5:
                    continue
                item = {"message_id": message.id, "lease_id": message.metadata.lease_id}
                await self._ack(QueueBook(dlq), "default", [copy], [item])
                self.witness.count("dead letters settled")
            if self.random.random() < 0.7:
                continue  # attempts can be judged only between redrives
            self.work.is_redriving = True
            moved = await self.admin.Redrive(admin_pb2.RedriveRequest(dlq_queue=dlq))
            self.work.is_redriving = False
            self.work.redrives += 1
            self.witness.count("redriven", moved.redriven)

    async def canceller(self) -> None:
        """Takes messages back by id, whatever they are doing: waiting, delayed, leased, or done already."""
        while True:
            await asyncio.sleep(self.random.uniform(0.02, 0.06))
            channel = self.random.choice(self.work.channels)
            tags = self.random.sample(list(self.work.ids), min(4, len(self.work.ids)))
            copies = [self.work.copies[tag, channel] for tag in tags]
            was_settled = [copy.settled for copy in copies]
            for copy in copies:
                copy.asked = True
            request = service_pb2.CancelMessagesRequest(
                queue=self.work.name,
                channel=channel,
                message_ids=[*(self.work.ids[tag] for tag in tags), str(uuid.uuid4())],
            )
            outcomes = (await self.service.CancelMessages(request)).outcomes
            for copy, settled, outcome in zip(copies, was_settled, outcomes, strict=False):
                self._cancelled(copy, outcome, was_settled=settled)

    def _cancelled(self, copy: Copy, outcome: int, *, was_settled: bool) -> None:
        """A message has one end: what was acked is not cancelled, and what was cancelled is nowhere."""
        if outcome == service_pb2.CancelMessagesResponse.OUTCOME_NOT_FOUND:
            return
        if was_settled or copy.cancelled:
            self.witness.wrong(f"{copy} was taken back after its end")
        copy.cancelled = True
        self.witness.count("cancelled")

    # --- operators ------------------------------------------------------------------------

    async def purger(self) -> None:
        book = self.drained
        while True:
            await asyncio.sleep(self.random.uniform(0.05, 0.4))
            before = book.owed()
            _may_go(book)
            try:
                await self.admin.PurgeQueue(admin_pb2.PurgeQueueRequest(queue=book.name))
            finally:
                # What was sent meanwhile may have come to the broker before the purge did, over another connection;
                # also where the process was killed before the purge's answer was here.
                _may_go(book)
            for copy in before:
                copy.settled, copy.asked = True, False
            self.witness.count("purges")

    async def seeker(self) -> None:
        """Writes, reads and seeks one after the other, so that each seek has one right outcome."""
        book = self.log
        while True:
            messages = [self._message(book) for _ in range(10)]
            batch = service_pb2.EnqueueBatchRequest(queue=book.name, messages=messages)
            for message, result in zip(
                messages, (await self.service.EnqueueBatch(batch)).results, strict=True
            ):
                self.witness.enqueued(book, message.payload, result)
            response = await self.service.Lease(service_pb2.LeaseRequest(queue=book.name, max_messages=7))
            copies, items = [], []
            for message in response.messages:
                copy = self._delivered(book, "default", message)
                if copy is not None:
                    copies.append(copy)
                    items.append({"message_id": message.id, "lease_id": message.metadata.lease_id})
            await self._ack(book, "default", copies, items)
            if self.random.random() < 0.2 and book.offsets:
                await self._seek(self.random.choice(list(book.offsets)))
            await asyncio.sleep(0.05)

    async def _seek(self, offset: int) -> None:
        # Until it is answered nobody knows for any message on which side of the seek it stands.
        for copy in self.log.copies.values():
            if not copy.gone:
                copy.settled, copy.asked = False, True
                copy.attempts, copy.received = NEVER, ANY
        await self.admin.SeekChannel(
            admin_pb2.SeekChannelRequest(queue=self.log.name, channel="default", offset=offset)
        )
        for at, tag in self.log.offsets.items():
            copy = self.log.copies[tag, "default"]
            copy.settled, copy.asked = at < offset, False
        self.witness.count("seeks")

    async def queue_maker(self) -> None:
        if self.doubtful:
            listed = await self.admin.ListQueues(admin_pb2.ListQueuesRequest())
            self.resolve_doubts({queue.name for queue in listed.queues})
        while True:
            name = f"temporary{self.random.randrange(3)}"
            if self.temporary.get(name) is None:
                await self._make(name)
            else:
                await self._unmake(name)
            await asyncio.sleep(self.random.uniform(0, 0.1))

    async def _make(self, name: str) -> None:
        book = QueueBook(name)
        self.doubtful[name] = [None, book]
        await self._create(book)
        del self.doubtful[name]
        self.temporary[name] = book
        messages = [self._message(book) for _ in range(20)]
        batch = service_pb2.EnqueueBatchRequest(messages=messages)
        for message, result in zip(messages, (await self.service.EnqueueBatch(batch)).results, strict=True):
            self.witness.enqueued(book, message.payload, result)
        self.witness.count("queues made")

    async def _unmake(self, name: str) -> None:
        self.doubtful[name] = [None, self.temporary[name]]
        await self.admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=name))
        del self.doubtful[name]
        self.temporary[name] = None
        self.witness.count("queues deleted")

    def resolve_doubts(self, names: set[str]) -> None:
        """What became of calls that made or deleted a queue and were not answered."""
        for name, books in self.doubtful.items():
            self.temporary[name] = next((book for book in books if book is not None), None)
            if name not in names:
                self.temporary[name] = None
        self.doubtful.clear()
        for name, kept in self.temporary.items():
            if kept is None and name in names:
                self.witness.wrong(f"{name} was deleted and is back")
            if kept is not None and (name not in names or f"{name}.dlq" not in names):
                self.witness.wrong(f"{name} was made and is gone")
        for book in (self.work, self.orders, self.drained, self.log):
            if book.name not in names or f"{book.name}.dlq" not in names:
                self.witness.wrong(f"{book.name} is gone")

    async def configurer(self) -> None:
        for number in range(1 << 30):
            key = f"crash.{self.random.randrange(5)}"
            value = self.random.choice((f"{self.generation}.{number}", ""))
            self.witness.config.setdefault(key, {""}).add(value)
            await self.admin.SetConfig(admin_pb2.SetConfigRequest(key=key, value=value))
            self.witness.config[key] = {value}
            self.witness.count("config sets")
            await asyncio.sleep(0.02)


def _may_go(book: QueueBook) -> None:
    for copy in book.copies.values():
        if not copy.gone and not copy.settled:
            copy.asked = True
