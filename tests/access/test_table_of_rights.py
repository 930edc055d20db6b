"""Each row of the table of rights against each kind of caller, over both protocols, on a real server."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory

from fila.v1 import admin_pb2, auth_pb2, events_pb2, limit_pb2, operation_pb2, service_pb2, sink_pb2
from fila_server.access.rights import ADMIN, CANCEL, CONSUME, MANAGE, PRODUCE, VIEW
from fila_server.access.table import ANY, NOTHING, REDIS, RPCS, Need, page_rows
from fila_server.edge.redis.verbs import _VERBS
from tests.access.guarded_server import Client, Guarded, details_of, key_id, make_queue, permission, refusal
from tests.waiting import until

pytestmark = pytest.mark.e2e

QUEUE, MISSING, ELSEWHERE = "rights.one", "rights.not", "other.one"
MESSAGE_ID = "00000000-0000-7000-8000-000000000001"
SERVICES = {
    **service_pb2.DESCRIPTOR.services_by_name,
    **admin_pb2.DESCRIPTOR.services_by_name,
    **auth_pb2.DESCRIPTOR.services_by_name,
    **sink_pb2.DESCRIPTOR.services_by_name,
}
RIGHT_NAMES = {PRODUCE: "produce", CONSUME: "consume", MANAGE: "manage", VIEW: "view", CANCEL: "cancel"}
FIELDS: dict[str, dict[str, Any]] = {
    "EnqueueBatch": {"messages": [service_pb2.EnqueueMessage()]},
    "Ack": {"message_id": MESSAGE_ID},
    "Nack": {"message_id": MESSAGE_ID},
    "ExtendLease": {"message_id": MESSAGE_ID, "extend_ms": 1000},
    "CancelMessages": {"message_ids": [MESSAGE_ID]},
    "GetMessage": {"message_id": MESSAGE_ID},
    "SetConfig": {"key": "a", "value": "b"},
    "SetLimit": {"limit": limit_pb2.Limit(name="a", max_in_flight=1)},
    "DeleteLimit": {"limit_name": "none"},
    "ResetLimit": {"throttle_key": "none"},
    "GetConfig": {"key": "a"},
    "CreateChannel": {"channel": "late", "head": True},
    "DeleteChannel": {"channel": "nothing"},
    "SeekChannel": {"offset": 1},
    "SetKeyPolicy": {"fairness_key": "acme", "weight": 2},
    "PreviewKeyPolicy": {"policy": admin_pb2.SetKeyPolicyRequest(fairness_key="acme", weight=2)},
    "ExplainKey": {"fairness_key": "acme"},
    "SkipMessage": {"fairness_key": "acme"},
    "DropDeadLetters": {"offsets": [1]},
    "ListKeyPolicies": {"fairness_key": "acme"},
    "UpdateQueue": {"config": admin_pb2.QueueConfig(visibility_timeout_ms=5000)},
    "OpenSink": {"run_id": "run"},
    "Stage": {"sink_id": QUEUE, "epoch": 1, "messages": [service_pb2.EnqueueMessage()]},
    "Publish": {"epoch": 1},
    "Drop": {"epoch": 1},
    "CreateKey": {"name": "made"},
    "RotateKey": {"key_id": "none"},
    "RevokeKey": {"key_id": "none"},
    "Grant": {"name": "made", "permissions": [auth_pb2.Permission(right=auth_pb2.RIGHT_PRODUCE, queue="x")]},
    "RevokeGrant": {"name": "nobody"},
    "SetQuotas": {"name": "nobody"},
    "ForgetPrincipal": {"name": "nobody"},
    "CreateTenantLink": {"fairness_key": "acme"},
    "RevokeTenantLink": {"link_id": "none"},
    "FindKeys": {},
    "StartOperation": {"kind": 2},
    "WatchOperation": {"id": "none"},
    "CancelOperation": {"id": "none"},
    "EditDeadLetter": {"offset": 1},
}


def test_every_call_of_the_protos_and_every_redis_command_has_its_row():
    calls = {f"{service.name}/{method.name}" for service in SERVICES.values() for method in service.methods}
    assert set(RPCS) == calls
    assert set(REDIS) == {name.decode() for name in _VERBS}


def test_the_page_shows_the_table():
    page = (Path(__file__).parents[2] / "docs/security.md").read_text()
    shown = page.split("<!-- rights -->\n")[1].split("<!-- /rights -->")[0]
    assert shown.splitlines() == page_rows()


def test_every_field_that_a_row_names_is_there():
    for name, need in RPCS.items():
        service, method = name.split("/")
        request = SERVICES[service].methods_by_name[method].input_type
        if method in ("EnqueueStream", "ConsumeSession"):
            continue
        for field in filter(None, (need.queue, need.channel)):
            assert field in request.fields_by_name, name


# --- callers ----------------------------------------------------------------------------------


@dataclass
class Callers:
    guarded: Guarded
    keys: dict[str, Client]

    def of(self, kind: str, need: Need) -> Client | None:
        """A caller of this kind for a row; None where there can be none."""
        if kind == "allowed":
            if need.right == ADMIN or need.right == NOTHING:
                return self.keys["admin"] if need.right == ADMIN else self.keys["elsewhere"]
            return self.keys[next(name for bit, name in RIGHT_NAMES.items() if need.right & bit)]
        if kind == "denied":
            if need.right in (ANY, NOTHING):
                return None
            return self.keys[next(name for bit, name in RIGHT_NAMES.items() if not need.right & bit)]
        return self.keys[kind]


@pytest.fixture(scope="module")
def callers(guarded: Guarded) -> Callers:
    for name in (QUEUE, ELSEWHERE):
        make_queue(guarded, name)
    keys = {
        "anonymous": guarded.client(""),
        "admin": guarded.admin,
        "expired": guarded.make_key("expired", f"produce {QUEUE}", f"consume {QUEUE}", expires_ms=1),
        "revoked": guarded.make_key("revoked", f"manage {QUEUE}"),
        "tenant": guarded.make_key("tenant", f"produce {QUEUE}", f"cancel {QUEUE}", as_tenant="acme"),
        "elsewhere": guarded.make_key("elsewhere", *(f"{right} other.*" for right in RIGHT_NAMES.values())),
        **{
            right: guarded.make_key(f"only-{right}", f"{right} {QUEUE}", f"{right} {QUEUE}.dlq")
            for right in RIGHT_NAMES.values()
        },
    }
    guarded.admin.auth.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=key_id(keys["revoked"])))
    return Callers(guarded, keys)


def request_of(name: str, need: Need, queue: str) -> Any:
    service, method = name.split("/")
    kind = message_factory.GetMessageClass(SERVICES[service].methods_by_name[method].input_type)
    if method == "EnqueueStream":
        batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=[service_pb2.EnqueueMessage()])
        return iter([kind(sequence=1, batch=batch)])
    if method == "ConsumeSession":
        return iter([kind(open=service_pb2.ConsumeSessionRequest.Open(queue=queue, max_in_flight=1))])
    fields = dict(FIELDS.get(method, {}))
    if need.queue == "dlq_queue":
        queue = f"{queue}.dlq"
    if need.queue:
        fields[need.queue] = [queue] if kind.DESCRIPTOR.fields_by_name[need.queue].is_repeated else queue
    return kind(**fields)


def consumer_count(admin: Client, queue: str) -> int:
    try:
        return int(admin.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue)).active_consumers)
    except grpc.RpcError:
        return 0  # there is no such queue


def outcome(callers: Callers, client: Client, name: str, need: Need, queue: str) -> tuple[str, str, bytes]:
    """(code, sentence, details); a message of a batch that fails counts as the call."""
    method = name.partition("/")[2]
    try:
        answer = client.method(name)(request_of(name, need, queue), timeout=20)
        if method in ("Consume", "ConsumeSession"):
            admin = callers.keys["admin"]
            if method == "ConsumeSession":
                next(answer)  # that it is open
            else:
                # A stream that is let in says nothing by itself; the queue says that it has a consumer.
                until(lambda: not answer.is_active() or consumer_count(admin, queue))
            answer.cancel()
            if answer.code() is not grpc.StatusCode.CANCELLED:
                list(answer)
            until(lambda: not consumer_count(admin, queue))
            return "OK", "", b""
        if method in ("EnqueueStream", "ReadLog", "WatchEvents", "WatchStats", "WatchOperation"):
            stream, answer = answer, next(iter(answer), None)
            stream.cancel()
    except grpc.RpcError as error:
        return error.code().name, error.details(), details_of(error)
    for result in getattr(answer, "results", ()):
        if result.error.code if hasattr(result, "error") else result.code:
            status = result.error if hasattr(result, "error") else result
            code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
            return code.name, status.message, status.SerializeToString()
    return "OK", "", b""


ROWS = [pytest.param(name, need, id=name) for name, need in RPCS.items()]


@pytest.mark.parametrize("kind", ["anonymous", "expired", "revoked"])
def test_nobody_without_a_valid_key_is_served(callers: Callers, kind: str):
    # All at once: an answer to a wrong key is made to wait.
    def code(row: tuple[str, Need]) -> str:
        return outcome(callers, callers.keys[kind], row[0], row[1], QUEUE)[0]

    with ThreadPoolExecutor(len(RPCS)) as threads:
        told = threads.map(code, RPCS.items())
    assert dict(zip(RPCS, told, strict=True)) == dict.fromkeys(RPCS, "UNAUTHENTICATED")


@pytest.mark.parametrize(("name", "need"), ROWS)
def test_the_right_of_the_row_is_enough(callers: Callers, name: str, need: Need):
    code, sentence, _ = outcome(callers, callers.of("allowed", need), name, need, QUEUE)
    if name in ("FilaAdmin/CreateQueue", "FilaAdmin/Redrive", "FilaAdmin/DeleteQueue"):
        assert code in ("OK", "ALREADY_EXISTS"), sentence
        if name == "FilaAdmin/DeleteQueue":
            make_queue(callers.guarded, QUEUE)
    else:
        assert code not in ("UNAUTHENTICATED", "PERMISSION_DENIED"), sentence
        assert "does not exist" not in sentence, sentence


@pytest.mark.parametrize(("name", "need"), ROWS)
def test_another_right_on_the_queue_is_not_enough_and_the_missing_one_is_named(
    callers: Callers, name: str, need: Need
):
    caller = callers.of("denied", need)
    if caller is None:
        return
    code, sentence, _ = outcome(callers, caller, name, need, QUEUE)
    assert code == "PERMISSION_DENIED"
    assert sentence.startswith(f"{need.words}:")


@pytest.mark.parametrize(("name", "need"), ROWS)
def test_who_may_view_looks_at_numbers_and_events_and_does_nothing_else(
    callers: Callers, name: str, need: Need
):
    code, sentence, _ = outcome(callers, callers.keys["view"], name, need, QUEUE)
    if need.right in (NOTHING, ADMIN):
        assert (code == "PERMISSION_DENIED") == (need.right == ADMIN), sentence
    else:
        assert (code == "PERMISSION_DENIED") == (not need.right & VIEW), sentence


def test_no_call_that_a_view_is_enough_for_tells_a_message_or_changes_anything():
    looked_at = {name.partition("/")[2] for name, need in RPCS.items() if need.right & VIEW}
    assert looked_at == {
        "GetStats", "ListChannels", "ExplainKey", "ListConsumers", "WatchEvents", "ListLate", "ListKeyPolicies",
        "FindKeys", "WatchStats", "GetSeries", "GetMessage", "ListPending",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "need"), ROWS)
def test_a_queue_one_has_no_right_on_is_as_one_that_never_was(callers: Callers, name: str, need: Need):
    hidden = outcome(callers, callers.keys["elsewhere"], name, need, QUEUE)
    if need.right in (ADMIN, NOTHING):
        assert hidden[0] in (("PERMISSION_DENIED",) if need.right == ADMIN else ("OK",))
    elif need.creates:
        missing = outcome(callers, callers.keys["elsewhere"], name, need, MISSING)
        assert hidden[0] == missing[0] == "PERMISSION_DENIED"
        assert hidden[2].replace(QUEUE.encode(), MISSING.encode()) == missing[2]
    elif name == "FilaSink/Stage":
        assert hidden[0] == "NOT_FOUND", "a sink that was not opened is told before its queue is looked for"
    elif name == "FilaAdmin/WatchEvents":
        # An admin is told what happened to queues that are gone.
        missing = outcome(callers, callers.keys["elsewhere"], name, need, MISSING)
        assert hidden[0] == missing[0] == "NOT_FOUND"
        assert hidden[1].replace(QUEUE, MISSING) == missing[1]
    else:
        missing = outcome(callers, callers.keys["admin"], name, need, MISSING)
        assert hidden[0] == missing[0] == "NOT_FOUND"
        assert hidden[1].replace(QUEUE, MISSING) == missing[1]
        assert hidden[2].replace(QUEUE.encode(), MISSING.encode()) == missing[2]


@pytest.mark.parametrize(("name", "need"), ROWS)
def test_a_tenants_key_produces_and_sees_itself_only(callers: Callers, name: str, need: Need):
    code, _, _ = outcome(callers, callers.keys["tenant"], name, need, QUEUE)
    # Of the dead letters it has no right at all.
    refused = "NOT_FOUND" if need.queue == "dlq_queue" else "PERMISSION_DENIED"
    assert (code == refused) == (not need.for_tenant), code


# --- Redis ------------------------------------------------------------------------------------

ARGUMENTS = {
    "RPUSH": "{q} hello",
    "HMGET": "{q} default 1",
    "HDEL": "{q} default 1",
    "HMSET": "{q} default ID 1",
    "SET": "{q} default NX",
    "SETNX": "{q} default",
    "DEL": "{q} nothing",
    "SREM": "{q} nothing",
    "INFO": "queues",
    "CONFIG": "GET server",
    "COMMAND": "COUNT",
    "HELLO": "",
    "AUTH": "default fila_none_none",
    "SELECT": "0",
    "CLIENT": "LIST",
    "ECHO": "hello",
}


class Redis:
    def __init__(self, address: str, key: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self._file = self._socket.makefile("rb")
        if key:
            self.authenticated = self.ask(f"AUTH {key}")

    def ask(self, line: str) -> bytes:
        self._socket.sendall(line.encode() + b"\r\n")
        return self._reply()

    def _reply(self) -> bytes:
        head = self._file.readline()
        if head[:1] == b"$" and head != b"$-1\r\n":
            return head + self._file.read(int(head[1:]) + 2)
        if head[:1] == b"*":
            return head + b"".join(self._reply() for _ in range(max(0, int(head[1:]))))
        return head

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@pytest.fixture
def speak(callers: Callers) -> Iterator[Callable[..., bytes]]:
    opened: list[Redis] = []

    def speak(kind_or_key: str, name: str, queue: str = QUEUE) -> bytes:
        opened.append(Redis(callers.guarded.running.addresses["redis"], callers.keys[kind_or_key].key))
        return opened[-1].ask(f"{name} {ARGUMENTS.get(name, '')}".format(q=queue).strip())

    yield speak
    for connection in opened:
        connection.close()


def key_for(need: Need, granted: bool) -> str:
    if need.right == ADMIN:
        return "admin" if granted else "manage"
    return next(name for bit, name in RIGHT_NAMES.items() if bool(need.right & bit) == granted)


COMMANDS = [pytest.param(name, need, id=name) for name, need in REDIS.items()]


@pytest.mark.parametrize("kind", ["anonymous", "expired", "revoked"])
def test_redis_serves_nobody_without_a_valid_key(speak: Any, kind: str):
    with ThreadPoolExecutor(len(REDIS)) as threads:
        told = dict(zip(REDIS, threads.map(lambda name: speak(kind, name), REDIS), strict=True))
    assert told.pop("AUTH").startswith(b"-WRONGPASS")
    assert told.pop("QUIT") == b"+OK\r\n"
    assert [name for name, reply in told.items() if not reply.startswith(b"-NOAUTH")] == []


@pytest.mark.parametrize(("name", "need"), COMMANDS)
def test_redis_judges_by_the_same_table(speak: Any, name: str, need: Need):
    if need.right == NOTHING:
        assert not speak("elsewhere", name).startswith((b"-NOAUTH", b"-NOPERM"))
        return
    assert not speak(key_for(need, True), name).startswith((b"-NOPERM", b"-NOAUTH", b"-QNF"))
    assert speak(key_for(need, False), name).startswith(b"-NOPERM")
    if need.right != ADMIN and not need.creates:
        hidden = speak("elsewhere", name)
        assert hidden.replace(QUEUE.encode(), MISSING.encode()) == speak("admin", name, MISSING)
    assert speak("tenant", name).startswith(b"-NOPERM") == (not need.for_tenant)


def test_a_failed_auth_leaves_the_earlier_identity(callers: Callers):
    connection = Redis(callers.guarded.running.addresses["redis"], callers.keys["produce"].key)
    assert connection.authenticated == b"+OK\r\n"
    assert connection.ask("AUTH fila_none_nothing").startswith(b"-WRONGPASS")
    assert connection.ask(f"RPUSH {QUEUE} still").startswith((b":", b"*", b"$", b"+"))
    assert connection.ask(f"HELLO 3 AUTH only-produce {callers.keys['produce'].key}").startswith(b"%")
    connection.close()


def test_reset_drops_the_identity(callers: Callers):
    connection = Redis(callers.guarded.running.addresses["redis"], callers.keys["produce"].key)
    assert connection.ask("RESET") == b"+RESET\r\n"
    assert connection.ask("PING").startswith(b"-NOAUTH")
    assert connection.ask(f"RPUSH {QUEUE} nobody").startswith(b"-NOAUTH")
    connection.close()


def test_a_connection_of_an_admin_that_is_none_any_more_changes_nothing(callers: Callers):
    guarded = callers.guarded
    client = guarded.make_key("demoted", "admin", f"manage {QUEUE}")
    connection = Redis(guarded.running.addresses["redis"], client.key)
    assert connection.ask("CONFIG GET server").startswith(b"*")
    guarded.admin.auth.RevokeGrant(
        auth_pb2.RevokeGrantRequest(name="demoted", permissions=[permission("admin")])
    )
    assert connection.ask("CONFIG GET server").startswith(b"-NOPERM")
    connection.close()


def test_client_list_names_each_caller(callers: Callers):
    connection = Redis(callers.guarded.running.addresses["redis"], callers.keys["produce"].key)
    assert b" user=only-produce " in connection.ask("CLIENT LIST")
    connection.close()


def test_info_shows_the_channels_that_one_may_consume(callers: Callers):
    guarded = callers.guarded
    queue = make_queue(guarded, "info.one", channels=["billing", "secret-plans"])
    client = guarded.make_key("informed", f"consume {queue}:billing")
    connection = Redis(guarded.running.addresses["redis"], client.key)
    told = connection.ask(f"INFO queues.{queue}")
    assert b"billing" in told
    assert b"secret-plans" not in told
    connection.close()


def test_before_auth_only_so_much_is_read(callers: Callers):
    connection = Redis(callers.guarded.running.addresses["redis"], "")
    assert connection.ask("PING " + "x" * 70_000).startswith(b"-NOAUTH")
    assert connection._file.readline() == b""
    connection.close()


def test_a_browser_is_shown_out(callers: Callers):
    connection = Redis(callers.guarded.running.addresses["redis"], "")
    assert connection.ask("GET / HTTP/1.1").startswith(b"-")
    assert connection._file.readline() == b""
    connection.close()


# --- what is filtered -------------------------------------------------------------------------


def watched(client: Client) -> set[str]:
    answers = client.admin.WatchEvents(events_pb2.WatchEventsRequest(), timeout=20)
    return {event.queue for answer in answers for event in answer.events}


def test_events_are_told_of_queues_one_consumes_or_manages_and_of_the_broker_to_admins(callers: Callers):
    everything = watched(callers.keys["admin"])
    assert {"", QUEUE, ELSEWHERE} <= everything
    for right in ("manage", "consume"):
        told = watched(callers.keys[right])
        assert QUEUE in told
        assert told <= {QUEUE, f"{QUEUE}.dlq"}
    assert watched(callers.keys["produce"]) == set()
    assert QUEUE in watched(callers.keys["view"])
    assert watched(callers.keys["view"]) <= {QUEUE, f"{QUEUE}.dlq"}


def test_an_event_says_whose_key_it_was(callers: Callers):
    asked = events_pb2.WatchEventsRequest(queue=ELSEWHERE, kinds=["queue.created"])
    told = [event for answer in callers.keys["admin"].admin.WatchEvents(asked) for event in answer.events]
    assert {event.principal for event in told} == {"admin"}


def test_who_waits_is_told_of_queues_one_consumes_or_manages(callers: Callers):
    for queue in (QUEUE, ELSEWHERE):
        callers.guarded.admin.service.Enqueue(service_pb2.EnqueueRequest(queue=queue))

    def late(kind: str) -> set[str]:
        answer = callers.keys[kind].admin.ListLate(events_pb2.ListLateRequest(), timeout=20)
        return {key.queue for key in answer.keys}

    assert {QUEUE, ELSEWHERE} <= late("admin")
    assert late("consume") == late("view") == {QUEUE}
    assert late("produce") == set()


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("WatchEvents", events_pb2.WatchEventsRequest()),
        ("ListLate", events_pb2.ListLateRequest()),
        ("ListOperations", operation_pb2.ListOperationsRequest()),
    ],
)
def test_a_tenant_is_told_of_no_queue_in_all(callers: Callers, method: str, asked: Any):
    def ask() -> Any:
        return getattr(callers.keys["tenant"].admin, method)(asked, timeout=20)

    code, sentence, _ = refusal(ask)

    assert code == "PERMISSION_DENIED"
    assert 'bound to tenant "acme"' in sentence


def test_only_admins_are_told_where_the_data_is(callers: Callers):
    told = {
        kind: callers.keys[kind].admin.GetStatus(events_pb2.GetStatusRequest(), timeout=20)
        for kind in ("admin", "manage")
    }
    assert told["admin"].data_dir
    assert told["admin"].queues
    assert told["manage"].version == told["admin"].version
    assert (told["manage"].data_dir, told["manage"].queues) == ("", 0)
