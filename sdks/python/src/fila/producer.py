"""Enqueues on their way to the broker, over one EnqueueStream: concurrent calls travel together.

    enqueue ──► gathering frame ──┐
                                  ├──► writer ──► in flight ──► reader ──► each caller's answer
    enqueue_many ──► its slices ──┘

When a gathering frame leaves:
    nothing is in flight           at the end of this turn of the loop, so a lone call does not wait
    one frame is in flight         when that is answered, or when as many have gathered as it holds (32 at least)
    more are in flight             when they are answered
    in any case                    when the frame is full, or after `linger_ms`

So a busy producer's frames grow by themselves.

When the stream breaks, the answers of what was in flight are lost. A message with a dedup_key is
sent again: the broker recognises it. Any other is not, for it may have been stored: its caller gets
AnswerLost and decides. What had not been sent stays here and goes over the next stream.

A node of a group that stands by takes no frame: all that was in flight is sent again, to the node that serves.

A broker that stops says so as it ends the stream, and takes no frame after that. So what was sent last was not taken,
and is sent again (see `_not_taken`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import cast

from grpc.aio import EOF, AioRpcError, StreamStreamCall

from fila.arguments import at_index
from fila.connection import Connection, raise_if_cancelled, unavailable_unless_said, write
from fila.errors import (
    AnswerLost,
    ClientClosed,
    FilaError,
    InternalError,
    NotAllowed,
    NotOwner,
    NotSupported,
    Overloaded,
    Unavailable,
    from_rpc_error,
    from_status,
    is_the_brokers_word,
)
from fila.frames import Frame, GatheredFrame, Outcome, SliceFrame
from fila.messages import MessageId, NewMessage, encode_into, may_repeat
from fila.methods import ENQUEUE, ENQUEUE_STREAM
from fila.v1.service_pb2 import EnqueueMessage, EnqueueRequest, EnqueueStreamRequest, EnqueueStreamResponse

EnqueueStream = StreamStreamCall[EnqueueStreamRequest, EnqueueStreamResponse]

_log = logging.getLogger("fila")

ALONE_FROM_BYTES = 8 << 20
"""A payload above this travels as a call of its own. The broker ends a stream at a frame above 16 MiB, and with it
the messages of everybody that were in flight; a call that is too large is refused alone."""

SECOND_FRAME_LEAST = 32
"""A second frame of at least so many leaves beside the first: while the broker syncs one, the callers of the other
are served. Smaller ones cost more than the wait does."""

CLOSING_POLL_S = 0.002
"""How often a closing producer looks whether everything is answered."""


class Producer:
    """Sends frames and hands out the answers. Its stream opens with the first message."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._options = connection.options
        self._clock = connection.options.clock
        self._backoff = connection.options.backoff
        self._loop = asyncio.get_running_loop()
        self._gathering: GatheredFrame | None = None
        self._full: deque[Frame] = deque()
        self._in_flight: dict[int, Frame] = {}
        self._sequence = 0
        self._waiting_bytes = 0
        self._retries = 0
        self._was_lost = False
        self._dropped = 0
        """Messages that were in flight when the loop ended under the producer."""
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._stream_ended = False
        self._linger_timer: asyncio.TimerHandle | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._stream: EnqueueStream | None = None
        self._delayed: set[asyncio.Task[None]] = set()
        self._task = self._loop.create_task(self._run())

    # What the client calls.

    async def enqueue(self, queue: str, message: EnqueueMessage) -> MessageId:
        """Send one message with whatever else is enqueued around now."""
        while not self._room.is_set():
            await self._room.wait()
        self._check_running()
        size = message.ByteSize()
        frame = self._gathering
        if frame is not None and frame.bytes + size > self._options.frame_bytes_max:
            self._full.append(frame)
            frame = None
        if frame is None:
            frame = self._gathering = GatheredFrame(queue, self._clock.now_s())
        if queue != frame.queue:
            message.queue = queue
        future: asyncio.Future[MessageId] = self._loop.create_future()
        frame.messages.append(message)
        frame.futures.append(future)
        frame.bytes += size
        self._add_waiting(size)
        if self._is_full(frame):
            self._full.append(frame)
            self._gathering = None
        self._wake.set()
        return await future

    async def enqueue_many(self, queue: str, messages: Iterable[NewMessage | bytes]) -> list[Outcome]:
        """Send many, a window of frames at a time. Return an outcome a message, in order."""
        results: list[Outcome | None] = []
        window: deque[asyncio.Future[None]] = deque()
        slice_: SliceFrame | None = None
        for index, message in enumerate(messages):
            size = payload_size(message)
            if size > ALONE_FROM_BYTES:
                if slice_ is not None:
                    window.append(self._put_slice(slice_, results))
                    slice_ = None
                window.append(self._put_alone(queue, message, results))
                continue
            if slice_ is not None and slice_.bytes + size > self._options.frame_bytes_max:
                window.append(self._put_slice(slice_, results))
                slice_ = None
            if slice_ is None:
                slice_ = SliceFrame(queue, self._clock.now_s())
            try:
                slice_.bytes += encode_into(slice_.messages, message)
            except (TypeError, ValueError) as failure:
                raise at_index(failure, "messages", index) from None
            if self._is_full(slice_):
                window.append(self._put_slice(slice_, results))
                slice_ = None
                # One slice more than may be in flight, so that the writer always finds the next.
                while len(window) > self._options.frames_in_flight_max:
                    await window.popleft()
        if slice_ is not None:
            window.append(self._put_slice(slice_, results))
        for done in window:
            await done
        return [InternalError("no outcome") if outcome is None else outcome for outcome in results]

    def _put_slice(self, slice_: SliceFrame, results: list[Outcome | None]) -> asyncio.Future[None]:
        self._check_running()
        slice_.take_places(results)
        self._full.append(slice_)
        self._wake.set()
        return slice_.done

    def _put_alone(
        self, queue: str, message: NewMessage | bytes, results: list[Outcome | None]
    ) -> asyncio.Future[None]:
        """Send one large message as a call of its own, beside the stream."""
        alone = SliceFrame(queue, self._clock.now_s())
        encode_into(alone.messages, message)
        alone.take_places(results)
        sending = self._loop.create_task(self._send_alone(queue, alone))
        self._delayed.add(sending)
        sending.add_done_callback(self._delayed.discard)
        return alone.done

    async def _send_alone(self, queue: str, alone: SliceFrame) -> None:
        message = alone.messages[0]
        request = EnqueueRequest(
            queue=queue,
            headers=message.headers,
            payload=message.payload,
            options=message.options if message.HasField("options") else None,
        )
        repeatable = may_repeat(message.options)
        try:
            answer = await self._connection.call(ENQUEUE, request, {"queue": queue}, repeatable=repeatable)
        except FilaError as error:
            alone.resolve(0, error)
        else:
            alone.resolve(0, MessageId(answer.message_id, answer.offset))

    def _is_full(self, frame: Frame) -> bool:
        options = self._options
        return len(frame.messages) >= options.frame_messages_max or frame.bytes >= options.frame_bytes_max

    def _check_running(self) -> None:
        if self._task.done():
            raise ClientClosed("this client was closed; connect a new one")

    def _add_waiting(self, size: int) -> None:
        self._waiting_bytes += size
        if self._waiting_bytes >= self._options.waiting_bytes_max:
            self._room.clear()

    async def close(self) -> None:
        """Send what waits and take in what is answered, for as long as a call may take; fail the rest."""
        began_at_s = self._clock.now_s()
        while self._unanswered() and self._clock.now_s() < began_at_s + self._options.call_timeout_s:
            await self._clock.sleep(CLOSING_POLL_S)
        self._task.cancel()
        await asyncio.wait([self._task])
        self._dropped = 0
        self._fail_waiting(ClientClosed("the client was closed before the message was sent"))

    @property
    def unanswered_count(self) -> int:
        """Messages of enqueues whose callers were told nothing yet, those cut off by the loop's end included."""
        frames = [*self._full, *self._in_flight.values()]
        if self._gathering is not None:
            frames.append(self._gathering)
        return self._dropped + sum(len(frame.messages) for frame in frames)

    def _unanswered(self) -> bool:
        return bool(self._gathering or self._full or self._in_flight or self._delayed)

    # The stream.

    async def _run(self) -> None:
        try:
            while True:
                while not (self._gathering or self._full):
                    self._wake.clear()
                    await self._wake.wait()
                try:
                    await self._connection.ready(self._options.retry_for_s)
                except Unavailable as error:
                    self._fail_waiting(error)
                else:
                    await self._follow_stream()
        except ClientClosed as error:
            self._fail_waiting(error)
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not leave callers waiting for ever
            self._fail_waiting(InternalError(f"the producer stopped on a mistake of the SDK: {error!r}"))

    async def _follow_stream(self) -> None:
        """Write frames until the stream ends, and settle the accounts of those it left unanswered."""
        stream: EnqueueStream = self._connection.open_stream(ENQUEUE_STREAM)
        self._stream = stream
        self._stream_ended = False
        reader = self._loop.create_task(self._read(stream))
        failure: FilaError | None = None
        try:
            while not self._stream_ended:
                frame = self._next_frame()
                if frame is None:
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                if self._waiting_bytes < self._options.waiting_bytes_max:
                    self._room.set()
                self._sequence += 1
                frame.sent_at_s = self._clock.now_s()
                self._in_flight[self._sequence] = frame
                self._watch()
                frame.request.sequence = self._sequence
                await write(stream, frame.request)
        except Exception as error:  # noqa: BLE001 - whatever grpc.aio says here, the stream is over
            _log.debug("write on a broken stream: %r", error)
        except asyncio.CancelledError:
            failure = ClientClosed("the client was closed before the answer came")
            in_flight = sum(len(frame.messages) for frame in self._in_flight.values())
            self._dropped += in_flight
            raise_if_cancelled()
            self._dropped -= in_flight
            failure = None
        finally:
            self._stream = None
            stream.cancel()
            if failure is None:
                failure = await reader
            else:
                reader.cancel()
            self._lose_in_flight(failure)
        self._connection.follow(failure)
        self._note_lost(failure)
        self._retries += 1
        if self._unanswered():
            await self._clock.sleep(self._backoff.wait_s(self._retries - 1))

    def _note_lost(self, failure: FilaError) -> None:
        self._was_lost = True
        _log.warning("the stream of enqueues is lost, the next enqueue reopens it: %s", failure)

    def _note_back(self) -> None:
        if self._was_lost:
            self._was_lost = False
            _log.warning("the stream of enqueues is back")

    def _next_frame(self) -> Frame | None:
        """Return the frame to send now, or None when it is time to wait."""
        if len(self._in_flight) >= self._options.frames_in_flight_max:
            return None
        frame: Frame
        if self._full:
            frame = self._full.popleft()
            if isinstance(frame, GatheredFrame):
                self._waiting_bytes -= frame.bytes
            return frame
        gathering = self._gathering
        if gathering is None:
            return None
        linger_s = self._options.linger_ms / 1000
        waited_s = self._clock.now_s() - gathering.first_at_s
        if self._in_flight and waited_s < linger_s and not self._is_second(gathering):
            if self._linger_timer is None:
                self._linger_timer = self._loop.call_later(linger_s - waited_s, self._linger_over)
            return None
        self._gathering = None
        self._waiting_bytes -= gathering.bytes
        return gathering

    def _is_second(self, frame: GatheredFrame) -> bool:
        if len(self._in_flight) > 1:
            return False
        (first,) = self._in_flight.values()
        return len(frame.messages) >= max(SECOND_FRAME_LEAST, len(first.messages))

    def _linger_over(self) -> None:
        self._linger_timer = None
        self._wake.set()

    async def _read(self, stream: EnqueueStream) -> FilaError:
        """Take in answers until the stream ends, and return why it did."""
        try:
            while (response := await stream.read()) is not EOF:
                self._take_in(cast("EnqueueStreamResponse", response))
            return Unavailable("the broker ended the stream")
        except AioRpcError as failure:
            return unavailable_unless_said(from_rpc_error(failure, {}))
        except asyncio.CancelledError:
            return Unavailable("the stream was cancelled")
        except Exception as failure:  # noqa: BLE001 - as above
            return Unavailable(f"the stream broke: {failure!r}")
        finally:
            self._stream_ended = True
            self._wake.set()

    def _take_in(self, response: EnqueueStreamResponse) -> None:
        frame = self._in_flight.pop(response.sequence, None)
        if frame is None:
            return
        self._retries = 0
        self._note_back()
        self._wake.set()
        if len(response.results) != len(frame.messages):
            wrong = f"{len(frame.messages)} messages were sent, but {len(response.results)} results came back"
            for index in range(len(frame.messages)):
                frame.resolve(index, InternalError(wrong))
            return
        again: list[int] = []
        slowest: FilaError | None = None
        for index, result in enumerate(response.results):
            # Refused messages get no id; asking for the id is cheaper than asking for the error.
            if message_id := result.message_id:
                frame.resolve(index, MessageId(message_id, result.offset))
                continue
            status = result.error
            known = {"queue": frame.messages[index].queue or frame.queue}
            error = from_status(status.code, status.message, status.reason, known)
            if self._may_try_again(error, frame):
                again.append(index)
                slowest = error
            else:
                frame.resolve(index, error)
        if again and slowest is not None:
            self._send_later(frame.part(again))

    # Trying again, and giving up.

    def _may_try_again(self, error: FilaError, frame: Frame) -> bool:
        """Whether the broker refused for now only, and the caller's patience allows another try."""
        waited_s = self._clock.now_s() - frame.first_at_s
        if isinstance(error, Overloaded):
            return waited_s < self._options.wait_when_overloaded_s
        return isinstance(error, Unavailable) and waited_s < self._options.retry_for_s

    def _send_later(self, frame: Frame) -> None:
        async def wait_and_put() -> None:
            await self._clock.sleep(self._backoff.wait_s(frame.tries - 1))
            self._full.append(frame)
            self._wake.set()

        delayed = self._loop.create_task(wait_and_put())
        self._delayed.add(delayed)
        delayed.add_done_callback(self._delayed.discard)

    def _lose_in_flight(self, failure: FilaError) -> None:
        """The stream is over: what may be repeated goes back to the front, the rest is answered with why."""
        lost_at_s = self._clock.now_s()
        not_taken = self._not_taken(failure)
        took_none = isinstance(failure, NotOwner)
        frames = [*self._in_flight.values()]
        self._in_flight.clear()
        for frame in reversed(frames):
            again: list[int] = []
            patient = lost_at_s - frame.first_at_s < self._options.retry_for_s
            for index, message in enumerate(frame.messages):
                is_safe = took_none or frame is not_taken or may_repeat(message.options)
                if is_safe and patient and isinstance(failure, Unavailable):
                    again.append(index)
                elif took_none or frame is not_taken:
                    frame.resolve(index, failure)
                else:
                    frame.resolve(index, as_lost(failure, message.queue or frame.queue))
            if again:
                self._full.appendleft(frame.part(again))
                self._wake.set()

    def _not_taken(self, failure: FilaError) -> Frame | None:
        """Return the frame in flight of which the broker, which stops, said that it did not take it.

        It answers what it has taken and then ends the stream, with one exception: a frame that waits for its queue's
        script is refused by the end of the stream at once, and the answers of frames before it are dropped, though
        they may be stored. It reads nothing behind such a frame. So the last one that was sent was not taken in either
        case; of those before it nobody can tell.
        """
        if not says_that_it_stops(failure):
            return None
        return self._in_flight.get(self._sequence)

    def _fail_waiting(self, failure: FilaError) -> None:
        waiting: list[Frame] = [*self._full]
        if self._gathering is not None:
            waiting.append(self._gathering)
        self._full.clear()
        self._gathering = None
        self._waiting_bytes = 0
        self._room.set()
        for frame in waiting:
            for index in range(len(frame.messages)):
                frame.resolve(index, failure)

    # A broker that does not answer.

    def _watch(self) -> None:
        if self._watchdog is None:
            self._watchdog = self._loop.call_later(self._options.call_timeout_s, self._check_oldest)

    def _check_oldest(self) -> None:
        self._watchdog = None
        if not self._in_flight:
            return
        oldest_at_s = min(frame.sent_at_s for frame in self._in_flight.values())
        remaining_s = oldest_at_s + self._options.call_timeout_s - self._clock.now_s()
        if remaining_s > 0:
            self._watchdog = self._loop.call_later(remaining_s, self._check_oldest)
        elif self._stream is not None:
            self._stream.cancel()


def travels_alone(payload: object) -> bool:
    """Whether a payload is too large for the stream that others share."""
    return isinstance(payload, bytes) and len(payload) > ALONE_FROM_BYTES


def payload_size(message: object) -> int:
    payload = message.payload if isinstance(message, NewMessage) else message
    return len(payload) if isinstance(payload, bytes) else 0  # what is no bytes is refused a moment later


def says_that_it_stops(failure: FilaError) -> bool:
    """Whether the broker itself ended the stream because it stops; else the connection broke."""
    return isinstance(failure, Unavailable) and failure.reason == "SHUTTING_DOWN"


def as_lost(failure: FilaError, queue: str) -> FilaError:
    """Return what the sender of a message in flight must know: above all, that it may have been stored."""
    said = is_the_brokers_word(failure) and not isinstance(failure, Unavailable)
    if not (said or isinstance(failure, NotSupported | NotAllowed | ClientClosed)):
        lost = AnswerLost(f"the message for {queue} may have been stored, but no answer came: {failure}")
        lost.__cause__ = failure
        return lost
    return failure
