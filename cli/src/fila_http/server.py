"""All of it together: the application, and the process around it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from importlib import resources
from typing import Any

import grpc
import uvicorn
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route as Path
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from fila.errors import FilaError
from fila_http.body import Budget, Gone
from fila_http.calls import Answer, Endpoint, Service, answer_call, answer_enqueue, answer_lease
from fila_http.guards import Guards
from fila_http.intakes import Intakes
from fila_http.keys import Keys
from fila_http.options import Gateway
from fila_http.problems import Code, Problem, unavailable
from fila_http.protocol import BoundedProtocol
from fila_http.refusals import Refusals
from fila_http.route import Route
from fila_http.sending import send_problem, send_whole
from fila_http.streams import answer_stream
from fila_http.translators import Translators
from fila_http.upstream import Gate, Upstream
from fila_http.v1.routes import ROUTES

ASK_BROKER_S_MAX = 10.0
KEEP_ALIVE_S = 75
STOP_S_MAX = 5

OF_THEIR_OWN: dict[str, Answer] = {
    "/fila.v1.FilaService/Enqueue": answer_enqueue,
    "/fila.v1.FilaService/Lease": answer_lease,
}


class CannotServe(Exception):
    """Why the gateway does not open, in a sentence."""


DOCUMENTS = ("openapi.yaml", "openapi-3.0.yaml")
"""What describes the routes: in OpenAPI 3.1, and in 3.0 for generators of clients that ask for it."""


def application(service: Service, gateway: Gateway) -> ASGIApp:
    """The gateway, without a socket."""
    by_path: dict[str, dict[str, tuple[Route, Answer]]] = {}
    for route in ROUTES:
        answer = OF_THEIR_OWN.get(route.call, answer_stream if route.events else answer_call)
        by_path.setdefault(route.path, {})[route.verb] = (route, answer)
    paths = [Path(path, Endpoint(service, answers)) for path, answers in by_path.items()]
    documents = {
        f"/{name}": resources.files("fila_http.v1").joinpath(name).read_bytes() for name in DOCUMENTS
    }

    async def describe(scope: Scope, receive: Receive, send: Send) -> None:
        document = documents[scope["path"]]
        await send_whole(scope, send, gateway.bounds, 200, document, {"content-type": "application/yaml"})

    async def be_well(scope: Scope, receive: Receive, send: Send) -> None:
        await send_whole(scope, send, gateway.bounds, 200, b'{"status":"ok"}', {})

    async def be_ready(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await service.upstream.check_reached()
        except FilaError as error:
            await send_problem(scope, send, gateway.bounds, unavailable(str(error)))
        else:
            await be_well(scope, receive, send)

    async def find_nothing(scope: Scope, receive: Receive, send: Send) -> None:
        said = f"there is no path {scope['path'][:200]!r}; /openapi.yaml lists them"
        problem = Problem(404, "PATH_NOT_FOUND", said, Code.NOT_FOUND)
        await send_problem(scope, send, gateway.bounds, problem, close=True)

    plains = {**dict.fromkeys(documents, describe), "/healthz": be_well, "/readyz": be_ready}
    paths += [Path(path, _Plain(plain)) for path, plain in plains.items()]
    router = Router(routes=paths, default=_quietly(find_nothing), redirect_slashes=False)
    return Guards(_with_cors(router, gateway), gateway)


class _Plain:
    """An endpoint that reads nothing; Starlette takes a function for one of its own kind."""

    def __init__(self, answer: Callable[[Scope, Receive, Send], Any]) -> None:
        self._answer = _quietly(answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive, send)


def _quietly(answer: Callable[[Scope, Receive, Send], Any]) -> ASGIApp:
    async def answer_unless_gone(scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(Gone):
            await answer(scope, receive, send)

    return answer_unless_gone


def _with_cors(app: ASGIApp, gateway: Gateway) -> ASGIApp:
    if not gateway.origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=gateway.origins,
        allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
        allow_headers=("authorization", "content-type", "idempotency-key", "fila-limited", "last-event-id"),
        expose_headers=("retry-after",),
        # Keys are sent by the page's own program, never by the browser itself.
        allow_credentials=False,
    )


class _Uvicorn(uvicorn.Server):
    """Tells what waits that the gateway closes, before it waits for them; and ends by itself, not by the signal."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would send itself the signal again at the end, and what is closed after it would stay open.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)


def serve(gateway: Gateway, target: str, credentials: grpc.ChannelCredentials | None = None) -> None:
    """Open the gateway and stand in it until SIGTERM or SIGINT. Raises CannotServe."""
    try:
        gateway.check()
    except ValueError as error:
        raise CannotServe(str(error)) from None
    import uvloop

    uvloop.run(_serve(gateway, target, credentials))


async def _serve(gateway: Gateway, target: str, credentials: grpc.ChannelCredentials | None) -> None:
    # uvicorn warns of every request that is no HTTP: a client with many of those must not fill the log.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    listening = _listen(gateway)
    upstream = Upstream(target, credentials)
    gate = None if gateway.is_local else Gate(upstream)
    translators = Translators()
    try:
        if gate is not None:
            await _check_broker(gateway, upstream)
        refusals = Refusals()
        service = Service(
            upstream,
            gateway.bounds,
            Budget(gateway.bounds.held_bytes_max),
            Keys(upstream.whose, upstream.now_s, refusals),
            Intakes(upstream.intake, upstream.now_s),
            refusals,
            translators,
            gate,
        )
        config = uvicorn.Config(
            application(service, gateway),
            http=partial(BoundedProtocol, bounds=gateway.bounds),  # type: ignore[arg-type] # called as the class is
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S_MAX,
            ssl_certfile=gateway.cert_file or None,
            ssl_keyfile=gateway.key_file or None,
        )
        try:
            config.load()
        except OSError as error:  # ssl's errors are of this kind
            raise CannotServe(f"{gateway.cert_file} and {gateway.key_file} can't be used: {error}") from None
        server = _Uvicorn(config, service.stopping)
        async with _beside(upstream.keep_tidy(), *([gate.watch()] if gate else [])):
            scheme = "https" if gateway.cert_file else "http"
            host, port = listening.getsockname()[:2]
            host = f"[{host}]" if ":" in host else host
            print(f"fila http serves {scheme}://{host}:{port} for the broker at {target}", file=sys.stderr)
            await server.serve([listening])
    finally:
        listening.close()
        await translators.close()
        await upstream.close()


def _listen(gateway: Gateway) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(gateway.host, gateway.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        raise CannotServe(f"{gateway.host}:{gateway.port} can't be listened on: {error.strerror}") from None


async def _check_broker(gateway: Gateway, upstream: Upstream) -> None:
    try:
        async with asyncio.timeout(ASK_BROKER_S_MAX):
            await upstream.until_reached()
            asks = await upstream.asks_for_keys()
    except (FilaError, TimeoutError):
        raise CannotServe(
            f"no broker answers at {upstream.target}, and before {gateway.host} is served it must be known to ask for "
            "keys: start it first"
        ) from None
    if not asks:
        raise CannotServe(
            f"the broker at {upstream.target} asks for no keys, so all who reach {gateway.host} could do everything: "
            "switch auth.enabled on, or serve 127.0.0.1 alone"
        )


@contextlib.asynccontextmanager
async def _beside(*works: Any) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
