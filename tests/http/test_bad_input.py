"""What is malformed, too much, too slow or foreign is answered in words, and the next caller is served."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")]

JSON = {"content-type": "application/json"}
TEXT = {"content-type": "text/plain"}


def talk(gateway, text: bytes, *, then_s: float = 0.0) -> bytes:
    """Send bytes as they are, and return all that comes until the gateway closes."""
    with closing(socket.create_connection(("127.0.0.1", gateway.port), timeout=15)) as raw:
        raw.sendall(text)
        time.sleep(then_s)
        got = b""
        while piece := raw.recv(65536):
            got += piece
        return got


def problem_in(said: bytes) -> tuple[int, str]:
    head, _, body = said.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["reason"]


def resident_bytes(gateway) -> int:
    pages = Path(f"/proc/{gateway.process.pid}/statm").read_text().split()[1]
    return int(pages) * 4096


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"[" * 10_000, "INVALID_JSON", id="ten thousand brackets"),
        pytest.param(b'{"messages":' * 2000 + b"1" + b"}" * 2000, "INVALID_JSON", id="deep"),
        pytest.param(b'{"maxMessages": 1', "INVALID_JSON", id="cut off"),
        pytest.param(b'{"channel": "\xff"}', "INVALID_JSON", id="no UTF-8"),
        pytest.param(b'{"channel": "\\ud800"}', "INVALID_JSON", id="half a surrogate pair"),
        pytest.param(b"[]", "INVALID_JSON", id="no object"),
        pytest.param(b"NaN", "INVALID_JSON", id="no JSON"),
        pytest.param(b'{"maxMessages": 1e99}', "INVALID_FIELD", id="beyond any integer"),
        pytest.param(b'{"maxMessages": ' + b"9" * 5000 + b"}", "INVALID_JSON", id="5,000 digits"),
        pytest.param(b'{"maxMessages": "' + b"9" * 5000 + b'"}', "INVALID_FIELD", id="5,000 digits as text"),
        pytest.param(b'{"maxMessages": -1}', "INVALID_FIELD", id="below zero"),
        pytest.param(b'{"maxMessages": true}', "INVALID_FIELD", id="a truth for a number"),
        pytest.param(b'{"channel": 7}', "INVALID_FIELD", id="a number for a text"),
        pytest.param(b'{"channel": {"a": 1}}', "INVALID_FIELD", id="an object for a text"),
        pytest.param(b'{"max_message": 1}', "INVALID_FIELD", id="unknown"),
        pytest.param(b'{"queue": "other"}', "INVALID_FIELD", id="what the path says"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(gateway, queue, body, reason):
    answer = gateway.call("POST", f"/v1/queues/{queue}/lease", body=body, headers=JSON)

    assert answer.refusal == (400, reason)
    assert len(answer.body) < 4096, "what was sent is not sent back"
    assert gateway.get("/healthz").status == 200


@pytest.mark.parametrize(
    "payload", ["hello world", "aGVsbG8=x", "aG VsbG8", 7, {"a": 1}, ["aGVsbG8="], "aGVsbG8\u202e"]
)
def test_a_payload_that_is_no_base64_is_refused_and_not_stored_as_something_else(gateway, queue, payload):
    one = gateway.post(f"/v1/queues/{queue}/messages", {"payload": payload})
    many = gateway.post(
        f"/v1/queues/{queue}/messages/batch", {"messages": [{"payload": "YQ=="}, {"payload": payload}]}
    )

    assert one.refusal == many.refusal == (400, "INVALID_FIELD")
    assert gateway.get(f"/v1/queues/{queue}/stats").json["depth"] == "0"


def test_both_alphabets_of_base64_are_the_same_bytes(gateway, queue):
    for payload in ("-_8", "+/8=", "-_8="):
        assert gateway.post(f"/v1/queues/{queue}/messages", {"payload": payload}).status == 200
    leased = gateway.post(f"/v1/queues/{queue}/lease", {"maxMessages": 3}).json["messages"]
    assert {base64.b64decode(each["payload"]) for each in leased} == {b"\xfb\xff"}


def test_control_and_bidi_characters_pass_as_text_and_are_escaped_or_kept(gateway, queue):
    strange = "a\u0000\u001b[31m\u202e<script>"
    gateway.post(f"/v1/queues/{queue}/messages", {"headers": {"tenant": strange}})
    (message,) = gateway.post(f"/v1/queues/{queue}/lease").json["messages"]
    refused = gateway.get(f"/v1/queues/{queue}/stats?channel=%1b%e2%80%ae")

    assert message["headers"] == {"tenant": strange}
    assert refused.refusal[0] in (400, 404)
    assert b"\x1b" not in refused.body
    assert refused.headers["x-content-type-options"] == "nosniff"


def test_the_query_holds_what_the_call_has_and_once(gateway, queue):
    path = f"/v1/queues/{queue}/stats"

    assert gateway.get(f"{path}?maxKey=1").refusal == (400, "INVALID_FIELD")
    assert gateway.get(f"{path}?maxKeys=1&max_keys=2").refusal == (400, "INVALID_FIELD")
    assert gateway.get(f"{path}?maxKeys=one").refusal == (400, "INVALID_FIELD")
    assert gateway.get(f"{path}?maxKeys=").status == 200
    assert gateway.call("DELETE", f"/v1/queues/{queue}?force=yes").refusal == (400, "INVALID_FIELD")
    assert gateway.post(f"/v1/queues/{queue}/lease?waitMs=1").refusal == (400, "INVALID_FIELD")


def test_json_must_be_said_to_be_json_but_for_a_single_message(gateway, queue):
    answer = gateway.call("POST", f"/v1/queues/{queue}/lease", body=b"{}", headers=TEXT)
    assert answer.refusal == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert gateway.call("GET", "/v1/status", body=b"{}", headers=JSON).refusal == (400, "INVALID_FIELD")


def test_a_body_beyond_its_bound_is_refused_before_it_is_read(bounded_gateway, queue):
    gateway = bounded_gateway(body_bytes_max=10_000)
    path = f"/v1/queues/{queue}/messages"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\ncontent-type: a/b\r\n"

    told = talk(gateway, f"{head}content-length: 1000000000\r\n\r\n".encode())
    untold = talk(gateway, f"{head}transfer-encoding: chunked\r\n\r\n4e20\r\n".encode() + b"x" * 20_000)

    assert problem_in(told) == (413, "LIMIT_EXCEEDED")
    assert problem_in(untold) == (413, "LIMIT_EXCEEDED")
    assert gateway.post(path, body=b"x" * 10_000, headers=TEXT).status == 200


def test_a_slow_body_and_a_slow_head_are_waited_for_so_long_and_no_longer(bounded_gateway, queue):
    gateway = bounded_gateway(body_s_max=0.3, head_s_max=0.3)
    head = f"POST /v1/queues/{queue}/messages HTTP/1.1\r\nHost: localhost\r\ncontent-length: 5\r\n"

    assert problem_in(talk(gateway, f"{head}\r\nab".encode())) == (408, "BODY_TOO_SLOW")
    assert problem_in(talk(gateway, head.encode())) == (408, "HEAD_TOO_SLOW")
    assert problem_in(talk(gateway, b"")) == (408, "HEAD_TOO_SLOW")


def test_a_head_without_end_and_what_is_no_http_are_refused(bounded_gateway):
    gateway = bounded_gateway(head_bytes_max=8192)

    endless = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"x-header: y\r\n" * 2000
    assert problem_in(talk(gateway, endless)) == (431, "LIMIT_EXCEEDED")
    assert problem_in(talk(gateway, b"GET /" + b"a" * 20_000)) == (431, "LIMIT_EXCEEDED")
    assert problem_in(talk(gateway, b"\x16\x03\x01\x02\x00 hello\r\n\r\n")) == (400, "INVALID_HTTP")


def test_connections_are_bounded_and_one_that_goes_makes_room(bounded_gateway):
    gateway = bounded_gateway(connections_max=3)
    held = [socket.create_connection(("127.0.0.1", gateway.port)) for _ in range(3)]
    for each in held:
        each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert each.recv(65536).startswith(b"HTTP/1.1 200")

    assert problem_in(talk(gateway, b"")) == (503, "OVERLOADED")
    held.pop().close()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with closing(socket.create_connection(("127.0.0.1", gateway.port))) as raw:
            raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nconnection: close\r\n\r\n")
            if raw.recv(65536).startswith(b"HTTP/1.1 200"):
                break
    else:
        pytest.fail("the place that was freed was given to nobody")
    for each in held:
        each.close()


def test_bodies_of_all_callers_together_are_bounded(bounded_gateway, queue):
    gateway = bounded_gateway(afresh=True, body_bytes_max=4_000_000, held_bytes_max=5_000_000, body_s_max=1.0)
    path = f"/v1/queues/{queue}/messages"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\ncontent-length: 4000000\r\n\r\n".encode()
    before = resident_bytes(gateway)
    held = [socket.create_connection(("127.0.0.1", gateway.port), timeout=10) for _ in range(8)]
    for each in held:
        each.settimeout(5)
        try:
            each.sendall(head + b"x" * 3_900_000)
        except OSError:
            continue  # it was refused while it was sent
    for each in held:
        each.settimeout(5)
    refused = [each for each in held if answered(each).startswith(b"HTTP/1.1 503")]
    grown = resident_bytes(gateway) - before
    for each in held:
        each.close()

    assert refused, "eight bodies of 4 MB do not fit into 5 MB"
    assert grown < 40_000_000
    deadline = time.monotonic() + 30
    while (last := gateway.post(path, body=b"y" * 1_000_000, headers=TEXT)).status != 200:
        assert time.monotonic() < deadline, last


def answered(raw: socket.socket) -> bytes:
    try:
        return raw.recv(65536)
    except OSError:
        return b""


def test_a_few_requests_ahead_are_answered_in_order_and_a_flood_of_them_is_cut_off(gateway):
    few = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4
    last = b"GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\nconnection: close\r\n\r\n"
    said = talk(gateway, few + last)
    assert [line.split()[1] for line in said.splitlines() if b"HTTP/1.1 " in line] == [b"200"] * 4 + [b"404"]

    answers = 0
    raw = socket.create_connection(("127.0.0.1", gateway.port), timeout=10)
    with closing(raw), contextlib.suppress(OSError):  # cut off
        raw.sendall(few * 5000)
        while piece := raw.recv(65536):
            answers += piece.count(b"HTTP/1.1 200")
    assert answers < 1000
    assert gateway.get("/healthz").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "[::2]"]
)
def test_a_foreign_host_is_refused(gateway, host):
    assert gateway.get("/v1/status", headers={"Host": host}).refusal == (421, "HOST_NOT_ALLOWED")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8081", "[::1]:8081"])
def test_the_gateways_own_names_are_known_with_any_port(gateway, host):
    assert gateway.get("/healthz", headers={"Host": host}).status == 200


def test_a_page_of_another_site_can_send_nothing(gateway, queue):
    path = f"/v1/queues/{queue}/messages"
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = gateway.post(path, body=b"x", headers=TEXT | headers)
        assert answer.refusal == (403, "ORIGIN_NOT_ALLOWED")
        assert "access-control-allow-origin" not in answer.headers
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert gateway.call("OPTIONS", path, headers=preflight).status == 403
    assert (
        gateway.get("/healthz", headers={"Origin": gateway.base, "Host": f"127.0.0.1:{gateway.port}"}).status
        == 200
    )
    assert gateway.get(f"/v1/queues/{queue}/stats").json["depth"] == "0"
