"""Each class of routes against a real server: what HTTP says is what the broker does."""

from __future__ import annotations

import base64
import threading
import time

import pytest

from fila.v1 import admin_pb2, service_pb2

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")]


def text(payload: str) -> str:
    return base64.b64encode(payload.encode()).decode()


def test_a_queue_is_made_read_changed_and_deleted(gateway, server):
    made = gateway.post("/v1/queues", {"name": "life", "config": {"maxAttempts": 5, "weights": {"acme": 3}}})
    read = gateway.get("/v1/queues/life")
    listed = gateway.get("/v1/queues")
    deleted = gateway.call("DELETE", "/v1/queues/life?force=true")

    assert (made.status, made.json) == (200, {"queueId": "life", "adoptedDlq": False})
    assert read.json["config"]["maxAttempts"] == 5
    assert read.json["config"]["weights"] == {"acme": 3}
    assert read.json["config"]["visibilityTimeoutMs"] == "30000", "64-bit integers are strings"
    assert read.json["config"]["ttlToDlq"] is False, "zeros are written"
    assert read.json["createdAt"].endswith("Z")
    assert "life" in [each["name"] for each in listed.json["queues"]]
    assert (deleted.status, deleted.json) == (200, {})
    assert gateway.get("/v1/queues/life").refusal == (404, "QUEUE_NOT_FOUND")


def test_a_patch_changes_the_paths_it_names_and_no_others(gateway, server, queue):
    path = f"/v1/queues/{queue}"
    gateway.call("PATCH", path, {"maxDepth": 7, "retry": {"baseMs": 250}})
    gateway.call("PATCH", path, {"retry": {"capMs": "9000"}})
    by_mask = gateway.call("PATCH", f"{path}?updateMask=maxDepth,retry.base_ms", {"maxAttempts": 9})

    config = server.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue)).config
    assert by_mask.json["config"]["retry"]["capMs"] == "9000"
    assert (config.max_depth, config.retry.base_ms, config.retry.cap_ms) == (0, 100, 9000)
    assert config.max_attempts == 20, "the mask names what changes, not the body"


def test_a_patch_of_settings_that_changed_meanwhile_is_refused(gateway, queue):
    path = f"/v1/queues/{queue}"
    first = gateway.call("PATCH", f"{path}?comment=more", {"maxAttempts": 7}).json["version"]
    second = gateway.call("PATCH", f"{path}?expectedVersion={first}", {"maxAttempts": 8}).json["version"]
    stale = gateway.call("PATCH", f"{path}?expectedVersion={first}", {"maxAttempts": 9})

    assert stale.status == 409
    assert stale.json["code"] == "ABORTED"
    numbers = [each["number"] for each in gateway.get(f"{path}/versions").json["versions"]]
    assert numbers[:2] == [second, first]
    assert gateway.get(f"{path}/version?number={first}").json["config"]["maxAttempts"] == 7


def test_a_payload_comes_back_byte_by_byte_with_its_headers(gateway, queue):
    payload = bytes(range(256))
    stored = gateway.post(
        f"/v1/queues/{queue}/messages?ttlMs=60000",
        body=payload,
        headers={
            "content-type": "image/png",
            "Fila-Header-Tenant": "acme",
            "FILA-HEADER-City": "Zürich".encode(),
        },
    )
    leased = gateway.post(f"/v1/queues/{queue}/lease", {"maxMessages": 5}).json["messages"]

    assert stored.json["offset"] == "1"
    (message,) = leased
    assert message["id"] == stored.json["messageId"]
    assert base64.b64decode(message["payload"]) == payload
    assert message["headers"] == {"tenant": "acme", "city": "Zürich"}, "names in lower case"


def test_a_message_in_json_is_that_message(gateway, server, queue):
    told = {
        "headers": {"Tenant": "acme"},
        "payload": text("hello"),
        "options": {"delayMs": 1, "dedupKey": "k"},
    }
    first = gateway.post(f"/v1/queues/{queue}/messages", told)
    again = gateway.post(f"/v1/queues/{queue}/messages", told)

    read = list(server.admin.ReadLog(admin_pb2.ReadLogRequest(queue=queue)))
    assert first.json == again.json
    (message,) = [each for response in read for each in response.messages]
    assert (message.headers, message.payload) == ({"Tenant": "acme"}, b"hello"), (
        "JSON keeps the names as they are"
    )


def test_single_messages_of_many_callers_are_all_stored_once(gateway, server, queue):
    answers = []

    def post(number: int) -> None:
        answers.append(
            gateway.post(f"/v1/queues/{queue}/messages", body=b"%d" % number, headers={"content-type": "a/b"})
        )

    threads = [threading.Thread(target=post, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {answer.status for answer in answers} == {200}
    assert len({answer.json["messageId"] for answer in answers}) == 50
    assert server.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue)).depth == 50


def test_a_batch_is_answered_item_by_item(gateway, queue):
    batch = {"messages": [{"payload": text("a")}, {"queue": "nobody-made-it", "payload": text("b")}, {}]}
    answer = gateway.post(f"/v1/queues/{queue}/messages/batch", batch)

    assert answer.status == 200
    good, bad, empty = answer.json["results"]
    assert (good["offset"], empty["offset"]) == ("1", "2")
    assert "error" not in good
    assert (bad["error"]["code"], bad["error"]["reason"]) == (5, "QUEUE_NOT_FOUND")


def test_an_idempotency_key_is_the_dedup_key_in_a_batch_with_the_index(gateway, queue):
    one = f"/v1/queues/{queue}/messages"
    key = {"Idempotency-Key": "order-7"}
    firsts = [
        gateway.post(one, body=b"x", headers=key | {"content-type": "text/plain"}).json for _ in range(2)
    ]
    batch = {"messages": [{"payload": text("a")}, {"payload": text("b")}]}
    seconds = [gateway.post(f"{one}/batch", batch, headers=key).json for _ in range(2)]

    assert firsts[0] == firsts[1]
    assert seconds[0] == seconds[1]
    assert len({result["messageId"] for result in seconds[0]["results"]}) == 2
    assert (
        gateway.post(one, {"options": {"dedupKey": "order-7/0"}}).json["offset"]
        == seconds[0]["results"][0]["offset"]
    )


def test_an_idempotency_key_is_refused_where_it_would_do_nothing_or_contradict(gateway, queue):
    key = {"Idempotency-Key": "k"}
    one = f"/v1/queues/{queue}/messages"

    assert gateway.post(f"/v1/queues/{queue}/purge", headers=key).refusal == (400, "INVALID_FIELD")
    assert gateway.post(one, {"options": {"dedupKey": "j"}}, headers=key).refusal == (400, "INVALID_FIELD")
    assert (
        gateway.post(f"{one}/batch", {"messages": [{"options": {"dedupKey": "k"}}]}, headers=key).status
        == 400
    )
    too_long = {"Idempotency-Key": "k" * 129}
    assert gateway.post(one, {}, headers=too_long).refusal == (400, "LIMIT_EXCEEDED")


@pytest.mark.parametrize("value", ["-1", "nan", "Wed, 21 Oct 2026 07:28:00 GMT", "1e9", "5; limits=x"])
def test_a_refusal_that_says_no_seconds_is_refused_in_a_sentence(gateway, queue, value):
    answer = gateway.post(
        f"/v1/queues/{queue}/nack",
        {"messageId": "0193a1b2-0000-7000-8000-000000000000"},
        headers={"Fila-Limited": value},
    )
    assert answer.refusal == (400, "INVALID_FIELD")
    assert "Fila-Limited must be the seconds" in answer.json["detail"]


def test_a_refusal_of_a_provider_is_told_with_the_settlement_alone(gateway, queue):
    answer = gateway.post(f"/v1/queues/{queue}/messages", {}, headers={"Fila-Limited": "5"})
    assert answer.refusal == (400, "INVALID_FIELD")
    assert "Fila-Limited is taken with what settles" in answer.json["detail"]


def test_a_callers_fila_limited_closes_a_limit_that_learns(gateway, server):
    gateway.post("/v1/queues", {"name": "called", "config": {"throttleKeyHeaders": ["provider"]}})
    limit = {"name": "smtp", "rates": [{"perSecond": 100}], "learn": {"min": 1, "max": 1000}}
    assert gateway.call("PUT", "/v1/limits", limit).status == 200
    gateway.post("/v1/queues/called/messages", {"headers": {"provider": "smtp"}, "payload": ""})
    (leased,) = gateway.post("/v1/queues/called/lease", {"maxMessages": 1}).json["messages"]
    names = {"messageId": leased["id"], "leaseId": leased["metadata"]["leaseId"]}

    assert (
        gateway.post("/v1/queues/called/nack", names, headers={"Fila-Limited": "30; limit=smtp"}).status
        == 200
    )

    (state,) = gateway.get("/v1/limits?throttleKey=smtp").json["limits"]
    assert state["learnedPerSecond"] < 100
    assert state["closedUntil"] > state["refusedAt"]


def test_what_was_leased_is_acked_nacked_and_held_longer(gateway, server, queue):
    gateway.post(
        f"/v1/queues/{queue}/messages/batch", {"messages": [{"payload": text(each)} for each in "abc"]}
    )
    leased = gateway.post(f"/v1/queues/{queue}/lease", {"maxMessages": 3}).json["messages"]
    names = [{"messageId": each["id"], "leaseId": each["metadata"]["leaseId"]} for each in leased]

    longer = gateway.post(f"/v1/queues/{queue}/extend", names[0] | {"extendMs": 60_000})
    acked = gateway.post(f"/v1/queues/{queue}/ack", names[0])
    nacked = gateway.post(f"/v1/queues/{queue}/nack", names[1] | {"error": "no", "deadLetter": True})
    both = gateway.post(f"/v1/queues/{queue}/ack/batch", {"items": [names[2], names[0]]})

    assert longer.json["leaseExpiresAt"] > leased[0]["timestamps"]["leaseExpiresAt"]
    assert (acked.json, nacked.json) == ({}, {})
    assert next(each["reason"] for each in both.json["results"]) == ""
    assert both.json["results"][1]["code"] != 0, "a lease is settled once"
    assert gateway.post(f"/v1/queues/{queue}/ack", names[0]).status in (404, 409)
    assert server.admin.GetStats(admin_pb2.GetStatsRequest(queue=f"{queue}.dlq")).depth == 1


def test_a_pull_waits_for_its_message_and_no_longer_than_it_said(gateway, server, queue):
    path = f"/v1/queues/{queue}/lease"
    began = time.monotonic()
    none = gateway.post(path, {"waitMs": 200})
    waited_s = time.monotonic() - began
    later = threading.Timer(
        0.1, lambda: server.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=b"late"))
    )
    later.start()
    (message,) = gateway.post(path, {"waitMs": 15_000}).json["messages"]

    assert none.json == {"messages": []}
    assert waited_s >= 0.2
    assert base64.b64decode(message["payload"]) == b"late"


def test_channels_are_made_moved_and_deleted(gateway, queue):
    gateway.post(f"/v1/queues/{queue}/messages", body=b"x", headers={"content-type": "text/plain"})
    made = gateway.post(f"/v1/queues/{queue}/channels", {"channel": "audit", "oldest": True})
    purged = gateway.post(f"/v1/queues/{queue}/channels/audit/purge")
    moved = gateway.post(f"/v1/queues/{queue}/channels/audit/seek", {"offset": 1})
    listed = gateway.get(f"/v1/queues/{queue}/channels").json["channels"]
    deleted = gateway.call("DELETE", f"/v1/queues/{queue}/channels/audit")

    assert made.json["startOffset"] == "1"
    assert purged.json["purged"] == "1"
    assert moved.json["offset"] == "1"
    assert [(each["name"], each["depth"]) for each in listed] == [("audit", "1"), ("default", "1")]
    assert deleted.status == 200
    assert gateway.post(f"/v1/queues/{queue}/channels/audit/purge").refusal == (404, "CHANNEL_NOT_FOUND")


def test_keys_with_slashes_are_weighed_and_explained(gateway, queue):
    told = {"fairnessKey": "a/b %2F", "weight": 4}
    assert gateway.post(f"/v1/queues/{queue}/key-policies", told).json["weight"] == 4

    (listed,) = gateway.get(f"/v1/queues/{queue}/key-policies?fairnessKey=a/b%20%252F").json["policies"]
    explained = gateway.get(f"/v1/queues/{queue}/explain?fairnessKey=a/b%20%252F").json
    assert (listed["fairnessKey"], listed["weight"]) == ("a/b %2F", 4)
    assert explained["state"] == "STATE_EMPTY"


def test_config_is_set_read_and_listed(gateway):
    assert gateway.call("PUT", "/v1/config/value", {"key": "gateway/x", "value": "1"}).json == {}
    assert gateway.get("/v1/config/value?key=gateway/x").json == {"value": "1"}
    assert gateway.get("/v1/config?prefix=gateway/").json["entries"] == [{"key": "gateway/x", "value": "1"}]
    assert gateway.get("/v1/config/value?key=gateway/y").refusal == (404, "CONFIG_KEY_NOT_FOUND")


def test_dead_letters_are_dropped_and_redriven(gateway, queue):
    for _ in range(2):
        gateway.post(f"/v1/queues/{queue}/messages", body=b"x", headers={"content-type": "text/plain"})
    for each in gateway.post(f"/v1/queues/{queue}/lease", {"maxMessages": 2}).json["messages"]:
        nack = {"messageId": each["id"], "leaseId": each["metadata"]["leaseId"], "deadLetter": True}
        gateway.post(f"/v1/queues/{queue}/nack", nack)
    letters = gateway.get(f"/v1/queues/{queue}.dlq/messages?maxMessages=10").json["messages"]

    dropped = gateway.post(f"/v1/queues/{queue}.dlq/drop", {"offsets": [letters[0]["metadata"]["offset"]]})
    back = gateway.post(f"/v1/queues/{queue}.dlq/redrive", {"count": 10})

    assert letters[0]["metadata"]["deadLetter"]["reason"] == "rejected"
    assert dropped.json == {"dropped": "1"}
    assert back.json["redriven"] == "1"


def test_a_sink_stages_and_publishes(gateway, queue):
    epoch = gateway.post("/v1/sinks/open", {"sinkId": f"sink-{queue}"[:60], "runId": "r"}).json["epoch"]
    batch = {"sinkId": f"sink-{queue}"[:60], "epoch": epoch, "batch": 0}
    told = batch | {"queue": queue, "messages": [{"payload": text("a")}], "partition": 0, "attempt": 1}
    staged = gateway.post("/v1/sinks/stage", told).json
    attempt = {"partition": 0, "attempt": 1, "messages": staged["messages"], "checksum": staged["checksum"]}

    assert gateway.post("/v1/sinks/publish", batch | {"attempts": [attempt]}).json["messages"] == "1"


def test_the_broker_is_well_and_so_is_the_gateway(gateway):
    assert gateway.get("/v1/status").json["diskLevel"] == "DISK_LEVEL_OK"
    assert gateway.get("/v1/late?maxKeys=5").status == 200
    assert gateway.get("/healthz").json == gateway.get("/readyz").json == {"status": "ok"}
    for name, version in (("openapi.yaml", b"openapi: 3.1.0"), ("openapi-3.0.yaml", b"openapi: 3.0.3")):
        document = gateway.get(f"/{name}")
        assert version in document.body
        assert document.headers["content-type"] == "application/yaml"


@pytest.mark.parametrize(
    ("verb", "path", "value", "status", "reason"),
    [
        ("POST", "/v1/queues", {"name": ""}, 400, "INVALID_FIELD"),
        ("POST", "/v1/queues", {"name": "{queue}"}, 409, "QUEUE_EXISTS"),
        ("GET", "/v1/queues/{queue}/stats?maxKeys=10001", None, 400, "LIMIT_EXCEEDED"),
        ("POST", "/v1/queues/{queue}/lease", {"waitMs": 30_001}, 400, "LIMIT_EXCEEDED"),
        ("GET", "/v1/nothing", None, 404, "PATH_NOT_FOUND"),
        ("PUT", "/v1/queues", {}, 405, "METHOD_NOT_ALLOWED"),
    ],
)
def test_a_refusal_is_a_problem_with_its_status(gateway, queue, verb, path, value, status, reason):
    if value and value.get("name") == "{queue}":
        value = {"name": queue}
    answer = gateway.call(verb, path.replace("{queue}", queue), value)

    assert answer.refusal == (status, reason)


def test_head_answers_as_get_does_and_leaves_the_body_out(gateway, queue):
    path = f"/v1/queues/{queue}"
    head, get = gateway.call("HEAD", path), gateway.get(path)

    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]
    assert gateway.call("HEAD", "/v1/queues/none").status == 404


def test_a_stream_has_no_head_and_says_what_it_has(gateway, queue):
    answer = gateway.call("HEAD", f"/v1/queues/{queue}/log")

    assert answer.status == 405
    assert answer.headers["allow"] == "GET"


def test_a_full_queue_says_when_to_come_back(gateway, queue):
    gateway.call("PATCH", f"/v1/queues/{queue}", {"maxDepth": 1})
    path = f"/v1/queues/{queue}/messages"
    gateway.post(path, body=b"x", headers={"content-type": "text/plain"})
    full = gateway.post(path, body=b"x", headers={"content-type": "text/plain"})

    assert full.refusal == (429, "QUEUE_FULL")
    assert int(full.headers["retry-after"]) >= 1
