"""Why is this key late? Each answer, under a simulated clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import events_pb2 as events
from fila.v1 import service_pb2 as service
from fila.v1 import watch_pb2 as watch
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine, Refused

State = admin.ExplainKeyResponse


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    engine.create_queue("orders", fairness_key_header="tenant", throttle_key_headers=["provider"])
    yield engine
    engine.remove()


def explain(engine: DrivenEngine, key: str, channel: str = "") -> admin.ExplainKeyResponse:
    request = admin.ExplainKeyRequest(queue="orders", channel=channel, fairness_key=key)
    return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse)


def send(engine: DrivenEngine, key: str, count: int = 1, provider: str = "", **options) -> None:
    headers = {"tenant": key} | ({"provider": provider} if provider else {})
    for _ in range(count):
        engine.enqueue("orders", headers=headers, **options)


def set_policy(engine: DrivenEngine, key: str, **policy) -> None:
    request = admin.SetKeyPolicyRequest(queue="orders", fairness_key=key, **policy)
    engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


def consume(engine: DrivenEngine, most: int) -> int:
    """Open a stream that takes at most so many messages and never acks."""
    token = engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="orders", max_in_flight=most))
    engine.others += engine.settle_down()
    return token


def ms(waits: watch.WaitCauses) -> tuple[int, int, int, int]:
    return waits.no_consumer_ms, waits.share_ms, waits.throttle_ms, waits.delay_ms


# --- what holds it now -------------------------------------------------------------------------


def test_a_key_nobody_ever_used_is_empty(engine):
    answer = explain(engine, "acme")

    assert answer.state == State.STATE_EMPTY
    assert (answer.pending, answer.in_flight, answer.due_share) == (0, 0, 0)


def test_without_a_consumer_it_waits_for_one(engine):
    send(engine, "acme", 3)
    engine.sleep(2000)

    answer = explain(engine, "acme")

    assert answer.state == State.STATE_NO_CONSUMER
    assert answer.pending == 3
    assert answer.oldest_age_ms == 2000
    assert ms(answer.waits) == (6000, 0, 0, 0)


def test_a_consumer_that_is_full_is_none(engine):
    send(engine, "acme", 3)
    consume(engine, most=1)

    answer = explain(engine, "acme")

    assert answer.state == State.STATE_NO_CONSUMER
    assert (answer.pending, answer.in_flight) == (2, 1)


def late(engine: DrivenEngine) -> events.LateKey:
    """The only key that waits."""
    page = seam_frames.WaitingLongestPage(queue=b"orders", most=10)
    (row,) = engine.call(commands.WAITING_LONGEST_PAGE, page, seam_frames.WaitingLongestKeys).keys
    return events.LateKey.FromString(row)


def test_that_nobody_consumes_is_told_from_consumers_that_are_full(engine):
    send(engine, "acme", 3)
    for told in (explain(engine, "acme"), late(engine)):
        assert told.nobody_consumes

    consume(engine, most=1)

    assert explain(engine, "acme").state == State.STATE_NO_CONSUMER
    assert late(engine).cause == events.LateKey.CAUSE_NO_CONSUMER
    for told in (explain(engine, "acme"), late(engine)):
        assert not told.nobody_consumes


def test_that_nobody_consumes_is_said_of_no_key_that_waits_for_something_else(engine):
    send(engine, "acme")
    set_policy(engine, "acme", paused=True)

    for told in (explain(engine, "acme"), late(engine)):
        assert not told.nobody_consumes


def test_a_throttled_key_names_the_bucket_and_the_moment_of_its_token(engine):
    engine.set_config("throttle.mail", "2,1")
    send(engine, "other", 3, provider="mail")
    send(engine, "acme", 1, provider="mail")
    assert len(engine.lease("orders")) == 1

    answer = explain(engine, "acme")

    assert answer.state == State.STATE_THROTTLED
    assert answer.blocking_bucket == "mail"
    # At two a second it is acme's turn in the line after one more of other's.
    assert 0 < answer.until.ToMilliseconds() - engine.wall_ms <= 1000


def test_of_several_buckets_the_one_that_holds_the_oldest_message_is_named(engine):
    for provider in ("mail", "sms", "push"):
        engine.set_config(f"throttle.{provider}", "0,0")
        send(engine, "acme", provider=provider)
    engine.lease("orders")

    assert explain(engine, "acme").blocking_bucket == "mail"


def test_a_bucket_that_never_refills_gives_no_moment(engine):
    engine.set_config("throttle.mail", "0,0")
    send(engine, "acme", provider="mail")
    assert engine.lease("orders") == []

    answer = explain(engine, "acme")

    assert answer.state == State.STATE_THROTTLED
    assert not answer.HasField("until")


def test_a_key_that_could_go_is_not_throttled_because_some_of_it_is(engine):
    engine.set_config("throttle.mail", "0,0")
    send(engine, "acme", provider="mail")
    engine.lease("orders")
    send(engine, "acme")

    assert explain(engine, "acme").state == State.STATE_NO_CONSUMER


def test_a_delayed_key_says_when_its_first_delay_is_over(engine):
    send(engine, "acme", delay_ms=9000)
    send(engine, "acme", delay_ms=4000)
    send(engine, "other", delay_ms=1000)

    answer = explain(engine, "acme")

    assert answer.state == State.STATE_DELAYED
    assert answer.until.ToMilliseconds() == engine.wall_ms + 4000
    assert answer.pending == 2


def test_a_key_whose_messages_are_all_leased_waits_for_nothing(engine):
    send(engine, "acme", 2)
    engine.lease("orders")

    answer = explain(engine, "acme")

    assert answer.state == State.STATE_LEASED
    assert (answer.pending, answer.in_flight) == (0, 2)


def test_a_paused_key_says_so_before_anything_else(engine):
    engine.set_config("throttle.mail", "0,0")
    send(engine, "acme", provider="mail")
    engine.lease("orders")
    set_policy(engine, "acme", paused=True)

    assert explain(engine, "acme").state == State.STATE_PAUSED


def test_a_key_at_its_cap_says_so(engine):
    send(engine, "acme", 3)
    set_policy(engine, "acme", max_in_flight=2)
    engine.lease("orders")

    answer = explain(engine, "acme")

    assert answer.state == State.STATE_CAPPED
    assert (answer.pending, answer.in_flight) == (1, 2)


def test_a_key_beside_a_consumer_with_room_waits_for_its_turn(engine):
    # Between a consumer's arrival and the pass that serves it the key is just not served yet.
    send(engine, "acme", 3)
    engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="orders", max_in_flight=10))
    token = engine.submit(commands.EXPLAIN_KEY, admin.ExplainKeyRequest(queue="orders", fairness_key="acme"))
    engine.others += engine.settle_down()

    answer = admin.ExplainKeyResponse.FromString(engine.answer_of(token)[1])

    assert answer.state == State.STATE_NOT_ITS_TURN


def test_a_queue_or_channel_that_is_not_there_is_an_error(engine):
    with pytest.raises(Refused, match="channel"):
        explain(engine, "acme", channel="audit")


# --- where the last hour went ------------------------------------------------------------------


def test_time_in_a_buckets_line_is_the_throttles(engine):
    engine.set_config("throttle.mail", "0,0")
    send(engine, "acme", 2, provider="mail")
    engine.lease("orders")
    engine.sleep(3000)

    assert ms(explain(engine, "acme").waits) == (0, 0, 6000, 0)


def test_time_under_a_delay_is_the_delays(engine):
    send(engine, "acme", delay_ms=5000)
    engine.sleep(4000)

    assert ms(explain(engine, "acme").waits) == (0, 0, 0, 4000)


def test_a_pause_and_a_cap_are_counted_apart_from_throttles(engine):
    send(engine, "acme")
    set_policy(engine, "acme", paused=True)
    send(engine, "capped", 2)
    set_policy(engine, "capped", max_in_flight=1)
    engine.lease("orders")
    engine.sleep(1000)

    for key in ("acme", "capped"):
        waits = explain(engine, key).waits
        assert (ms(waits), waits.held_ms) == ((0, 0, 0, 0), 1000)


def test_time_in_which_others_were_served_is_the_shares(engine):
    send(engine, "noisy", 100)
    send(engine, "acme", 100)
    for _ in range(50):
        engine.lease("orders", most=2)
        engine.sleep(20)

    waits = explain(engine, "acme").waits

    assert waits.share_ms > 50_000
    assert ms(waits) == (0, waits.share_ms, 0, 0)


def test_a_key_that_is_alone_is_never_told_that_others_had_its_turn(engine):
    send(engine, "acme", 100)
    for _ in range(50):
        engine.lease("orders", most=2)
        engine.sleep(20)

    waits = explain(engine, "acme").waits

    assert waits.no_consumer_ms > 40_000
    assert ms(waits) == (waits.no_consumer_ms, 0, 0, 0)


def test_a_channel_that_stands_still_has_no_consumer_while_others_wait(engine):
    send(engine, "noisy", 10)
    send(engine, "acme", 10)
    engine.sleep(5000)

    assert ms(explain(engine, "acme").waits) == (50_000, 0, 0, 0)


def test_a_throttled_backlog_does_not_blame_the_share_for_what_is_free_beside_it(engine):
    engine.set_config("throttle.mail", "0,0")
    send(engine, "acme", 10, provider="mail")
    engine.lease("orders")
    send(engine, "acme", 1)
    engine.sleep(1000)

    assert ms(explain(engine, "acme").waits) == (1000, 0, 10_000, 0)


def test_a_key_that_became_idle_is_remembered_for_an_hour(engine):
    send(engine, "acme")
    engine.sleep(2000)
    engine.ack("orders", engine.lease("orders"))

    after_a_while = explain(engine, "acme")
    engine.sleep(54 * 60_000)
    within_the_hour = explain(engine, "acme")
    engine.sleep(7 * 60_000)
    after_the_hour = explain(engine, "acme")

    assert after_a_while.state == State.STATE_EMPTY
    assert ms(after_a_while.waits) == ms(within_the_hour.waits) == (2000, 0, 0, 0)
    assert ms(after_the_hour.waits) == (0, 0, 0, 0)


def test_hours_in_which_nobody_looked_are_over_too(engine):
    for _ in range(4):
        send(engine, "acme")
        engine.sleep(1000)
        engine.ack("orders", engine.lease("orders"))
        engine.sleep(5 * 60_000)
    engine.sleep(65 * 60_000)
    send(engine, "acme")
    engine.sleep(1000)

    assert ms(explain(engine, "acme").waits) == (1000, 0, 0, 0)


def test_a_key_that_comes_back_goes_on_with_its_hour(engine):
    for _ in range(3):
        send(engine, "acme")
        engine.sleep(1000)
        engine.ack("orders", engine.lease("orders"))

    assert ms(explain(engine, "acme").waits) == (3000, 0, 0, 0)


def test_waits_nobody_would_notice_leave_no_row(engine):
    send(engine, "acme")
    engine.sleep(50)
    engine.ack("orders", engine.lease("orders"))

    assert ms(explain(engine, "acme").waits) == (0, 0, 0, 0)


# --- share against due share -------------------------------------------------------------------


def test_share_and_due_share_follow_the_weights(engine):
    set_policy(engine, "acme", weight=3)
    send(engine, "acme", 90)
    send(engine, "noisy", 90)
    leased = engine.lease("orders", most=80)
    assert len(leased) == 80

    answer = explain(engine, "acme")

    assert answer.share == pytest.approx(0.75, abs=0.05)
    assert answer.due_share == pytest.approx(0.75)
    assert answer.weight == 3


def test_a_key_held_back_shows_less_than_its_due(engine):
    engine.set_config("throttle.mail", "0,0")
    send(engine, "acme", 10, provider="mail")
    send(engine, "noisy", 50)
    engine.lease("orders", most=40)

    answer = explain(engine, "acme")

    assert answer.share == 0
    assert answer.due_share == pytest.approx(0.5)


# --- its price ---------------------------------------------------------------------------------


def test_the_table_is_bounded_and_keeps_those_that_still_wait(engine):
    rows_max = 10_000
    items = [service.EnqueueMessage(payload=b"x", headers={"tenant": f"k{i}"}) for i in range(rows_max + 500)]
    for at in range(0, len(items), 1000):
        batch = service.EnqueueBatchRequest(queue="orders", messages=items[at : at + 1000])
        engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)
    engine.sleep(1000)
    served = 0
    while leased := engine.lease("orders", most=2000):
        engine.ack("orders", leased)
        served += len(leased)
    assert served == len(items)

    # The first rows_max keys were served and remembered; those that came later found no room.
    assert explain(engine, "k0").waits.no_consumer_ms + explain(engine, "k0").waits.share_ms == 1000
    assert ms(explain(engine, f"k{rows_max + 100}").waits) == (0, 0, 0, 0)

    engine.sleep(61_000)
    send(engine, "late")
    engine.sleep(500)
    engine.ack("orders", engine.lease("orders"))
    assert explain(engine, "late").waits.no_consumer_ms == 500


def test_a_key_that_waits_is_explained_though_the_table_is_full(engine):
    items = [service.EnqueueMessage(payload=b"x", headers={"tenant": f"k{i}"}) for i in range(10_500)]
    for at in range(0, len(items), 1500):
        batch = service.EnqueueBatchRequest(queue="orders", messages=items[at : at + 1500])
        engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)
    engine.sleep(300)
    for _ in range(5):
        engine.lease("orders", most=2050)
    engine.sleep(700)

    assert ms(explain(engine, "k10499").waits) in {(1000, 0, 0, 0), (700, 300, 0, 0)}
