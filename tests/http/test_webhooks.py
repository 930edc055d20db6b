"""Bodies of programs that know nothing of Fila: stored as they are, also by an address that holds the key."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1.admin_pb2 import Intake
from fila_http.intakes import Intakes
from tests.access.guarded_server import Guarded
from tests.e2e.conftest import launch, wait_until_started
from tests.http.running_gateway import Gateway, start_by_command, wait_for_gateway
from tests.http.test_bad_input import JSON, TEXT

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")]

EVENT = b'{"id": "evt_1",  "type":"paid", "id": "evt_2"}\n'
"""What no JSON of ours is: unknown names, one of them twice."""


def stored(gateway: Gateway, queue: str, key: str = "") -> list[dict[str, Any]]:
    leased = gateway.post(f"/v1/queues/{queue}/lease", {"maxMessages": 10}, key=key).json["messages"]
    return [{"payload": base64.b64decode(each["payload"]), "headers": each["headers"]} for each in leased]


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/vnd.github+json", "application/x-www-form-urlencoded", "", "nonsense"],
)
def test_a_body_of_any_type_is_stored_byte_for_byte(gateway, queue, kind):
    headers = {"content-type": kind, "Fila-Header-Tenant": "acme"}
    answer = gateway.post(f"/v1/queues/{queue}/messages/raw", body=EVENT, headers=headers)

    assert (answer.status, answer.json["offset"]) == (200, "1")
    assert stored(gateway, queue) == [{"payload": EVENT, "headers": {"tenant": "acme"}}]


def test_nothing_of_a_body_is_read_that_is_taken_as_it_is(gateway, queue):
    path = f"/v1/queues/{queue}/messages/raw"
    bodies = [b"", b"{", b"[" * 300_000, b"\xff\xfe", b"[" + b"{}," * 100_000]
    for body in bodies:
        assert gateway.post(path, body=body, headers=JSON).status == 200
    assert [each["payload"] for each in stored(gateway, queue)] == bodies


def test_its_options_stand_in_the_query_and_a_sender_may_repeat_it(gateway, queue):
    path = f"/v1/queues/{queue}/messages/raw"
    first = gateway.post(f"{path}?dedupKey=evt_1&ttlMs=60000", body=EVENT, headers=JSON)
    again = gateway.post(path, body=EVENT, headers=JSON | {"Idempotency-Key": "evt_1"})
    assert first.json == again.json
    assert gateway.post(f"{path}?raw=1", body=EVENT, headers=JSON).refusal == (400, "INVALID_FIELD")


@pytest.mark.parametrize("body", [EVENT, b'{"payload": "no base64"}', b"plain", b'{"messages": [{"id": 1}]}'])
@pytest.mark.parametrize("where", ["", "/batch"])
def test_what_is_no_message_of_ours_is_told_where_it_is_taken(gateway, queue, body, where):
    answer = gateway.post(f"/v1/queues/{queue}/messages{where}", body=body, headers=JSON)
    assert answer.status == 400
    assert "POST it to /v1/queues/{queue}/messages/raw" in answer.json["detail"]


@pytest.mark.parametrize(
    ("where", "body"),
    [
        ("", {"payload": "eA==", "options": {"priority": 7}}),
        ("/batch", {"messages": [{"payload": "eA==", "options": {"delayMs": "soon"}}]}),
    ],
)
def test_what_is_ours_with_an_option_that_does_not_fit_is_not_sent_elsewhere(gateway, queue, where, body):
    answer = gateway.post(f"/v1/queues/{queue}/messages{where}", body)
    assert answer.status == 400
    assert "options." in answer.json["detail"]
    assert "/raw" not in answer.json["detail"]


# What is taken from a sender's headers.

SENT = {
    "X-Signature": "t=1,v1=9f2c",
    "X-Delivery": "evt_1",
    "X-Event": "paid",
    "X-Name": "J\u00f6rg".encode().decode("latin-1"),
}


@pytest.fixture
def inbox(gateway: Gateway, queue: str) -> str:
    intake = {
        "headers": ["x-signature", "x-event", "x-name", "x-absent"],
        "dedupHeaders": ["x-first", "x-delivery"],
    }
    assert gateway.call("PATCH", f"/v1/queues/{queue}", {"intake": intake}).status == 200
    return f"/v1/queues/{queue}/messages/raw"


def test_the_headers_that_the_queue_names_become_the_messages(gateway, queue, inbox):
    assert gateway.post(inbox, body=EVENT, headers=JSON | SENT | {"X-Other": "no"}).status == 200
    (message,) = stored(gateway, queue)
    assert message == {
        "payload": EVENT,
        "headers": {"x-signature": "t=1,v1=9f2c", "x-event": "paid", "x-name": "J\u00f6rg"},
    }


def test_the_first_dedup_header_that_is_sent_is_the_dedup_key(gateway, inbox):
    first = gateway.post(inbox, body=EVENT, headers=JSON | SENT)
    again = gateway.post(inbox, body=b"another body", headers=JSON | SENT)
    other = gateway.post(inbox, body=EVENT, headers=JSON | SENT | {"X-First": "evt_2"})
    assert again.json == first.json
    assert other.json["offset"] != first.json["offset"]


def test_what_is_said_in_filas_own_words_comes_first(gateway, queue, inbox):
    own = {"Fila-Header-X-Event": "mine", "Idempotency-Key": "own"}
    first = gateway.post(inbox, body=EVENT, headers=JSON | SENT | own)
    another = {"X-Delivery": "evt_9"}
    by_query = gateway.post(f"{inbox}?dedupKey=own", body=EVENT, headers=JSON | SENT | another)
    assert by_query.json == first.json
    assert stored(gateway, queue)[0]["headers"]["x-event"] == "mine"


def test_a_header_that_is_given_twice_is_one(gateway, queue, inbox):
    with contextlib.closing(gateway.connect()) as connection:
        connection.putrequest("POST", inbox)
        for value in ("one", "two"):
            connection.putheader("X-Event", value)
        connection.putheader("Content-Length", "2")
        connection.endheaders(b"{}")
        assert connection.getresponse().status == 200
    assert stored(gateway, queue)[0]["headers"] == {"x-event": "one, two"}


def test_a_dedup_header_that_is_too_long_is_named(gateway, inbox):
    refused = gateway.post(inbox, body=EVENT, headers=JSON | {"X-Delivery": "e" * 129})
    assert refused.refusal == (400, "LIMIT_EXCEEDED")
    assert "x-delivery may have 128 bytes" in refused.json["detail"]


def test_other_routes_take_nothing_of_a_senders_headers(gateway, queue, inbox):
    gateway.post(f"/v1/queues/{queue}/messages", body=EVENT, headers=TEXT | SENT)
    assert stored(gateway, queue)[0]["headers"] == {}


async def test_a_queues_intake_is_asked_for_once_in_ten_seconds_by_each_caller():
    asked: list[tuple[str, str]] = []
    now_s = 0.0

    async def ask(key: str, queue: str) -> Intake:
        asked.append((key, queue))
        return Intake(headers=[f"{key}-{len(asked)}"])

    intakes = Intakes(ask, lambda: now_s)
    for _ in range(2):
        assert (await intakes.of("a", "q")).headers == ["a-1"]
    assert (await intakes.of("b", "q")).headers == ["b-2"]
    assert (await intakes.of("a", "other")).headers == ["a-3"]
    now_s = 10.0
    assert (await intakes.of("a", "q")).headers == ["a-4"]
    assert asked == [("a", "q"), ("b", "q"), ("a", "other"), ("a", "q")]


# Addresses.


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    running = wait_until_started(launch(folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true"))
    yield Guarded(running)
    running.stop()


@pytest.fixture(scope="module")
def guarded_gateway(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    broker = guarded.running.addresses["grpc"]
    running = wait_for_gateway(start_by_command(tmp_path_factory.mktemp("gateway"), broker))
    for name in ("hooks", "orders"):
        running.post("/v1/queues", {"name": name}, key=guarded.admin_key)
    yield running
    running.stop()


def address(key: str, queue: str = "hooks") -> str:
    return f"/v1/queues/{queue}/messages/raw/{key}"


def test_an_address_with_a_key_is_enough_for_a_sender_that_sets_no_header(guarded, guarded_gateway):
    key = guarded.make_key("payments", "produce hooks").key
    answer = guarded_gateway.post(address(key), body=EVENT, headers=JSON)

    assert answer.status == 200
    assert stored(guarded_gateway, "hooks", guarded.admin_key)[-1]["payload"] == EVENT
    assert guarded_gateway.post(address(key, "orders"), body=EVENT, headers=JSON).refusal[0] == 403

    guarded_gateway.post("/v1/auth/keys/revoke", {"keyId": key.split("_")[1]}, key=guarded.admin_key)
    refused = guarded_gateway.post(address(key), body=EVENT, headers=JSON)
    assert refused.refusal == (401, "UNAUTHENTICATED")


def test_an_address_of_a_link_takes_what_the_queue_names_and_ends_with_it(guarded, guarded_gateway):
    admin = guarded.admin_key
    intake = {"headers": ["x-signature"], "dedupHeaders": ["x-delivery"]}
    guarded_gateway.post("/v1/queues", {"name": "inbox", "config": {"intake": intake}}, key=admin)
    made = guarded_gateway.post("/v1/queues/inbox/links", {"right": "RIGHT_PRODUCE"}, key=admin).json
    place = address(made["key"], "inbox")

    first = guarded_gateway.post(place, body=EVENT, headers=JSON | SENT)
    again = guarded_gateway.post(place, body=EVENT, headers=JSON | SENT)

    assert (first.status, again.json) == (200, first.json)
    (message,) = stored(guarded_gateway, "inbox", admin)
    assert message == {"payload": EVENT, "headers": {"x-signature": "t=1,v1=9f2c"}}
    assert guarded_gateway.post(address(made["key"]), body=EVENT, headers=JSON).refusal[0] == 403
    for path in ("/v1/queues/inbox/lease", "/v1/queues/inbox/purge", "/v1/queues/hooks/messages/raw"):
        assert guarded_gateway.post(path, {}, key=made["key"]).status in (403, 404)

    listed = guarded_gateway.get("/v1/auth/links", key=admin)
    (link,) = [each for each in listed.json["links"] if each["queue"] == "inbox"]
    assert (link["right"], "expiresAt" in link) == ("RIGHT_PRODUCE", False)
    guarded_gateway.post("/v1/queues/inbox/links/revoke", {"linkId": link["linkId"]}, key=admin)
    assert guarded_gateway.post(place, body=EVENT, headers=JSON).refusal == (401, "UNAUTHENTICATED")
    audit = json.dumps(guarded_gateway.get("/v1/auth/audit", key=admin).json)
    assert (
        made["key"].rsplit("_", 1)[1]
        not in guarded_gateway.log + guarded.running.log_file.read_text() + audit
    )


@pytest.mark.parametrize(
    "rights",
    [
        ("produce *",),
        ("produce hooks", "produce orders"),
        ("produce hooks", "view hooks"),
        ("consume hooks",),
        ("admin",),
    ],
)
def test_a_key_that_may_do_more_is_taken_in_no_address(guarded, guarded_gateway, rights):
    key = guarded.make_key(f"more-{'-'.join(rights).replace(' ', '').replace('*', 'all')}", *rights).key
    answer = guarded_gateway.post(address(key), body=EVENT, headers=JSON)
    assert answer.refusal == (403, "PERMISSION_DENIED")
    assert "fila auth grant NAME --produce hooks" in answer.json["detail"]


def test_what_is_no_key_is_none_in_an_address_either(guarded, guarded_gateway):
    for nothing in ("fila_any_thing", "x", "%20", "%00"):
        answer = guarded_gateway.post(address(nothing), body=EVENT, headers=JSON)
        assert answer.refusal == (401, "UNAUTHENTICATED")
    twice = guarded_gateway.post(address("x"), body=EVENT, headers=JSON, key=guarded.admin_key)
    assert twice.refusal == (400, "INVALID_FIELD")


def test_an_address_stands_in_no_log_and_in_no_audit(guarded, guarded_gateway):
    key = guarded.make_key("secret", "produce hooks").key
    secret = key.rsplit("_", 1)[1]
    for path in (address(key), address(key, "orders"), f"{address(key)}?x=1", f"{address(key)}/more"):
        guarded_gateway.post(path, body=EVENT, headers=TEXT)
    guarded_gateway.get(address(key))

    audit = guarded_gateway.get("/v1/auth/audit", key=guarded.admin_key).json
    logs = guarded_gateway.log + guarded.running.log_file.read_text() + json.dumps(audit)
    assert secret not in logs


def test_where_no_keys_are_asked_for_an_address_is_one_as_well(gateway, queue):
    assert gateway.post(address("anything", queue), body=EVENT, headers=JSON).status == 200
