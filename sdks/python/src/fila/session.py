"""One consumer's stream, kept alive: deliveries come down it, settlements go up, and it is resumed when it breaks.

    connecting ──► open ──► leaving ──────────────► over
        ▲           │          the buffer goes back at once; the stream is closed
        └─ backoff ◄┘          as soon as nothing that was handed out is unsettled

What a session holds is in `holding.py`, what it declares in `begun.py`, how long it may hand out in `liveness.py`,
and how much it asks for in `prefetch.py`. A broker that is older than these rules answers `Opened` without a
visibility timeout: with it the window is a number, and every delivery is begun.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Generic, cast

from grpc.aio import EOF, AioRpcError, BaseError

from fila.begun import FRAME_LEASES_MAX, Begun
from fila.connection import Connection, raise_if_cancelled, unavailable_unless_said, write
from fila.errors import ClientClosed, FilaError, Overloaded, Unavailable, from_rpc_error
from fila.holding import Holding, MessageT
from fila.liveness import Liveness
from fila.loops import Loop
from fila.methods import CONSUME_SESSION
from fila.nack import Nack
from fila.outage import Outage
from fila.prefetch import AdaptivePrefetch, FixedPrefetch, Prefetch, PrefetchControl
from fila.settle import SettleFrame, Settler
from fila.v1 import messages_pb2
from fila.v1.service_pb2 import ConsumeSessionRequest, ConsumeSessionResponse, Settle
from fila.writer import SessionStream, StreamWriter

CLOSE_TIMEOUT_S = 2.0
"""How long a closing session waits for the broker to end the stream."""

OLD_BROKER_WINDOW = 256
"""The window with a broker that can't change it while the stream is open."""

TRIES_PER_GRACE = 8
"""A session that holds leases waits at most this part of the broker's grace between two tries to come back. A broker
that can't be reached is called anew by gRPC, every 0.6 s at least: see connection.py."""

MakeMessage = Callable[[messages_pb2.Message, Settler, float], MessageT]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """What a consumer asked for."""

    queue: str
    channel: str
    prefetch: Prefetch
    name: str = ""
    """The consumer's name for people."""
    max_lease_renewal_ms: int | None = None
    """How long the broker keeps a lease of the living session; None: the broker's default."""


class Session(Generic[MessageT]):
    """Keeps its loops in work until `leave`; `failure` says why it ended before. A SettleTransport."""

    def __init__(
        self, connection: Connection, plan: SessionPlan, make_message: Callable[..., MessageT]
    ) -> None:
        options = connection.options
        control: PrefetchControl
        if plan.prefetch == "auto":
            control = AdaptivePrefetch(options.prefetch_buffer_ms * 1000)
        else:
            control = FixedPrefetch(plan.prefetch)
        self.plan = plan
        self.failure: FilaError | None = None
        self.leaving = False
        self._connection = connection
        self._clock = options.clock
        self._writer = StreamWriter()
        self._liveness = Liveness()
        self.holding: Holding[MessageT] = Holding(control, options.clock.now_s, self._tell_window)
        self._begun = Begun(self.holding, self._writer)
        self.holding.handed_out = self._begun.handed_out
        self.settler = Settler(connection, plan.queue, plan.channel, self.holding, self.holding.lost)
        self._make_message = make_message
        self._tracked = True
        self._consumer_id = 0
        self._grace_s = 0.0
        self._timeout_s = 0.0
        self._open = False
        self._outage = Outage(connection, plan.queue, plan.channel)
        self._close_sent = False
        self._closing: asyncio.Task[None] | None = None
        self._alive_timer: asyncio.TimerHandle | None = None
        self._leave_timer: asyncio.TimerHandle | None = None
        self._event_loop = asyncio.get_running_loop()
        self.task = self._event_loop.create_task(self._run())

    @property
    def is_heard(self) -> bool:
        """Whether messages could come and be handed out now: the broker was heard from lately enough."""
        return self._clock.now_s() < self._liveness.hand_out_until_s

    # Life.

    async def _run(self) -> None:
        options = self._connection.options
        attempt = 0
        outage_began_at_s = self._clock.now_s()
        try:
            while True:
                try:
                    await self._connection.ready(options.reconnect_for_s, outage_began_at_s)
                    if await self._follow_stream():
                        return
                except (Unavailable, Overloaded) as error:
                    self._connection.follow(error)
                    if self._open:
                        attempt = 0
                        outage_began_at_s = self._clock.now_s()
                    self._lose_stream(error)
                    if self.leaving and not self.holding:
                        return
                    wait_s = min(options.backoff.wait_s(attempt), self._wait_s_max())
                    away_s = self._clock.now_s() + wait_s - outage_began_at_s
                    if options.reconnect_for_s is not None and away_s > options.reconnect_for_s:
                        raise
                    attempt += 1
                    await self._clock.sleep(wait_s)
        except FilaError as error:
            self.failure = error
        finally:
            self._end()

    def _wait_s_max(self) -> float:
        """Who holds leases must be back within the broker's grace, and tries several times."""
        holds = self.holding or self.holding.ready
        return self._grace_s / TRIES_PER_GRACE if holds and self._grace_s else float("inf")

    async def _follow_stream(self) -> bool:
        """Open a stream and take in what comes; True when it ended because we left, False to open another."""
        known = {"queue": self.plan.queue, "channel": self.plan.channel or "default"}
        stream: SessionStream = self._connection.open_stream(CONSUME_SESSION)
        sent_at_s = self._clock.now_s()
        try:
            await write(stream, ConsumeSessionRequest(open=self._open_request()))
            # Not before: a word that a timer has for the broker meanwhile would come first, and the broker would end
            # the session for it. What is dropped until then is said anew when the stream is open.
            self._writer.attach(stream)
            response = await stream.read()
            if response is not EOF and not await self._take_opened(response, sent_at_s, stream):
                return False
            while (response := await stream.read()) is not EOF:
                self._take_in(cast("ConsumeSessionResponse", response))
            if not self._close_sent:
                raise Unavailable("the broker ended the consumer's stream")
        except AioRpcError as failure:
            if not self._close_sent:
                raise unavailable_unless_said(from_rpc_error(failure, known)) from failure
        except (BaseError, TimeoutError, asyncio.InvalidStateError) as failure:
            # What grpc.aio says of a stream that ended under a write.
            raise Unavailable(f"the consumer's stream broke: {failure!r}") from failure
        except asyncio.CancelledError:
            raise_if_cancelled()
            raise Unavailable("the consumer's stream was cancelled") from None
        finally:
            self._writer.detach()
            self._liveness.lost()
            stream.cancel()
            self.settler.use_calls()
        return True

    def _open_request(self) -> ConsumeSessionRequest.Open:
        plan = self.plan
        window = len(self.holding) if self.leaving else self.holding.control.window
        request = ConsumeSessionRequest.Open(
            queue=plan.queue,
            channel=plan.channel,
            max_in_flight=max(1, window),  # 0 would mean 256
            tracks_begun=True,
            name=plan.name,
            max_lease_renewal_ms=plan.max_lease_renewal_ms,
        )
        if self._consumer_id:
            request.resume.consumer_id = self._consumer_id
            request.resume.lease_ids.extend(self._leases_held())
        return request

    def _leases_held(self) -> list[int]:
        """All that the broker must not return on a resume: also what is being settled, as it may not know of that.

        At most as many as a resume may name, the buffer and what is in hand first. Of what is being settled and not
        named the broker has settled nearly all already; the rest is delivered again.
        """
        self.holding.account()
        held = [message.lease_id for message in self.holding.ready]
        held += [message.lease_id for message in self.holding.in_hand.values()]
        return [*held, *self.settler.unanswered_leases()][:FRAME_LEASES_MAX]

    async def _take_opened(self, response: object, sent_at_s: float, stream: SessionStream) -> bool:
        """Begin by the broker's word; False when it is older than an adapting window, so that it needs a fixed one."""
        opened = cast("ConsumeSessionResponse", response).opened
        self._tracked = opened.visibility_timeout_ms > 0
        self.settler.knows_release = self._tracked
        leases_lost = 0
        if not self._tracked:
            self._liveness.opened_without_rules()
            if isinstance(self.holding.control, AdaptivePrefetch):
                self.holding.control = FixedPrefetch(OLD_BROKER_WINDOW)
                await self._leave_stream(stream)
                return False
        else:
            self._consumer_id = opened.consumer_id
            self._timeout_s = opened.visibility_timeout_ms / 1000
            self._grace_s = opened.disconnect_grace_ms / 1000
            self.holding.renewal_s = opened.max_lease_renewal_ms / 1000
            leases_lost = self.holding.lose(opened.lost_lease_ids, "LEASE_LOST")
            self._liveness.opened(sent_at_s, self._timeout_s)
            self._say_alive_later()
        self._open = True
        self.settler.use_session(self)
        if self._tracked:
            self._begun.declare_anew()
        self._outage.ends(leases_lost)
        if self.leaving:
            self._give_back_buffer()
            self._close_when_settled()
        self.holding.arrivals.wake_all()
        return True

    async def _leave_stream(self, stream: SessionStream) -> None:
        """Leave a stream without losing what the broker has sent on it meanwhile."""
        await write(stream, ConsumeSessionRequest(close=ConsumeSessionRequest.Close(release=True)))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                while await stream.read() is not EOF:
                    pass

    def _lose_stream(self, error: FilaError) -> None:
        self._cancel_alive()
        if self._open:
            self._open = False
            self._outage.begins(error)

    def _end(self) -> None:
        self._open = False
        self._cancel_alive()
        if self._leave_timer is not None:
            self._leave_timer.cancel()
        self._begun.close()
        self.holding.close()
        self.settler.use_calls()
        self.holding.arrivals.wake_all()

    # What comes down.

    def _take_in(self, response: ConsumeSessionResponse) -> None:
        kind = response.WhichOneof("response")
        if kind == "delivery":
            self._deliver(response.delivery.messages)
        elif kind == "settled":
            self.settler.settled(response.settled)
            self._close_when_settled()
        elif kind == "alive":
            self._hear(response.alive.sequence)
        elif kind == "revoked":
            self.holding.lose(response.revoked.lease_ids, response.revoked.reason)
            self._close_when_settled()

    def _deliver(self, messages: Sequence[messages_pb2.Message]) -> None:
        if not messages:
            return
        if self.leaving:
            if self._tracked and not self._close_sent:
                self._post_window(0, [message.metadata.lease_id for message in messages])
            return  # else given back with the close
        lease_s = self.holding.renewal_s
        if not lease_s:
            # The broker's clock tells how long the lease is; ours, from when it runs.
            first = messages[0].timestamps
            lease_s = (first.lease_expires_at.ToNanoseconds() - first.leased_at.ToNanoseconds()) / 1e9
        held_until_s = self._clock.now_s() + lease_s if lease_s > 0 else float("inf")
        make, settler = self._make_message, self.settler
        self.holding.deliver([*map(make, messages, repeat(settler), repeat(held_until_s))])

    # Staying alive.

    def _say_alive_later(self) -> None:
        self._cancel_alive()
        self._alive_timer = self._event_loop.call_later(self._liveness.interval_s, self._say_alive)

    def _say_alive(self) -> None:
        sequence = self._liveness.say_alive(self._clock.now_s())
        if sequence is not None:
            alive = ConsumeSessionRequest.Alive(
                sequence=sequence, handling_time_us=self.holding.control.times.median_us
            )
            self._writer.post(ConsumeSessionRequest(alive=alive))
        self._say_alive_later()

    def _cancel_alive(self) -> None:
        if self._alive_timer is not None:
            self._alive_timer.cancel()
            self._alive_timer = None

    def _hear(self, sequence: int) -> None:
        was_silent = self._clock.now_s() >= self._liveness.hand_out_until_s
        self._liveness.answered(sequence)
        if was_silent:
            if self._clock.now_s() >= self._liveness.hand_out_until_s:
                self._say_alive()  # an answer to an old one: ask anew, as the broker is back
            self.holding.arrivals.wake_all()

    # Handing out.

    def join(self, size: int) -> Loop:
        """A loop that works on up to `size` messages at once begins."""
        return self.holding.join(size)

    def part(self, loop: Loop) -> None:
        """A loop ends."""
        self.holding.part(loop)

    def take(self, loop: Loop, count_max: int) -> list[MessageT]:
        """Return messages whose leases run, empty when there are none now. They are yours to settle; of those that
        `must_declare` the program must see nothing before `declare`."""
        taken = self.holding.take(loop, count_max, self._liveness.hand_out_until_s)
        if not taken and self._liveness.should_ask(self._clock.now_s()):
            self._say_alive()
        return taken

    def take_one(self, loop: Loop) -> MessageT | None:
        """As `take` of one message; None when there is none now."""
        message = self.holding.take_one(loop, self._liveness.hand_out_until_s)
        if message is None and self._liveness.should_ask(self._clock.now_s()):
            self._say_alive()
        return message

    def take_by_thread(self, loop: Loop) -> MessageT | None:
        """As `take` of one message, for a thread that is not the client's."""
        return self.holding.take_by_thread(loop, self._liveness.hand_out_until_s)

    async def declare(self, taken: Sequence[MessageT]) -> list[MessageT]:
        """Write the broker the word that these are begun, and return those that are still ours then. Where the stream
        broke meanwhile that is none: they are handed out anew when it is back."""
        self.holding.account()
        if not self._tracked:
            return [*taken]
        try:
            written = await self._begun.declare(taken)
        except BaseException:
            self.undo(taken)
            raise
        if not written:
            self.holding.put_back(taken)
            return []
        in_hand = self.holding.in_hand
        return [message for message in taken if in_hand.get(message.id) is message]

    def undo(self, taken: Sequence[MessageT]) -> None:
        """Give back messages that were taken and that nobody has seen."""
        for message in taken:
            if self.holding.in_hand.get(message.id) is message and self._tracked:
                self.settler.nack(message.id, message.lease_id, Nack(release=True))

    # Windows.

    def _tell_window(self, size: int, give_back: list[int]) -> None:
        if self._open and self._tracked and not self.leaving:
            self._post_window(size, give_back)

    def _post_window(self, size: int, give_back: Sequence[int]) -> None:
        for first in range(0, max(1, len(give_back)), FRAME_LEASES_MAX):
            part = give_back[first : first + FRAME_LEASES_MAX]
            window = ConsumeSessionRequest.Window(size=size, give_back=part)
            self._writer.post(ConsumeSessionRequest(window=window))

    # Settling: this is a SettleTransport.

    async def send(self, frame: SettleFrame) -> None:
        """Write a frame of settlements; if the stream is broken, its end sends the frame another way."""
        settle = Settle(sequence=frame.sequence, lease_ids=frame.lease_ids)
        if frame.verdict is None:
            await self._writer.write(ConsumeSessionRequest(ack=settle))
            return
        nack = frame.verdict
        settle.error, settle.dead_letter, settle.release = nack.error, nack.dead_letter, nack.release
        if nack.delay_ms is not None:
            settle.delay_ms = nack.delay_ms
        if nack.limited is not None:
            settle.feedback.append(nack.limited.wire)
        await self._writer.write(ConsumeSessionRequest(nack=settle))

    # Leaving.

    def leave(self) -> None:
        """Take nothing more, and give the buffer back. The stream is closed once all that was handed out is settled. A
        visibility timeout from now it breaks off with what is still in hand, which has failed a grace later."""
        if self._leave_timer is not None or self.task.done():
            return
        wait_s = self._timeout_s if self._tracked else self.holding.held_until_s - self._clock.now_s()
        if wait_s < float("inf"):
            self._leave_timer = self._event_loop.call_later(max(0.0, wait_s), self._break_off)
        self.drain()

    def drain(self) -> None:
        """Take nothing more, give the buffer back, and stay while something that was handed out is unsettled."""
        if self.leaving:
            return
        self.leaving = True
        self.holding.arrivals.wake_all()
        if self._open:
            self._give_back_buffer()
            self._close_when_settled()
        else:
            self.holding.ready.clear()  # a resume does not name them, which gives them back
            if not self.holding:
                self.task.cancel()

    def _give_back_buffer(self) -> None:
        leases = self.holding.give_up(len(self.holding.ready))
        if self._tracked:
            self._post_window(0, leases)

    def _close_when_settled(self) -> None:
        if self.leaving and not self.holding and not self.settler.has_unanswered:
            self._close_stream()

    def _break_off(self) -> None:
        """Go without a word, as if the process had ended: so that what is in hand counts as failed soon."""
        if self._open and not self._tracked:
            self._close_stream()  # an old broker knows no other way of giving the buffer back
        else:
            self.task.cancel()

    def _close_stream(self) -> None:
        if not self._close_sent:
            self._close_sent = True
            self._closing = self._event_loop.create_task(self._write_close())

    async def _write_close(self) -> None:
        await self._writer.posted()
        await self._writer.write(ConsumeSessionRequest(close=ConsumeSessionRequest.Close(release=True)))
        await asyncio.wait([self.task], timeout=CLOSE_TIMEOUT_S)
        self.task.cancel()

    async def close(self, *, release: bool) -> None:
        """Leave at once, also with messages in the caller's hands: `release` gives them back uncounted, else they have
        failed when the broker's grace is over."""
        self.leave()
        if not self.task.done() and self._open:
            if release or not self._tracked:
                self._close_stream()
            else:
                await self._writer.posted()
            if self._closing is not None:
                await self._closing
        self.task.cancel()
        await asyncio.wait([self.task])
        if self.failure is None:
            self.failure = ClientClosed("the client was closed while this consumer was in use")
