"""A tenant's key and a tenant's link are told the limits that their own messages meet, and nothing of anybody else."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, auth_pb2, limit_pb2, service_pb2
from tests.access.guarded_server import Client, Guarded

SHOPS = "limits.shops"
HIDDEN = "limits.hidden"


def limits(client: Client, **asked: Any) -> list[limit_pb2.LimitState]:
    return list(client.admin.ListLimits(limit_pb2.ListLimitsRequest(**asked)).limits)


def put(guarded: Guarded, name: str, **terms: Any) -> None:
    limit = limit_pb2.Limit(name=name, **terms)
    guarded.admin.admin.SetLimit(limit_pb2.SetLimitRequest(limit=limit))


@pytest.fixture(scope="module")
def shops(guarded: Guarded) -> dict[str, Client]:
    """Two tenants, of whom acme has used something of its limits; and a queue that neither may know."""
    for queue, beginning in ((SHOPS, "tenant:"), (HIDDEN, "secret:")):
        config = admin_pb2.QueueConfig(fairness_key_header="k", key_limit=beginning)
        guarded.admin.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue, config=config))
    rates = [limit_pb2.Rate(per_second=0.001, burst=10)]
    put(guarded, "tenant:*", rates=rates, max_in_flight=7)
    put(guarded, "tenant:glob*", max_in_flight=3)
    put(guarded, "tenant:initech", max_in_flight=2)
    put(guarded, "secret:*", max_in_flight=5)
    put(guarded, "openai", max_in_flight=9)
    sent = [
        service_pb2.EnqueueMessage(queue=SHOPS, headers={"k": key}, payload=b"x")
        for key in ("acme", "globex", "globex", "globex", "globex")
    ]
    guarded.admin.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=SHOPS, messages=sent))
    guarded.admin.service.Lease(service_pb2.LeaseRequest(queue=SHOPS, max_messages=100))
    made = {
        tenant: guarded.make_key(f"shop-{tenant}", f"produce {SHOPS}", as_tenant=tenant)
        for tenant in ("acme", "globex", "initech")
    }
    request = auth_pb2.CreateTenantLinkRequest(queue=SHOPS, fairness_key="acme")
    made["link"] = guarded.client(guarded.admin.auth.CreateTenantLink(request).key)
    made["nowhere"] = guarded.make_key("shop-nowhere", "produce other.limits", as_tenant="acme")
    return made


@pytest.mark.parametrize("who", ["acme", "link"])
def test_a_tenant_sees_what_its_messages_may_use_and_what_they_have_used(shops: dict[str, Client], who: str):
    (mine,) = limits(shops[who])

    assert (mine.limit.name, mine.throttle_key, mine.of_tenant) == ("tenant:acme", "tenant:acme", True)
    assert (mine.limit.max_in_flight, mine.in_flight) == (7, 1)
    assert 9 <= mine.tokens[0] < 9.5


@pytest.mark.parametrize("who", ["acme", "globex", "initech", "link", "nowhere"])
@pytest.mark.parametrize(
    "asked",
    [
        {"prefix": ""},
        {"prefix": "tenant:"},
        {"prefix": "secret:"},
        {"after": "a", "max_limits": 1000},
        {"throttle_key": "tenant:other"},
        {"throttle_key": "tenant:*"},
        {"throttle_key": "openai"},
    ],
)
def test_no_question_brings_anothers_limit_or_a_number_of_all(
    shops: dict[str, Client], who: str, asked: dict[str, Any]
):
    tenant = {"link": "acme", "nowhere": "acme"}.get(who, who)
    others = {"acme", "globex", "glob", "initech", "secret", "openai"} - {tenant}
    for told in limits(shops[who], **asked):
        assert told.limit.name == told.throttle_key == f"tenant:{tenant}"
        text = str(told)
        assert not [other for other in others if other in text.replace(f"tenant:{tenant}", "")]
        assert [told.waiting, told.passed_total, told.held_total, told.throttle_keys] == [0] * 4
    if who == "nowhere" or "throttle_key" in asked or asked.get("prefix") == "secret:":
        assert limits(shops[who], **asked) == []


def test_anothers_name_is_as_one_that_nothing_limits(shops: dict[str, Client]):
    def answer(name: str) -> bytes:
        asked = limit_pb2.ListLimitsRequest(throttle_key=name)
        return bytes(shops["acme"].admin.ListLimits(asked).SerializeToString())

    absent = answer("tenant:nobody-of-that-name")
    for forbidden in ("tenant:globex", "tenant:initech", "tenant:*", "secret:acme", "openai"):
        assert answer(forbidden) == absent


def test_a_nearer_pattern_says_nothing_of_whom_it_is_for(shops: dict[str, Client]):
    (mine,) = limits(shops["globex"])
    assert (mine.limit.name, mine.limit.max_in_flight, mine.in_flight) == ("tenant:globex", 3, 3)


def test_a_right_that_is_taken_away_takes_the_limits_away(guarded: Guarded, shops: dict[str, Client]):
    key = guarded.make_key("shop-leaves", f"produce {SHOPS}", as_tenant="acme")
    assert limits(key)
    guarded.admin.auth.RevokeGrant(
        auth_pb2.RevokeGrantRequest(
            name="shop-leaves", permissions=[auth_pb2.Permission(right=auth_pb2.RIGHT_PRODUCE, queue=SHOPS)]
        )
    )
    assert limits(key) == []


@pytest.mark.parametrize("method", ["SetLimit", "DeleteLimit", "ResetLimit"])
def test_a_tenant_changes_no_limit(shops: dict[str, Client], method: str):
    request = {
        "SetLimit": limit_pb2.SetLimitRequest(limit=limit_pb2.Limit(name="tenant:acme", max_in_flight=1)),
        "DeleteLimit": limit_pb2.DeleteLimitRequest(limit_name="tenant:*"),
        "ResetLimit": limit_pb2.ResetLimitRequest(throttle_key="tenant:acme"),
    }[method]
    with pytest.raises(grpc.RpcError) as refused:
        getattr(shops["acme"].admin, method)(request)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
