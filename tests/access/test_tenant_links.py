"""A link shows a tenant its own part of a queue, for a while, and nothing that tells of anybody else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, auth_pb2, service_pb2, watch_pb2
from fila_server.access.table import RPCS
from tests.access.guarded_server import Client, Guarded, key_id, make_queue, refusal
from tests.access.test_table_of_rights import SERVICES, request_of
from tests.waiting import within

pytestmark = pytest.mark.e2e

QUEUE = "linked"
RIVAL = "globex"
RIVALS_MESSAGES = 4_111
OWN_MESSAGES = 3
ENDS_S_MAX = 3.0
"""Within a second, and what a loaded machine adds."""
FOREIGN_NUMBERS = set(range(RIVALS_MESSAGES - 1, RIVALS_MESSAGES + 300))
"""How many the rival has, how many all have while the tests go on, and the offsets behind them."""


@pytest.fixture(scope="module")
def shared(guarded: Guarded) -> Guarded:
    """A queue in which a rival of acme's has much more, waits for buckets of its own name, and consumes by name."""
    make_queue(
        guarded,
        QUEUE,
        fairness_key_header="tenant",
        throttle_key_headers=["throttle"],
        channels=["default", f"for-{RIVAL}"],
    )
    guarded.admin.admin.SetConfig(admin_pb2.SetConfigRequest(key=f"throttle.{RIVAL}-mail", value="0.001,1"))
    rivals = {"tenant": RIVAL, "throttle": f"{RIVAL}-mail"}
    own = {"tenant": "acme", "throttle": f"{RIVAL}-mail"}
    for headers, count in ((rivals, RIVALS_MESSAGES), (own, OWN_MESSAGES)):
        messages = [service_pb2.EnqueueMessage(headers=headers, payload=b"x")] * count
        guarded.admin.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=QUEUE, messages=messages))
    guarded.admin.admin.SetKeyPolicy(
        admin_pb2.SetKeyPolicyRequest(queue=QUEUE, fairness_key=RIVAL, weight=7, max_in_flight=9)
    )
    return guarded


def make_link(guarded: Guarded, **fields: Any) -> tuple[Client, auth_pb2.TenantLink]:
    request = auth_pb2.CreateTenantLinkRequest(**{"queue": QUEUE, "fairness_key": "acme", **fields})
    made = guarded.admin.auth.CreateTenantLink(request)
    return guarded.client(made.key), made.link


# --- what nobody may read from it ---------------------------------------------------------------


def texts_and_counts(message: Any) -> Iterator[tuple[str, str | int | float]]:
    """Every text and every number of an answer but moments and durations, with the field's name."""
    for field, value in message.ListFields():
        values: Any = [value]
        if hasattr(value, "items"):
            yield from ((f"{field.name} key", key) for key in value)
            values = list(value.values())
        elif field.is_repeated:
            values = list(value)
        for each in values:
            if hasattr(each, "ListFields"):
                if each.DESCRIPTOR.name != "Timestamp":
                    yield from texts_and_counts(each)
            elif not field.name.endswith("_ms"):
                yield field.name, each.decode("utf-8", "replace") if isinstance(each, bytes) else each


def answers_of(client: Client, name: str) -> list[Any]:
    """What a call tells: its first answers, or its refusal's words."""
    service, method = name.split("/")
    try:
        answer = client.method(name)(request_of(name, RPCS[name], QUEUE), timeout=10)
        if SERVICES[service].methods_by_name[method].server_streaming:
            stream, answer = answer, next(iter(answer), None)
            stream.cancel()
        return [answer] if answer is not None else []
    except grpc.RpcError as error:
        return [service_pb2.EnqueueMessage(headers={"refusal": error.details() or ""})]


@pytest.mark.parametrize("name", RPCS)
def test_no_call_tells_a_tenant_anothers_name_or_a_count_of_others(shared: Guarded, name: str):
    viewer, _ = make_link(shared)
    producer = shared.make_key(
        f"p-{name.replace('/', '.')}", f"produce {QUEUE}", f"view {QUEUE}", as_tenant="acme"
    )
    for client in (viewer, producer):
        for answer in answers_of(client, name):
            for field, told in texts_and_counts(answer):
                if isinstance(told, str):
                    assert RIVAL not in told.lower(), (field, told)
                else:
                    assert told not in FOREIGN_NUMBERS, (field, told)


def test_the_calls_that_answer_it_tell_its_own_numbers(shared: Guarded):
    viewer, _ = make_link(shared)
    stats = viewer.admin.GetStats(admin_pb2.GetStatsRequest(queue=QUEUE))
    told = viewer.admin.ExplainKey(admin_pb2.ExplainKeyRequest(queue=QUEUE, fairness_key="acme"))
    (listed,) = viewer.admin.ListQueues(admin_pb2.ListQueuesRequest()).queues
    first = next(viewer.admin.WatchStats(watch_pb2.WatchStatsRequest(queues=[QUEUE]), timeout=10))
    series = viewer.admin.GetSeries(watch_pb2.GetSeriesRequest(queue=QUEUE), timeout=10)

    assert stats.depth == told.pending == listed.depth >= OWN_MESSAGES
    assert [key.fairness_key for key in first.channels[0].keys] == ["acme"]
    assert first.channels[0].keys[0].ready == told.pending
    assert not series.points
    assert told.HasField("head_forecast")
    assert not told.blocking_bucket


def test_a_bucket_that_holds_it_is_told_without_its_name(shared: Guarded):
    queue = make_queue(shared, "held", fairness_key_header="tenant", throttle_key_headers=["throttle"])
    shared.admin.admin.SetConfig(admin_pb2.SetConfigRequest(key=f"throttle.{RIVAL}-sms", value="0.001,1"))
    message = service_pb2.EnqueueMessage(headers={"tenant": "acme", "throttle": f"{RIVAL}-sms"})
    shared.admin.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=queue, messages=[message] * 3))
    for _ in range(2):
        shared.admin.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=9))
    viewer, _ = make_link(shared, queue=queue)

    told = viewer.admin.ExplainKey(admin_pb2.ExplainKeyRequest(queue=queue, fairness_key="acme"))
    watched = next(viewer.admin.WatchStats(watch_pb2.WatchStatsRequest(queues=[queue]), timeout=10))

    assert told.state == admin_pb2.ExplainKeyResponse.STATE_THROTTLED
    for answer in (told, watched):
        assert RIVAL.encode() not in answer.SerializeToString()


def test_another_key_of_the_queue_is_refused_by_name_only(shared: Guarded):
    viewer, _ = make_link(shared)
    ask = lambda key: refusal(  # noqa: E731
        lambda: viewer.admin.ExplainKey(admin_pb2.ExplainKeyRequest(queue=QUEUE, fairness_key=key))
    )

    there, not_there = ask(RIVAL), ask("nobody")

    assert there[0] == "PERMISSION_DENIED"
    assert there[1:] == not_there[1:]


def test_a_channel_that_is_not_there_names_no_others(shared: Guarded):
    viewer, _ = make_link(shared)
    code, sentence, _ = refusal(
        lambda: viewer.admin.GetStats(admin_pb2.GetStatsRequest(queue=QUEUE, channel="nowhere"))
    )

    assert (code, RIVAL in sentence) == ("NOT_FOUND", False)


def test_an_enqueue_of_a_tenants_answers_an_id_and_no_offset(shared: Guarded):
    producer = shared.make_key("counter", f"produce {QUEUE}", as_tenant="acme")
    one = producer.service.Enqueue(service_pb2.EnqueueRequest(queue=QUEUE, payload=b"x"))
    batch = producer.service.EnqueueBatch(
        service_pb2.EnqueueBatchRequest(queue=QUEUE, messages=[service_pb2.EnqueueMessage()] * 2)
    )
    untied = shared.make_key("untied", f"produce {QUEUE}")

    assert one.message_id
    assert one.offset == 0
    assert all(result.message_id and result.offset == 0 for result in batch.results)
    assert untied.service.Enqueue(service_pb2.EnqueueRequest(queue=QUEUE)).offset > RIVALS_MESSAGES


# --- its life -----------------------------------------------------------------------------------


def test_a_link_is_listed_with_its_maker_and_its_end_and_without_its_key(shared: Guarded):
    client, link = make_link(shared, ttl_ms=60_000)
    listed = shared.admin.auth.ListTenantLinks(auth_pb2.ListTenantLinksRequest(queue=QUEUE))

    (found,) = [each for each in listed.links if each.link_id == link.link_id]
    assert found == link
    assert (found.queue, found.fairness_key, found.created_by) == (QUEUE, "acme", "admin")
    assert 55 < found.expires_at.ToSeconds() - time.time() < 61
    assert client.key.encode() not in listed.SerializeToString()
    who = client.auth.WhoAmI(auth_pb2.WhoAmIRequest())
    assert (who.tenant, [each.right for each in who.permissions]) == ("acme", [auth_pb2.RIGHT_VIEW])


def test_a_revoked_link_ends_what_it_shows_within_a_second(shared: Guarded):
    def ended_s(_: int) -> float:
        client, link = make_link(shared)
        stream = client.admin.WatchStats(watch_pb2.WatchStatsRequest(queues=[QUEUE]), timeout=30)
        next(stream)
        revoke = auth_pb2.RevokeTenantLinkRequest(queue=QUEUE, link_id=link.link_id)
        shared.admin.auth.RevokeTenantLink(revoke)
        began_s = time.monotonic()
        assert refusal(lambda: list(stream))[0] == "UNAUTHENTICATED"
        took_s = time.monotonic() - began_s
        assert refusal(lambda: client.auth.WhoAmI(auth_pb2.WhoAmIRequest()))[0] == "UNAUTHENTICATED"
        listed = shared.admin.auth.ListPrincipals(auth_pb2.ListPrincipalsRequest()).principals
        assert f"link/{link.link_id}" not in {each.name for each in listed}, "nothing of it is left"
        return took_s

    within(ENDS_S_MAX, ended_s)


def test_a_link_ends_by_itself(shared: Guarded):
    client, _ = make_link(shared, ttl_ms=1_500)
    stream = client.admin.WatchStats(watch_pb2.WatchStatsRequest(queues=[QUEUE]), timeout=30)
    next(stream)

    assert refusal(lambda: list(stream))[0] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ttl_ms": 90 * 86_400_000 + 1}, "ttl_ms must be at most 7776000000 (90 days)"),
        ({"fairness_key": ""}, "fairness_key must not be empty"),
        ({"fairness_key": "k" * 257}, "fairness_key must be at most 256 bytes, got 257"),
        ({"queue": "nowhere"}, "does not exist"),
    ],
)
def test_a_link_that_cannot_be_is_refused_with_its_bound(shared: Guarded, fields: dict[str, Any], said: str):
    assert said in refusal(lambda: make_link(shared, **fields))[1]


def test_who_manages_one_queue_makes_sees_and_revokes_links_of_that_one(shared: Guarded):
    make_queue(shared, "managed-elsewhere")
    manager = shared.make_key("link-manager", "manage managed-elsewhere")
    _, of_shared = make_link(shared)
    made = manager.auth.CreateTenantLink(
        auth_pb2.CreateTenantLinkRequest(queue="managed-elsewhere", fairness_key="acme")
    )

    listed = manager.auth.ListTenantLinks(auth_pb2.ListTenantLinksRequest()).links
    assert [each.link_id for each in listed] == [made.link.link_id]
    revoke = auth_pb2.RevokeTenantLinkRequest(queue="managed-elsewhere", link_id=of_shared.link_id)
    assert refusal(lambda: manager.auth.RevokeTenantLink(revoke))[0] == "NOT_FOUND"
    revoke.queue = QUEUE
    assert refusal(lambda: manager.auth.RevokeTenantLink(revoke))[0] == "NOT_FOUND"
    # The right is in the link, not in its maker.
    viewer = shared.client(made.key)
    assert [each.name for each in viewer.admin.ListQueues(admin_pb2.ListQueuesRequest()).queues] == [
        "managed-elsewhere"
    ]


def test_a_link_is_no_way_to_another_key(shared: Guarded):
    client, link = make_link(shared)
    name = f"link/{link.link_id}"
    admin = shared.admin.auth
    produce = auth_pb2.Permission(right=auth_pb2.RIGHT_PRODUCE, queue=QUEUE)

    for call in (
        lambda: admin.CreateKey(auth_pb2.CreateKeyRequest(name=name)),
        lambda: admin.CreateKey(auth_pb2.CreateKeyRequest(name="link/mine")),
        lambda: admin.Grant(auth_pb2.GrantRequest(name=name, permissions=[produce])),
    ):
        code, sentence, _ = refusal(call)
        assert (code, "tenants' links" in sentence) == ("INVALID_ARGUMENT", True)
    rotate = auth_pb2.RotateKeyRequest(key_id=key_id(client))
    assert refusal(lambda: admin.RotateKey(rotate))[0] == "FAILED_PRECONDITION"
    admin.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=key_id(client)))
    listed = admin.ListTenantLinks(auth_pb2.ListTenantLinksRequest(queue=QUEUE)).links
    assert link.link_id not in {each.link_id for each in listed}


def test_links_are_in_the_audit(shared: Guarded):
    _, link = make_link(shared, ttl_ms=60_000)
    records = shared.admin.auth.ListAudit(auth_pb2.ListAuditRequest(limit=20)).records

    (made,) = [each for each in records if each.details.get("key_id") == link.link_id]
    assert (made.act, made.queue, made.principal) == ("CreateTenantLink", QUEUE, "admin")
    assert made.details["fairness_key"] == "acme"


# --- whom a call is for -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claimed", "kept"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:DB8::1", "2001:db8::1"),
        ("fe80::1%eth0' OR 1", "fe80::1"),
        ("<script>", ""),
        ("1" * 300, ""),
    ],
)
def test_the_address_that_a_gateway_claims_is_kept_as_claimed_beside_the_one_that_is_seen(
    guarded: Guarded, claimed: str, kept: str
):
    guarded.admin.admin.SetConfig(
        admin_pb2.SetConfigRequest(key="claimed", value=claimed[:20]),
        metadata=(("fila-client-address", claimed),),
    )
    record = guarded.admin.auth.ListAudit(auth_pb2.ListAuditRequest(limit=1)).records[0]

    assert (record.act, record.claimed_address) == ("SetConfig", kept)
    assert record.peer in ("127.0.0.1", "::1")
