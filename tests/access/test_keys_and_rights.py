"""A server with keys on: who comes in, what they may do, and how it ends when that is taken back."""

from __future__ import annotations

import itertools
import socket
import stat
import threading
import time

import grpc
import pytest

from fila.v1 import admin_pb2, auth_pb2, events_pb2, operation_pb2, service_pb2, watch_pb2
from tests.access.guarded_server import Guarded, key_id, make_queue, permission, refusal
from tests.waiting import GIVE_UP_S, until, within

pytestmark = pytest.mark.e2e

ENDS_S_MAX = 3.0
"""Within a second, and what a loaded machine adds."""


def enqueue(client, queue, **headers):
    return client.service.Enqueue(
        service_pb2.EnqueueRequest(queue=queue, headers=headers, payload=b"x"), timeout=10
    )


def test_the_first_start_writes_an_admin_key_that_only_the_owner_may_read(guarded: Guarded):
    file = guarded.running.data_dir / "bootstrap-key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == guarded.admin_key + "\n"
    make_queue(guarded, "first")
    assert [queue.name for queue in guarded.admin.admin.ListQueues(admin_pb2.ListQueuesRequest()).queues]


def test_without_a_key_nothing_is_told_even_to_this_machine(guarded: Guarded):
    code, sentence, _ = refusal(lambda: enqueue(guarded.client(""), "first"))
    assert code == "UNAUTHENTICATED"
    assert "authorization: Bearer" in sentence


def test_a_wrong_secret_of_a_known_key_is_no_key(guarded: Guarded):
    client = guarded.make_key("mistyped", "produce orders")
    wrong = client.key[:-1] + ("a" if client.key[-1] != "a" else "b")
    assert refusal(lambda: enqueue(guarded.client(wrong), "orders"))[0] == "UNAUTHENTICATED"


def test_a_producer_may_enqueue_and_nothing_else(guarded: Guarded):
    queue = make_queue(guarded, "produced")
    client = guarded.make_key("producer", "produce produced")
    assert enqueue(client, queue).message_id
    code, sentence, _ = refusal(
        lambda: client.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=1))
    )
    assert (code, sentence.split(":")[0]) == ("PERMISSION_DENIED", "consume")
    code, sentence, _ = refusal(lambda: client.admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=queue)))
    assert (code, sentence.split(":")[0]) == ("PERMISSION_DENIED", "manage")
    code, sentence, _ = refusal(
        lambda: client.admin.SetConfig(admin_pb2.SetConfigRequest(key="a", value="b"))
    )
    assert (code, sentence.split(":")[0]) == ("PERMISSION_DENIED", "admin")


def test_a_pattern_reaches_no_dead_letters_and_no_queue_of_the_brokers_own(guarded: Guarded):
    make_queue(guarded, "reach.one")
    client = guarded.make_key("reacher", "consume *", "consume reach.*")
    lease = lambda queue: client.service.Lease(service_pb2.LeaseRequest(queue=queue))  # noqa: E731
    lease("reach.one")
    assert refusal(lambda: lease("reach.one.dlq"))[0] == "NOT_FOUND"
    assert refusal(lambda: lease("_fila.any"))[0] == "NOT_FOUND"
    guarded.admin.auth.Grant(
        auth_pb2.GrantRequest(name="reacher", permissions=[permission("consume reach.*.dlq")])
    )
    lease("reach.one.dlq")


def test_a_consumer_of_one_channel_has_no_other(guarded: Guarded):
    queue = make_queue(guarded, "channelled", channels=["billing", "mail"])
    client = guarded.make_key("biller", "consume channelled:billing")
    client.service.Lease(service_pb2.LeaseRequest(queue=queue, channel="billing"))
    for channel in ("mail", ""):
        code = refusal(
            lambda channel=channel: client.service.Lease(
                service_pb2.LeaseRequest(queue=queue, channel=channel)
            )
        )[0]
        assert code == "PERMISSION_DENIED"
    listed = client.admin.ListChannels(admin_pb2.ListChannelsRequest(queue=queue)).channels
    assert [channel.name for channel in listed] == ["billing"]


def test_creating_outside_of_ones_patterns_never_tells_whether_it_is_there(guarded: Guarded):
    make_queue(guarded, "there")
    client = guarded.make_key("creator", "manage mine.*")
    client.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="mine.one"))
    create = lambda name: client.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name))  # noqa: E731
    there, not_there = refusal(lambda: create("there")), refusal(lambda: create("nowhere"))
    assert there[0] == not_there[0] == "PERMISSION_DENIED"
    assert there[1].replace("there", "nowhere") == not_there[1].replace("nonowhere", "nowhere")


def test_denied_messages_of_a_batch_fail_alone(guarded: Guarded):
    for name in ("batch.a", "batch.b", "hidden.c"):
        make_queue(guarded, name)
    client = guarded.make_key("batcher", "produce batch.a", "consume batch.b")
    messages = [
        service_pb2.EnqueueMessage(queue=name) for name in ("batch.a", "batch.b", "hidden.c", "no.such")
    ]
    results = client.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(messages=messages)).results
    assert [result.error.reason for result in results] == [
        "", "PERMISSION_DENIED", "QUEUE_NOT_FOUND", "QUEUE_NOT_FOUND",
    ]  # fmt: skip
    assert results[2].error.message.replace("hidden.c", "no.such") == results[3].error.message


def test_lists_hold_what_the_caller_may_name(guarded: Guarded):
    make_queue(guarded, "seen.one")
    make_queue(guarded, "unseen.one")
    client = guarded.make_key("lister", "produce seen.*")
    listed = client.admin.ListQueues(admin_pb2.ListQueuesRequest()).queues
    assert [queue.name for queue in listed] == ["seen.one"]


def test_a_revoked_keys_stream_ends_and_its_leases_return(guarded: Guarded):
    def ended_s(number: int) -> float:
        queue = make_queue(guarded, f"revoked.queue-{number}")
        client = guarded.make_key(f"consumer-{number}", f"consume {queue}")
        enqueue(guarded.admin, queue)
        stream = client.service.Consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=1))
        assert next(stream).message.id
        began_s = time.monotonic()
        guarded.admin.auth.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=key_id(client)))
        with pytest.raises(grpc.RpcError) as ended:
            next(stream)
        assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
        pull = service_pb2.LeaseRequest(queue=queue, max_messages=1, wait_ms=20_000)
        assert guarded.admin.service.Lease(pull).messages
        took_s = time.monotonic() - began_s
        assert refusal(lambda: enqueue(client, queue))[0] == "UNAUTHENTICATED"
        return took_s

    within(ENDS_S_MAX, ended_s)


def test_a_stream_whose_right_is_withdrawn_ends_and_its_leases_return(guarded: Guarded):
    queue = make_queue(guarded, "taken.back", channels=["default", "mail"])
    client = guarded.make_key("reader", "consume taken.back")
    for _ in range(2):
        enqueue(guarded.admin, queue)
    consume = client.service.Consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=1))
    opening = service_pb2.ConsumeSessionRequest.Open(queue=queue, max_in_flight=1)
    never = threading.Event()
    session = client.service.ConsumeSession(
        itertools.chain(
            [service_pb2.ConsumeSessionRequest(open=opening)], iter(lambda: never.wait(30) and None, object())
        )
    )
    mail = client.service.Consume(service_pb2.ConsumeRequest(queue=queue, channel="mail", max_in_flight=2))
    assert next(consume).message.id
    assert next(session)
    assert next(session).delivery.messages
    assert next(mail)
    guarded.admin.auth.Grant(auth_pb2.GrantRequest(name="reader", permissions=[permission("consume *:mail")]))
    guarded.admin.auth.RevokeGrant(
        auth_pb2.RevokeGrantRequest(name="reader", permissions=[permission("consume taken.back")])
    )
    for stream in (consume, session):
        code, sentence, details = refusal(lambda stream=stream: list(stream))
        assert (code, b"PERMISSION_DENIED" in details) == ("PERMISSION_DENIED", True)
        assert 'the right on queue "taken.back" was taken back' in sentence
    again = guarded.admin.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=2, wait_ms=3000))
    assert again.messages
    assert next(mail), "what is still allowed goes on"
    mail.cancel()
    never.set()


def test_events_are_told_no_longer_than_the_right_to_them_lasts(guarded: Guarded):
    queue = make_queue(guarded, "watched")
    watch = events_pb2.WatchEventsRequest(follow=True)
    of_queue = events_pb2.WatchEventsRequest(queue=queue, follow=True)
    manager = guarded.make_key("watcher", f"manage {queue}")
    admin = guarded.make_key("short-admin", "admin")
    streams = [manager.admin.WatchEvents(of_queue, timeout=30), admin.admin.WatchEvents(watch, timeout=30)]
    for stream in streams:
        next(stream)
    for name, right in (("watcher", f"manage {queue}"), ("short-admin", "admin")):
        taken = auth_pb2.RevokeGrantRequest(name=name, permissions=[permission(right)])
        guarded.admin.auth.RevokeGrant(taken)
    for stream in streams:
        assert refusal(lambda stream=stream: list(stream))[0] == "PERMISSION_DENIED"


def test_watchers_are_told_what_admins_do_with_keys(guarded: Guarded):
    guarded.make_key("told-of", "produce told.*")
    answers = guarded.admin.admin.WatchEvents(events_pb2.WatchEventsRequest(kinds=["access"]), timeout=20)
    events = [event for answer in answers for event in answer.events if event.details["name"] == "told-of"]
    assert [(event.kind, event.principal) for event in events] == [
        ("access.key_created", "admin"), ("access.granted", "admin")
    ]  # fmt: skip
    assert events[1].details["permissions"] == "produce told.*"


def test_channels_that_one_may_not_consume_are_told_nowhere(guarded: Guarded):
    queue = make_queue(guarded, "hush", channels=["billing", "secret-plans"])
    client = guarded.make_key("hushed", f"consume {queue}:bill*", f"produce {queue}")
    stats = client.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue))
    assert [channel.name for channel in stats.channels] == ["billing"]

    def asked(channel: str) -> list[tuple[str, str, bytes]]:
        explain = admin_pb2.ExplainKeyRequest(queue=queue, channel=channel, fairness_key="a")
        watch = watch_pb2.WatchStatsRequest(queues=[queue], channel=channel)
        return [
            refusal(lambda: next(client.admin.WatchStats(watch, timeout=10))),
            refusal(lambda: client.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue, channel=channel))),
            refusal(lambda: client.admin.ExplainKey(explain)),
        ]

    for there, not_there in zip(asked("secret-plans"), asked("secret-plant"), strict=True):
        assert there[0] == not_there[0] == "NOT_FOUND"
        assert there[1].replace("plans", "plant") == not_there[1]
        assert there[2].replace(b"plans", b"plant") == not_there[2]
        assert "billing" not in there[1]
    lease = service_pb2.LeaseRequest(queue=queue, channel="billings")
    code, sentence, _ = refusal(lambda: client.service.Lease(lease))
    assert (code, "secret" in sentence) == ("NOT_FOUND", False)


def test_who_produces_only_is_told_of_the_queue_and_of_no_channel_but_the_one_that_everybody_knows(
    guarded: Guarded,
):
    queue = make_queue(guarded, "shout", channels=["default", "secret-plans"])
    client = guarded.make_key("shouting", f"produce {queue}")
    tenant = guarded.make_key("shouting-tenant", f"produce {queue}", as_tenant="acme")
    told = client.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue))
    assert [channel.name for channel in told.channels] == ["default"]

    def asked(channel: str) -> list[tuple[str, str, bytes]]:
        watch = watch_pb2.WatchStatsRequest(queues=[queue], channel=channel)
        series = watch_pb2.GetSeriesRequest(queue=queue, channel=channel)
        return [
            refusal(lambda: next(client.admin.WatchStats(watch, timeout=10))),
            refusal(lambda: client.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue, channel=channel))),
            refusal(lambda: client.admin.GetSeries(series)),
        ]

    for there, not_there in zip(asked("secret-plans"), asked("secret-plant"), strict=True):
        assert there[0] == not_there[0] == "NOT_FOUND"
        assert there[1].replace("plans", "plant") == not_there[1]
        assert there[2].replace(b"plans", b"plant") == not_there[2]
    for own in (client, tenant):
        own.admin.GetSeries(watch_pb2.GetSeriesRequest(queue=queue))
        own.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue, channel="default"))
        wrong = admin_pb2.GetStatsRequest(queue=queue, channel="secret-plant")
        code, sentence, _ = refusal(lambda own=own, wrong=wrong: own.admin.GetStats(wrong))
        assert (code, "plans" in sentence) == ("NOT_FOUND", False)


def test_a_long_operation_is_told_no_longer_than_the_right_to_it_lasts(guarded: Guarded):
    queue = make_queue(guarded, "mover")
    dlq = f"{queue}.dlq"
    guarded.admin.service.EnqueueBatch(
        service_pb2.EnqueueBatchRequest(queue=queue, messages=[service_pb2.EnqueueMessage(payload=b"x")] * 40)
    )
    for message in guarded.admin.service.Lease(
        service_pb2.LeaseRequest(queue=queue, max_messages=40)
    ).messages:
        guarded.admin.service.Nack(
            service_pb2.NackRequest(
                queue=queue, message_id=message.id, lease_id=message.metadata.lease_id, dead_letter=True
            )
        )
    manager = guarded.make_key("mover", f"manage {dlq}", f"manage {queue}")
    start = operation_pb2.StartOperationRequest(
        dlq_queue=dlq, kind=operation_pb2.StartOperationRequest.KIND_REDRIVE, rate_per_second=2
    )
    begun = manager.admin.StartOperation(start).operation
    watch = operation_pb2.WatchOperationRequest(dlq_queue=dlq, id=begun.id)
    reports = manager.admin.WatchOperation(watch, timeout=15)
    next(reports)
    guarded.admin.auth.RevokeGrant(
        auth_pb2.RevokeGrantRequest(name="mover", permissions=[permission(f"manage {dlq}")])
    )
    assert refusal(lambda: list(reports))[0] == "PERMISSION_DENIED"


def test_a_waiting_pull_and_an_idle_producer_end_with_their_right(guarded: Guarded):
    def ended_s(number: int) -> float:
        queue, name = make_queue(guarded, f"withdrawn-{number}"), f"waiter-{number}"
        client = guarded.make_key(name, f"consume {queue}", f"produce {queue}")
        pull = client.service.Lease.future(
            service_pb2.LeaseRequest(queue=queue, max_messages=1, wait_ms=60_000), timeout=30
        )
        idle = threading.Event()
        sending = client.service.EnqueueStream(iter(lambda: idle.wait(30) and None, object()))
        about = auth_pb2.GetPrincipalRequest(name=name)
        until(lambda: guarded.admin.auth.GetPrincipal(about).principal.streams == 2)
        began_s = time.monotonic()
        guarded.admin.auth.RevokeGrant(
            auth_pb2.RevokeGrantRequest(name=name, permissions=[permission(f"consume {queue}")])
        )
        assert refusal(pull.result)[0] == "PERMISSION_DENIED"
        guarded.admin.auth.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=key_id(client)))
        assert refusal(lambda: next(sending))[0] == "UNAUTHENTICATED"
        idle.set()
        return time.monotonic() - began_s

    within(ENDS_S_MAX, ended_s)


def blocked_redis_clients(guarded: Guarded) -> int:
    host, _, port = guarded.running.addresses["redis"].rpartition(":")
    with socket.create_connection((host, int(port)), GIVE_UP_S) as sock, sock.makefile("rb") as replies:
        sock.sendall(f"AUTH {guarded.admin_key}\r\nINFO all\r\n".encode())
        assert replies.readline() == b"+OK\r\n"
        told = replies.read(int(replies.readline()[1:])).decode()
    return int(told.split("blocked_clients:")[1].split()[0])


def test_a_redis_read_that_waits_ends_with_its_right_and_a_redis_client_with_its_key(guarded: Guarded):
    host, _, port = guarded.running.addresses["redis"].rpartition(":")

    def ended_s(number: int) -> float:
        queue, name = make_queue(guarded, f"redis.withdrawn-{number}"), f"redis-waiter-{number}"
        client = guarded.make_key(name, f"consume {queue}", f"produce {queue}")
        read = f"HMGET {queue} default 1 60\r\n"
        with socket.create_connection((host, int(port)), GIVE_UP_S) as sock, sock.makefile("rb") as replies:
            sock.sendall(f"AUTH {client.key}\r\n{read}".encode())
            assert replies.readline() == b"+OK\r\n"
            until(lambda: blocked_redis_clients(guarded) == 1)
            began_s = time.monotonic()
            guarded.admin.auth.RevokeGrant(
                auth_pb2.RevokeGrantRequest(name=name, permissions=[permission(f"consume {queue}")])
            )
            assert replies.readline() == b"*-1\r\n"
            read_ended_s = time.monotonic() - began_s
            sock.sendall(f"RPUSH {queue} m\r\n{read}".encode())
            assert replies.readline() == b":1\r\n"
            assert replies.readline().startswith(b"-NOPERM")
            began_s = time.monotonic()
            guarded.admin.auth.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=key_id(client)))
            assert replies.readline() == b""
            return max(read_ended_s, time.monotonic() - began_s)

    within(ENDS_S_MAX, ended_s)


def test_a_key_ends_by_itself_and_with_it_what_it_holds_open(guarded: Guarded):
    queue = make_queue(guarded, "timed")
    admin = guarded.admin
    admin.auth.Grant(auth_pb2.GrantRequest(name="timed", permissions=[permission("consume timed")]))
    client = guarded.make_key("timed", expires_ms=1_500)
    stream = client.service.Consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=1))
    with pytest.raises(grpc.RpcError) as ended:
        next(stream)
    assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
    code, sentence, _ = refusal(lambda: client.service.Lease(service_pb2.LeaseRequest(queue=queue)))
    assert (code, "expired" in sentence) == ("UNAUTHENTICATED", True)


def ends_with_its_overlap(client, queue: str) -> bool:
    try:
        enqueue(client, queue)
    except grpc.RpcError as error:
        return error.code() is grpc.StatusCode.UNAUTHENTICATED
    return False


def test_both_keys_are_valid_while_a_rotation_overlaps(guarded: Guarded):
    queue = make_queue(guarded, "rotated")
    old = guarded.make_key("rotating", "produce rotated")

    def rotated(overlap_ms: int):
        request = auth_pb2.RotateKeyRequest(key_id=key_id(old), overlap_ms=overlap_ms)
        return guarded.client(guarded.admin.auth.RotateKey(request).key)

    new = rotated(60_000)
    enqueue(old, queue)
    enqueue(new, queue)
    old = new
    new = rotated(500)
    until(lambda: ends_with_its_overlap(old, queue))
    enqueue(new, queue)


def test_the_last_admin_cannot_lock_the_door_from_outside(guarded: Guarded):
    admin = guarded.admin
    code, sentence, _ = refusal(lambda: admin.auth.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=key_id(admin))))
    assert (code, "last admin" in sentence) == ("FAILED_PRECONDITION", True)
    code, _, _ = refusal(lambda: admin.auth.RevokeGrant(auth_pb2.RevokeGrantRequest(name="admin")))
    assert code == "FAILED_PRECONDITION"
    other = guarded.make_key("second-admin", "admin")
    admin.auth.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=key_id(other)))


def test_what_admins_did_is_read_back_without_secrets(guarded: Guarded):
    guarded.admin.admin.SetConfig(admin_pb2.SetConfigRequest(key="api.token", value="hush-hush"))
    records = guarded.admin.auth.ListAudit(auth_pb2.ListAuditRequest(limit=1)).records
    assert (records[0].act, records[0].principal, records[0].peer) == ("SetConfig", "admin", "127.0.0.1")
    assert records[0].details["key"] == "api.token"
    assert records[0].details["value"].startswith("sha256:")
    assert "hush-hush" not in str(records)
