"""What holds a key, by name and number; and a rate that is committed to it."""

import time
from typing import Any

import pytest

from fila.v1 import admin_pb2, events_pb2
from tests.cli.fake_broker import FakeBroker


def test_which_of_several_rates_of_a_limit_holds_a_key_is_told_by_its_number(fila, broker: FakeBroker):
    held: dict[str, Any] = {
        "blocking_bucket": "tenant:acme",
        "blocking_part": "LIMIT_PART_RATE",
        "blocking_rate": 2,
    }
    broker.answers["ExplainKey"] = admin_pb2.ExplainKeyResponse(state="STATE_THROTTLED", pending=1, **held)
    late = events_pb2.LateKey(queue="orders", fairness_key="acme", cause="CAUSE_THROTTLED", **held)
    broker.answers["ListLate"] = events_pb2.ListLateResponse(keys=[late], waiting_keys=1)
    broker.answers["GetMessage"] = admin_pb2.GetMessageResponse(
        state="STATE_WAITING", cause="STATE_THROTTLED", **held
    )

    for line in (("explain", "orders", "acme"), ("late",), ("message", "show", "orders", "m")):
        said = " ".join(fila(*line).out.split())
        assert "throttled by tenant:acme, whose rate 2 is used up" in said, said


def behind_committed(broker: FakeBroker, *, has_one: bool, tenant: bool = False) -> None:
    """What the broker says of a key that waits behind committed rates, and of its message."""
    explained = admin_pb2.ExplainKeyResponse(state="STATE_BEYOND_COMMITTED", pending=1)
    found = admin_pb2.GetMessageResponse(state="STATE_WAITING", cause="STATE_BEYOND_COMMITTED")
    key = events_pb2.LateKey(queue="orders", fairness_key="acme", cause="CAUSE_BEYOND_COMMITTED")
    if not tenant:
        explained.consumers.count = 1
        found.offset = 7
    if has_one:
        for answer in (explained, found, key):
            answer.until.FromMilliseconds(time.time_ns() // 1_000_000 + 3_600_000)
    broker.answers["ExplainKey"], broker.answers["GetMessage"] = explained, found
    broker.answers["ListLate"] = events_pb2.ListLateResponse(keys=[key], waiting_keys=1)


WHERE_A_KEY_IS = (("explain", "orders", "acme"), ("message", "show", "orders", "m"))


@pytest.mark.parametrize("line", WHERE_A_KEY_IS)
@pytest.mark.parametrize("tenant", [False, True])
def test_a_key_beyond_its_committed_rate_is_told_for_whom_it_waits_and_until_when_at_the_latest(
    fila, broker: FakeBroker, line: tuple[str, ...], tenant: bool
):
    behind_committed(broker, has_one=True, tenant=tenant)

    told = " ".join(fila(*line).out.split())

    assert "beyond its committed rate: waits until nobody within theirs waits, or until 2" in told
    assert "beyond its committed rate" in fila("late").out


@pytest.mark.parametrize("line", WHERE_A_KEY_IS)
def test_a_key_that_has_no_committed_rate_is_not_beyond_it(fila, broker: FakeBroker, line: tuple[str, ...]):
    behind_committed(broker, has_one=False)

    for asked in (line, ("late",)):
        told = " ".join(fila(*asked).out.split())
        assert "behind keys with a committed rate" in told
        assert "beyond" not in told


@pytest.mark.parametrize("line", WHERE_A_KEY_IS)
def test_a_tenant_whose_key_has_no_committed_rate_is_not_told_that_others_have_one(
    fila, broker: FakeBroker, line: tuple[str, ...]
):
    behind_committed(broker, has_one=False, tenant=True)

    told = " ".join(fila(*line).out.split())

    assert "ready; other keys are served before its turn" in told
    assert "committed" not in told


@pytest.mark.parametrize("delayed", [False, True])
def test_a_key_whose_message_replaces_a_leased_one_goes_when_that_lease_ends(
    fila, broker: FakeBroker, delayed: bool
):
    now_ms = time.time_ns() // 1_000_000
    answer = admin_pb2.ExplainKeyResponse(state="STATE_SUCCEEDS", pending=1 + delayed, in_flight=2)
    answer.waits_for.message_id, answer.waits_for.consumer_name = "0193-old", "worker-1"
    answer.waits_for.leased_at.FromMilliseconds(now_ms - 3_500)
    answer.head_forecast.unknown = events_pb2.Forecast.UNKNOWN_DELAYED
    if delayed:
        answer.until.FromMilliseconds(now_ms + 3_600_000)
    broker.answers["ExplainKey"] = answer

    told = " ".join(fila("explain", "orders", "acme").out.split())

    assert "replaces 0193-old, leased by worker-1 for" in told
    assert ", and goes when that lease ends" in told
    assert "next one goes when the lease of 0193-old ends" in told
    assert "when its delay is over" not in told
    assert ("others are delayed until" in told) == delayed
    assert ("if that is sooner" in told) == delayed


@pytest.mark.parametrize(
    ("word", "asked"), [("2.5", {"committed_per_second": 2.5}), ("default", {"committed_by_default": True})]
)
def test_a_rate_is_committed_to_a_key_and_taken_back(fila, broker: FakeBroker, word: str, asked: Any):
    ran = fila("key", "committed", "orders", "acme", word)

    assert ran.code == 0, ran.err
    request = admin_pb2.SetKeyPolicyRequest(queue="orders", fairness_key="acme", **asked)
    assert broker.request("SetKeyPolicy") == request
