"""Messages that their sender takes back, wherever they are by then; and where one is, as GET_MESSAGE says it."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.driven_session import DrivenSession

Outcome = service.CancelMessagesResponse
State = admin.GetMessageResponse
CANCELLED, REVOKED, NOT_FOUND = Outcome.OUTCOME_CANCELLED, Outcome.OUTCOME_REVOKED, Outcome.OUTCOME_NOT_FOUND


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    driven.create_queue("q", fairness_key_header="k", throttle_key_headers=["t"], dedup_window_ms=60_000)
    yield driven
    driven.remove()


def put(engine: DrivenEngine, payload: bytes = b"x", key: str = "k", **options: Any) -> str:
    request = service.EnqueueRequest(queue="q", payload=payload, headers={"k": key})
    if options:
        request.options.CopyFrom(service.EnqueueOptions(**options))
    return engine.call(commands.ENQUEUE, request, service.EnqueueResponse).message_id


def put_many(engine: DrivenEngine, count: int) -> list[str]:
    """One frame."""
    messages = [service.EnqueueMessage(payload=b"%d" % i, headers={"k": "k"}) for i in range(count)]
    request = service.EnqueueBatchRequest(queue="q", messages=messages)
    results = engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse).results
    return [result.message_id for result in results]


def cancel(
    engine: DrivenEngine, *ids: str, keys: list[str] | None = None, queue: str = "q", channel: str = ""
) -> list[int]:
    request = service.CancelMessagesRequest(
        queue=queue, channel=channel, message_ids=ids, dedup_keys=keys or []
    )
    return list(engine.call(commands.CANCEL_MESSAGES, request, service.CancelMessagesResponse).outcomes)


def found(
    engine: DrivenEngine, message_id: str = "", *, queue: str = "q", channel: str = "", dedup_key: str = ""
) -> State:
    request = admin.GetMessageRequest(
        queue=queue, message_id=message_id, channel=channel, dedup_key=dedup_key
    )
    return engine.call(commands.GET_MESSAGE, request, admin.GetMessageResponse)


def walked(engine: DrivenEngine) -> int:
    steps = engine.core.counters()["walked"]
    assert isinstance(steps, int)
    return steps


# --- taken back ----------------------------------------------------------------------------------


def test_what_waits_is_taken_back_once_and_is_never_delivered(engine: DrivenEngine) -> None:
    ids = [put(engine, b"%d" % i) for i in range(3)]

    assert cancel(engine, ids[1]) == [CANCELLED]
    assert cancel(engine, ids[1]) == [NOT_FOUND]
    assert engine.payloads("q") == [b"0", b"2"]


def test_what_is_delayed_is_taken_back_before_it_is_due(engine: DrivenEngine) -> None:
    message_id = put(engine, delay_ms=5_000)

    assert cancel(engine, message_id) == [CANCELLED]
    engine.sleep(10_000)

    assert engine.payloads("q") == []
    assert engine.stats("q").depth == 0


def test_a_consumer_that_has_it_is_told_and_its_ack_is_refused(engine: DrivenEngine) -> None:
    message_id = put(engine)
    session = DrivenSession(engine)
    session.begin(0)

    assert cancel(engine, message_id) == [REVOKED]
    session.say(ack={"sequence": 1, "lease_ids": session.lease_ids(0)})

    assert session.revoked == [("CANCELLED", session.lease_ids(0))]
    (failure,) = session.answers[-1].settled.failures
    assert failure.status.reason == "LEASE_LOST"
    assert engine.stats("q").in_flight == 0


def test_of_two_sessions_each_is_told_of_what_it_had_and_of_nothing_else(engine: DrivenEngine) -> None:
    ids = put_many(engine, 4)
    sessions = [DrivenSession(engine, max_in_flight=2) for _ in range(2)]
    held = [session.lease_ids(0, 1) for session in sessions]

    assert cancel(engine, ids[1], ids[2]) == [REVOKED, REVOKED]
    for session in sessions:
        session.read()

    assert [session.revoked for session in sessions] == [
        [("CANCELLED", [held[0][1]])],
        [("CANCELLED", [held[1][0]])],
    ]


def test_a_pulled_message_is_gone_for_its_holder(engine: DrivenEngine) -> None:
    message_id = put(engine)
    leased = engine.lease("q")

    assert cancel(engine, message_id) == [REVOKED]

    assert engine.ack("q", leased) == [9]
    engine.sleep(60_000, 1_000)
    assert engine.payloads("q") == []


def test_what_a_consumer_gave_back_was_not_taken_from_it(engine: DrivenEngine) -> None:
    message_id = put(engine)
    session = DrivenSession(engine)
    session.say(window={"size": 0, "give_back": session.lease_ids(0)})

    assert cancel(engine, message_id) == [CANCELLED]
    assert session.revoked == []


def test_what_waits_for_its_retry_is_taken_back(engine: DrivenEngine) -> None:
    message_id = put(engine)
    engine.nack("q", engine.lease("q"), delay_ms=5_000)

    assert cancel(engine, message_id) == [CANCELLED]
    engine.sleep(10_000)

    assert engine.payloads("q") == []


@pytest.mark.parametrize("is_leased", [True, False])
def test_a_first_message_that_is_taken_back_lets_the_next_of_its_key_go(
    is_leased: bool, engine: DrivenEngine
) -> None:
    engine.call(
        commands.UPDATE_QUEUE,
        admin.UpdateQueueRequest(
            queue="q",
            config=admin.QueueConfig(fairness_key_header="k", key_order=admin.KEY_ORDER_STRICT),
        ),
        admin.UpdateQueueResponse,
    )
    ids = [put(engine, b"%d" % i) for i in range(2)]
    leased = engine.lease("q")
    if not is_leased:
        engine.nack("q", leased, delay_ms=60_000)
    assert engine.payloads("q") == []

    assert cancel(engine, ids[0]) == [REVOKED if is_leased else CANCELLED]

    assert engine.payloads("q") == [b"1"]


def test_what_a_script_is_asked_about_is_taken_back_and_its_word_changes_nothing() -> None:
    engine = DrivenEngine()
    engine.create_queue("q", fairness_key_header="k", on_failure_script="function on_failure() end")
    message_id = put(engine)
    (leased,) = engine.lease("q")
    nack = engine.submit(
        commands.NACK,
        service.NackRequest(queue="q", message_id=message_id, lease_id=leased.metadata.lease_id, error="no"),
    )
    (event,) = [out for out in engine.settle_down() if out[1] == commands.EVENT]
    assert found(engine, message_id).state == State.STATE_DECIDING

    assert cancel(engine, message_id) == [CANCELLED]
    engine.submit(commands.DECIDE, seam_frames.Decision(action=seam_frames.RETRY, delay_ms=0), event[0])
    engine.others += engine.settle_down()

    assert engine.answer_of(nack)[0] == 0
    assert engine.payloads("q") == []
    engine.remove()


def test_ids_and_dedup_keys_are_answered_in_their_order(engine: DrivenEngine) -> None:
    first = put(engine, dedup_key="a")
    put(engine, dedup_key="b", delay_ms=1_000)
    third = put(engine)

    outcomes = cancel(engine, third, str(uuid4()), third, keys=["nobody's", "b", "a"])

    assert outcomes == [CANCELLED, NOT_FOUND, NOT_FOUND, NOT_FOUND, CANCELLED, CANCELLED]
    assert cancel(engine, first) == [NOT_FOUND]


def test_other_channels_keep_the_message() -> None:
    engine = DrivenEngine()
    engine.create_queue("q", channels=["default", "audit"])
    message_id = put(engine)

    assert cancel(engine, message_id, channel="audit") == [CANCELLED]
    assert engine.payloads("q", channel="audit") == []
    assert engine.payloads("q") == [b"x"]
    engine.remove()


@pytest.mark.parametrize("how", ["kill", "cut_power"])
def test_what_was_cancelled_stays_so_over_a_kill_and_a_power_cut(how: str, engine: DrivenEngine) -> None:
    ids = put_many(engine, 4)
    engine.lease("q", 1)
    engine.nack("q", engine.lease("q", 1), delay_ms=1_000)
    assert cancel(engine, *ids[:3]) == [REVOKED, CANCELLED, CANCELLED]

    getattr(engine, how)()
    engine.reopen()
    engine.sleep(60_000, 1_000)

    assert engine.payloads("q") == [b"3"]
    assert cancel(engine, *ids[:3]) == [NOT_FOUND] * 3


def test_a_tenant_reaches_its_own_messages_only(engine: DrivenEngine) -> None:
    own, others = put(engine, key="acme"), put(engine, key="other")
    request = service.CancelMessagesRequest(queue="q", message_ids=[own, others]).SerializeToString()
    bound = seam_frames.Canceller(tenant=b"acme").SerializeToString()

    told = engine.call(commands.CANCEL_MESSAGES, request + bound, service.CancelMessagesResponse)

    assert list(told.outcomes) == [CANCELLED, NOT_FOUND]
    assert engine.stats("q").depth == 1


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"message_ids": ["no id"]}, "INVALID_FIELD: message_ids: each must be a UUID"),
        ({}, "INVALID_FIELD: message_ids, dedup_keys: at least one"),
        ({"dedup_keys": ["x" * 129]}, "LIMIT_EXCEEDED: dedup_keys: each must have 1 to 128 bytes"),
        ({"dedup_keys": ["x"] * 10_001}, "LIMIT_EXCEEDED: message_ids, dedup_keys: at most 10000 a call"),
    ],
)
def test_a_cancel_that_names_nothing_right_says_what_is_wrong(
    request_: dict[str, Any], reason: str, engine: DrivenEngine
) -> None:
    request = service.CancelMessagesRequest(queue="q", **request_)

    with pytest.raises(Exception, match=reason.split(": ", 1)[1].replace("(", r"\(")):
        engine.submit(commands.CANCEL_MESSAGES, request)


def test_a_queue_or_channel_that_is_not_there_is_named(engine: DrivenEngine) -> None:
    with pytest.raises(Refused, match="CHANNEL_NOT_FOUND"):
        cancel(engine, str(uuid4()), channel="nope")
    with pytest.raises(Refused, match="QUEUE_NOT_FOUND"):
        cancel(engine, str(uuid4()), queue="nope")


# --- messages that came from other frames ----------------------------------------------------------


def moved(engine: DrivenEngine, count: int) -> list[str]:
    """Dead letters of q."""
    ids = put_many(engine, count)
    leased = engine.lease("q", count)
    items = [
        service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id, dead_letter=True, error="no good")
        for m in leased
    ]
    engine.call(
        commands.NACK_BATCH, service.NackBatchRequest(queue="q", items=items), service.SettleBatchResponse
    )
    return ids


def test_dead_letters_are_found_and_taken_back_by_the_ids_they_always_had(engine: DrivenEngine) -> None:
    ids = moved(engine, 5)

    assert found(engine, ids[3]).state == State.STATE_NOT_KNOWN
    assert found(engine, ids[3], queue="q.dlq").state == State.STATE_WAITING
    assert cancel(engine, ids[3], ids[1], str(uuid4()), queue="q.dlq") == [CANCELLED, CANCELLED, NOT_FOUND]
    assert engine.payloads("q.dlq") == [b"0", b"2", b"4"]


def test_a_dead_letter_that_is_leased_is_found_without_a_walk(engine: DrivenEngine) -> None:
    ids = moved(engine, 5)
    engine.lease("q.dlq", 3)
    before = walked(engine)

    assert cancel(engine, ids[1], queue="q.dlq") == [REVOKED]
    assert walked(engine) == before


def test_ten_thousand_ids_of_which_half_never_were_cost_one_walk_in_pieces(engine: DrivenEngine) -> None:
    ids = [message_id for _ in range(10) for message_id in moved(engine, 1_000)]
    asked = [name for message_id in ids[:5_000] for name in (message_id, str(uuid4()))]
    before = walked(engine)
    token = engine.submit(
        commands.CANCEL_MESSAGES, service.CancelMessagesRequest(queue="q.dlq", message_ids=asked)
    )

    engine.others += engine.settle_down()

    status, payload = engine.answer_of(token)
    outcomes = service.CancelMessagesResponse.FromString(payload).outcomes
    assert status == 0
    assert list(outcomes) == [CANCELLED, NOT_FOUND] * 5_000
    assert walked(engine) - before < 10_200
    assert engine.stats("q.dlq").depth == 5_000


# --- where it is -----------------------------------------------------------------------------------


def test_a_message_that_waits_says_its_place_among_its_keys(engine: DrivenEngine) -> None:
    ids = [put(engine, key="a" if i % 2 else "b") for i in range(10)]

    told = [found(engine, message_id) for message_id in ids]

    assert [each.place for each in told] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert {each.state for each in told} == {State.STATE_WAITING}
    assert (told[1].message_id, told[1].fairness_key, told[1].offset) == (ids[1], "a", 2)
    assert told[0].enqueued_at.ToMilliseconds() == engine.wall_ms


def test_places_count_what_came_back_and_what_waits_in_lines(engine: DrivenEngine) -> None:
    engine.set_config("throttle.slow", "0.001,1")
    held = service.EnqueueRequest(queue="q", payload=b"held", headers={"k": "k", "t": "slow"})
    engine.call(commands.ENQUEUE, held, service.EnqueueResponse)
    engine.lease("q")
    ids = put_many(engine, 6)
    last = [engine.call(commands.ENQUEUE, held, service.EnqueueResponse).message_id for _ in range(3)]
    session = DrivenSession(engine, max_in_flight=5)
    session.say(window={"size": 1, "give_back": session.lease_ids(2, 1, 4)})

    assert [found(engine, ids[i]).place for i in (1, 2, 4, 5)] == [1, 2, 3, 4]
    assert found(engine, last[2]).place == 7
    engine.lease("q")
    waits = found(engine, last[2])
    assert (waits.place, waits.cause) == (3, admin.ExplainKeyResponse.STATE_THROTTLED)
    assert waits.blocking_bucket == "slow"


def test_a_place_far_from_both_ends_is_estimated(engine: DrivenEngine) -> None:
    ids = [message_id for _ in range(5) for message_id in put_many(engine, 10_000)]

    near, behind, middle = (found(engine, ids[place - 1]) for place in (9_000, 49_000, 25_000))

    assert (near.place, near.place_is_estimated) == (9_000, False)
    assert (behind.place, behind.place_is_estimated) == (49_000, False)
    assert middle.place_is_estimated
    assert 24_000 < middle.place < 26_000


def test_a_message_says_until_when_it_is_delayed_and_who_has_it_since_when(engine: DrivenEngine) -> None:
    later = put(engine, delay_ms=5_000, dedup_key="reminder")
    taken = put(engine, b"taken")
    since_ms = engine.wall_ms
    session = DrivenSession(engine, name="worker 7")
    engine.sleep(1_000)

    delayed, leased = found(engine, dedup_key="reminder"), found(engine, taken)

    assert (delayed.state, delayed.message_id) == (State.STATE_DELAYED, later)
    assert delayed.until.ToMilliseconds() == since_ms + 5_000
    assert (leased.state, leased.consumer_name) == (State.STATE_LEASED, "worker 7")
    assert leased.consumer_id == session.opened.consumer_id
    assert leased.leased_at.ToMilliseconds() == since_ms
    assert not leased.begun
    session.begin(0)
    assert found(engine, taken).begun


def test_a_message_says_how_often_it_failed_and_what_was_said_last(engine: DrivenEngine) -> None:
    message_id = put(engine)
    for error in ("first", "s\u00e4cond " * 60):
        (leased,) = engine.lease("q")
        item = service.SettleItem(
            message_id=leased.id, lease_id=leased.metadata.lease_id, error=error, delay_ms=0
        )
        engine.call(
            commands.NACK_BATCH,
            service.NackBatchRequest(queue="q", items=[item]),
            service.SettleBatchResponse,
        )

    told = found(engine, message_id)

    assert told.attempts == 2
    assert told.last_error == ("s\u00e4cond " * 60).encode()[:256].decode(errors="ignore")


def test_an_error_is_not_told_of_a_later_failure_that_said_nothing(engine: DrivenEngine) -> None:
    message_id = put(engine)
    engine.nack("q", engine.lease("q"))
    assert found(engine, message_id).last_error == "no"
    engine.lease("q")
    engine.sleep(60_000, 1_000)

    told = found(engine, message_id)

    assert (told.attempts, told.last_error) == (2, "")


def test_what_is_done_is_not_known_any_more(engine: DrivenEngine) -> None:
    message_id = put(engine, dedup_key="d")
    engine.ack("q", engine.lease("q"))

    assert found(engine, message_id).state == State.STATE_NOT_KNOWN
    assert found(engine, dedup_key="d").state == State.STATE_NOT_KNOWN
    assert found(engine, str(uuid4())).state == State.STATE_NOT_KNOWN
