"""Bodies of programs that know nothing of Fila: stored as they are, also by an address that holds the key."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.access.guarded_server import Guarded
from tests.e2e.conftest import launch, wait_until_started
from tests.http.running_door import Door, start_by_command, wait_for_door
from tests.http.test_bad_input import JSON, TEXT

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")]

EVENT = b'{"id": "evt_1",  "type":"paid", "id": "evt_2"}\n'
"""What no JSON of ours is: unknown names, one of them twice."""


def stored(door: Door, queue: str, key: str = "") -> list[dict[str, Any]]:
    leased = door.post(f"/v1/queues/{queue}/lease", {"maxMessages": 10}, key=key).json["messages"]
    return [{"payload": base64.b64decode(each["payload"]), "headers": each["headers"]} for each in leased]


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/vnd.github+json", "application/x-www-form-urlencoded", "", "nonsense"],
)
def test_a_body_of_any_type_is_stored_byte_for_byte(door, queue, kind):
    headers = {"content-type": kind, "Fila-Header-Tenant": "acme"}
    answer = door.post(f"/v1/queues/{queue}/messages/raw", body=EVENT, headers=headers)

    assert (answer.status, answer.json["offset"]) == (200, "1")
    assert stored(door, queue) == [{"payload": EVENT, "headers": {"tenant": "acme"}}]


def test_nothing_of_a_body_is_read_that_is_taken_as_it_is(door, queue):
    path = f"/v1/queues/{queue}/messages/raw"
    bodies = [b"", b"{", b"[" * 300_000, b"\xff\xfe", b"[" + b"{}," * 100_000]
    for body in bodies:
        assert door.post(path, body=body, headers=JSON).status == 200
    assert [each["payload"] for each in stored(door, queue)] == bodies


def test_its_options_stand_in_the_query_and_a_sender_may_repeat_it(door, queue):
    path = f"/v1/queues/{queue}/messages/raw"
    first = door.post(f"{path}?dedupKey=evt_1&ttlMs=60000", body=EVENT, headers=JSON)
    again = door.post(path, body=EVENT, headers=JSON | {"Idempotency-Key": "evt_1"})
    assert first.json == again.json
    assert door.post(f"{path}?raw=1", body=EVENT, headers=JSON).refusal == (400, "INVALID_FIELD")


@pytest.mark.parametrize("body", [EVENT, b'{"payload": "no base64"}', b"plain", b'{"messages": [{"id": 1}]}'])
@pytest.mark.parametrize("where", ["", "/batch"])
def test_what_is_no_message_of_ours_is_told_where_it_is_taken(door, queue, body, where):
    answer = door.post(f"/v1/queues/{queue}/messages{where}", body=body, headers=JSON)
    assert answer.status == 400
    assert "POST it to /v1/queues/{queue}/messages/raw" in answer.json["detail"]


# Addresses.


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    running = wait_until_started(launch(folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true"))
    yield Guarded(running)
    running.stop()


@pytest.fixture(scope="module")
def guarded_door(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    broker = guarded.running.addresses["grpc"]
    running = wait_for_door(start_by_command(tmp_path_factory.mktemp("door"), broker))
    for name in ("hooks", "orders"):
        running.post("/v1/queues", {"name": name}, key=guarded.admin_key)
    yield running
    running.stop()


def address(key: str, queue: str = "hooks") -> str:
    return f"/v1/queues/{queue}/messages/raw/{key}"


def test_an_address_with_a_key_is_enough_for_a_sender_that_sets_no_header(guarded, guarded_door):
    key = guarded.make_key("payments", "produce hooks").key
    answer = guarded_door.post(address(key), body=EVENT, headers=JSON)

    assert answer.status == 200
    assert stored(guarded_door, "hooks", guarded.admin_key)[-1]["payload"] == EVENT
    assert guarded_door.post(address(key, "orders"), body=EVENT, headers=JSON).refusal[0] == 403

    guarded_door.post("/v1/auth/keys/revoke", {"keyId": key.split("_")[1]}, key=guarded.admin_key)
    refused = guarded_door.post(address(key), body=EVENT, headers=JSON)
    assert refused.refusal == (401, "UNAUTHENTICATED")


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
def test_a_key_that_may_do_more_is_taken_in_no_address(guarded, guarded_door, rights):
    key = guarded.make_key(f"more-{'-'.join(rights).replace(' ', '').replace('*', 'all')}", *rights).key
    answer = guarded_door.post(address(key), body=EVENT, headers=JSON)
    assert answer.refusal == (403, "PERMISSION_DENIED")
    assert "fila auth grant NAME --produce hooks" in answer.json["detail"]


def test_what_is_no_key_is_none_in_an_address_either(guarded, guarded_door):
    for nothing in ("fila_any_thing", "x", "%20", "%00"):
        answer = guarded_door.post(address(nothing), body=EVENT, headers=JSON)
        assert answer.refusal == (401, "UNAUTHENTICATED")
    twice = guarded_door.post(address("x"), body=EVENT, headers=JSON, key=guarded.admin_key)
    assert twice.refusal == (400, "INVALID_FIELD")


def test_an_address_stands_in_no_log_and_in_no_audit(guarded, guarded_door):
    key = guarded.make_key("secret", "produce hooks").key
    secret = key.rsplit("_", 1)[1]
    for path in (address(key), address(key, "orders"), f"{address(key)}?x=1", f"{address(key)}/more"):
        guarded_door.post(path, body=EVENT, headers=TEXT)
    guarded_door.get(address(key))

    audit = guarded_door.get("/v1/auth/audit", key=guarded.admin_key).json
    logs = guarded_door.log + guarded.running.log_file.read_text() + json.dumps(audit)
    assert secret not in logs


def test_where_no_keys_are_asked_for_an_address_is_one_as_well(door, queue):
    assert door.post(address("anything", queue), body=EVENT, headers=JSON).status == 200
