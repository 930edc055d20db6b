"""The gateway's pieces without a socket: who left is not worked for, and what is held is counted."""

from __future__ import annotations

import asyncio

import grpc
import pytest
import uvicorn
from uvicorn.server import ServerState

from fila.errors import AnswerLost, FilaError, Overloaded
from fila.v1 import admin_pb2, events_pb2, messages_pb2, operation_pb2, service_pb2
from fila_http.body import Gone
from fila_http.calls import unless_gone
from fila_http.events import events_of
from fila_http.options import Bounds, Gateway
from fila_http.problems import STATUS_BY_CODE, from_error
from fila_http.proto_json import dumps, into, loads
from fila_http.protocol import BoundedProtocol
from fila_http.route import Events


async def test_what_nobody_waits_for_any_more_is_cancelled():
    cancelled = asyncio.Event()

    async def pull():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def receive():
        return {"type": "http.disconnect"}

    with pytest.raises(Gone):
        await unless_gone(receive, pull(), asyncio.Event())
    await cancelled.wait()


class Socket:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""

    def get_extra_info(self, _: str) -> None:
        return None

    def write(self, text: bytes) -> None:
        self.written += text

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


async def test_a_pull_is_told_that_its_caller_left_though_another_request_came_behind_it():
    waits, left = asyncio.Event(), asyncio.Event()

    async def pull(_scope, receive, _send):
        while (await receive())["type"] != "http.disconnect":
            waits.set()
        left.set()

    connection = BoundedProtocol(
        uvicorn.Config(pull, http="httptools", lifespan="off"), ServerState(), {}, bounds=Bounds()
    )
    connection.connection_made(Socket())
    connection.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
    async with asyncio.timeout(5):
        await waits.wait()
        connection.connection_lost(None)
        await left.wait()


@pytest.mark.parametrize("code", list(grpc.StatusCode))
def test_every_status_of_grpc_has_one_of_http(code):
    error = FilaError("text")
    error.code = code
    problem = from_error(error)

    assert problem.status == STATUS_BY_CODE.get(code, 500)
    assert problem.members()["code"] == code.name
    assert ("Retry-After" in problem.headers) == (problem.status in (429, 503))


def test_what_the_broker_asked_for_is_rounded_up_to_whole_seconds():
    error = Overloaded("text", known={"retry_after_s": 2.2})
    assert from_error(error).headers["Retry-After"] == "3"


def test_a_lost_answer_says_that_it_may_have_been_carried_out():
    error = AnswerLost("the request may have arrived")
    error.code = grpc.StatusCode.UNKNOWN
    assert (from_error(error).status, from_error(error).reason) == (503, "ANSWER_LOST")
    error.code = grpc.StatusCode.DEADLINE_EXCEEDED
    assert from_error(error).status == 504


def test_json_of_every_field_that_a_message_has_is_taken_back():
    config = admin_pb2.QueueConfig(
        weights={"acme": 3}, ttl_to_dlq=True, retry={"jitter": 0.5}, durability="DURABILITY_FSYNC"
    )
    for message in (
        config,
        service_pb2.EnqueueRequest(payload=b"\xfb\xff", headers={"a_b": "1", "aB": "2"}),
        operation_pb2.StartOperationRequest(
            kind="KIND_REDRIVE", rate_per_second=2.5, filter={"died_from": {"seconds": 7}}
        ),
        admin_pb2.UpdateQueueRequest(config=config, update_mask={"paths": ["max_attempts", "retry.base_ms"]}),
    ):
        again = type(message)()
        into(again, loads(dumps(message), 100), 100)
        assert again == message


def test_an_event_has_its_place_and_a_response_marks_where_it_ends():
    events = Events(name="event", of=("events",), id="position", mark="next_position")
    response = events_pb2.WatchEventsResponse(events=[events_pb2.Event(position=7)], next_position=9)
    told = b"".join(events_of(events, response)).decode()

    assert told.startswith('event: event\nid: 7\ndata: {"position":"7"')
    assert told.endswith("}\n\nid: 9\n\n")


def test_a_line_break_in_a_message_is_none_in_the_stream():
    message = messages_pb2.Message(id="1", headers={"x": "a\r\ndata: b\n\nevent: c"})
    (told,) = events_of(
        Events(name="message", of=("message", "messages")), service_pb2.ConsumeResponse(message=message)
    )
    assert told.count(b"\n") == 3
    assert b"\r" not in told


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "api.example.com"])
def test_no_address_but_loopback_is_served_in_plain_text_unasked(host):
    with pytest.raises(ValueError, match="--allow-plaintext"):
        Gateway(host=host).check()
    Gateway(host=host, allow_plaintext=True, hosts=frozenset({"x"})).check()
    Gateway(host=host, cert_file="c", key_file="k", hosts=frozenset({"x"})).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_is(host):
    Gateway(host=host).check()
    assert Gateway(host=host).is_local
