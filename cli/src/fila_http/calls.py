"""A request from its first byte to its answer: one endpoint a path, and what its calls have of their own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson
from google.protobuf.message import Message
from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from fila.connection import calling_for
from fila.errors import FilaError
from fila.v1.admin_pb2 import Intake
from fila.v1.service_pb2 import EnqueueRequest, LeaseRequest, LeaseResponse, NackBatchRequest
from fila_http import translation
from fila_http.binding import bind, check_coding, is_payload
from fila_http.body import Budget, Gone, Hold, read_body
from fila_http.intakes import Intakes
from fila_http.keys import KEY_IN_PATH, Keys, check_address, key_in_address, key_of
from fila_http.options import Bounds
from fila_http.problems import BOUND_BROKEN, Code, Problem, from_error, invalid, unavailable
from fila_http.refusals import Refusals
from fila_http.route import Route
from fila_http.sending import send_problem, send_whole
from fila_http.translators import LOOP_ANSWER_BYTES, TranslatorFailed, Translators, is_for_the_loop
from fila_http.upstream import Gate, Upstream
from fila_http.v1.routes import ROUTES

WAIT_GRACE_S = 10.0
"""How much longer than its wait a pull may go unanswered."""

_NACK = next(route for route in ROUTES if route.name == "NackBatch")
_log = logging.getLogger("fila.http")

T = TypeVar("T")


@dataclass
class Service:
    """What all requests share."""

    upstream: Upstream
    bounds: Bounds
    budget: Budget
    keys: Keys
    intakes: Intakes
    refusals: Refusals
    translators: Translators
    gate: Gate | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    streams: int = 0
    """Event streams that are open."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request that was understood."""

    service: Service
    route: Route
    key: str
    request: Message | bytes
    """Bytes where they were written beside the loop."""

    scope: Scope
    receive: Receive
    send: Send
    hold: Hold

    def message(self) -> Any:
        """The request, to look into it."""
        return (
            self.route.request.FromString(self.request) if isinstance(self.request, bytes) else self.request
        )


Answer = Callable[[Call], Coroutine[Any, Any, None]]


class Endpoint:
    """One path with its methods."""

    def __init__(self, service: Service, answers: Mapping[str, tuple[Route, Answer]]) -> None:
        self._service = service
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        service = self._service
        bounds = service.bounds
        headers = Headers(scope=scope)
        # Of what is refused before it was read, the rest must not be taken for the next request.
        unread = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        key = ""
        with Hold(service.budget) as hold:
            try:
                route, answer = self._find(scope["method"])
                if service.gate is not None:
                    service.gate.check()
                address = scope["path_params"].get(KEY_IN_PATH)
                key = key_of(headers) if address is None else key_in_address(address, headers)
                hold.holder = key or "{}:{}".format(*(scope.get("client") or ("", "")))
                whose = await service.keys.whose(key)
                if address is not None:
                    check_address(whose, scope["path_params"]["queue"])
                intake = await service.intakes.of(key, scope["path_params"]["queue"]) if route.raw else None
                check_coding(headers)
                body = await read_body(headers, receive, bounds, hold)
                unread = False
                request = await _read(service, hold.holder, route, scope, headers, body, intake)
                with calling_for((scope.get("client") or ("",))[0]):
                    await answer(Call(service, route, key, request, scope, receive, send, hold))
            except Gone:
                return
            except Problem as problem:
                if problem.reason == BOUND_BROKEN:
                    await service.refusals.wait()
                await _refuse(scope, send, bounds, problem, close=unread)
            except FilaError as error:
                if error.code is Code.UNAUTHENTICATED:
                    service.keys.forget(key)
                await _refuse(scope, send, bounds, from_error(error), close=unread)
            except Exception:  # noqa: BLE001 - a mistake of ours is told, too, and the next request is served
                # Not its path, which may hold a key.
                _log.exception("%s failed", " or ".join(each.path for each, _ in self._answers.values()))
                mistake = "the gateway failed by a mistake of its own; its log says more"
                told = Problem(500, "INTERNAL", mistake, Code.INTERNAL)
                await _refuse(scope, send, bounds, told, close=True)

    def _find(self, verb: str) -> tuple[Route, Answer]:
        # HEAD is GET without the body, which the server leaves out. An event stream has no length and no end.
        get = self._answers.get("GET")
        verbs = {**self._answers, "HEAD": get} if get is not None and not get[0].events else self._answers
        found = verbs.get(verb)
        if found is None:
            allowed = ", ".join(sorted(verbs))
            raise Problem(
                405,
                "METHOD_NOT_ALLOWED",
                f"{verb} is not for this path; {allowed} is",
                Code.INVALID_ARGUMENT,
                {"Allow": allowed},
            )
        return found


async def _refuse(scope: Scope, send: Send, bounds: Bounds, problem: Problem, *, close: bool) -> None:
    try:
        await send_problem(scope, send, bounds, problem, close=close)
    except Gone:
        return


async def _read(
    service: Service,
    holder: str,
    route: Route,
    scope: Scope,
    headers: Headers,
    body: bytes,
    intake: Intake | None,
) -> Message | bytes:
    """The request: what is small, or taken as it is, on the loop; anything else beside it."""
    items_max = service.bounds.batch_messages_max
    path, query = scope["path_params"], QueryParams(scope["query_string"])
    if is_for_the_loop(body) or is_payload(route, headers):
        return bind(route, path, query, headers, body, items_max, intake)
    said = translation.arguments_of(path, query, headers, items_max)
    return await service.translators.read(holder, route, said, body)


# The answers.


async def answer_call(call: Call) -> None:
    """Ask the broker once, and answer what it says."""
    await _send(call, await call.service.upstream.call(call.key, call.route, call.request))


async def answer_enqueue(call: Call) -> None:
    """Store one message, together with others that come at the same time."""
    request: EnqueueRequest = call.message()
    stored = await call.service.upstream.enqueue(call.key, request)
    body = orjson.dumps({"messageId": str(stored), "offset": str(stored.offset)})
    await send_whole(call.scope, call.send, call.service.bounds, 200, body, {})


async def answer_lease(call: Call) -> None:
    """Wait for messages as long as the caller does. What can't be answered goes back uncounted."""
    request: LeaseRequest = call.message()
    if request.wait_ms > call.service.bounds.wait_ms_max:
        raise invalid(
            f"waitMs may be {call.service.bounds.wait_ms_max:,} over HTTP, and is {request.wait_ms:,}; ask again when "
            "the answer is empty",
            reason="LIMIT_EXCEEDED",
        )
    timeout_s = request.wait_ms / 1000 + WAIT_GRACE_S
    pulling = call.service.upstream.call(call.key, call.route, request, timeout_s)
    answer = await unless_gone(call.receive, pulling, call.service.stopping)
    try:
        await _send(call, answer)
    except (Problem, TranslatorFailed):
        await _give_back(call, request, LeaseResponse.FromString(answer))
        raise


async def _give_back(call: Call, request: LeaseRequest, answer: LeaseResponse) -> None:
    settle = NackBatchRequest(queue=request.queue, channel=request.channel)
    for message in answer.messages:
        settle.items.add(message_id=message.id, lease_id=message.metadata.lease_id, release=True)
    try:
        await call.service.upstream.call(call.key, _NACK, settle)
    except FilaError as error:
        _log.warning("%d messages stay leased until their leases end: %s", len(answer.messages), error)


async def _send(call: Call, answer: bytes) -> None:
    if len(answer) <= LOOP_ANSWER_BYTES:
        body = translation.write(call.route, answer)
    else:
        body = await call.service.translators.write(call.hold.holder, call.route, answer)
    call.hold.take(len(body))
    await send_whole(call.scope, call.send, call.service.bounds, 200, body, {})


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T], stopping: asyncio.Event) -> T:
    """Await `work`, unless the caller leaves or the gateway closes before. Raises Gone; unavailable when it closes."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(until_gone(receive))
    closing = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait({working, leaving, closing}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        if leaving.done():
            raise Gone
        raise unavailable("the gateway is closing; ask again")
    finally:
        for each in (working, leaving, closing):
            each.cancel()


async def until_gone(receive: Receive) -> None:
    """Return when the caller has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
