"""One gRPC channel to one broker, and the rules by which a call is tried again.

    what went wrong                              tried again
    the broker could not be reached              yes, for `retry_for_s`: nothing was sent
    the broker said UNAVAILABLE (it is stopping) yes, for `retry_for_s`: it did nothing
    a node of a group said that another serves   yes, for `retry_for_s`, there
    the connection broke, the answer is missing  only what `methods.py` calls repeatable
    the broker said it is overloaded             for `wait_when_overloaded_s`, at the pace it suggests
    anything else                                no

To know that nothing was sent, a call starts only on a connection that stands.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import grpc
from grpc.aio import AioRpcError, InternalError, StreamStreamCall, UnaryStreamCall

from fila import tls
from fila.connection_events import ConnectionEvent
from fila.connectivity import LOOK_S, OLD_WORD
from fila.diagnosis import diagnosis
from fila.errors import (
    AnswerLost,
    ClientClosed,
    FilaError,
    NotOwner,
    Overloaded,
    Unavailable,
    from_rpc_error,
    is_the_brokers_word,
)
from fila.methods import Method, Request, Response
from fila.options import ClientOptions
from fila.places import Places, parse_targets

MESSAGE_BYTES_MAX = 80 << 20
"""Above the broker's largest payload (64 MiB) with its headers, so that no delivery is unreadable."""

_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # While attempts to connect fail, gRPC alone decides when the next one begins: at least every 0.6 s, its chance
    # included, so that a consumer is back within a short `disconnect_grace_ms`. `min` is how long an attempt may take;
    # TCP asks a second time only after one second.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 3000),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A broker that vanished without a word (power, network) is noticed by an unanswered ping.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Two clients of one process must not share a connection: each has its own frames in flight.
    ("grpc.use_local_subchannel_pool", 1),
)

_OF_SEVERAL = (
    # A node of a group that hangs without a word is left for another. Brokers bear a ping each 5 s.
    ("grpc.keepalive_time_ms", 6_000),
    ("grpc.keepalive_timeout_ms", 3_000),
)
"""In place of those above where there are several addresses."""

HANG_S = 1.0
"""Of several addresses one that takes so long to connect to is left for the next."""

_pid_of_first_connection: int | None = None

_log = logging.getLogger("fila")

FAIR_S = 3.5
"""Who gives up has looked for so long just before: an attempt to connect began in it, and had a second."""

PAUSE_S_MAX = 1.0

ASK_WHY_EVERY_S = 1.0
"""While attempts to connect fail, the port is asked for the reason this often: what listens there may change."""

DEFAULT_TARGET = "localhost:5555"

STATUS_TIMEOUT_S = 1.0
"""How long the status of a stream that takes no more may still be on its way."""

Known = dict[str, Any]
"""What a request is about (queue, channel, message_id, ...), for the error it may end in."""


def check_not_forked(pid: int | None) -> None:
    """Raise RuntimeError in a child of process `pid`: gRPC's threads stay behind in the parent.

    Without them a call would wait for ever, and a new channel ends the process (grpcio 1.85).
    """
    if pid is not None and pid != os.getpid():
        raise RuntimeError(
            f"process {pid} used Fila before it forked this one, and gRPC does not survive a fork. Connect "
            "only after the fork, or start processes with multiprocessing's spawn or forkserver"
        )


_client_address: ContextVar[str] = ContextVar("fila_client_address", default="")


@contextmanager
def calling_for(address: str) -> Iterator[None]:
    """Say with each call made inside for whose browser or program it is: for programs that call in the name of others.
    The broker writes the address into its audit, as claimed, and judges nothing by it."""
    token = _client_address.set(address)
    try:
        yield
    finally:
        _client_address.reset(token)


class Connection:
    """The only module that talks to gRPC's channel."""

    def __init__(
        self, target: str | None, options: ClientOptions, credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        global _pid_of_first_connection
        check_not_forked(_pid_of_first_connection)
        _pid_of_first_connection = os.getpid()
        if target is None:
            target = os.environ.get("FILA_ADDR", "").strip() or DEFAULT_TARGET
        targets, secure = parse_targets(target)
        self.closed = False
        judges = credentials is None
        if credentials is None and (secure or tls.is_wanted(options)):
            options = tls.with_environment(options)
            credentials = tls.credentials(options)
        self.options = options
        self._ask_why = partial(diagnosis, options=options, by_tls=credentials is not None, judges=judges)
        self._asking: asyncio.Task[str] | None = None
        self._asked_at_s = float("-inf")
        self._has_stood = False
        channel_options = {
            **dict(_CHANNEL_OPTIONS),
            **dict(_OF_SEVERAL if len(targets) > 1 else ()),
            **dict(tls.channel_options(options)),
        }

        def open_channel(target: str) -> grpc.aio.Channel:
            if credentials is None:
                return grpc.aio.insecure_channel(target, options=[*channel_options.items()])
            return grpc.aio.secure_channel(target, credentials, options=[*channel_options.items()])

        self._places = Places(targets, open_channel, options.clock)
        self._metadata = (("authorization", f"Bearer {options.api_key}"),) if options.api_key else None

    @property
    def target(self) -> str:
        """The address, or the addresses, that the client was given."""
        return self._places.names

    def with_key(self, api_key: str) -> Connection:
        """The same connection for calls in the name of another key, "" for none; it ends with this one."""
        other = copy.copy(self)
        other._metadata = (("authorization", f"Bearer {api_key}"),) if api_key else None
        return other

    def _claiming(self) -> tuple[tuple[str, str], ...] | None:
        address = _client_address.get()
        return (*(self._metadata or ()), ("fila-client-address", address)) if address else self._metadata

    async def close(self) -> None:
        """Close the channel; calls still open end as lost."""
        self.closed = True
        await self._places.close()

    # Calls.

    async def call(
        self,
        method: Method[Request, Response],
        request: Request,
        known: Known,
        *,
        timeout_s: float | None = None,
        repeatable: bool | None = None,
    ) -> Response:
        """Run a unary call under the rules above.

        `timeout_s` replaces the client's `call_timeout_s` for each attempt; a call that is meant
        to take long gives its own.
        """
        timeout = self.options.call_timeout_s if timeout_s is None else timeout_s
        may_repeat = method.repeatable if repeatable is None else repeatable

        async def attempt() -> Response:
            try:
                unary = self._unary(method)
                response: Response = await unary(request, timeout=timeout, metadata=self._claiming())
            except AioRpcError as failure:
                raise answer_lost_unless_said(from_rpc_error(failure, known)) from failure
            except asyncio.CancelledError:
                raise_if_cancelled()
                raise AnswerLost("the request may have arrived, but the broker cancelled the call") from None
            return response

        return await self.retried(attempt, may_repeat=may_repeat)

    async def retried(self, attempt: Callable[[], Awaitable[Response]], *, may_repeat: bool) -> Response:
        """Await `attempt()` until it succeeds or the rules above say to give up."""
        clock, backoff = self.options.clock, self.options.backoff
        began_at_s = clock.now_s()
        tries = 0
        while True:
            await self.ready(self.options.retry_for_s, began_at_s)
            try:
                return await attempt()
            except (Unavailable, Overloaded) as error:
                self.follow(error)
                wait_s = self._wait_before_retry_s(error, backoff.wait_s(tries), may_repeat=may_repeat)
                patience_s = (
                    self.options.wait_when_overloaded_s
                    if isinstance(error, Overloaded)
                    else self.options.retry_for_s
                )
                if wait_s is None or clock.now_s() + wait_s > began_at_s + patience_s:
                    raise
            tries += 1
            await clock.sleep(wait_s)

    def _wait_before_retry_s(self, error: FilaError, backoff_s: float, *, may_repeat: bool) -> float | None:
        if isinstance(error, Overloaded):
            # At least what the broker asked for, and not all at the same moment.
            return backoff_s if error.retry_after_s is None else error.retry_after_s + backoff_s / 2
        if isinstance(error, AnswerLost) and not may_repeat:
            return None
        return backoff_s

    def open_stream(self, method: Method[Request, Response]) -> StreamStreamCall[Request, Response]:
        """Start a bidirectional stream."""
        self._check_open()
        stream: StreamStreamCall[Request, Response] = self._places.here.channel.stream_stream(
            method.path, request_serializer=method.serialize, response_deserializer=method.parse
        )(metadata=self._metadata)
        return stream

    def read_stream(
        self, method: Method[Request, Response], request: Request
    ) -> UnaryStreamCall[Request, Response]:
        """Start a call that answers with a stream."""
        self._check_open()
        stream: UnaryStreamCall[Request, Response] = self._places.here.channel.unary_stream(
            method.path, request_serializer=method.serialize, response_deserializer=method.parse
        )(request, metadata=self._metadata)
        return stream

    # The connection itself.

    async def ready(self, patience_s: float | None, since_s: float | None = None) -> None:
        """Return when the connection stands; raise Unavailable `patience_s` seconds after `since_s`, or after now
        (None: never).

        It gives up on what it saw in the last FAIR_S, or in all of a shorter patience. A look counts LOOK_S at most: a
        process that stood still for longer saw nothing meanwhile, and looks on after its time. With no patience at all,
        gRPC's word for the last attempt counts, and an attempt that is under way is waited for.
        """
        if self._state() is grpc.ChannelConnectivity.READY:
            self._has_stood = True
            return
        clock = self.options.clock
        began_at_s = clock.now_s() if since_s is None else since_s
        fair_s = min(FAIR_S, patience_s or FAIR_S)
        last_looks_at_s = float("inf") if patience_s is None else began_at_s + patience_s - fair_s
        seen_s, looks, rounds = 0.0, 0, _Round(self._places)
        while (state := self._state()) is not grpc.ChannelConnectivity.READY:
            now_s = clock.now_s()
            last_looks = now_s >= last_looks_at_s
            if rounds.goes_on(state):
                continue
            # A broker that wants another certificate of the client ends each connection soon after the handshake: gRPC
            # calls that no failure, and begins anew.
            if state is OLD_WORD or (looks and not self._has_stood):
                await self._find_out_why()
            looks += 1
            if last_looks and (seen_s >= fair_s or (patience_s == 0 and state is OLD_WORD)):
                raise Unavailable(
                    f"no Fila broker answers at {self.target}. Start fila-server there, or connect elsewhere"
                )
            connectivity = self._places.here.connectivity
            if last_looks or state is not OLD_WORD or len(self._places) > 1:
                await connectivity.changes(state, LOOK_S)
            else:
                await connectivity.changes(state, min(PAUSE_S_MAX, last_looks_at_s - now_s))
            if last_looks:
                seen_s += min(LOOK_S, clock.now_s() - now_s)
        self._has_stood = True

    async def _find_out_why(self) -> None:
        """Raise Unavailable where the settings are wrong and never were right; where they have been, log it."""
        if self._asking is None and time.monotonic() < self._asked_at_s + ASK_WHY_EVERY_S:
            return
        if self._asking is None:
            self._asked_at_s = time.monotonic()
            self._asking = asyncio.ensure_future(asyncio.to_thread(self._ask_why, self._places.here.target))
            self._asking.add_done_callback(self._found_out)
        if not self._has_stood and (why := await asyncio.shield(self._asking)):
            raise Unavailable(why)

    def _found_out(self, asked: asyncio.Task[str]) -> None:
        self._asking = None
        if self._has_stood and not asked.cancelled() and (why := asked.result()):
            _log.warning("%s", why)

    def _state(self) -> grpc.ChannelConnectivity:
        self._check_open()
        state = self._places.here.connectivity.asked()
        if state is grpc.ChannelConnectivity.SHUTDOWN:
            raise ClientClosed("the client this connection belongs to was closed; connect a new one")
        return state

    async def broken(self) -> None:
        """Return when the connection does not stand any more."""
        await self._places.here.connectivity.broken()

    def follow(self, error: FilaError) -> None:
        """Go where the owner is, if this is the word of a node that stands by: the next try is there."""
        if not isinstance(error, NotOwner) or self.closed:
            return
        if error.owner:
            self._places.go_to(error.owner)
        elif self._places.here.connectivity.asked() is grpc.ChannelConnectivity.READY:
            self._places.go_on()

    def tell(self, event: ConnectionEvent) -> None:
        """Tell the program what happened to its connection. A mistake of its own must not end the stream."""
        if self.options.on_connection is not None:
            try:
                self.options.on_connection(event)
            except Exception:  # noqa: BLE001 - logged with its trace; it is not ours
                _log.exception("on_connection failed")

    def _check_open(self) -> None:
        if self.closed:
            raise ClientClosed("this client was closed; connect a new one")

    def _unary(self, method: Method[Any, Any]) -> Any:
        # Made once: building one costs more than the call's own Python.
        here = self._places.here
        unary = here.unary_by_method.get(method)
        if unary is None:
            unary = here.unary_by_method[method] = here.channel.unary_unary(
                method.path, request_serializer=method.serialize, response_deserializer=method.parse
            )
        return unary


class _Round:
    """Of one waiter for a connection: when it leaves the present address for the next."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._here = places.here
        self._since_s = time.monotonic()  # real time, as gRPC's attempts are
        self._failed = 0

    def goes_on(self, state: grpc.ChannelConnectivity) -> bool:
        """Whether another address is in use now, because the attempt at this one failed or hangs. After each round in
        which all have failed this is False once, so that who waits looks for a moment."""
        places = self._places
        if places.here is not self._here:
            self._here, self._since_s = places.here, time.monotonic()
        is_alone = len(places) == 1 and places.here.target == places.names
        if is_alone or not (state is OLD_WORD or time.monotonic() - self._since_s >= HANG_S):
            return False
        self._failed += 1
        if self._failed > len(places):
            self._failed = 0
            return False
        places.go_on()
        self._here, self._since_s = places.here, time.monotonic()
        return True


def raise_if_cancelled() -> None:
    """In an `except CancelledError`: go on raising it, if it was this task that was cancelled.

    grpc.aio raises the same error for a call that either side ended with status CANCELLED.
    """
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise  # noqa: PLE0704 - the one being handled


async def write(stream: StreamStreamCall[Request, Response], request: Request) -> None:
    """Write to a stream; when it has ended, raise AioRpcError with the status that it was ended with.

    `stream.write` loses that status: where its write fails, grpc.aio (1.85) notes INTERNAL as the stream's end, for its
    reader too, and drops the broker's word, which comes with the failure or a moment later. So this hands the bytes to
    the call beneath, and waits for that word.
    """
    await stream.wait_for_connection()
    call: Any = stream._cython_call  # type: ignore[attr-defined]
    try:
        await call.send_serialized_message(request.SerializeToString())
    except InternalError:
        async with asyncio.timeout(STATUS_TIMEOUT_S):
            await stream.code()
        await stream.wait_for_connection()  # raises what the status says
        raise
    except asyncio.CancelledError:
        stream.cancel()  # half a frame may be on its way
        raise


_TRANSPORT_CODES = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,  # grpc.aio's word for a write on a connection that is gone
)


def is_transport_failure(error: FilaError) -> bool:
    """Whether the connection failed, rather than the broker said something."""
    return error.code in _TRANSPORT_CODES and not is_the_brokers_word(error)


def answer_lost_unless_said(error: FilaError) -> FilaError:
    """Of a call: turn a failure of the transport into AnswerLost."""
    if not is_transport_failure(error):
        return error
    return _instead_of(error, AnswerLost(f"the request may have arrived, but no answer came: {error}"))


def unavailable_unless_said(error: FilaError) -> FilaError:
    """Of a stream: turn a failure of the transport into Unavailable; what was under way is for others to say."""
    if not is_transport_failure(error):
        return error
    return _instead_of(error, Unavailable(f"the stream broke: {error}"))


def _instead_of(error: FilaError, other: FilaError) -> FilaError:
    other.code = error.code
    other.__cause__ = error.__cause__
    return other
