"""Every call of the OpenAPI document, in an order in which each has something to do, and what each must answer."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from typing import Any, Protocol

PAYLOAD = bytes(range(256))
HOUR_MS = "3600000"


class Client(Protocol):
    """A client that a generator made. What is called is named as in the document."""

    def call(self, operation: str, body: Any = None, *, raw: bytes | None = None, **parameters: Any) -> Any:
        """What is answered; `headers` among the parameters are those of the request."""

    def first(self, operation: str, **parameters: Any) -> str:
        """What the first event of a stream has as data, of which the rest is not read."""

    def refused(self, operation: str, body: Any = None, **parameters: Any) -> Any:
        """The problem that is answered instead."""


def text(payload: bytes) -> str:
    return base64.b64encode(payload).decode()


def ask_all(client: Client, me: str) -> None:
    """Every call, with queues, sinks and names that begin with `me`."""
    queue = f"{me}-orders"
    _queues(client, queue)
    _messages(client, queue)
    _settling(client, queue)
    _looking(client, queue)
    _in_order(client, f"{me}-steps")
    _dead_letters(client, queue)
    _channels(client, queue)
    _schedules(client, queue)
    _limits_and_config(client, me)
    _sinks(client, queue, f"{me}-sink")
    _keys(client, queue, me)
    client.call("PurgeQueue", {"fairnessKey": "acme"}, queue=queue)
    client.call("DeleteQueue", queue=queue, force=True)
    assert client.refused("GetQueue", queue=queue)["reason"] == "QUEUE_NOT_FOUND"


def _queues(client: Client, queue: str) -> None:
    config = {
        "fairnessKeyHeader": "tenant",
        "maxAttempts": 1,
        "disconnectGraceMs": HOUR_MS,
        "weights": {"acme": 3},
        "retention": {"softPeriodMs": HOUR_MS},
        "throttleKeyHeaders": ["customer"],
    }
    assert client.call("CreateQueue", {"name": queue, "config": config})["queueId"] == queue
    changed = client.call(
        "UpdateQueue",
        {"visibilityTimeoutMs": "31000", "retry": {"kind": "KIND_FIXED", "baseMs": "10"}},
        queue=queue,
        comment="so far",
        expectedVersion=1,
    )
    assert changed["config"]["visibilityTimeoutMs"] == "31000"
    read = client.call("GetQueue", queue=queue)["config"]
    assert (read["weights"], read["retention"]["softPeriodMs"]) == ({"acme": 3}, HOUR_MS)
    listed = client.call("ListQueues", prefix=queue.upper(), containing="ORDERS", pageSize=1)
    assert ([each["name"] for each in listed["queues"]], listed["nextPageToken"]) == ([queue], queue)
    versions = client.call("ListQueueVersions", queue=queue, limit=5)["versions"]
    assert versions[0]["comment"] == "so far"
    assert client.call("GetQueueVersion", queue=queue, number=1)["config"]["visibilityTimeoutMs"] == "30000"
    tried = client.call("DryRunPolicy", {"config": {"fairnessKeyHeader": "customer"}}, queue=queue)
    assert "messages" in tried


def _messages(client: Client, queue: str) -> None:
    message = {
        "headers": {"tenant": "acme"},
        "payload": text(PAYLOAD),
        "options": {"dedupKey": "one", "ttlMs": HOUR_MS},
    }
    first = client.call("Enqueue", message, queue=queue)
    assert first["offset"] == "1"
    again = client.call("Enqueue", {"payload": text(b"x")}, queue=queue, headers={"Idempotency-Key": "one"})
    assert again["messageId"] == first["messageId"]
    raw = client.call("EnqueueRaw", raw=PAYLOAD, queue=queue, delayMs=0, headers={"Idempotency-Key": "two"})
    assert raw["offset"] == "2"
    told = [
        {"headers": {"tenant": each}, "payload": text(b"{}")} for each in ("acme", "globex", "globex", "late")
    ]
    told[-1]["options"] = {"deliverAt": "2099-01-01T00:00:00Z", "dedupKey": "late"}
    batch = client.call("EnqueueBatch", {"messages": told}, queue=queue)["results"]
    assert [each["offset"] for each in batch] == ["3", "4", "5", "6"]
    peeked = client.call("PeekMessages", queue=queue, maxMessages=9, afterOffset=1)["messages"]
    assert base64.b64decode(peeked[0]["payload"]) == PAYLOAD
    found = client.call("GetMessage", queue=queue, messageId=first["messageId"], withPast=True)
    assert found["state"] == "STATE_WAITING"
    cancelled = client.call("CancelMessages", {"dedupKeys": ["late", "none"]}, queue=queue)
    assert len(cancelled["outcomes"]) == 2
    delivered = json.loads(client.first("Consume", queue=queue, maxInFlight=1))
    # A stream that nobody reads would take what is released, and its end would make that a dead letter.
    given_up_s = time.monotonic() + 30
    while client.call("GetStats", queue=queue).get("activeConsumers"):
        assert time.monotonic() < given_up_s, "the broker never saw that the stream was left"
        time.sleep(0.02)
    client.call("Nack", {"messageId": delivered["id"], "release": True}, queue=queue)
    assert '"offset":"2"' in client.first("ReadLog", queue=queue, fromOffset=2, toOffset=3).replace(" ", "")


def _settling(client: Client, queue: str) -> None:
    def lease(most: int) -> list[Any]:
        found: list[Any] = client.call("Lease", {"maxMessages": most, "waitMs": 20_000}, queue=queue)[
            "messages"
        ]
        return found

    (message,) = lease(1)
    longer = {"messageId": message["id"], "leaseId": message["metadata"]["leaseId"], "extendMs": HOUR_MS}
    client.call("ExtendLease", longer, queue=queue)
    client.call("Ack", {"messageId": message["id"]}, queue=queue, headers={"Fila-Limited": "1"})
    (message,) = client.call("Lease", queue=queue)["messages"]
    client.call("Nack", {"messageId": message["id"], "error": "no", "deadLetter": True}, queue=queue)
    (message,) = lease(1)
    items = [{"messageId": each["id"], "error": "no"} for each in (message, *lease(1))]
    client.call("NackBatch", {"items": items}, queue=queue)
    (message,) = lease(1)
    client.call("AckBatch", {"items": [{"messageId": message["id"]}]}, queue=queue)


def _looking(client: Client, queue: str) -> None:
    messages = [{"headers": {"tenant": each, "customer": "c"}} for each in ("acme", "acme", "globex")]
    client.call("EnqueueBatch", {"messages": messages}, queue=queue)
    assert int(client.call("GetStats", queue=queue, maxKeys=9)["depth"]) >= 3
    assert client.call("FindKeys", queue=queue, prefix="ac", limit=3)["keys"][0]["fairnessKey"] == "acme"
    assert "keys" in client.call("GetSeries", queue=queue, keys=["acme"])
    told = client.call("ExplainKey", queue=queue, fairnessKey="acme")
    assert told["state"] == "STATE_NO_CONSUMER"
    assert client.call("ListPending", queue=queue, maxMessages=5, fairnessKey="acme")["messages"]
    client.call("ListConsumers", queue=queue)
    assert "keys" in client.call("ListLate", queue=queue, maxKeys=5)
    assert client.call("GetStatus", maxTroubles=3)["diskLevel"] == "DISK_LEVEL_OK"
    assert not client.call("GetClusterStatus").get("nodes"), "the broker is alone"
    for command in ("MoveOwner", "RemoveNode"):
        assert "the broker is alone" in client.refused(command, {"node": "fila-2"})["detail"]
    assert "the broker is alone" in client.refused("UpgradeGroup")["detail"]
    policy = {"fairnessKey": "acme", "weight": 5, "ratePerSecond": 2.5, "comment": "too much"}
    assert "head" in client.call("PreviewKeyPolicy", {"policy": policy}, queue=queue)
    assert client.call("SetKeyPolicy", policy, queue=queue)["ratePerSecond"] == 2.5
    (policy,) = client.call("ListKeyPolicies", queue=queue, fairnessKey="acme")["policies"]
    assert policy["weight"] == 5
    assert queue in client.first("WatchStats", queues=[queue], top=3)
    assert queue in client.first("WatchEvents", queue=queue, follow=False)


def _in_order(client: Client, queue: str) -> None:
    """A message that failed keeps those behind it back, until it is skipped."""
    settings = {"fairnessKeyHeader": "tenant", "keyOrder": "KEY_ORDER_STRICT"}
    client.call("CreateQueue", {"name": queue, "config": settings})
    stored = client.call("Enqueue", {"headers": {"tenant": "acme"}}, queue=queue)
    client.call("Lease", queue=queue)
    client.call("Nack", {"messageId": stored["messageId"], "delayMs": HOUR_MS}, queue=queue)
    skipped = client.call("SkipMessage", {"fairnessKey": "acme"}, queue=queue)
    assert skipped["messageId"] == stored["messageId"]
    client.call("DeleteQueue", queue=queue, force=True)


def _dead_letters(client: Client, queue: str) -> None:
    dlq = f"{queue}.dlq"
    letters = client.call("PeekMessages", queue=dlq, maxMessages=9)["messages"]
    offsets = [each["metadata"]["offset"] for each in letters]
    assert len(offsets) >= 3
    edited = client.call("EditDeadLetter", {"offset": offsets[0], "payload": text(b"other")}, dlqQueue=dlq)
    assert edited["messageId"]
    assert client.call("Redrive", {"offsets": [offsets[1]]}, dlqQueue=dlq)["redriven"] == "1"
    before = datetime(2099, 1, 1, tzinfo=UTC).isoformat().replace("+00:00", "Z")
    wanted = {"error": "nobody said so", "diedBefore": before}
    slow = {"kind": "KIND_REDRIVE", "filter": wanted, "ratePerSecond": 1}
    started = client.call("StartOperation", slow, dlqQueue=dlq)["operation"]
    assert started["id"] in client.first("WatchOperation", dlqQueue=dlq, id=started["id"])
    assert client.call("ListOperations", dlqQueue=dlq)["operations"]
    client.call("CancelOperation", {"id": started["id"]}, dlqQueue=dlq)
    assert client.call("DropDeadLetters", {"offsets": [offsets[2]]}, dlqQueue=dlq)["dropped"] == "1"


def _channels(client: Client, queue: str) -> None:
    client.call("CreateChannel", {"channel": "audit", "oldest": True}, queue=queue)
    listed = client.call("ListChannels", queue=queue)["channels"]
    assert [each["name"] for each in listed] == ["audit", "default"]
    client.call("UpdateQueue", {"pausedChannels": ["audit"]}, queue=queue, comment="it is rebuilt")
    [audit, _default] = client.call("ListChannels", queue=queue)["channels"]
    assert (audit["paused"], audit["pause"]["comment"]) == (True, "it is rebuilt")
    sought = client.call("SeekChannel", {"offset": "1", "validateOnly": True}, queue=queue, channel="audit")
    assert sought
    client.call("PurgeChannel", {"fairnessKey": "acme"}, queue=queue, channel="audit")
    client.call("DeleteChannel", queue=queue, channel="audit")


def _schedules(client: Client, queue: str) -> None:
    daily = {
        "cron": "0 9 * * 1-5",
        "timeZone": "Europe/Berlin",
        "payload": text(b"{}"),
        "missed": "MISSED_RULE_SKIP",
    }
    made = client.call("CreateSchedule", {"schedule": "daily", "settings": daily}, queue=queue)["schedule"]
    assert len(made["nextAt"]) == 5
    named: dict[str, Any] = {"queue": queue, "schedule": "daily"}
    changed = client.call("UpdateSchedule", daily | {"ttlMs": HOUR_MS}, **named)["schedule"]
    assert changed["settings"]["ttlMs"] == HOUR_MS
    paused = client.call("PauseSchedule", {"paused": True, "comment": "in August"}, **named)["schedule"]
    assert (paused["settings"]["paused"], paused["pause"]["comment"]) == (True, "in August")
    assert client.call("GetSchedule", **named)["schedule"]["settings"]["cron"] == "0 9 * * 1-5"
    assert len(client.call("ListSchedules", queue=queue, pageSize=5)["schedules"]) == 1
    client.call("DeleteSchedule", **named)


def _limits_and_config(client: Client, me: str) -> None:
    limit = {"name": f"{me}:*", "rates": [{"perSecond": 5, "burst": 10}], "maxInFlight": 4}
    limit["budget"] = {"amount": 100, "periodMs": HOUR_MS, "unit": "UNIT_COST"}
    client.call("SetLimit", limit)
    (listed,) = client.call("ListLimits", prefix=f"{me}:", maxLimits=5)["limits"]
    assert listed["limit"]["budget"]["unit"] == "UNIT_COST"
    client.call("ResetLimit", {"throttleKey": f"{me}:a", "spent": 12.5})
    client.call("DeleteLimit", limitName=f"{me}:*")
    client.call("SetConfig", {"key": f"app.{me}", "value": "on"})
    assert client.call("GetConfig", key=f"app.{me}")["value"] == "on"
    assert client.call("ListConfig", prefix=f"app.{me}")["entries"]


def _sinks(client: Client, queue: str, sink: str) -> None:
    epoch = client.call("OpenSink", {"sinkId": sink, "runId": "r"})["epoch"]

    def staged(batch: int) -> dict[str, Any]:
        named = {"sinkId": sink, "epoch": epoch, "batch": str(batch)}
        frame = named | {
            "queue": queue,
            "messages": [{"payload": text(b"a")}],
            "partition": 0,
            "attempt": "1",
        }
        told = client.call("Stage", frame)
        attempt = {"partition": 0, "attempt": "1", "messages": told["messages"], "checksum": told["checksum"]}
        return named | {"attempts": [attempt]}

    assert client.call("Publish", staged(0))["messages"] == "1"
    client.call("Drop", staged(1))
    assert client.call("ListSinks", prefix=sink, limit=3)["sinks"][0]["sinkId"] == sink


def _keys(client: Client, queue: str, me: str) -> None:
    hook = client.call("CreateKey", {"name": f"{me}-hook", "expiresAfterMs": HOUR_MS})
    right = {"right": "RIGHT_PRODUCE", "queue": queue}
    client.call("Grant", {"name": f"{me}-hook", "permissions": [right]})
    stored = client.call("EnqueueByAddress", raw=b"hook", queue=queue, key=hook["key"])
    assert stored["messageId"]
    client.call(
        "SetQuotas", {"name": f"{me}-hook", "quotas": {"messagesPerSecond": 5, "bytesPerSecond": 1e6}}
    )
    told = client.call("GetPrincipal", name=f"{me}-hook")["principal"]
    assert (told["quotas"]["messagesPerSecond"], told["permissions"][0]["right"]) == (5, "RIGHT_PRODUCE")
    client.call("RevokeGrant", {"name": f"{me}-hook", "permissions": [right]})
    rotated = client.call("RotateKey", {"keyId": hook["keyId"], "overlapMs": "1000"})
    client.call("RevokeKey", {"keyId": rotated["keyId"], "force": True})
    client.call("ForgetPrincipal", {"name": f"{me}-hook", "force": True})
    assert client.call("WhoAmI")["authEnabled"] is True
    assert client.call("ListPrincipals", prefix="admin")["principals"]
    link = client.call("CreateTenantLink", {"fairnessKey": "acme", "ttlMs": HOUR_MS}, queue=queue)
    assert len(client.call("ListTenantLinks", queue=queue)["links"]) == 1
    client.call("RevokeTenantLink", {"linkId": link["link"]["linkId"]}, queue=queue)
    assert client.call("ListAudit", limit=5)["records"]
