"""What stands where a proxy before the gateway may have looked elsewhere: trailers, targets, paths, names given twice,
versions and codings."""

from __future__ import annotations

import contextlib
import json
import socket
from contextlib import closing

import pytest

from tests.http.test_bad_input import JSON, TEXT, problem_in, talk

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")]

CLOSE = b"connection: close\r\n"
PRIORITY = "a whole number from 0 to 3, or left out, and the queue's priority_header decides"
U64 = "from 0 to 18446744073709551615"
TIME = "a time like 2026-11-20T14:00:00Z"


def post(
    path: str, *headers: str, body: bytes = b"", trailers: bytes = b"", host: str = "localhost"
) -> bytes:
    """A chunked request, in one piece with what comes behind its body."""
    lines = [
        f"POST {path} HTTP/1.1",
        *([f"Host: {host}"] if host else []),
        "transfer-encoding: chunked",
        *headers,
    ]
    head = "\r\n".join([*lines, "", ""]).encode()
    chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    return head + chunk + b"0\r\n" + trailers + b"\r\n"


def status(said: bytes) -> int:
    return int(said.split()[1])


def depth(gateway, queue):
    return gateway.get(f"/v1/queues/{queue}/stats").json["depth"]


def test_a_trailer_is_no_header(gateway, queue):
    path = f"/v1/queues/{queue}/messages"
    trailers = b"fila-header-tenant: acme\r\nidempotency-key: once\r\nauthorization: Bearer fila_a_b\r\n"
    told = post(path, "content-type: a/b", "connection: close", body=b"x", trailers=trailers)

    assert [status(talk(gateway, told)) for _ in range(2)] == [200, 200]
    leased = gateway.post(f"/v1/queues/{queue}/lease", {"maxMessages": 5}).json["messages"]
    assert [message["headers"] for message in leased] == [{}, {}], (
        "two, since none had a key, and no tenant's"
    )


def test_a_host_among_the_trailers_is_none(gateway, queue):
    path = f"/v1/queues/{queue}/messages"
    told = post(path, "connection: close", body=b"x", trailers=b"host: localhost\r\n", host="")

    assert problem_in(talk(gateway, told)) == (400, "INVALID_HTTP")
    assert depth(gateway, queue) == "0"


def test_what_stands_between_a_bodys_pieces_and_behind_it_is_bounded(bounded_gateway, queue):
    gateway = bounded_gateway(head_bytes_max=8192, body_s_max=5.0)
    head = post(f"/v1/queues/{queue}/messages", body=b"x").removesuffix(b"\r\n")

    extension = head.removesuffix(b"0\r\n") + b"1;x="
    for endless in (
        (head, b"x-trailer: " + b"y" * 400_000),
        (head, b"x: y\r\n" * 70_000),
        (extension, b"y" * 400_000),
    ):
        said = talk_in_pieces(gateway, *endless)
        # The refusal may be lost with what was still on its way when the gateway closed.
        assert said == b"" or problem_in(said) == (431, "LIMIT_EXCEEDED")
    assert depth(gateway, queue) == "0"


def talk_in_pieces(gateway, *pieces: bytes) -> bytes:
    with closing(socket.create_connection(("127.0.0.1", gateway.port), timeout=15)) as raw:
        got = b""
        try:
            for piece in pieces:
                for at in range(0, len(piece), 4096):
                    raw.sendall(piece[at : at + 4096])
        except OSError:
            pass  # it was refused while it was sent
        while piece := _received(raw):
            got += piece
        return got


def _received(raw: socket.socket) -> bytes:
    try:
        return raw.recv(65536)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("slash", ["%2F", "%2f"])
def test_a_slash_in_disguise_is_refused(gateway, queue, slash):
    for path in (f"/v1/queues/{queue}{slash}stats", f"/v1{slash}queues", f"/v1/queues/{queue}/stats{slash}"):
        answer = gateway.get(path)
        assert answer.refusal == (400, "INVALID_HTTP")
        assert "%2F" in answer.json["detail"]
    assert gateway.get(f"/v1/queues/{queue}/explain?fairnessKey=a{slash}b").status == 200, (
        "a key's may be one"
    )


def test_a_target_with_a_host_names_the_one_that_host_does(gateway):
    head = "GET http://{} HTTP/1.1\r\nHost: localhost:1\r\nconnection: close\r\n\r\n"

    assert status(talk(gateway, head.format("localhost:1/healthz").encode())) == 200
    assert status(talk(gateway, head.format("LOCALHOST:1/healthz").encode())) == 200
    for target in (
        "evil.example/healthz",
        "localhost:1@evil.example/healthz",
        "127.0.0.1:1/healthz",
        "localhost:1",
    ):
        assert problem_in(talk(gateway, head.format(target).encode())) == (400, "INVALID_HTTP")
    assert (
        problem_in(talk(gateway, b"GET /healthz#x HTTP/1.1\r\nHost: localhost\r\n" + CLOSE + b"\r\n"))[0]
        == 400
    )
    assert (
        problem_in(talk(gateway, head.replace("http:", "ftp:").format("evil.example/healthz").encode()))[0]
        == 400
    )
    for line in (b"CONNECT localhost:1", b"OPTIONS *"):
        assert problem_in(talk(gateway, line + b" HTTP/1.1\r\nHost: localhost\r\n" + CLOSE + b"\r\n"))[0] in (
            400,
            404,
        )


@pytest.mark.parametrize(
    "host",
    [
        "localhost:evil",
        "localhost:80:80",
        "localhost:123456",
        "user@localhost",
        "localhost/x",
        "localhost, localhost",
        "localhost localhost",
        "[::1",
        "[::1]x",
        "[::1]:x",
    ],
)
def test_a_host_that_is_no_name_is_refused(gateway, host):
    assert gateway.get("/healthz", headers={"Host": host}).refusal == (400, "INVALID_HTTP")


@pytest.mark.parametrize(
    "target",
    [
        "/v1/queues/{queue}/explain?fairnessKey=%ed%a0%80",
        "/v1/queues/{queue}/explain?fairnessKey=a%ff",
        "/v1/queues/{queue}/explain?%c3=1&fairnessKey=a",
        "/v1/queues/{queue}/explain?fairnessKey=\xfc",
        "/v1/queues/{queue}%e2%80/explain?fairnessKey=a",
    ],
)
def test_a_target_that_is_no_text_is_refused_and_not_read_as_another(gateway, queue, target):
    line = f"GET {target.format(queue=queue)} HTTP/1.1\r\nHost: localhost\r\n"
    assert status(talk(gateway, line.encode("latin-1") + CLOSE + b"\r\n")) == 400
    assert gateway.get(f"/v1/queues/{queue}/explain?fairnessKey=%c3%bc+%f0%9f%9a%80").status == 200


def test_an_idempotency_key_that_is_no_text_is_refused_and_not_taken_for_another(gateway, queue):
    for key in (b"\xff", b"\xed\xa0\x80"):
        head = f"POST /v1/queues/{queue}/messages HTTP/1.1\r\nHost: localhost\r\ncontent-length: 1\r\n"
        said = talk(gateway, head.encode() + b"Idempotency-Key: " + key + b"\r\n" + CLOSE + b"\r\nx")
        assert problem_in(said) == (400, "INVALID_FIELD")
    assert depth(gateway, queue) == "0"


def test_offsets_of_a_time_up_to_a_day_are_taken(gateway, queue):
    for offset in ("Z", "+23:59", "-12:00"):
        body = {"options": {"deliverAt": f"2126-11-23T00:00:00{offset}"}}
        assert gateway.post(f"/v1/queues/{queue}/messages", body).status == 200


def test_a_host_is_given_once(gateway):
    for lines in (
        b"",
        b"Host: localhost\r\nHost: localhost\r\n",
        b"Host: localhost\r\nhost: evil.example\r\n",
    ):
        said = talk(gateway, b"GET /healthz HTTP/1.1\r\n" + lines + CLOSE + b"\r\n")
        assert problem_in(said) == (400, "INVALID_HTTP")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Idempotency-Key", ("one", "two")),
        ("Idempotency-Key", ("one", "one")),
        ("Content-Type", ("text/plain", "application/json")),
        ("Fila-Header-Tenant", ("acme", "globex")),
        ("Last-Event-ID", ("1", "2")),
    ],
)
def test_a_header_that_means_something_is_given_once(gateway, queue, name, values):
    given = "".join(f"{name}: {value}\r\n" for value in values)
    head = f"POST /v1/queues/{queue}/messages HTTP/1.1\r\nHost: localhost\r\n{given}content-length: 1\r\n"
    said = talk(gateway, head.encode() + CLOSE + b"\r\nx")

    assert problem_in(said) == (400, "INVALID_FIELD")
    assert depth(gateway, queue) == "0"


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ('{"payload": "YQ==", "payload": "Yg=="}', "payload"),
        ('{"headers": {"tenant": "acme", "tenant": "globex"}}', "tenant"),
        ('{"options": {"delayMs": 1, "delay_ms": 0}}', "options.delayMs"),
        ('{"options": {"dedup_key": "a", "dedupKey": "b"}}', "options.dedupKey"),
        ('{"payload": "YQ==", "payl\\u006fad": "Yg=="}', "payload"),
    ],
)
def test_a_field_is_given_once(gateway, queue, body, names):
    path = f"/v1/queues/{queue}/messages"
    one = gateway.call("POST", path, body=body.encode(), headers=JSON)
    many = gateway.call(
        "POST", f"{path}/batch", body=f'{{"messages": [{{}}, {body}]}}'.encode(), headers=JSON
    )

    for answer in (one, many):
        assert answer.refusal == (400, "INVALID_FIELD")
        assert names in answer.json["detail"]
        assert "twice" in answer.json["detail"]
    assert depth(gateway, queue) == "0"
    same = {"messages": [{"headers": {"a_b": "1", "aB": "2"}}, {"headers": {"a_b": "1"}}]}
    assert gateway.post(f"{path}/batch", same).status == 200, "names of headers are the sender's own"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"headers": [1]}, "headers must be an object, like {}, got a list"),
        ({"headers": {"tenant": 7}}, "headers['tenant'] must be text, got 7"),
        ({"headers": {"tenant": None}}, "headers['tenant'] must be text, got null"),
        ({"options": 5}, "options must be an object, like {}, got 5"),
        ({"options": {"delayMs": "soon"}}, f'options.delayMs must be a whole number {U64}, got "soon"'),
        ({"options": {"delayMs": 1.5}}, f"options.delayMs must be a whole number {U64}, got 1.5"),
        *(
            (
                {"options": {"priority": given}},
                f"options.priority must be {PRIORITY}, got {shown}",
            )
            for given, shown in (
                (4, 4),
                (-1, -1),
                (1.5, 1.5),
                ("9", '"9"'),
                ("high", '"high"'),
                (2**32, 2**32),
            )
        ),
        ({"options": {"deliverAt": "2026-02-31T00:00:00Z"}}, f"options.deliverAt must be {TIME}, got"),
        *(
            (
                {"options": {"deliverAt": f"2026-11-23T00:00:00{offset}"}},
                f"options.deliverAt must be {TIME}, got",
            )
            for offset in ("+99:99", "+24:00", "-00:60", "+1:1", "+-1:00", "+ 1:00")
        ),
        ({"options": {"deliverAt": 7}}, f"options.deliverAt must be {TIME}, got 7"),
        ({"options": {"dedupKey": ["a"]}}, "options.dedupKey must be text, got a list"),
        ({"options": {"urgent": True}}, "there is no field 'urgent' in options; there are dedupKey"),
    ],
)
def test_a_field_that_does_not_fit_is_named_with_what_it_must_be(gateway, queue, body, said):
    answer = gateway.post(f"/v1/queues/{queue}/messages", body)

    assert answer.refusal == (400, "INVALID_FIELD")
    assert answer.json["detail"].startswith(said.split(" there are")[0])
    assert depth(gateway, queue) == "0"


def test_other_shapes_that_do_not_fit_are_named_too(gateway, queue):
    def detail(verb, path, value=None):
        answer = gateway.call(verb, path, value)
        assert answer.status == 400
        return answer.json["detail"]

    queues = f"/v1/queues/{queue}"
    batch = f"{queues}/messages/batch"
    assert detail("POST", batch, {"messages": {}}).startswith(
        "messages must be a list, like [], got an object; "
    )
    assert detail("POST", batch, {"messages": [{}, None]}).startswith(
        "messages[1] must be an object, like {}, got null; "
    )
    assert detail("PATCH", queues, {"fallback": "SOMETIMES"}).startswith("there is no field 'fallback'")
    assert detail("PATCH", queues, {"durability": "SOMETIMES"}).startswith(
        "durability must be one of DURABILITY_"
    )
    assert detail("PATCH", queues, {"ttlToDlq": "yes"}) == 'ttlToDlq must be true or false, got "yes"'
    assert (
        detail("PATCH", queues, {"retry": {"jitter": "much"}}) == 'retry.jitter must be a number, got "much"'
    )
    assert detail("GET", f"{queues}/stats?maxKeys=one").startswith(
        "the query: maxKeys must be a whole number"
    )
    both = {"offset": 1, "time": "2026-11-20T14:00:00Z"}
    assert detail("POST", f"{queues}/channels/default/seek", both).startswith(
        "of offset or time one may be given"
    )


@pytest.mark.parametrize("number", [3, 3.0, "3", "3.0", "3e0"])
def test_a_whole_number_is_taken_in_each_of_its_forms(gateway, queue, number):
    assert gateway.post(f"/v1/queues/{queue}/lease", {"maxMessages": number}).status == 200


def test_what_is_no_http_is_refused_in_our_words(bounded_gateway):
    gateway = bounded_gateway()
    for text in (b"\x16\x03\x01\x02\x00 hello\r\n\r\n", b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        said = talk(gateway, text)
        assert problem_in(said) == (400, "INVALID_HTTP")
        assert b"no request of HTTP/1.1" in said


def test_a_refusal_is_never_taken_for_the_answer_of_the_request_before_it(gateway, queue):
    waits = json.dumps({"waitMs": 5000}).encode()
    head = f"POST /v1/queues/{queue}/lease HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\n"
    pull = f"{head}content-length: {len(waits)}\r\n\r\n".encode() + waits

    assert talk(gateway, pull + b"nonsense\r\n\r\n") == b"", "the pull has no answer, and the connection ends"
    assert gateway.get("/healthz").status == 200


def test_what_asks_for_another_protocol_is_answered_and_ends_the_connection(gateway):
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    said = talk(gateway, upgrade + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert said.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in said


def test_a_payload_of_any_name_stays_what_it_is(gateway, queue):
    gateway.post(f"/v1/queues/{queue}/messages", body=b'{"a": 1, "a": 2}', headers=TEXT)
    (message,) = gateway.post(f"/v1/queues/{queue}/lease").json["messages"]
    assert message["payload"] == "eyJhIjogMSwgImEiOiAyfQ=="


@pytest.mark.parametrize(
    ("version", "lines", "refusal"),
    [
        ("1.1", "transfer-encoding: gzip, chunked", (501, "TRANSFER_CODING_NOT_SUPPORTED")),
        ("1.1", "transfer-encoding: Identity, chunked", (501, "TRANSFER_CODING_NOT_SUPPORTED")),
        ("1.1", "transfer-encoding: gzip", (400, "INVALID_HTTP")),
        ("1.1", "transfer-encoding: chunked\r\ntransfer-encoding: chunked", (400, "INVALID_HTTP")),
        ("1.1", "transfer-encoding: chunked\r\ncontent-length: 6", (400, "INVALID_HTTP")),
        ("1.0", "transfer-encoding: chunked", (400, "INVALID_HTTP")),
        ("2.0", "transfer-encoding: chunked", (505, "HTTP_VERSION_NOT_SUPPORTED")),
        ("0.9", "transfer-encoding: chunked", (505, "HTTP_VERSION_NOT_SUPPORTED")),
        ("1.1", "transfer-encoding: chunked\r\nexpect: foo", (417, "EXPECTATION_NOT_MET")),
        ("1.1", "transfer-encoding: chunked\r\nexpect: 100-continue, foo", (417, "EXPECTATION_NOT_MET")),
        ("1.1", "transfer-encoding: chunked\r\n: nameless", (400, "INVALID_HTTP")),
        ("1.1", "transfer-encoding: chunked\r\nfila-header-: x", (400, "INVALID_FIELD")),
    ],
)
def test_a_head_that_asks_for_what_is_not_spoken_here_is_refused(gateway, queue, version, lines, refusal):
    head = f"POST /v1/queues/{queue}/messages HTTP/{version}\r\nHost: localhost\r\n{lines}\r\n"
    said = talk(gateway, head.encode() + CLOSE + b"\r\n1\r\nx\r\n0\r\n\r\n")

    assert problem_in(said) == refusal
    assert said.count(b"content-length:") == 1, "one answer"
    assert depth(gateway, queue) == "0"


def test_a_body_is_sent_when_the_gateway_said_that_it_goes_on(gateway, queue):
    head = f"POST /v1/queues/{queue}/messages HTTP/1.1\r\nHost: localhost\r\ncontent-length: 1\r\n"
    said = talk(gateway, head.encode() + b"expect: 100-Continue\r\n" + CLOSE + b"\r\nx")

    assert said.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")


def test_a_large_head_is_refused_also_where_it_comes_in_one_piece(bounded_gateway, queue):
    gateway = bounded_gateway(head_bytes_max=8192)
    large = b"x-large: " + b"y" * 20_000 + b"\r\n"
    get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    path = f"/v1/queues/{queue}/messages"
    first = f"POST {path} HTTP/1.1\r\nHost: localhost\r\ncontent-length: 5\r\n\r\nfirst".encode()
    second = f"POST {path} HTTP/1.1\r\nHost: localhost\r\ncontent-length: 6\r\n".encode()

    assert problem_in(talk(gateway, get + large + CLOSE + b"\r\n")) == (431, "LIMIT_EXCEEDED")
    target = b"GET /healthz?" + b"y" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert problem_in(talk(gateway, target)) == (431, "LIMIT_EXCEEDED")
    # A refusal would be taken for the first one's answer; and the second one's body must not become the first one's.
    assert talk(gateway, first + second + large + b"\r\nsecond") == b""
    leased = gateway.post(f"/v1/queues/{queue}/lease", {"maxMessages": 5}).json["messages"]
    assert [message["payload"] for message in leased] in ([], ["Zmlyc3Q="])


def test_a_payload_that_was_compressed_on_its_way_is_refused_and_not_stored_as_it_came(gateway, queue):
    path = f"/v1/queues/{queue}/messages"
    for headers in (TEXT, JSON):
        for coding in ("gzip", "br", "gzip, identity"):
            answer = gateway.post(path, body=b"\x1f\x8b", headers=headers | {"content-encoding": coding})
            assert answer.refusal == (415, "UNSUPPORTED_MEDIA_TYPE")
            assert answer.headers["accept-encoding"] == "identity"
    assert depth(gateway, queue) == "0"
    assert gateway.post(path, body=b"x", headers=TEXT | {"content-encoding": "identity"}).status == 200
    assert gateway.post(path, body=b"\x1f\x8b", headers={"content-type": "application/gzip"}).status == 200


def test_a_number_in_the_query_is_written_in_digits(gateway, queue):
    for number in ("1e3", "1.0", "0x10", "1_000", "%201", "%2B1", "NaN"):
        answer = gateway.post(f"/v1/queues/{queue}/messages?ttlMs={number}", body=b"x", headers=TEXT)
        assert answer.refusal == (400, "INVALID_FIELD"), number
    assert depth(gateway, queue) == "0"
    assert gateway.post(f"/v1/queues/{queue}/messages?ttlMs=1000", body=b"x", headers=TEXT).status == 200


def test_a_body_that_is_needed_is_missed(gateway, queue):
    path = f"/v1/queues/{queue}"
    for body in (b"", b" \n"):
        assert gateway.post(f"{path}/messages", body=body, headers=JSON).refusal == (400, "INVALID_JSON")
        assert gateway.call("PATCH", path, body=body, headers=JSON).refusal == (400, "INVALID_JSON")
    assert depth(gateway, queue) == "0"
    assert gateway.call("POST", f"{path}/lease").status == 200, "it has a default for each of its fields"
    assert gateway.post(f"{path}/messages", body=b"").status == 200, "the payload itself may be empty"


def test_a_flood_of_requests_ahead_fails_in_no_log(bounded_gateway):
    gateway = bounded_gateway()
    head = b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n"
    one, last = (head + end for end in (b"\r\n", CLOSE + b"\r\n"))
    for count in (16, 20, 40):
        with contextlib.suppress(OSError):  # cut off
            talk(gateway, one * count + last)

    assert gateway.get("/v1/status").status == 200
    assert "Traceback" not in gateway.log
    assert "exception" not in gateway.log.lower()
