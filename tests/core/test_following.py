"""Limits that learn: what is settled tells of a provider, and the limit closes, falls and probes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import limit_pb2 as pb
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from fila_server.errors import Invalid
from fila_server.telemetry.snapshot import decode
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.driven_session import DrivenSession

OK, INVALID_ARGUMENT = 0, 3
LIMITED, REMAINING = service.LimitFeedback.KIND_LIMITED, service.LimitFeedback.KIND_REMAINING
CLOSED, LEARNED = 6, 7


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue(
        "q", fairness_key_header="k", throttle_key_headers=["t", "u"], visibility_timeout_ms=3_600_000
    )
    yield made
    made.remove()


def learns(
    engine: DrivenEngine,
    name: str = "b",
    per_second: float = 100,
    least: float = 1,
    most: float = 1000,
    **terms: Any,
) -> None:
    rate = pb.Rate(per_second=per_second, burst=1, unit=pb.Limit.UNIT_MESSAGES)
    limit = pb.Limit(name=name, rates=[rate], learn=pb.Learn(min=least, max=most), **terms)
    engine.call(commands.SET_LIMIT, pb.SetLimitRequest(limit=limit), pb.SetLimitResponse)


def state(engine: DrivenEngine, key: str = "b") -> pb.LimitState:
    request = pb.ListLimitsRequest(throttle_key=key)
    (found,) = engine.call(commands.LIST_LIMITS, request, pb.ListLimitsResponse).limits
    return found


def send(engine: DrivenEngine, count: int, **headers: str) -> None:
    sent = service.EnqueueBatchRequest()
    for _ in range(count):
        sent.messages.add(queue="q", headers={"t": "b"} | headers)
    engine.call(commands.ENQUEUE_BATCH, sent, service.EnqueueBatchResponse)


def said(limit: str = "", kind: service.LimitFeedback.Kind = LIMITED, **words: int) -> service.LimitFeedback:
    return service.LimitFeedback(limit=limit, kind=kind, **words)


def nack(
    engine: DrivenEngine, message: messages.Message, *feedback: service.LimitFeedback, **wishes: Any
) -> None:
    request = service.NackRequest(
        queue="q", message_id=message.id, lease_id=message.metadata.lease_id, feedback=feedback, **wishes
    )
    engine.call(commands.NACK, request, service.NackResponse)


def ack(engine: DrivenEngine, message: messages.Message, *feedback: service.LimitFeedback) -> None:
    request = service.AckRequest(
        queue="q", message_id=message.id, lease_id=message.metadata.lease_id, feedback=feedback
    )
    engine.call(commands.ACK, request, service.AckResponse)


def notices(engine: DrivenEngine) -> list[tuple[int, str, int]]:
    engine.others += engine.settle_down()
    heard = [seam_frames.Notice.FromString(out[3]) for out in engine.others if out[1] == commands.NOTICE]
    return [(notice.what, notice.queue.decode(), notice.number) for notice in heard]


def test_a_limit_closes_for_as_long_as_its_provider_asked_for_and_falls(engine: DrivenEngine) -> None:
    learns(engine)
    send(engine, 5)
    (first,) = engine.lease("q")

    nack(engine, first, said(retry_after_ms=30_000))

    assert state(engine).learned_per_second == pytest.approx(92.15)
    assert state(engine).closed_until.ToMilliseconds() == engine.wall_ms + 30_000
    assert state(engine).refused_at.ToMilliseconds() == engine.wall_ms
    engine.sleep(29_900)
    assert engine.lease("q") == []
    engine.sleep(200)
    assert len(engine.lease("q")) == 1


def test_what_its_provider_refused_did_not_fail_and_keeps_its_place(engine: DrivenEngine) -> None:
    learns(engine)
    send(engine, 3)
    (first,) = engine.lease("q")

    nack(engine, first, said(retry_after_ms=100), delay_ms=60_000, error="429")
    engine.sleep(1000)
    (again,) = engine.lease("q")

    assert again.id == first.id
    assert again.metadata.attempt_count == 0
    assert engine.stats("q").nacked_total == 0


def test_a_limit_that_does_not_learn_hears_nothing_and_the_message_failed(engine: DrivenEngine) -> None:
    engine.set_config("throttle.b", "100,1")
    send(engine, 2)
    (first,) = engine.lease("q")

    nack(engine, first, said("b", retry_after_ms=30_000), delay_ms=5)
    engine.sleep(100)

    assert engine.lease("q")[0].id != first.id
    assert engine.stats("q").nacked_total == 1
    assert not state(engine).HasField("closed_until")


def test_a_message_that_is_rejected_is_a_dead_letter_whatever_its_provider_said(engine: DrivenEngine) -> None:
    learns(engine)
    send(engine, 1)
    (first,) = engine.lease("q")

    nack(engine, first, said(), dead_letter=True)

    assert engine.stats("q.dlq").depth == 1


def test_only_limits_that_the_message_names_hear_of_it(engine: DrivenEngine) -> None:
    learns(engine)
    learns(engine, "another")
    send(engine, 1)
    (first,) = engine.lease("q")

    with pytest.raises(Refused, match=r"feedback.limit: the message does not name this limit"):
        nack(engine, first, said("another"))
    assert state(engine, "another").learned_per_second == 100
    nack(engine, first, said("b"))
    assert state(engine).learned_per_second < 100


def test_a_limit_that_is_not_named_means_each_that_learns(engine: DrivenEngine) -> None:
    learns(engine)
    learns(engine, "c")
    send(engine, 1, u="c")
    (first,) = engine.lease("q")

    nack(engine, first, said())

    assert state(engine, "b").learned_per_second < 100
    assert state(engine, "c").learned_per_second < 100


def test_each_item_of_a_batch_tells_for_itself(engine: DrivenEngine) -> None:
    learns(engine, per_second=1000)
    send(engine, 3)
    leased: list[messages.Message] = []
    while len(leased) < 3:
        leased += engine.lease("q")
        engine.sleep(2)
    items = [service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id) for m in leased]
    items[0].feedback.append(said("b"))
    items[1].feedback.append(said("other"))
    items[2].feedback.append(said(retry_after_ms=300_001))

    answer = engine.call(
        commands.NACK_BATCH, service.NackBatchRequest(queue="q", items=items), service.SettleBatchResponse
    )

    assert [result.code for result in answer.results] == [OK, INVALID_ARGUMENT, INVALID_ARGUMENT]
    assert "does not name" in answer.results[1].message
    assert "retry_after_ms: at most 300000" in answer.results[2].message
    assert engine.stats("q").in_flight == 2, "what was refused is leased still"


def test_a_session_tells_of_each_of_its_leases_and_hears_which_do_not_fit(engine: DrivenEngine) -> None:
    learns(engine, per_second=1000)
    send(engine, 1)
    send(engine, 1, t="other")
    session = DrivenSession(engine, tracks_begun=False)
    engine.sleep(10)
    session.read()
    assert len(session.messages) == 2

    session.say(nack={"sequence": 1, "lease_ids": session.lease_ids(), "feedback": [said("b")]})

    failures = session.answers[-1].settled.failures
    (other,) = [m for m in session.messages if m.metadata.throttle_keys == ["other"]]
    assert [failure.lease_id for failure in failures] == [other.metadata.lease_id]
    assert state(engine).learned_per_second < 1000


@pytest.mark.parametrize(
    ("feedback", "says"),
    [
        (said(retry_after_ms=365 * 86_400_000), "feedback.retry_after_ms: at most 300000"),
        (said(kind=REMAINING, reset_ms=2**63), "feedback.reset_ms: at most 300000"),
        (said(kind=service.LimitFeedback.KIND_UNSPECIFIED), "feedback.kind: must be 1"),
        (said(limit="x" * 5000), "feedback.limit: at most"),
    ],
)
def test_what_no_provider_says_is_refused_in_a_sentence(
    engine: DrivenEngine, feedback: service.LimitFeedback, says: str
) -> None:
    learns(engine)
    send(engine, 1)
    (first,) = engine.lease("q")

    with pytest.raises(Invalid, match=says):
        nack(engine, first, feedback)
    with pytest.raises(Invalid, match=says):
        ack(engine, first, feedback)
    assert state(engine).learned_per_second == 100


def test_more_feedback_than_a_message_has_limits_is_refused(engine: DrivenEngine) -> None:
    learns(engine)
    send(engine, 1)
    (first,) = engine.lease("q")
    with pytest.raises(Invalid, match="feedback: at most 16"):
        nack(engine, first, *[said()] * 17)


def test_it_probes_back_while_messages_wait_and_never_above_its_bound(engine: DrivenEngine) -> None:
    learns(engine, per_second=20, most=25)
    send(engine, 2000)
    (first,) = engine.lease("q")
    nack(engine, first, said())
    fell = state(engine).learned_per_second

    for _ in range(1200):
        engine.sleep(50)
        for message in engine.lease("q", most=100):
            ack(engine, message)

    assert fell == pytest.approx(18.43)
    assert state(engine).learned_per_second == 25


def test_it_does_not_grow_while_nobody_waits(engine: DrivenEngine) -> None:
    learns(engine, per_second=20)
    send(engine, 1)
    (first,) = engine.lease("q")
    nack(engine, first, said())
    engine.sleep(1000)
    (first,) = engine.lease("q")
    ack(engine, first)
    before = state(engine).learned_per_second

    engine.sleep(60_000, 1000)

    assert state(engine).learned_per_second == before


def test_no_more_go_than_its_provider_has_left_until_the_reset(engine: DrivenEngine) -> None:
    learns(engine, per_second=1000)
    send(engine, 20)
    (first,) = engine.lease("q")
    ack(engine, first, said(kind=REMAINING, remaining=3, reset_ms=10_000))

    gone = 0
    for _ in range(90):
        engine.sleep(100)
        gone += len(engine.lease("q"))
    assert gone == 3
    engine.sleep(1100)
    assert engine.lease("q"), "as the rate has it"


def test_what_was_learned_outlives_a_restart_and_so_does_a_closed_limit(engine: DrivenEngine) -> None:
    learns(engine)
    send(engine, 5)
    (first,) = engine.lease("q")
    nack(engine, first, said(retry_after_ms=60_000))
    learned = state(engine).learned_per_second

    engine.kill()
    engine.reopen()

    assert state(engine).learned_per_second == pytest.approx(learned)
    engine.sleep(59_000)
    assert engine.lease("q") == []
    engine.sleep(2_000)
    assert len(engine.lease("q")) == 1


def test_an_operator_who_sets_another_first_rate_begins_anew(engine: DrivenEngine) -> None:
    learns(engine)
    send(engine, 2)
    (first,) = engine.lease("q")
    nack(engine, first, said())
    learns(engine, most=500)
    assert state(engine).learned_per_second == pytest.approx(92.15), "other bounds, and it is what it was"
    learns(engine, per_second=50)
    assert state(engine).learned_per_second == 50


def test_a_limit_that_learns_no_more_is_what_its_operator_set(engine: DrivenEngine) -> None:
    learns(engine)
    send(engine, 5)
    (first,) = engine.lease("q")
    nack(engine, first, said())
    rate = pb.Rate(per_second=100, burst=1, unit=pb.Limit.UNIT_MESSAGES)
    engine.call(
        commands.SET_LIMIT, pb.SetLimitRequest(limit=pb.Limit(name="b", rates=[rate])), pb.SetLimitResponse
    )
    assert state(engine).learned_per_second == 0
    engine.sleep(11)
    assert len(engine.lease("q")) == 1


def test_each_key_of_a_pattern_learns_for_itself(engine: DrivenEngine) -> None:
    learns(engine, "tenant:*")
    send(engine, 1, t="tenant:a")
    send(engine, 1, t="tenant:b")
    for message in engine.lease("q"):
        if message.metadata.throttle_keys == ["tenant:a"]:
            nack(engine, message, said())
    assert state(engine, "tenant:a").learned_per_second < 100
    assert state(engine, "tenant:b").learned_per_second == 100


def test_an_endpoint_that_is_down_gets_one_try_in_ten_seconds_and_holds_nobody_else(
    engine: DrivenEngine,
) -> None:
    learns(engine, "hook:*", per_second=10, least=0.1, most=10, max_in_flight=1)
    send(engine, 50, t="hook:down")
    tries = 0
    for second in range(600):
        engine.sleep(1000, 250)
        for message in engine.lease("q", most=10):
            nack(engine, message, said())
            tries += second >= 300
    assert state(engine, "hook:down").learned_per_second == pytest.approx(0.1)
    assert 25 <= tries <= 35

    send(engine, 1, t="hook:up")
    assert [m.metadata.throttle_keys for m in engine.lease("q", most=10)] == [["hook:up"]]


def test_people_hear_that_it_closed_and_that_its_rate_changed_by_half(engine: DrivenEngine) -> None:
    learns(engine)
    send(engine, 60)
    leased: list[messages.Message] = []
    for _ in range(40):
        leased += engine.lease("q")
        engine.sleep(12)
    for message in leased:
        nack(engine, message, said("b", retry_after_ms=500))

    heard = notices(engine)
    assert [what for what, _, _ in heard] == [CLOSED, LEARNED]
    assert heard[0] == (CLOSED, "b", 500)
    assert 0 < heard[1][2] <= 50_000


def test_who_asks_why_a_key_waits_hears_what_its_limit_learned(engine: DrivenEngine) -> None:
    learns(engine)
    send(engine, 3)
    (first,) = engine.lease("q")
    DrivenSession(engine, tracks_begun=False)
    nack(engine, first, said(retry_after_ms=20_000))
    closed_until_ms = engine.wall_ms + 20_000
    engine.sleep(4_000)

    request = admin.ExplainKeyRequest(queue="q", fairness_key="default")
    answer = engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse)

    assert answer.state == admin.ExplainKeyResponse.STATE_THROTTLED
    assert answer.blocking_bucket == "b"
    assert answer.learned_per_second == pytest.approx(92.15)
    assert answer.refused_at.ToMilliseconds() == engine.wall_ms - 4_000
    assert 0 <= answer.until.ToMilliseconds() - closed_until_ms < 100


def test_a_first_rate_of_0_stops_what_learns_until_it_is_set_again(engine: DrivenEngine) -> None:
    learns(engine, least=5)
    send(engine, 20)
    stop = admin.SetConfigRequest(key="throttle.b", value="0,0")
    engine.call(commands.SET_CONFIG, stop, admin.SetConfigResponse)
    for _ in range(5):
        engine.advance(1_000)
        assert engine.lease("q") == []
    assert not state(engine).HasField("closed_until")
    assert state(engine).learned_per_second == 0

    learns(engine, per_second=10, least=5)
    assert state(engine).learned_per_second == 10
    engine.advance(1_000)
    engine.run_pass()
    assert engine.lease("q") or engine.lease("q")


def test_telemetry_tells_what_was_learned_by_the_limit_as_it_was_set(engine: DrivenEngine) -> None:
    learns(engine)
    learns(engine, "t:*", per_second=50)
    for key in ("t:a", "t:b"):
        send(engine, 2, t=key)
    first, second = engine.lease("q")
    send(engine, 1)
    nack(engine, first, said(retry_after_ms=1))

    token = engine.submit(commands.METRICS)
    engine.others += engine.settle_down()
    told = {limit.throttle_key: limit.learned_rate for limit in decode(engine.answer_of(token)[1]).limits}

    assert told == {
        b"b": 100,
        b"t:*": pytest.approx(state(engine, first.metadata.throttle_keys[0]).learned_per_second),
    }
    assert told[b"t:*"] < state(engine, second.metadata.throttle_keys[0]).learned_per_second == 50
