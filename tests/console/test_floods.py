"""Many who come at once with keys that are none, heads that never end, headers behind a body: others are served."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvicorn
from starlette.requests import Request
from uvicorn.server import ServerState

from fila.principals import Identity, Permission
from fila_console.pages.tenant import LINK_PREFIX, followed
from fila_console.protocol import HEAD_S_MAX, BoundedProtocol
from fila_console.settings import Broker
from fila_console.streams import STREAMS_FOR_TENANTS_MAX
from fila_console.tries import Tries
from fila_console.trouble import Trouble
from fila_console.visit import Console
from fila_console.watches import Watches
from tests.console.conftest import RunningConsole, until

MOST = 8
WRONG = 200
"""More than are tried at a time, and than wait for it."""


# Keys under trial.


async def whose(key: str) -> Identity:
    """As a broker does: a wrong key is kept waiting."""
    if key.startswith("wrong"):
        await asyncio.Event().wait()
    if key.startswith("silent"):
        raise Trouble(503, "The broker does not answer", "")
    return Identity(auth_enabled=True, principal=key, tenant="", permissions=[], key_id="")


async def test_a_right_key_is_told_while_more_wrong_ones_wait_than_may():
    tries = Tries(whose, most=MOST)
    wrong = [asyncio.ensure_future(tries.whose(f"wrong-{number}")) for number in range(3 * MOST)]
    await asyncio.sleep(0)

    async with asyncio.timeout(5):
        assert (await tries.whose("anna")).principal == "anna"
        # The longest waiters made room, in order.
        ended = await asyncio.gather(*wrong[: 2 * MOST + 1], return_exceptions=True)

    assert {each.status for each in ended if isinstance(each, Trouble)} == {429}
    assert all(isinstance(each, Trouble) for each in ended)
    assert not any(each.done() for each in wrong[2 * MOST + 1 :])
    for each in wrong:
        each.cancel()


async def test_a_key_that_nothing_is_told_of_in_time_is_given_up_and_makes_room():
    tries = Tries(whose, most=MOST, longest_s=0.01)

    with pytest.raises(Trouble) as told:
        await tries.whose("wrong")

    assert told.value.status == 503
    with pytest.raises(Trouble, match="does not answer"):
        await tries.whose("silent")
    assert (await tries.whose("anna")).principal == "anna"


@contextlib.contextmanager
def flood(console: RunningConsole, head: str, body: str = ""):
    """So many requests that are under way together; none is read."""
    host, port = console.address.split(":")
    sockets = []
    try:
        for number in range(WRONG):
            raw = socket.create_connection((host, int(port)), 50)
            sockets.append(raw)
            sent = body.format(number=f"{number:044}")
            raw.sendall(
                f"{head.format(number=f'{number:044}')}Host: {console.address}\r\nOrigin: {console.url}\r\n"
                f"Content-Length: {len(sent)}\r\n\r\n{sent}".encode()
            )
        yield
    finally:
        for raw in sockets:
            raw.close()


@pytest.fixture
def link(keyed):
    with keyed.client() as client:
        client.create_queue("flooded", fairness_key_header="tenant", exist_ok=True)
        return client.create_tenant_link("flooded", "acme").key


@pytest.mark.e2e
@pytest.mark.slow
def test_links_that_are_none_keep_no_tenant_from_its_page(keyed, link):
    head = "POST /t/broker/live HTTP/1.1\r\nAuthorization: Bearer fila_nobody_{number}\r\n"
    host, port = keyed.console.address.split(":")
    with flood(keyed.console, head), socket.create_connection((host, int(port)), 50) as raw:
        raw.sendall(
            f"POST /t/broker/live HTTP/1.1\r\nAuthorization: Bearer {link}\r\nHost: {keyed.console.address}\r\n"
            f"Origin: {keyed.console.url}\r\nContent-Length: 0\r\n\r\n".encode()
        )
        assert raw.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.e2e
@pytest.mark.slow
def test_logins_with_keys_that_are_none_keep_no_operator_out(keyed):
    head = "POST /b/broker/login HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    keyed.console.cookie = ""
    with flood(keyed.console, head, "key=fila_nobody_{number}"):
        # Each key that comes makes the one that waited longest give way. Then the page asks for another try.
        assert any(keyed.console.log_in(keyed.admin_key).status == 303 for _ in range(3))
    assert until(lambda: keyed.console.get("/healthz").status == 200)


# Places of streams.


def asked_by_a_link(watches: Watches):
    """The answer to a link's page that asks for its stream, where so much is watched."""
    permissions = [Permission(right="view", queue="orders", channel="")]
    who = Identity(
        auth_enabled=True, principal=f"{LINK_PREFIX}1", tenant="acme", permissions=permissions, key_id="1"
    )

    async def whose_link(_broker: Broker, _key: str) -> Identity:
        return who

    broker = Broker(name="broker", address="http://127.0.0.1:1")
    console = SimpleNamespace(brokers={"broker": broker}, whose=whose_link, watches=watches, links=set())
    headers = [(b"authorization", b"Bearer fila_1_" + b"x" * 44)]
    request = Request({"type": "http", "path_params": {"broker": "broker"}, "headers": headers})
    return followed(cast("Console", console))(request)


@pytest.mark.parametrize(("watched", "status"), [("queue", 200), ("tenant", 503)])
async def test_operators_take_none_of_the_places_that_links_have(watched: str, status: int):
    watches = Watches("", lambda *_: None)
    upstream = watches.upstream(Broker(name="broker", address="http://127.0.0.1:1"), "")
    watches.watch(
        upstream, (watched, "orders", "globex"), cast("Any", object)
    ).watchers = STREAMS_FOR_TENANTS_MAX

    answer = await asked_by_a_link(watches)

    assert answer.status_code == status
    await watches.close()


# Connections.


class Clock:
    """A loop of which only the timers are looked at."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Any]] = []

    def call_later(self, after_s: float, call: Any) -> Clock:
        self.timers.append((after_s, call))
        return self

    def cancel(self) -> None:
        self.timers.pop()

    def create_task(self, work: Any, **_: Any) -> asyncio.Task[Any]:
        return asyncio.ensure_future(work)


class Socket:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def get_extra_info(self, _: str) -> None:
        return None

    def write(self, text: bytes) -> None:
        self.written += text

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def test_a_head_that_does_not_come_in_time_ends_its_connection_in_words():
    async def answer(_scope: Any, _receive: Any, _send: Any) -> None:
        await asyncio.Event().wait()

    clock, transport = Clock(), Socket()
    connection = BoundedProtocol(
        uvicorn.Config(answer, lifespan="off"),
        ServerState(),
        {},
        _loop=clock,
    )
    connection.connection_made(transport)
    ((after_s, _),) = clock.timers
    assert after_s == HEAD_S_MAX
    connection.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n")
    connection.data_received(b"\r\n")
    assert clock.timers == [], "it is whole, and the answer may take its time"

    late = BoundedProtocol(
        uvicorn.Config(answer, lifespan="off"),
        ServerState(),
        {},
        _loop=clock,
    )
    late.connection_made(transport)
    late.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n")
    ((_, end),) = clock.timers
    end()

    assert transport.written.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert transport.closed


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
SECOND = b"0\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(
            HEAD + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n" + SECOND, id="length first"
        ),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\ncontent-length: 6\r\n\r\n" + SECOND, id="length second"
        ),
        pytest.param(HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + SECOND, id="folded"),
        pytest.param(HEAD + b"Transfer-Encoding:\r\n\tchunked\r\n\r\n" + SECOND, id="folded by a tab"),
        pytest.param(HEAD + b"X-Other: a\r\n Transfer-Encoding: chunked\r\n\r\n" + SECOND, id="in a fold"),
        pytest.param(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + SECOND, id="of HTTP/1.0"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + SECOND,
            id="behind another",
        ),
    ],
)
@pytest.mark.parametrize("pieces", [1, 2, 40])
async def test_a_request_with_two_readings_is_none_and_nothing_behind_it_is_one(
    request_bytes: bytes, pieces: int
):
    asked: list[str] = []

    async def answer(scope: Any, _receive: Any, send: Any) -> None:
        asked.append(f"{scope['method']} {scope['path']}")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    transport = Socket()
    config = uvicorn.Config(answer, lifespan="off")
    connection = BoundedProtocol(config, ServerState(), {}, _loop=asyncio.get_running_loop())
    connection.connection_made(transport)
    step = -(-len(request_bytes) // pieces)
    for start in range(0, len(request_bytes), step):
        if not transport.closed:
            connection.data_received(request_bytes[start : start + step])
        await asyncio.sleep(0)
    await asyncio.gather(*connection.tasks)
    connection.connection_lost(None)

    assert set(asked) <= {"GET /"}, "what came before it"
    assert b"HTTP/1.1 400 " in transport.written
    assert transport.closed


async def test_a_body_in_chunks_and_trailers_are_read_as_ever():
    bodies: list[bytes] = []

    async def answer(_scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (event := await receive())["type"] == "http.request":
            body += event["body"]
            if not event["more_body"]:
                break
        bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    transport = Socket()
    config = uvicorn.Config(answer, lifespan="off")
    connection = BoundedProtocol(config, ServerState(), {}, _loop=asyncio.get_running_loop())
    connection.connection_made(transport)
    for body in (
        b"Content-Length: 3\r\n\r\nabc",
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
    ):
        connection.data_received(HEAD + body)
        await asyncio.gather(*connection.tasks)
    connection.connection_lost(None)

    assert bodies == [b"abc", b"abc"]
    assert transport.written.count(b"HTTP/1.1 200 ") == 2


@pytest.mark.e2e
@pytest.mark.slow
def test_a_header_behind_the_body_is_none(console):
    """Whatever parser is installed: an Origin that stands there was seen by nobody who judges it."""
    host, port = console.address.split(":")
    with socket.create_connection((host, int(port)), 50) as raw:
        raw.sendall(
            f"POST /b/broker/login HTTP/1.1\r\nHost: {console.address}\r\ntransfer-encoding: chunked\r\n"
            f"connection: close\r\n\r\n5\r\nkey=a\r\n0\r\nOrigin: {console.url}\r\n\r\n".encode()
        )
        said = b""
        while piece := raw.recv(65536):
            said += piece
    assert said.startswith(b"HTTP/1.1 403 ")
    assert b"Origin" in said
