"""`fila consume`: prints messages and acks them.

As a session, so that it stands among the queue's consumers; it comes back when the broker was restarted, and what it
was given and has not printed returns uncounted. With --no-ack, and to see what is there at this moment (--wait below a
second), it pulls instead.
"""

from __future__ import annotations

import itertools
import queue as queues
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from fila_cli.arguments import channel_option, queue_argument
from fila_cli.failures import BrokerError
from fila_cli.messages import print_message
from fila_cli.outage import AGAIN_AFTER_S, Outage
from fila_cli.session import Command, Session
from fila_cli.values import DURATION, Count

if TYPE_CHECKING:
    from fila.v1.messages_pb2 import Message
    from fila.v1.service_pb2 import ConsumeSessionRequest, ConsumeSessionResponse, LeaseResponse

_BATCH_MESSAGES_MAX = 100
_WAIT_MS = 1_000
_ALIVE_PER_TIMEOUT = 4
_REMEDY = "raise the queue's --visibility-timeout if printing takes that long"


@click.command(
    cls=Command,
    examples="""
    fila consume orders
    fila consume orders --count 10 --verbose
    fila consume orders --channel audit -o json | jq .payload
    fila consume orders --wait 5s
    fila consume orders --no-ack --count 1
    """,
)
@queue_argument
@channel_option
@click.option("-n", "--count", type=Count(min=1), metavar="N", help="Stop after so many [default: go on]")
@click.option(
    "--wait", "wait_ms", type=DURATION, help="Stop when nothing came for this long [default: go on]"
)
@click.option(
    "--ack/--no-ack",
    default=True,
    help="--no-ack leaves them leased: they come again after the visibility timeout",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Id, fairness key, attempts and headers before each payload"
)
@click.pass_obj
def consume(
    session: Session,
    queue: str,
    channel: str,
    count: int | None,
    wait_ms: int | None,
    *,
    ack: bool,
    verbose: bool,
) -> None:
    """Print the payloads of QUEUE as they become ready, acking each batch once it is printed.

    To look without taking, use 'fila queue peek', or 'fila log' for what others have consumed.
    """
    if ack and (wait_ms is None or wait_ms >= _WAIT_MS):
        _Stream(session, queue, channel, count, wait_ms, verbose=verbose).run()
    else:
        _pull(session, queue, channel, count, wait_ms, ack=ack, verbose=verbose)


# --- as a consumer ---------------------------------------------------------------------------


class _Stream:
    """A session that is opened again when it breaks, until as much was printed as was asked for."""

    def __init__(
        self,
        session: Session,
        queue: str,
        channel: str,
        count: int | None,
        wait_ms: int | None,
        *,
        verbose: bool,
    ) -> None:
        self._session = session
        self._queue = queue
        self._channel = channel
        self._left = count
        self._wait_s = None if wait_ms is None else wait_ms / 1000
        self._verbose = verbose
        self._was_open = False
        self._outage = Outage(session.address)

    def run(self) -> None:
        """Raises what the broker refuses, and what stands in the way of the first connection."""
        import grpc

        while True:
            try:
                self._consume()
                return
            except grpc.RpcError as error:
                if not self._was_open:
                    raise
                self._outage.meet(error)
                time.sleep(AGAIN_AFTER_S)

    def _consume(self) -> None:
        from fila.v1 import service_pb2

        requests: queues.SimpleQueue[ConsumeSessionRequest | None] = queues.SimpleQueue()
        open_ = service_pb2.ConsumeSessionRequest.Open(
            queue=self._queue,
            channel=self._channel,
            max_in_flight=min(self._left or _BATCH_MESSAGES_MAX, _BATCH_MESSAGES_MAX),
            tracks_begun=True,
            name="fila consume",
        )
        requests.put(service_pb2.ConsumeSessionRequest(open=open_))
        call = self._session.service.ConsumeSession(iter(requests.get, None))
        unsettled = 0
        over = threading.Event()
        try:
            frames = _Frames(call)
            for frame in frames.within(self._wait_s):
                if frame.HasField("opened"):
                    self._outage.over()
                    self._was_open = True
                    every_s = frame.opened.visibility_timeout_ms / 1000 / _ALIVE_PER_TIMEOUT
                    threading.Thread(target=_say_alive, args=(requests, every_s, over), daemon=True).start()
                elif frame.HasField("delivery") and self._left != 0:
                    unsettled += 1
                    requests.put(self._print(list(frame.delivery.messages)))
                elif frame.HasField("settled"):
                    unsettled -= 1
                    _check(frame.settled.failures)
                if self._left == 0 and unsettled == 0:
                    break
            requests.put(service_pb2.ConsumeSessionRequest(close={"release": True}))
            for _ in frames.within(self._session.timeout_s):
                pass  # what it says goodbye with
        finally:
            over.set()
            requests.put(None)
            call.cancel()

    def _print(self, messages: list[Message]) -> ConsumeSessionRequest:
        """Print them, and return the ack to send."""
        from fila.v1 import service_pb2

        if self._left is not None:
            messages = messages[: self._left]  # what came beyond the count goes back as the session is closed
            self._left -= len(messages)
        for message in messages:
            print_message(self._session.format, message, verbose=self._verbose)
        ack = service_pb2.ConsumeSessionRequest()
        ack.ack.sequence = messages[0].metadata.lease_id
        ack.ack.lease_ids.extend(message.metadata.lease_id for message in messages)
        return ack


def _say_alive(
    requests: queues.SimpleQueue[ConsumeSessionRequest | None], every_s: float, over: threading.Event
) -> None:
    """The broker takes a session that says nothing for a visibility timeout for dead."""
    from fila.v1 import service_pb2

    for sequence in itertools.count(1):
        if not every_s or over.wait(every_s):
            return
        requests.put(service_pb2.ConsumeSessionRequest(alive={"sequence": sequence}))


class _Frames:
    """A call's frames, read by a thread: nothing else can wait for a frame and for a time."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._arrived: queues.SimpleQueue[Any] = queues.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for frame in self._call:
                if not frame.HasField("alive"):  # an answer to ours: the queue is as silent as before
                    self._arrived.put(frame)
            self._arrived.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised again by the thread that waits
            self._arrived.put(error)

    def within(self, silence_s: float | None) -> Iterator[ConsumeSessionResponse]:
        """Go on with the frames; end with the call, or when none came for `silence_s`."""
        while True:
            try:
                frame = self._arrived.get(timeout=silence_s)
            except queues.Empty:
                return
            if frame is None:
                return
            if isinstance(frame, BaseException):
                raise frame
            yield frame


def _check(failures: Any) -> None:
    if failures:
        raise BrokerError(f"{_refused(len(failures))}: {failures[0].status.message}; {_REMEDY}")


def _refused(count: int) -> str:
    return "an ack was refused" if count == 1 else f"{count} acks were refused, the first"


# --- by pulls --------------------------------------------------------------------------------


def _pull(
    session: Session,
    queue: str,
    channel: str,
    count: int | None,
    wait_ms: int | None,
    *,
    ack: bool,
    verbose: bool,
) -> None:
    printed = 0
    idle_since = time.monotonic()
    while count is None or printed < count:
        wanted = _BATCH_MESSAGES_MAX if count is None else min(_BATCH_MESSAGES_MAX, count - printed)
        left_ms = _WAIT_MS if wait_ms is None else wait_ms - int((time.monotonic() - idle_since) * 1000)
        leased = _lease(session, queue, channel, wanted, max(0, min(_WAIT_MS, left_ms)))
        for message in leased.messages:
            print_message(session.format, message, verbose=verbose)
        printed += len(leased.messages)
        if leased.messages:
            if ack:
                _ack(session, queue, channel, list(leased.messages))
            idle_since = time.monotonic()
        elif wait_ms is not None and left_ms <= _WAIT_MS:
            return


def _lease(session: Session, queue: str, channel: str, wanted: int, wait_ms: int) -> LeaseResponse:
    from fila.v1 import service_pb2

    request = service_pb2.LeaseRequest(queue=queue, channel=channel, max_messages=wanted, wait_ms=wait_ms)
    return session.service.Lease(request, timeout=session.timeout_s + wait_ms / 1000)


def _ack(session: Session, queue: str, channel: str, messages: list[Message]) -> None:
    from fila.v1 import service_pb2

    items = [service_pb2.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id) for each in messages]
    request = service_pb2.AckBatchRequest(queue=queue, channel=channel, items=items)
    answer = session.service.AckBatch(request, timeout=session.timeout_s)
    failed = [(item, status) for item, status in zip(items, answer.results, strict=False) if status.code]
    if failed:
        item, status = failed[0]
        raise BrokerError(f"{_refused(len(failed))} for {item.message_id}: {status.message}; {_REMEDY}")
