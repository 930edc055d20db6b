"""`key_order = strict`: of each fairness key one message at a time, in order, whatever fails or ends meanwhile."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.telemetry.snapshot import decode
from tests.core.driven_engine import DrivenEngine, Refused

STRICT = admin.KEY_ORDER_STRICT
FIXED = admin.RetryPolicy(kind=admin.RetryPolicy.KIND_FIXED, base_ms=1000)
SETTINGS: dict[str, Any] = {
    "fairness_key_header": "k",
    "throttle_key_headers": ["t"],
    "retry": FIXED,
    "visibility_timeout_ms": 5000,
}


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue("q", key_order=STRICT, **SETTINGS)
    yield made
    made.remove()


def enqueue(engine: DrivenEngine, *numbers: int, key: str = "a", **headers: str) -> None:
    for number in numbers:
        engine.enqueue("q", str(number).encode(), {"k": key, **headers})


def numbers(leased: list[messages.Message]) -> list[int]:
    return [int(message.payload) for message in leased]


def update(engine: DrivenEngine, **changes: Any) -> None:
    config = admin.QueueConfig(**{**SETTINGS, "channels": ["default"], **changes})
    request = admin.UpdateQueueRequest(queue="q", config=config)
    engine.call(commands.UPDATE_QUEUE, request, admin.UpdateQueueResponse)


def counted(engine: DrivenEngine) -> tuple[int, int]:
    """Failures that kept their place, and messages that an operator skipped."""
    token = engine.submit(commands.METRICS)
    engine.others += engine.settle_down()
    queue = next(queue for queue in decode(engine.answer_of(token)[1]).queues if queue.name == b"q")
    return queue.counts.retried_in_place, queue.counts.skipped


def drained(engine: DrivenEngine, failing: frozenset[int] = frozenset()) -> list[int]:
    """One consumer takes what there is and acks it; of `failing` the first delivery fails."""
    got: list[int] = []
    for _ in range(1000):
        leased = engine.lease("q")
        if not leased and engine.stats("q").depth == 0:
            return got
        for message in leased:
            got.append(int(message.payload))
            fails = int(message.payload) in failing and message.metadata.attempt_count == 0
            (engine.nack if fails else engine.ack)("q", [message])
        engine.sleep(100)
    raise AssertionError("it is never empty")


def test_a_failed_message_is_delivered_again_before_those_behind_it(engine: DrivenEngine) -> None:
    enqueue(engine, *range(6))

    assert drained(engine, frozenset({1})) == [0, 1, 1, 2, 3, 4, 5]


def test_a_key_has_one_message_leased_and_other_keys_go_on(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1, 2, key="a")
    enqueue(engine, 10, 11, key="b")

    first = engine.lease("q")
    assert sorted(numbers(first)) == [0, 10]
    assert engine.lease("q") == []
    engine.ack("q", [m for m in first if m.payload == b"10"])
    assert numbers(engine.lease("q")) == [11]


def test_while_a_retry_waits_its_key_waits_and_no_other_does(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1, key="a")
    enqueue(engine, 10, 11, key="b")
    engine.nack("q", [m for m in engine.lease("q") if m.payload == b"0"], delay_ms=3000)

    engine.sleep(2900)
    assert engine.lease("q") == [], "10 is leased, and 1 waits for 0"
    engine.sleep(200)
    assert numbers(engine.lease("q")) == [0]


def test_an_expired_lease_gives_the_message_its_old_place_back(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1)
    assert numbers(engine.lease("q")) == [0]

    engine.sleep(5100)
    assert engine.lease("q") == []
    engine.sleep(1100)

    assert numbers(engine.lease("q")) == [0]


def test_what_was_never_begun_comes_back_without_delay_and_first(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1)
    stream = engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="q", max_in_flight=10))
    engine.others += engine.settle_down()
    assert engine.stats("q").in_flight == 1

    engine.submit(commands.CONSUMER_CLOSE, token=stream)
    engine.others += engine.settle_down()

    assert drained(engine) == [0, 1]


def test_a_dead_letter_lets_the_next_one_go(engine: DrivenEngine) -> None:
    update(engine, key_order=STRICT, max_attempts=1)
    enqueue(engine, 0, 1)
    engine.nack("q", engine.lease("q"))

    assert numbers(engine.lease("q")) == [1]
    assert engine.stats("q.dlq").depth == 1


def test_a_message_whose_time_is_over_lets_the_next_one_go(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"0", {"k": "a"}, ttl_ms=2000)
    enqueue(engine, 1)
    engine.nack("q", engine.lease("q"), delay_ms=60_000)

    engine.sleep(2100)

    assert numbers(engine.lease("q")) == [1]


def test_a_purge_lets_the_key_go_on_with_what_comes(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1)
    engine.nack("q", engine.lease("q"), delay_ms=60_000)
    engine.call(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="q"), admin.PurgeQueueResponse)

    enqueue(engine, 2)

    assert numbers(engine.lease("q")) == [2]


@pytest.mark.parametrize("ends", ["kill", "cut_power", "stop"])
def test_order_and_the_rest_of_a_delay_outlive_a_restart(engine: DrivenEngine, ends: str) -> None:
    enqueue(engine, 0, 1, 2)
    engine.nack("q", engine.lease("q"), delay_ms=10_000)
    engine.sleep(4000)
    getattr(engine, ends)()
    engine.reopen()

    engine.sleep(5800)
    assert engine.lease("q") == []
    engine.sleep(400)

    assert drained(engine) == [0, 1, 2]


def test_a_lease_of_before_a_restart_still_holds_its_key(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1)
    first = engine.lease("q")
    engine.kill()
    engine.reopen()

    assert engine.lease("q") == []
    engine.nack("q", first)
    assert drained(engine) == [0, 1]


def test_a_delayed_message_takes_its_place_when_it_is_ready_first_and_keeps_it_over_a_restart(
    engine: DrivenEngine,
) -> None:
    engine.enqueue("q", b"9", {"k": "a"}, delay_ms=2000)
    enqueue(engine, 0, 1)
    engine.sleep(2100)
    got = engine.lease("q")
    assert numbers(got) == [0]
    engine.ack("q", got)
    engine.nack("q", engine.lease("q"))
    engine.kill()
    engine.reopen()

    assert drained(engine) == [1, 9]


def test_switched_on_under_load_a_key_waits_until_its_leases_have_ended(engine: DrivenEngine) -> None:
    update(engine, key_order=admin.KEY_ORDER_RELAXED)
    enqueue(engine, *range(6))
    old = engine.lease("q", most=4)
    assert numbers(old) == [0, 1, 2, 3]
    update(engine, key_order=STRICT)

    assert engine.lease("q") == []
    engine.nack("q", [old[2]])
    engine.nack("q", [old[0]])
    engine.ack("q", [old[1]])
    engine.sleep(2000)
    assert engine.lease("q") == [], "3 is leased still"
    engine.ack("q", [old[3]])

    assert drained(engine) == [0, 2, 4, 5]


def test_failures_of_before_it_was_all_in_order_keep_the_order_of_offsets_over_a_restart(
    engine: DrivenEngine,
) -> None:
    update(engine, key_order=admin.KEY_ORDER_RELAXED)
    enqueue(engine, *range(6))
    old = engine.lease("q", most=4)
    update(engine, key_order=STRICT)
    for message in reversed(old):
        engine.nack("q", [message])
    engine.kill()
    engine.reopen()

    assert drained(engine) == [0, 1, 2, 3, 4, 5]


def test_switched_off_a_key_goes_on_when_its_message_has_ended(engine: DrivenEngine) -> None:
    enqueue(engine, *range(4))
    first = engine.lease("q")
    update(engine, key_order=admin.KEY_ORDER_RELAXED)
    engine.nack("q", first)

    assert numbers(engine.lease("q")) == [1, 2, 3, 0]


def test_the_first_message_waits_for_its_bucket_and_those_behind_it_wait_for_it(engine: DrivenEngine) -> None:
    engine.set_config("throttle.slow", "1,1")
    enqueue(engine, 0, t="slow")
    enqueue(engine, 1)
    enqueue(engine, 2, t="slow")
    enqueue(engine, 3)
    got = []
    for _ in range(2):
        for _ in range(4):
            leased = engine.lease("q")
            got += numbers(leased)
            engine.ack("q", leased)
        if not got[2:]:
            assert got == [0, 1], "3 needs no token, and waits for 2"
        engine.sleep(1100)

    assert got == [0, 1, 2, 3]


def test_a_purged_message_that_waited_for_a_token_lets_the_next_one_go(engine: DrivenEngine) -> None:
    engine.set_config("throttle.slow", "0.001,1")
    enqueue(engine, 0, t="slow")
    engine.ack("q", engine.lease("q"))
    engine.enqueue("q", b"1", {"k": "a", "t": "slow"}, ttl_ms=2000)
    enqueue(engine, 2)
    assert engine.lease("q") == []

    engine.sleep(2100)

    assert numbers(engine.lease("q")) == [2]


def test_switched_on_with_many_in_lines_only_the_first_message_counts(engine: DrivenEngine) -> None:
    update(engine, key_order=admin.KEY_ORDER_RELAXED)
    for bucket in ("never", "slow"):
        engine.set_config(f"throttle.{bucket}", "0.001,1")
        enqueue(engine, 100, key="b", t=bucket)
        engine.ack("q", engine.lease("q"))
    enqueue(engine, 0, t="slow")
    enqueue(engine, 1, t="never")
    assert engine.lease("q") == []
    update(engine, key_order=STRICT)
    enqueue(engine, 2)

    assert engine.lease("q") == []
    engine.set_config("throttle.never", "1000,1000")
    engine.sleep(100)
    assert engine.lease("q") == [], "1 may not go before 0"
    enqueue(engine, 50, key="c", t="never")
    assert numbers(engine.lease("q")) == [50], "a message that waits for its key takes nobody's token"
    engine.set_config("throttle.slow", "1000,1000")
    engine.sleep(100)

    assert drained(engine) == [0, 1, 2]


def test_each_channel_has_an_order_of_its_own(engine: DrivenEngine) -> None:
    engine.call(
        commands.CREATE_CHANNEL,
        admin.CreateChannelRequest(queue="q", channel="other"),
        admin.CreateChannelResponse,
    )
    enqueue(engine, 0, 1)
    engine.nack("q", engine.lease("q"), delay_ms=60_000)

    other = engine.lease("q", channel="other")
    assert numbers(other) == [0]
    engine.ack("q", other, channel="other")
    assert numbers(engine.lease("q", channel="other")) == [1]


# --- why it waits, and skipping the first --------------------------------------------------------


def explained(engine: DrivenEngine, key: str = "a") -> admin.ExplainKeyResponse:
    request = admin.ExplainKeyRequest(queue="q", fairness_key=key)
    return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse)


def skip(engine: DrivenEngine, key: str = "a", message_id: str = "") -> admin.SkipMessageResponse:
    request = admin.SkipMessageRequest(queue="q", fairness_key=key, message_id=message_id)
    return engine.call(commands.SKIP_MESSAGE, request, admin.SkipMessageResponse)


def test_explain_names_the_message_that_the_key_waits_for_and_who_has_it(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1)
    [first] = engine.lease("q")
    leased_ms = engine.wall_ms
    engine.sleep(500)

    told = explained(engine)

    assert told.state == admin.ExplainKeyResponse.STATE_IN_ORDER
    assert (told.waits_for.message_id, told.waits_for.attempts) == (first.id, 0)
    assert told.waits_for.leased_at.ToMilliseconds() == leased_ms
    assert not told.waits_for.HasField("retry_at")


def test_explain_says_when_a_failed_message_is_due(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1)
    [first] = engine.lease("q")
    engine.nack("q", [first], delay_ms=3000)

    told = explained(engine)

    assert told.state == admin.ExplainKeyResponse.STATE_IN_ORDER
    assert (told.waits_for.message_id, told.waits_for.attempts) == (first.id, 1)
    due = told.waits_for.retry_at.ToMilliseconds()
    assert engine.wall_ms + 2999 <= due <= engine.wall_ms + 3001
    assert told.until.ToMilliseconds() == due


def test_a_relaxed_queue_says_nothing_of_a_first_message(engine: DrivenEngine) -> None:
    update(engine, key_order=admin.KEY_ORDER_RELAXED)
    enqueue(engine, 0, 1)
    engine.lease("q", most=1)

    assert not explained(engine).HasField("waits_for")


@pytest.mark.parametrize("where", ["waiting", "leased", "failed"])
def test_a_skipped_message_is_a_dead_letter_and_the_next_one_goes(engine: DrivenEngine, where: str) -> None:
    enqueue(engine, 0, 1)
    if where != "waiting":
        first = engine.lease("q")
    if where == "failed":
        engine.nack("q", first, delay_ms=60_000)

    answer = skip(engine)

    assert answer.offset == 1
    [dead] = engine.lease("q.dlq")
    assert (dead.payload, dead.id) == (b"0", answer.message_id)
    assert (dead.metadata.dead_letter.reason, dead.metadata.dead_letter.last_error) == (
        "skipped", "skipped by an operator",
    )  # fmt: skip
    assert numbers(engine.lease("q")) == [1]
    if where == "leased":
        assert engine.ack("q", first) != [0], "its lease has ended"


def test_what_was_skipped_stays_skipped_over_a_kill(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1)
    engine.nack("q", engine.lease("q"), delay_ms=60_000)
    skip(engine)
    engine.kill()
    engine.reopen()

    assert numbers(engine.lease("q")) == [1]
    assert engine.stats("q.dlq").depth == 1


def test_a_skip_that_names_a_message_skips_no_other(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1)
    [first] = engine.lease("q")
    engine.ack("q", [first])
    [second] = engine.lease("q")

    with pytest.raises(Refused, match="another message is the key's first"):
        skip(engine, message_id=first.id)
    assert skip(engine, message_id=second.id).message_id == second.id


def test_a_skip_is_refused_where_it_has_no_sense(engine: DrivenEngine) -> None:
    engine.create_queue("idle", key_order=STRICT, fairness_key_header="k", expires_after_idle_ms=10_000)
    with pytest.raises(Refused, match="none of its messages waits"):
        skip(engine, "nobody")
    with pytest.raises(Refused, match="must be a UUID"):
        skip(engine, message_id="seven")
    request = admin.SkipMessageRequest(queue="idle", fairness_key="a")
    with pytest.raises(Refused, match="no dead-letter queue"):
        engine.call(commands.SKIP_MESSAGE, request, admin.SkipMessageResponse)
    update(engine, key_order=admin.KEY_ORDER_RELAXED)
    with pytest.raises(Refused, match="key_order is relaxed"):
        skip(engine)


def test_what_order_does_is_counted(engine: DrivenEngine) -> None:
    enqueue(engine, 0, 1)
    engine.nack("q", engine.lease("q"), delay_ms=60_000)
    assert counted(engine) == (1, 0)
    skip(engine)
    engine.nack("q", engine.lease("q"))
    assert counted(engine) == (2, 1)


def test_a_failure_of_a_relaxed_queue_is_not_counted_as_one_that_kept_its_place(engine: DrivenEngine) -> None:
    update(engine, key_order=admin.KEY_ORDER_RELAXED)
    enqueue(engine, 0)
    engine.nack("q", engine.lease("q"))
    assert counted(engine) == (0, 0)
