"""The asynchronous client. `fila.sync` has its synchronous twin, of one shape.

One client is one connection, one stream for all it enqueues, and one stream for each consumer. It
belongs to the event loop it was connected in, and any number of that loop's tasks may share it.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, Unpack
from weakref import WeakSet

import grpc

from fila.admin import AdminCalls
from fila.arguments import make, require_count, require_number, require_text
from fila.connection import Connection
from fila.consumer import Consumer
from fila.dead_letters import DeadLetterCalls
from fila.errors import FilaError, SomeFailed
from fila.holding import MessageT
from fila.keys import KeyCalls
from fila.leases import LeaseMemory, LostLeases
from fila.limits import LimitCalls
from fila.messages import LeasedMessage, Message, MessageId, NewMessage, encode_options, may_repeat
from fila.methods import ENQUEUE, LEASE
from fila.nack import Nack
from fila.observing import ObservingCalls
from fila.options import ClientOptions, OptionFields, check_prefetch
from fila.prefetch import Prefetch
from fila.producer import Producer, travels_alone
from fila.schedules import ScheduleCalls
from fila.session import MakeMessage, Session, SessionPlan
from fila.settle import Settler
from fila.v1.service_pb2 import EnqueueMessage, EnqueueRequest, LeaseRequest
from fila.watch import WatchCalls
from fila.whereabouts import MessageCalls

LEASE_GRACE_S = 10.0
"""How much longer than `wait_ms` a pull may go unanswered."""


class Puller(NamedTuple):
    """What was leased from one queue and channel without a session, and how it is settled."""

    settler: Settler
    memory: LeaseMemory


_AWAIT_IT = (
    "write `client = await FilaClient.connect(...)` or `async with FilaClient.connect(...) as client`; "
    "without an event loop use fila.sync.FilaClient"
)


class Connecting(Awaitable["FilaClient"]):
    """What `FilaClient.connect` returns: await it, or enter it with `async with`."""

    def __init__(self, connect: Callable[[], Generator[Any, None, FilaClient]]) -> None:
        self._begun = False
        self._connect = connect
        self._client: FilaClient | None = None

    def __await__(self) -> Generator[Any, None, FilaClient]:
        self._begun = True
        return self._connect()

    async def __aenter__(self) -> FilaClient:
        self._client = await self
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.__aexit__(kind, error, trace)

    def __del__(self) -> None:
        if not self._begun:
            warnings.warn(f"FilaClient.connect(...) was dropped: {_AWAIT_IT}", RuntimeWarning, stacklevel=2)

    # What a forgotten `await` looks like; type checkers see it by themselves.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"FilaClient.connect(...) has no {name!r}: {_AWAIT_IT}")

        def __enter__(self) -> NoReturn:
            raise TypeError(f"FilaClient.connect(...) needs `async with`: {_AWAIT_IT}")

        def __exit__(self, *_: object) -> None:
            """Never called; without it Python would complain of this method instead."""


def _check_connected(connection: object) -> None:
    if not isinstance(connection, Connection):
        raise TypeError(
            f"a FilaClient is connected, not made: await FilaClient.connect({connection!r}), "
            "or fila.sync.FilaClient.connect(...) without an event loop"
        )


class FilaClient(
    AdminCalls,
    MessageCalls,
    WatchCalls,
    DeadLetterCalls,
    ScheduleCalls,
    LimitCalls,
    KeyCalls,
    ObservingCalls,
):
    """A client of one broker.

        client = await FilaClient.connect("localhost:5555")
        message_id = await client.enqueue("orders", headers={"tenant": "acme"}, payload=b"...")
        async for msg in client.consume("orders"):
            await client.ack("orders", msg.id)

    Every method raises a FilaError; `fila.errors` draws the tree.
    """

    def __init__(self, connection: Connection) -> None:
        _check_connected(connection)
        self._connection = connection
        self._options = connection.options
        self._producer: Producer | None = None
        self._pulled: dict[tuple[str, str], Puller] = {}
        """What was leased by pulling, and what outlived its consumer, by queue and channel."""
        self._consuming: dict[tuple[str, str], list[Settler]] = {}
        self._sessions: set[Session[Any]] = set()
        self._settlers: WeakSet[Settler] = WeakSet()
        """All that may have something under way, also those whose consumer is over."""

    @classmethod
    def connect(
        cls,
        target: str | None = None,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        **options: Unpack[OptionFields],
    ) -> Connecting:
        """Connect to the broker at `target`, `host:port` with or without `http://` (`https://` for TLS). Without a
        target it is the environment's FILA_ADDR, or localhost:5555.

        The options are the fields of `fila.ClientOptions`. Raises Unavailable when no broker answers
        within `connect_timeout_s` seconds, and at once when the two do not agree on TLS, or something else answers.
        """

        async def open_connection() -> FilaClient:
            connection = Connection(target, ClientOptions(**options), credentials)
            try:
                await connection.ready(connection.options.connect_timeout_s)
            except BaseException:
                await connection.close()
                raise
            return cls(connection)

        return Connecting(lambda: open_connection().__await__())

    async def close(self) -> None:
        """Send what waits, settle what is under way, give back what consumers hold, and disconnect.

        What your program has in hand goes back uncounted. Where `async with` closes the client because of an error,
        it keeps its lease instead: if nobody resumes the work, it failed.
        """
        await self._close(release=True)

    async def _close(self, *, release: bool) -> None:
        if self._connection.closed:
            return
        if self._producer is not None:
            await self._producer.close()
        await asyncio.gather(*(settler.close() for settler in [*self._settlers]))
        await asyncio.gather(*(session.close(release=release) for session in [*self._sessions]))
        await self._connection.close()

    def __del__(self) -> None:
        producer = getattr(self, "_producer", None)
        if producer is None or self._connection.closed:
            return
        if (count := producer.unanswered_count) > 0:
            warnings.warn(
                f"a FilaClient was dropped with {count} enqueues unanswered; they may not be stored. Await "
                "them, and close the client (async with FilaClient.connect(...) as client)",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An error may be a message's doing: were it given back uncounted, it would come back for ever.
        await self._close(release=not isinstance(error, Exception))

    # Producing.

    async def enqueue(
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

        Concurrent calls travel together; a call alone is sent at once.

        delay_ms    not ready before this many milliseconds from now
        deliver_at  not ready before this moment (timezone-aware)
        ttl_ms      dropped when nobody has leased it within this many milliseconds
        dedup_key   a second enqueue with this key within the queue's window answers the first one's id
        replace     the latest wins: an earlier message with this `dedup_key` gives way if it is not delivered yet
        max_wait_ms with `replace`: the delay ends at the latest so long after the first of them was accepted
        fairness_key, weight, cost
                    where the queue has `allow_producer_routing`: how it is shared; else headers and the queue decide
        priority    0 to 3, 3 first among the messages of its fairness key; else the queue decides

        Raises QueueNotFound, Invalid, Overloaded; Unavailable when it was certainly not sent;
        AnswerLost when it was sent and the answer did not come. An enqueue whose answer was lost is
        never repeated by the client, unless it has a dedup_key and replaces nothing: it could be stored twice.
        """
        require_text("queue", queue)
        options = encode_options(
            delay_ms,
            deliver_at,
            ttl_ms,
            dedup_key,
            replace=replace,
            max_wait_ms=max_wait_ms,
            fairness_key=fairness_key,
            weight=weight,
            cost=cost,
            priority=priority,
        )
        if not self._options.batching or travels_alone(payload):
            request = make(EnqueueRequest, queue=queue, headers=headers, payload=payload, options=options)
            answer = await self._connection.call(
                ENQUEUE, request, {"queue": queue}, repeatable=options is not None and may_repeat(options)
            )
            return MessageId(answer.message_id, answer.offset)
        message = make(EnqueueMessage, headers=headers, payload=payload, options=options)
        return await self._get_producer().enqueue(queue, message)

    async def enqueue_many(self, queue: str, messages: Iterable[NewMessage | bytes]) -> list[MessageId]:
        """Store many messages, a window of large frames at a time; the fastest way to produce.

        `messages` is read as fast as the broker takes it, so it may be a generator; plain bytes are a
        message without headers. Return the ids in order. One bad message does not fail its neighbours:
        if any was refused, SomeFailed tells what became of each one (`results`).
        """
        require_text("queue", queue)
        outcomes = await self._get_producer().enqueue_many(queue, messages)
        ids = [outcome for outcome in outcomes if not isinstance(outcome, FilaError)]
        if len(ids) != len(outcomes):
            raise SomeFailed(outcomes)
        return ids

    def _get_producer(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(self._connection)
        return self._producer

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
    ) -> Consumer[Message]:
        """Return a consumer to loop over: `async for msg in client.consume("orders")`.

        channel               the channel; None means `default`
        prefetch              how many messages are leased to this consumer at once, those in your hands included;
                              "auto" follows how fast you work, None takes the client's setting, which is "auto"
        stop_when_idle_s      end the loop when nothing arrived for this many seconds; None: never. Time in which
                              the broker is not heard does not count: an outage is not an empty queue
        name                  the consumer's name for people; None takes the client's
        max_lease_renewal_ms  how long the broker keeps the lease of a message from when you got it, as long as this
                              consumer is alive: at most 43,200,000 (12 h); None: 600,000 (10 min); 0: only the
                              queue's visibility timeout

        A broken stream is resumed with backoff; every other error of the stream is raised by the loop:
        QueueNotFound, also when the queue is deleted under it, ChannelNotFound, Invalid, Unavailable
        after `reconnect_for_s`. After the loop, messages you still hold can be settled until their
        leases end.
        """
        plan = self._plan(queue, channel, prefetch, name, max_lease_renewal_ms)
        return self._consume(plan, stop_when_idle_s, Message)

    def _plan(
        self,
        queue: str,
        channel: str | None,
        prefetch: Prefetch | None,
        name: str | None,
        max_lease_renewal_ms: int | None,
    ) -> SessionPlan:
        require_text("queue", queue)
        if channel is not None:
            require_text("channel", channel)
        if name is not None:
            require_text("name", name)
        if max_lease_renewal_ms is not None:
            require_number("max_lease_renewal_ms", max_lease_renewal_ms)
        held = self._options.prefetch if prefetch is None else prefetch
        check_prefetch(held)
        return SessionPlan(
            queue=queue,
            channel=channel or "",
            prefetch=held,
            name=self._options.name if name is None else name,
            max_lease_renewal_ms=max_lease_renewal_ms,
        )

    def _consume(
        self, plan: SessionPlan, stop_when_idle_s: float | None, make_message: MakeMessage[MessageT]
    ) -> Consumer[MessageT]:
        def open_session() -> Session[MessageT]:
            session = Session(self._connection, plan, make_message)
            self._sessions.add(session)
            self._settlers.add(session.settler)
            self._consuming.setdefault((plan.queue, plan.channel or "default"), []).append(session.settler)
            session.task.add_done_callback(lambda _: self._outlive(session))
            return session

        return Consumer(open_session, stop_when_idle_s)

    def _outlive(self, session: Session[Any]) -> None:
        """Keep the leases of a consumer that is over: its messages may still be acked by id."""
        self._sessions.discard(session)
        settler = session.settler
        name = (settler.queue, settler.channel or "default")
        self._consuming[name].remove(settler)
        if not self._consuming[name]:
            del self._consuming[name]
        in_hand = [(message.id, message.lease_id) for message in session.holding.in_hand.values()]
        if in_hand:
            self._puller(settler.queue, settler.channel).memory.remember_all(in_hand)

    async def lease(
        self, queue: str, max_messages: int = 1, *, wait_ms: int = 0, channel: str | None = None
    ) -> list[Message]:
        """Pull up to `max_messages` (at most 10,000) that are ready, waiting up to `wait_ms` milliseconds
        for the first. Empty when there were none. Raises QueueNotFound, ChannelNotFound, Invalid."""
        return await self._lease(queue, max_messages, wait_ms, channel, Message)

    async def _lease(
        self,
        queue: str,
        max_messages: int,
        wait_ms: int,
        channel: str | None,
        make_message: MakeMessage[MessageT],
    ) -> list[MessageT]:
        require_text("queue", queue)
        require_count("max_messages", max_messages)
        request = make(
            LeaseRequest, queue=queue, channel=channel or "", max_messages=max_messages, wait_ms=wait_ms
        )
        known = {"queue": queue, "channel": channel or "default"}
        answer = await self._connection.call(LEASE, request, known, timeout_s=wait_ms / 1000 + LEASE_GRACE_S)
        puller = self._puller(queue, channel)
        pulled: list[MessageT] = []
        for message in answer.messages:
            # Nothing pulled waits in the client, so nobody needs to know here when the lease ends.
            pulled.append(make_message(message, puller.settler, float("inf")))
            puller.memory.remember(pulled[-1].id, pulled[-1].lease_id)
        return pulled

    def _puller(self, queue: str, channel: str | None) -> Puller:
        name = (queue, channel or "default")
        puller = self._pulled.get(name)
        if puller is None:
            memory = LeaseMemory()
            settler = Settler(self._connection, queue, channel or "", memory, LostLeases())
            puller = self._pulled[name] = Puller(settler, memory)
            self._settlers.add(settler)
        return puller

    # Settling.

    def ack(self, queue: str, message_id: str, *, channel: str | None = None) -> Awaitable[None]:
        """The message is done. As `Message.ack`, for when only the id is at hand: the client remembers the
        lease under which it delivered the message, so that a late ack cannot settle somebody else's."""
        settler, lease_id = self._held(queue, message_id, channel)
        return settler.ack(message_id, lease_id)

    def nack(
        self,
        queue: str,
        message_id: str,
        error: str = "",
        delay_ms: int | None = None,
        *,
        dead_letter: bool = False,
        channel: str | None = None,
    ) -> Awaitable[None]:
        """The message failed. As `Message.nack`, for when only the id is at hand."""
        settler, lease_id = self._held(queue, message_id, channel)
        return settler.nack(message_id, lease_id, Nack(error, delay_ms, dead_letter))

    def reject(
        self, queue: str, message_id: str, error: str = "", *, channel: str | None = None
    ) -> Awaitable[None]:
        """Make the message a dead letter now. As `Message.reject`, for when only the id is at hand."""
        settler, lease_id = self._held(queue, message_id, channel)
        return settler.nack(message_id, lease_id, Nack(error, dead_letter=True))

    def release(self, queue: str, message_id: str, *, channel: str | None = None) -> Awaitable[None]:
        """Put the message back uncounted. As `Message.release`, for when only the id is at hand."""
        settler, lease_id = self._held(queue, message_id, channel)
        return settler.nack(message_id, lease_id, Nack(release=True))

    async def extend(
        self, queue: str, message_id: str, extend_ms: int, *, channel: str | None = None
    ) -> datetime:
        """Hold the message for `extend_ms` milliseconds from now. Return when the lease ends, by the
        broker's clock. `Message.extend` also tells the consumer."""
        settler, lease_id = self._held(queue, message_id, channel)
        return await settler.extend(message_id, lease_id, extend_ms)

    def _held(self, queue: str, message_id: str, channel: str | None) -> tuple[Settler, int]:
        """Return the settler and the lease of a delivery; lease 0 when this client does not know it."""
        require_text("queue", queue)
        require_text("message_id", message_id)
        if channel is not None:
            require_text("channel", channel)
        for settler in self._consuming.get((queue, channel or "default"), ()):
            if lease_id := settler.leases.get(message_id):
                return settler, lease_id
        puller = self._puller(queue, channel)
        return puller.settler, puller.memory.get(message_id) or 0

    async def ack_many(self, messages: Iterable[LeasedMessage]) -> None:
        """Ack many messages, in few frames. SomeFailed tells which were refused and why."""
        await settle_all([message._settler.ack(message.id, message.lease_id) for message in messages])

    async def nack_many(
        self, messages: Iterable[LeasedMessage], error: str = "", delay_ms: int | None = None
    ) -> None:
        """Nack many messages for one reason, in few frames. SomeFailed tells which were refused and why."""
        nack = Nack(error, delay_ms)
        await settle_all([message._settler.nack(message.id, message.lease_id, nack) for message in messages])


async def settle_all(settlements: list[Awaitable[None]]) -> None:
    """Await them all, whatever becomes of some."""
    results: list[FilaError | None] = []
    for settlement in settlements:
        try:
            await settlement
            results.append(None)
        except FilaError as error:
            results.append(error)
    if any(results):
        raise SomeFailed(results)
