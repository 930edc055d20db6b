"""What strangers send is not read, and what one caller sends takes no place from the next."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psutil
import pytest

from tests.access.guarded_server import Guarded
from tests.e2e.conftest import launch, wait_until_started
from tests.http.running_gateway import Gateway, start_bounded, wait_for_gateway
from tests.http.test_bad_input import JSON, TEXT, problem_in

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")]

PATH = "/v1/queues/orders/messages"
BODY_BYTES_MAX = 1_000_000
HELD_BYTES_MAX = 4_000_000
BODY_S_MAX = 4.0


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    running = wait_until_started(launch(folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true"))
    yield Guarded(running)
    running.stop()


@pytest.fixture(scope="module")
def guarded_gateway(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway before a broker that asks for keys, with little room."""
    bounds = {"body_bytes_max": BODY_BYTES_MAX, "held_bytes_max": HELD_BYTES_MAX, "body_s_max": BODY_S_MAX}
    running = wait_for_gateway(
        start_bounded(
            tmp_path_factory.mktemp("gateway"), guarded.running.addresses["grpc"], afresh=True, **bounds
        )
    )
    running.post("/v1/queues", {"name": "orders"}, key=guarded.admin_key)
    yield running
    assert running.stop() == 0, running.log
    assert "Traceback" not in running.log


@pytest.fixture(scope="module")
def shop(guarded: Guarded, guarded_gateway: Gateway) -> str:
    return str(guarded.make_key("shop", "produce orders").key)


@pytest.fixture(scope="module")
def guest(guarded: Guarded, guarded_gateway: Gateway) -> str:
    """A key that is known, and may do nothing here."""
    return str(guarded.make_key("guest", "view others").key)


def head(key: str, length: int, *more: str, path: str = PATH, kind: str = "a/b") -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"content-type: {kind}",
        f"content-length: {length}",
        *more,
    ]
    lines += [f"authorization: Bearer {key}"] if key else []
    return "\r\n".join([*lines, "", ""]).encode()


def first_answer(gateway: Gateway, text: bytes) -> bytes:
    """What is said while nothing more is sent, until the gateway ends the connection."""
    with closing(socket.create_connection(("127.0.0.1", gateway.port), timeout=15)) as raw:
        raw.sendall(text)
        got = b""
        while piece := raw.recv(65536):
            got += piece
        return got


@pytest.mark.parametrize("key", ["", "fila_stranger_" + "x" * 40])
@pytest.mark.parametrize("more", [(), ("expect: 100-continue",)], ids=["", "that waits to be asked for"])
def test_a_body_of_nobody_the_broker_knows_is_refused_before_a_byte_of_it_is_read(guarded_gateway, key, more):
    said = first_answer(guarded_gateway, head(key, 900_000, *more))
    assert problem_in(said) == (401, "UNAUTHENTICATED")
    assert b"connection: close" in said


def test_a_wrong_key_is_no_reason_to_wait_for_a_body_in_pieces(guarded_gateway):
    chunked = head("", 0).replace(b"content-length: 0", b"transfer-encoding: chunked")
    assert problem_in(first_answer(guarded_gateway, chunked + b"5\r\nhello\r\n")) == (401, "UNAUTHENTICATED")


@contextlib.contextmanager
def bodies_without_an_end(gateway: Gateway, key: str, count: int) -> Iterator[None]:
    """So many connections that send all of a body but its last byte, and wait."""
    with contextlib.ExitStack() as held:
        for _ in range(count):
            raw = held.enter_context(
                closing(socket.create_connection(("127.0.0.1", gateway.port), timeout=5))
            )
            with contextlib.suppress(OSError):  # it was refused while it was sent
                raw.sendall(head(key, BODY_BYTES_MAX) + bytes(BODY_BYTES_MAX - 1))
        yield


def test_bodies_without_an_end_of_one_key_leave_room_for_the_next_caller(guarded_gateway, guest, shop):
    with bodies_without_an_end(guarded_gateway, guest, 12):
        for _ in range(3):
            answer = guarded_gateway.post(PATH, body=bytes(500_000), headers=TEXT, key=shop)
            assert answer.status == 200, answer


def test_a_body_that_waited_is_taken_when_there_is_room(bounded_gateway, queue):
    gateway = bounded_gateway(body_bytes_max=BODY_BYTES_MAX, held_bytes_max=BODY_BYTES_MAX)
    path = f"/v1/queues/{queue}/messages"
    whole = head("", BODY_BYTES_MAX, path=path) + bytes(BODY_BYTES_MAX)
    with (
        closing(socket.create_connection(("127.0.0.1", gateway.port), timeout=15)) as first,
        closing(socket.create_connection(("127.0.0.1", gateway.port), timeout=15)) as second,
    ):
        first.sendall(whole[:-1])
        second.sendall(head("", BODY_BYTES_MAX, "expect: 100-continue", path=path))
        second.settimeout(0.3)
        with pytest.raises(TimeoutError):
            second.recv(100)
        first.sendall(whole[-1:])
        assert first.recv(65536).startswith(b"HTTP/1.1 200 ")
        second.settimeout(15)
        assert second.recv(100).startswith(b"HTTP/1.1 100 "), "now it is asked for"


def test_without_keys_a_caller_is_a_connection_and_the_next_one_finds_room_too(bounded_gateway, queue):
    gateway = bounded_gateway(body_bytes_max=BODY_BYTES_MAX, held_bytes_max=HELD_BYTES_MAX)
    path = f"/v1/queues/{queue}/messages"
    with contextlib.ExitStack() as held:
        for _ in range(12):
            raw = held.enter_context(
                closing(socket.create_connection(("127.0.0.1", gateway.port), timeout=5))
            )
            with contextlib.suppress(OSError):
                raw.sendall(head("", BODY_BYTES_MAX, path=path) + bytes(BODY_BYTES_MAX - 1))
        assert gateway.post(path, body=bytes(100_000), headers=TEXT).status == 200


def test_a_key_is_tried_once_and_judged_each_time(guarded, guarded_gateway):
    key = guarded.make_key("leaving-soon", "produce orders").key
    assert guarded_gateway.post(PATH, body=b"x", headers=TEXT, key=key).status == 200
    guarded_gateway.post("/v1/auth/keys/revoke", {"keyId": key.split("_")[1]}, key=guarded.admin_key)

    deadline = time.monotonic() + 30
    # What was under way while the key ended may have lost its answer; whatever comes then is refused.
    while (answer := guarded_gateway.post(PATH, body=b"x", headers=TEXT, key=key)).status in (200, 503):
        assert time.monotonic() < deadline
    assert answer.refusal == (401, "UNAUTHENTICATED")
    assert problem_in(first_answer(guarded_gateway, head(key, 900_000))) == (401, "UNAUTHENTICATED"), (
        "it is forgotten"
    )


# Beside the loop.


def helpers_of(gateway: Gateway) -> list[psutil.Process]:
    """The processes that read JSON for it."""
    return psutil.Process(gateway.process.pid).children()


def acks(count: int) -> dict[str, Any]:
    return {"items": [{"messageId": "0", "leaseId": "1"}] * count}


def test_what_is_small_needs_no_process_and_what_is_not_is_read_in_one(bounded_gateway, queue):
    gateway = bounded_gateway(afresh=True)
    path = f"/v1/queues/{queue}"
    gateway.post(f"{path}/messages", {"payload": "YQ=="})
    gateway.post(f"{path}/messages", body=bytes(500_000), headers=TEXT)
    gateway.post(f"{path}/ack/batch", acks(5))
    assert helpers_of(gateway) == []

    answer = gateway.post(f"{path}/ack/batch", acks(500))
    assert (answer.status, len(answer.json["results"])) == (200, 500)
    assert len(helpers_of(gateway)) == 1
    refused = gateway.call(
        "POST", f"{path}/ack/batch", body=json.dumps(acks(500)).encode() + b"}", headers=JSON
    )
    assert refused.refusal == (400, "INVALID_JSON")


def test_a_list_beyond_its_bound_is_refused_in_words(bounded_gateway, queue):
    gateway = bounded_gateway(batch_messages_max=100)
    answer = gateway.post(f"/v1/queues/{queue}/ack/batch", acks(101))
    assert answer.refusal == (400, "LIMIT_EXCEEDED")
    assert "items may have 100 items, and has 101" in answer.json["detail"]
    many = gateway.call("POST", f"/v1/queues/{queue}/ack/batch", body=b"[" * 2001, headers=JSON)
    assert many.refusal == (413, "LIMIT_EXCEEDED")


def test_a_process_that_ends_fails_one_request_and_the_next_is_read(bounded_gateway, queue):
    gateway = bounded_gateway(afresh=True)
    path = f"/v1/queues/{queue}/ack/batch"
    gateway.post(path, acks(500))
    (helper,) = helpers_of(gateway)
    helper.kill()
    until(lambda: ended(helper))

    assert gateway.post(path, acks(500)).refusal == (500, "INTERNAL")
    assert gateway.post(path, acks(500)).status == 200


def ended(helper: psutil.Process) -> bool:
    return not helper.is_running() or helper.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_its_gateway(bounded_gateway, queue, how):
    gateway = bounded_gateway(afresh=True)
    gateway.post(f"/v1/queues/{queue}/ack/batch", acks(500))
    helpers = helpers_of(gateway)
    os.kill(gateway.process.pid, how)
    gateway.process.wait(20)

    assert helpers
    until(lambda: all(ended(each) for each in helpers))


def test_a_stream_of_large_events_is_written_in_one_as_well(bounded_gateway, queue):
    gateway = bounded_gateway(afresh=True)
    gateway.post(f"/v1/queues/{queue}/messages", body=bytes(100_000), headers=TEXT)
    with gateway.follow(f"/v1/queues/{queue}/log") as stream:
        event, end = stream.events()
    assert (event.name, end.name) == ("message", "end")
    assert len(event.data["payload"]) > 100_000
    assert event.id == "2"
    assert len(helpers_of(gateway)) == 1


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
