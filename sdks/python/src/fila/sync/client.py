"""FilaClient, Consumer and Message without `await`. What each call does is told in `fila.client`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, Unpack

import grpc

from fila import client as asynchronous
from fila.consumer import Consumer as AsyncConsumer
from fila.loops import Loop
from fila.messages import LeasedMessage, MessageId, NewMessage
from fila.nack import Nack, limited_nack
from fila.options import OptionFields
from fila.prefetch import Prefetch
from fila.session import Session
from fila.settle import Settler
from fila.sync.keys import KeyCalls
from fila.sync.loop_thread import LoopThread
from fila.sync.observing import ObservingCalls
from fila.v1 import messages_pb2


class Message(LeasedMessage):
    """A delivery to work on and then settle, by `ack` or `nack`, before its lease ends."""

    __slots__ = ("_thread",)

    def __init__(
        self, message: messages_pb2.Message, settler: Settler, held_until_s: float, thread: LoopThread
    ) -> None:
        super().__init__(message, settler, held_until_s)
        self._thread = thread

    def ack(self) -> None:
        """The message is done; returns when that is durable. For many, `client.ack_many` is faster.

        Raises LeaseLost when the lease had ended, MessageNotFound when the message is gone."""

        async def ack() -> None:
            await self._settler.ack(self.id, self.lease_id)

        self._thread.run(ack())

    def nack(self, error: str = "", delay_ms: int | None = None, *, dead_letter: bool = False) -> None:
        """The message failed. `error` (text, kept with a dead letter) says why; the queue's policy decides when it
        comes back, or `delay_ms` (milliseconds) does. With `dead_letter` it never does. Raises as `ack` does."""
        self._nack(Nack(error, delay_ms, dead_letter))

    def reject(self, error: str = "") -> None:
        """The message can never succeed: make it a dead letter now, whatever the queue's policy says."""
        self._nack(Nack(error, dead_letter=True))

    def release(self) -> None:
        """The message did not fail, but you will not finish it: it goes back to its place, and no attempt counts."""
        self._nack(Nack(release=True))

    def limited(self, retry_after_s: float | None = None, *, limit: str = "", error: str = "") -> None:
        """The provider behind a limit refused the call, and asked for `retry_after_s`. As `fila.Message.limited`."""
        self._nack(limited_nack(error, retry_after_s, limit))

    def _nack(self, nack: Nack) -> None:
        async def send() -> None:
            await self._settler.nack(self.id, self.lease_id, nack)

        self._thread.run(send())

    def extend(self, extend_ms: int) -> datetime:
        """Hold the message for `extend_ms` milliseconds from now (at most 12 h). Return when the lease now
        ends, by the broker's clock. Raises LeaseLost when it had ended."""
        expires_at = self._thread.run(self._settler.extend(self.id, self.lease_id, extend_ms))
        self.held_until_s = max(self.held_until_s, self._settler.now_s() + extend_ms / 1000)
        return expires_at


class Consumer:
    """A consumer of one queue and channel. Several threads may loop over it; each message goes to one."""

    def __init__(self, consumer: AsyncConsumer[Message], thread: LoopThread) -> None:
        self._consumer = consumer
        self._thread = thread

    def __iter__(self) -> Iterator[Message]:
        session, loop = self._join(1)
        try:
            while True:
                # What waits in the buffer is taken here, without crossing to the client's thread.
                message = session.take_by_thread(loop)
                if message is not None and message.must_declare:
                    message = self._declared(session, message)
                elif message is None:
                    message = self._thread.run(self._consumer.next(session, loop))
                    if message is None:
                        return
                if message is not None:
                    yield message
        finally:
            self._thread.do(lambda: self._consumer.part(session, loop))

    def _declared(self, session: Session[Message], message: Message) -> Message | None:
        taken = self._thread.run(session.declare([message]))
        return taken[0] if taken else None

    if not TYPE_CHECKING:

        def __aiter__(self) -> NoReturn:
            raise TypeError(
                "this consumer is fila.sync's: loop over it with `for`, or use fila.FilaClient with `async for`"
            )

    def batches(self, max_messages: int | None = None) -> Iterator[list[Message]]:
        """Loop over lists of what has arrived: at least one message each, at most `max_messages`. As
        `fila.Consumer.batches`."""
        session, loop = self._join(max_messages or 1)
        try:
            while batch := self._thread.run(self._consumer.next_batch(session, loop, max_messages)):
                yield batch
        finally:
            self._thread.do(lambda: self._consumer.part(session, loop))

    def _join(self, size: int) -> tuple[Session[Message], Loop]:
        async def join() -> tuple[Session[Message], Loop]:
            return self._consumer.join(size)

        return self._thread.run(join())

    def close(self) -> None:
        """Leave for good: the loops over this consumer end. What you still hold can be settled until its
        lease ends."""
        self._thread.do(self._consumer.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class FilaClient(KeyCalls, ObservingCalls):
    """A client of one broker, for programs without an event loop.

        with FilaClient.connect("localhost:5555") as client:
            message_id = client.enqueue("orders", headers={"tenant": "acme"}, payload=b"...")
            for msg in client.consume("orders"):
                client.ack("orders", msg.id)

    Every method raises a FilaError; `fila.errors` draws the tree.
    """

    def __init__(self, client: asynchronous.FilaClient, thread: LoopThread | None = None) -> None:
        if thread is None:
            raise TypeError(f"a FilaClient is connected, not made: FilaClient.connect({client!r})")
        self._client = client
        self._thread = thread
        self._closed = False

    @classmethod
    def connect(
        cls,
        target: str | None = None,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        **options: Unpack[OptionFields],
    ) -> Self:
        """Connect to the broker at `target`, `host:port` with or without `http://` (`https://` for TLS). Without a
        target it is the environment's FILA_ADDR, or localhost:5555.

        The options are the fields of `fila.ClientOptions`. Raises Unavailable when no broker answers
        within `connect_timeout_s` seconds, and at once when the two do not agree on TLS, or something else answers.
        """
        thread = LoopThread()

        async def connect() -> asynchronous.FilaClient:
            return await asynchronous.FilaClient.connect(target, credentials=credentials, **options)

        try:
            return cls(thread.run(connect()), thread)
        except BaseException:
            thread.stop()
            raise

    def close(self) -> None:
        """Send what waits, settle what is under way, give back what consumers hold, and disconnect."""
        self._close(release=True)

    def _close(self, *, release: bool) -> None:
        if not self._closed:
            self._closed = True
            if self._thread.is_left_behind:
                return  # the connection is the parent's to close
            self._thread.run(self._client._close(release=release))
            self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # As in the asynchronous client: an error may be the doing of the message in hand.
        self._close(release=not isinstance(error, Exception))

    # Producing.

    def enqueue(
        self,
        queue: str,
        payload: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        delay_ms: int | None = None,
        deliver_at: datetime | None = None,
        ttl_ms: int | None = None,
        dedup_key: str | None = None,
        replace: bool = False,
        max_wait_ms: int = 0,
        fairness_key: str = "",
        weight: int = 0,
        cost: float = 0,
        priority: int | None = None,
    ) -> MessageId:
        """Store one message; return its id (with its `offset`) once it is as durable as the queue asks for.

        The options and errors are those of `fila.FilaClient.enqueue`.
        """
        return self._run(
            self._client.enqueue(
                queue,
                payload,
                headers,
                delay_ms=delay_ms,
                deliver_at=deliver_at,
                ttl_ms=ttl_ms,
                dedup_key=dedup_key,
                replace=replace,
                max_wait_ms=max_wait_ms,
                fairness_key=fairness_key,
                weight=weight,
                cost=cost,
                priority=priority,
            )
        )

    def enqueue_many(self, queue: str, messages: Iterable[NewMessage | bytes]) -> list[MessageId]:
        """Store many messages, a window of large frames at a time; the fastest way to produce.

        Return the ids in order. If any message was refused, SomeFailed tells what became of each one.
        A generator runs on the client's thread: it must not call this client.
        """
        return self._run(self._client.enqueue_many(queue, messages))

    # Consuming.

    def consume(
        self,
        queue: str,
        *,
        channel: str | None = None,
        prefetch: Prefetch | None = None,
        stop_when_idle_s: float | None = None,
        name: str | None = None,
        max_lease_renewal_ms: int | None = None,
    ) -> Consumer:
        """Return a consumer to loop over: `for msg in client.consume("orders")`.

        The options and errors are those of `fila.FilaClient.consume`.
        """
        plan = self._client._plan(queue, channel, prefetch, name, max_lease_renewal_ms)
        consumer = self._client._consume(plan, stop_when_idle_s, self._make_message)
        return Consumer(consumer, self._thread)

    def lease(
        self, queue: str, max_messages: int = 1, *, wait_ms: int = 0, channel: str | None = None
    ) -> list[Message]:
        """Pull up to `max_messages` (at most 10,000) that are ready, waiting up to `wait_ms` milliseconds
        for the first. Empty when there were none. Raises QueueNotFound, ChannelNotFound, Invalid."""
        return self._run(self._client._lease(queue, max_messages, wait_ms, channel, self._make_message))

    def _make_message(self, message: messages_pb2.Message, settler: Settler, held_until_s: float) -> Message:
        return Message(message, settler, held_until_s, self._thread)

    # Settling.

    def ack(self, queue: str, message_id: str, *, channel: str | None = None) -> None:
        """The message is done; returns when that is durable. As `Message.ack`, for when only the id is at
        hand: the client remembers the lease under which it delivered the message."""

        async def ack() -> None:
            await self._client.ack(queue, message_id, channel=channel)

        self._run(ack())

    def nack(
        self,
        queue: str,
        message_id: str,
        error: str = "",
        delay_ms: int | None = None,
        *,
        dead_letter: bool = False,
        channel: str | None = None,
    ) -> None:
        """The message failed. As `Message.nack`, for when only the id is at hand."""

        async def nack() -> None:
            await self._client.nack(
                queue, message_id, error, delay_ms, dead_letter=dead_letter, channel=channel
            )

        self._run(nack())

    def reject(self, queue: str, message_id: str, error: str = "", *, channel: str | None = None) -> None:
        """Make the message a dead letter now. As `Message.reject`, for when only the id is at hand."""

        async def reject() -> None:
            await self._client.reject(queue, message_id, error, channel=channel)

        self._run(reject())

    def release(self, queue: str, message_id: str, *, channel: str | None = None) -> None:
        """Put the message back uncounted. As `Message.release`, for when only the id is at hand."""

        async def release() -> None:
            await self._client.release(queue, message_id, channel=channel)

        self._run(release())

    def extend(self, queue: str, message_id: str, extend_ms: int, *, channel: str | None = None) -> datetime:
        """Hold the message for `extend_ms` milliseconds from now. Return when the lease ends, by the
        broker's clock. `Message.extend` also tells the consumer."""
        return self._run(self._client.extend(queue, message_id, extend_ms, channel=channel))

    def ack_many(self, messages: Iterable[LeasedMessage]) -> None:
        """Ack many messages, in few frames. SomeFailed tells which were refused and why."""
        self._run(self._client.ack_many(list(messages)))

    def nack_many(
        self, messages: Iterable[LeasedMessage], error: str = "", delay_ms: int | None = None
    ) -> None:
        """Nack many messages for one reason, in few frames. SomeFailed tells which were refused and why."""
        self._run(self._client.nack_many(list(messages), error, delay_ms))
