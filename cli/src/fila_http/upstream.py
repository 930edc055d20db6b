"""The broker behind the gateway: one connection for all callers, each call in the name of its caller's key.

Single messages of one key travel together (fila.producer). A producer is a stream of its own, so the gateway keeps
those of the keys that were used last, and lets the idle ones go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import Message
from grpc.aio import UnaryStreamCall

from fila.connection import Connection
from fila.errors import AnswerLost, FilaError
from fila.messages import MessageId, may_repeat
from fila.methods import ENQUEUE, WHO_AM_I, Method
from fila.options import ClientOptions
from fila.producer import Producer, travels_alone
from fila.v1.admin_pb2 import Intake
from fila.v1.auth_pb2 import WhoAmIRequest, WhoAmIResponse
from fila.v1.events_pb2 import GetStatusRequest, GetStatusResponse
from fila.v1.service_pb2 import EnqueueMessage, EnqueueRequest
from fila_http.problems import unavailable
from fila_http.route import Route

PRODUCERS_MAX = 256
"""Keys with a stream for single messages; a message of one more key is a call of its own."""

PRODUCER_IDLE_S = 60.0
RETRY_FOR_S = 1.0
"""How long a broker that does not answer is tried again: the caller waits, and can try again itself."""

CALL_TIMEOUT_S = 30.0
PROBE_TIMEOUT_S = 5.0
PROBE = Method("/fila.v1.FilaAdmin/GetStatus", GetStatusRequest, GetStatusResponse, repeatable=True)

_log = logging.getLogger("fila.http")


class Upstream:
    """Calls to one broker."""

    def __init__(self, target: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        # Without a key of its own, whatever the environment holds: a caller without one must be nobody.
        options = ClientOptions(
            api_key="", retry_for_s=RETRY_FOR_S, call_timeout_s=CALL_TIMEOUT_S, name="fila http"
        )
        self._connection = Connection(target, options, credentials)
        self._producers: OrderedDict[str, Producer] = OrderedDict()
        self._used_at_s: dict[str, float] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.now_s: Callable[[], float] = options.clock.now_s

    @property
    def target(self) -> str:
        """The broker's address."""
        return self._connection.target

    async def call(
        self, key: str, route: Route, request: Message | bytes, timeout_s: float | None = None
    ) -> bytes:
        """Carry out one call; the answer is as the broker wrote it. Raises FilaError."""
        answer: bytes = await self._connection.with_key(key).call(
            route.method, request, {}, timeout_s=timeout_s
        )
        return answer

    async def open_stream(self, key: str, route: Route, request: Message) -> UnaryStreamCall[Any, Any]:
        """Start a call that answers with a stream. Raises FilaError where there is no broker."""
        await self.check_reached()
        return self._connection.with_key(key).read_stream(route.method, request)

    async def enqueue(self, key: str, request: EnqueueRequest) -> MessageId:
        """Store one message, together with others of that key. Raises FilaError.

        A key's first message is a call of its own: a stream that is refused while it is written to loses the reason
        (grpc.aio), so none is opened for a key that was not taken yet, and one that failed is not used again.
        """
        producer = None if travels_alone(request.payload) else self._producers.get(key)
        if producer is None:
            answer = await self._connection.with_key(key).call(
                ENQUEUE, request, {}, repeatable=may_repeat(request.options)
            )
            self._make_producer(key)
            return MessageId(answer.message_id, answer.offset)
        self._producers.move_to_end(key)
        self._used_at_s[key] = self.now_s()
        message = EnqueueMessage(headers=request.headers, payload=request.payload)
        if request.HasField("options"):
            message.options.CopyFrom(request.options)
        try:
            return await producer.enqueue(request.queue, message)
        except FilaError as error:
            ended = isinstance(error, AnswerLost) or error.code is grpc.StatusCode.UNAUTHENTICATED
            if ended and self._producers.get(key) is producer:
                self._close_producer(key)
            raise

    def _make_producer(self, key: str) -> None:
        if key in self._producers:
            return
        if len(self._producers) < PRODUCERS_MAX or self._let_go(1, idle_s=0):
            self._producers[key] = Producer(self._connection.with_key(key))
            self._used_at_s[key] = self.now_s()

    def _close_producer(self, key: str) -> None:
        del self._used_at_s[key]
        closing = asyncio.ensure_future(self._producers.pop(key).close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _let_go(self, most: int, *, idle_s: float) -> int:
        """Close producers that wait for nothing and were not used for so long, the longest unused first."""
        until_s = self.now_s() - idle_s
        gone = 0
        for key, producer in [*self._producers.items()]:
            if gone == most or self._used_at_s[key] > until_s:
                break
            if producer.unanswered_count == 0:
                self._close_producer(key)
                gone += 1
        return gone

    async def keep_tidy(self) -> None:
        """Let idle producers go, for ever."""
        while True:
            await asyncio.sleep(PRODUCER_IDLE_S / 4)
            self._let_go(PRODUCERS_MAX, idle_s=PRODUCER_IDLE_S)

    async def close(self) -> None:
        """Send what waits, and disconnect."""
        await asyncio.gather(*(producer.close() for producer in self._producers.values()))
        await self._connection.close()

    # What the broker asks of its callers.

    async def asks_for_keys(self) -> bool:
        """Whether the broker refuses who shows no key. Raises FilaError when it can't be asked."""
        try:
            await self._connection.call(PROBE, GetStatusRequest(), {}, timeout_s=PROBE_TIMEOUT_S)
        except FilaError as error:
            if error.code is grpc.StatusCode.UNAUTHENTICATED:
                return True
            raise
        return False

    async def whose(self, key: str) -> WhoAmIResponse:
        """Whose key it is, "" for none. Raises FilaError where the broker does not take it, or can't be asked."""
        caller = self._connection.with_key(key)
        return await caller.call(WHO_AM_I, WhoAmIRequest(), {}, timeout_s=PROBE_TIMEOUT_S)

    async def intake(self, key: str, queue: str) -> Intake:
        """What of a sender's headers the queue's messages keep; nothing where the caller may not produce there. Raises
        FilaError."""
        caller = self._connection.with_key(key)
        told = await caller.call(WHO_AM_I, WhoAmIRequest(queue=queue), {}, timeout_s=PROBE_TIMEOUT_S)
        return told.intake

    async def check_reached(self) -> None:
        """Raises FilaError where the broker is not reached. Nothing is asked of it."""
        await self._connection.ready(RETRY_FOR_S)

    async def until_reached(self) -> None:
        """Return when the connection stands."""
        await self._connection.ready(None)

    async def until_lost(self) -> None:
        """Return when it does not stand any more."""
        await self._connection.broken()


class Gate:
    """Opens a gateway that other machines reach only while the broker asks for keys.

    For a broker that asks for none, every caller from its own machine is an admin, and the gateway is such a caller. A
    broker changes its mind only by a restart, which breaks the connection: so each new one is asked before anything
    passes.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._is_open = False
        self._why = "the broker was not reached yet; try again in a second"

    def check(self) -> None:
        """Raises Problem while the gate is shut."""
        if not self._is_open:
            raise unavailable(self._why)

    async def watch(self) -> None:
        """Ask each connection, for ever."""
        while True:
            await self._upstream.until_reached()
            with contextlib.suppress(FilaError):
                self._is_open = await self._upstream.asks_for_keys()
                if not self._is_open:
                    self._why = (
                        "the broker asks for no keys any more, and this gateway is reached from other machines: it "
                        "stays shut until auth.enabled is on again"
                    )
                    _log.error(self._why)
                await self._upstream.until_lost()
            self._is_open = False
            self._why = f"the broker at {self._upstream.target} is not reached; try again in a second"
            await asyncio.sleep(0.05)
