"""The latest wins: a message takes the place of an earlier one with its dedup key, wherever that one is by then."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.errors import Invalid
from fila_server.telemetry.snapshot import decode
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.driven_session import DrivenSession

REPLACE = service.EnqueueOptions.ON_DUPLICATE_REPLACE
WINDOW_MS = 60_000
FIXED = admin.RetryPolicy(kind=admin.RetryPolicy.KIND_FIXED, base_ms=1000)
State = admin.GetMessageResponse


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    create(driven, "q")
    yield driven
    driven.remove()


def create(engine: DrivenEngine, name: str, **more: Any) -> None:
    config: dict[str, Any] = {
        "fairness_key_header": "k",
        "throttle_key_headers": ["t"],
        "dedup_window_ms": WINDOW_MS,
        "visibility_timeout_ms": 30_000,
        "retry": FIXED,
    }
    engine.create_queue(name, **{**config, **more})


def put(
    engine: DrivenEngine, payload: str, dedup: str = "", *, key: str = "k", queue: str = "q", **options: Any
) -> str:
    """With `dedup` it replaces what has that key."""
    request = service.EnqueueRequest(queue=queue, payload=payload.encode(), headers={"k": key})
    if dedup:
        options = {"dedup_key": dedup, "on_duplicate": REPLACE, **options}
    if options:
        request.options.CopyFrom(service.EnqueueOptions(**options))
    return engine.call(commands.ENQUEUE, request, service.EnqueueResponse).message_id


def got(engine: DrivenEngine, queue: str = "q", most: int = 100, channel: str = "") -> list[str]:
    return [payload.decode() for payload in engine.payloads(queue, most, channel)]


def drained(engine: DrivenEngine, queue: str = "q") -> list[str]:
    """One after the other, each acked."""
    seen: list[str] = []
    while leased := engine.lease(queue, 1):
        seen += [message.payload.decode() for message in leased]
        engine.ack(queue, leased)
    return seen


def found(engine: DrivenEngine, message_id: str = "", *, dedup_key: str = "") -> State:
    request = admin.GetMessageRequest(queue="q", message_id=message_id, dedup_key=dedup_key)
    return engine.call(commands.GET_MESSAGE, request, admin.GetMessageResponse)


def cancel(engine: DrivenEngine, *ids: str, keys: list[str] | None = None) -> list[int]:
    request = service.CancelMessagesRequest(queue="q", message_ids=ids, dedup_keys=keys or [])
    return list(engine.call(commands.CANCEL_MESSAGES, request, service.CancelMessagesResponse).outcomes)


def metrics(engine: DrivenEngine) -> Any:
    token = engine.submit(commands.METRICS)
    engine.others += engine.settle_down()
    return decode(engine.answer_of(token)[1])


def replaced(engine: DrivenEngine) -> int:
    queue = next(queue for queue in metrics(engine).queues if queue.name == b"q")
    return int(queue.counts.replaced)


def over_a_kill(engine: DrivenEngine) -> None:
    engine.kill()
    engine.reopen()


# --- what waits --------------------------------------------------------------------------------------


def test_the_latest_message_stands_where_the_first_one_stood(engine: DrivenEngine) -> None:
    old = put(engine, "old", "d")
    for payload in ("second", "third"):
        put(engine, payload)
    new = put(engine, "new", "d")

    assert new != old
    assert found(engine, old).state == State.STATE_NOT_KNOWN
    assert found(engine, dedup_key="d").message_id == new
    assert found(engine, new).place == 1
    assert engine.stats("q").depth == 3
    assert replaced(engine) == 1
    assert drained(engine) == ["new", "second", "third"]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_its_place_survives_a_kill_after_every_replacement(times: int, engine: DrivenEngine) -> None:
    put(engine, "first")
    put(engine, "0", "d")
    put(engine, "last")
    for number in range(1, times + 1):
        put(engine, str(number), "d")
        over_a_kill(engine)

    assert drained(engine) == ["first", str(times), "last"]


def test_a_message_that_is_done_is_not_replaced_but_followed(engine: DrivenEngine) -> None:
    put(engine, "old", "d")
    assert drained(engine) == ["old"]
    put(engine, "new", "d")

    assert drained(engine) == ["new"]
    assert replaced(engine) == 0


def test_it_may_have_another_fairness_key_and_keeps_its_place_among_those_of_it(engine: DrivenEngine) -> None:
    put(engine, "other", key="b")
    put(engine, "old", "d", key="a")
    put(engine, "behind", key="b")
    put(engine, "new", "d", key="b")

    assert drained(engine) == ["other", "new", "behind"]


def test_many_in_one_frame_leave_the_last_of_them(engine: DrivenEngine) -> None:
    options = service.EnqueueOptions(dedup_key="d", on_duplicate=REPLACE)
    batch = [service.EnqueueMessage(payload=b"%d" % i, headers={"k": "k"}, options=options) for i in range(5)]
    request = service.EnqueueBatchRequest(queue="q", messages=[*batch, service.EnqueueMessage(payload=b"x")])
    engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)

    assert sorted(drained(engine)) == ["4", "x"]
    assert replaced(engine) == 4


def test_each_channel_replaces_what_it_has_not_done(engine: DrivenEngine) -> None:
    create(engine, "two", channels=["default", "other"])
    put(engine, "old", "d", queue="two")
    engine.ack("two", engine.lease("two", channel="other"), channel="other")
    put(engine, "new", "d", queue="two")

    assert got(engine, "two") == ["new"]
    assert got(engine, "two", channel="other") == ["new"]
    over_a_kill(engine)
    assert engine.stats("two").depth == 0


def test_a_message_that_waits_for_a_bucket_gives_way(engine: DrivenEngine) -> None:
    engine.set_config("throttle.slow", "0.001,1")
    for payload in ("now", "old"):
        request = service.EnqueueRequest(queue="q", payload=payload.encode(), headers={"k": "k", "t": "slow"})
        if payload == "old":
            request.options.CopyFrom(service.EnqueueOptions(dedup_key="d", on_duplicate=REPLACE))
        engine.call(commands.ENQUEUE, request, service.EnqueueResponse)
    assert got(engine) == ["now"]
    put(engine, "new", "d")

    assert got(engine) == ["new"]


def test_an_earlier_message_that_keeps_others_out_can_be_replaced_too(engine: DrivenEngine) -> None:
    """The first came with FIRST, and is known for its window."""
    put(engine, "old", dedup_key="d")
    put(engine, "new", "d")
    assert put(engine, "again", dedup_key="d") == found(engine, dedup_key="d").message_id

    assert drained(engine) == ["new"]


def test_a_failed_message_gives_way_and_its_place_is_kept_over_a_kill(engine: DrivenEngine) -> None:
    put(engine, "old", "d")
    put(engine, "second")
    engine.nack("q", engine.lease("q", 1))  # at once, behind the second
    put(engine, "third")
    put(engine, "new", "d")
    over_a_kill(engine)
    put(engine, "newest", "d")
    over_a_kill(engine)

    assert drained(engine) == ["second", "newest", "third"]


# --- delays: debounce --------------------------------------------------------------------------------


def test_a_delay_begins_anew_with_every_message(engine: DrivenEngine) -> None:
    for number in range(4):
        put(engine, str(number), "d", delay_ms=1000)
        engine.sleep(900)
        assert got(engine) == []
    engine.sleep(100)

    assert got(engine) == ["3"]
    engine.sleep(5000)
    assert got(engine) == []


@pytest.mark.parametrize("killed", [False, True])
def test_the_delay_ends_at_the_latest_so_long_after_the_first(killed: bool, engine: DrivenEngine) -> None:
    for number in range(4):
        put(engine, str(number), "d", delay_ms=1000, max_wait_ms=2500)
        if killed:
            over_a_kill(engine)
        engine.sleep(800)
    assert got(engine) == ["3"], "2,500 ms after the first, which is 100 ms after the last"

    put(engine, "next", "d", delay_ms=1000, max_wait_ms=2500)  # the first of a new wait
    engine.sleep(900)
    assert got(engine) == []


def test_without_a_delay_of_its_own_it_has_that_of_the_one_before(engine: DrivenEngine) -> None:
    put(engine, "old", "d", delay_ms=5000)
    put(engine, "new", "d")
    assert got(engine) == []
    engine.sleep(5000)

    assert got(engine) == ["new"]


def test_a_moment_that_has_passed_ends_the_delay(engine: DrivenEngine) -> None:
    put(engine, "old", "d", delay_ms=5000)
    options: dict[str, Any] = {"deliver_at": {"seconds": 1}}
    put(engine, "new", "d", **options)

    assert got(engine) == ["new"]


# --- leased ------------------------------------------------------------------------------------------


def test_it_waits_for_the_lease_and_goes_with_the_ack(engine: DrivenEngine) -> None:
    old = put(engine, "old", "d")
    leased = engine.lease("q")
    put(engine, "second")
    new = put(engine, "new", "d")

    status = found(engine, new)
    assert (status.state, status.waits_for) == (State.STATE_DELAYED, old)
    assert status.cause == admin.ExplainKeyResponse.STATE_SUCCEEDS
    assert got(engine) == ["second"]
    engine.ack("q", leased)
    assert found(engine, new).state == State.STATE_WAITING
    assert got(engine) == ["new"]


def explained(engine: DrivenEngine, key: str = "k") -> admin.ExplainKeyResponse:
    request = admin.ExplainKeyRequest(queue="q", fairness_key=key)
    return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse)


def test_the_key_names_the_lease_that_its_message_waits_for_and_no_other_one(engine: DrivenEngine) -> None:
    put(engine, "other")
    old = put(engine, "old", "d")
    leased = engine.lease("q")
    new = put(engine, "new", "d")
    told = explained(engine)

    assert [message.payload for message in leased] == [b"other", b"old"]
    assert told.state == admin.ExplainKeyResponse.STATE_SUCCEEDS
    assert told.waits_for.message_id == found(engine, new).waits_for == old
    assert not told.HasField("until")


def test_a_message_of_another_key_waits_for_the_lease_of_the_one_that_it_replaces(
    engine: DrivenEngine,
) -> None:
    old = put(engine, "old", "d", key="a")
    engine.lease("q")
    put(engine, "new", "d", key="b")
    told = explained(engine, "b")

    assert told.state == admin.ExplainKeyResponse.STATE_SUCCEEDS
    assert told.waits_for.message_id == old
    assert explained(engine, "a").state == admin.ExplainKeyResponse.STATE_LEASED


def test_a_later_delay_does_not_hide_that_a_message_goes_when_a_lease_ends(engine: DrivenEngine) -> None:
    old = put(engine, "old", "d")
    leased = engine.lease("q")
    put(engine, "new", "d")
    put(engine, "later", delay_ms=600_000)
    told = explained(engine)

    assert told.state == admin.ExplainKeyResponse.STATE_SUCCEEDS
    assert told.waits_for.message_id == old
    assert abs(told.until.ToMilliseconds() - engine.wall_ms - 600_000) <= 1, "when the delayed one goes"
    engine.ack("q", leased)
    assert got(engine) == ["new"]
    assert explained(engine).state == admin.ExplainKeyResponse.STATE_DELAYED


def test_what_has_a_delay_of_its_own_besides_the_lease_is_delayed_as_long_as_that_goes_on(
    engine: DrivenEngine,
) -> None:
    put(engine, "old", "d")
    engine.lease("q")
    put(engine, "new", "d", delay_ms=1000)

    assert explained(engine).state == admin.ExplainKeyResponse.STATE_DELAYED
    engine.sleep(1500)
    assert explained(engine).state == admin.ExplainKeyResponse.STATE_SUCCEEDS


def test_at_most_one_waits_for_a_lease(engine: DrivenEngine) -> None:
    put(engine, "old", "d")
    leased = engine.lease("q")
    for number in range(3):
        put(engine, str(number), "d")

    assert engine.stats("q").depth == 1
    assert replaced(engine) == 2
    engine.ack("q", leased)
    assert drained(engine) == ["2"]


@pytest.mark.parametrize("order", [admin.KEY_ORDER_RELAXED, admin.KEY_ORDER_STRICT])
@pytest.mark.parametrize("how", ["nack", "expiry", "given back"])
def test_a_lease_that_fails_ends_the_old_message(how: str, order: Any, engine: DrivenEngine) -> None:
    create(engine, "other", key_order=order)
    request = service.EnqueueRequest(queue="other", payload=b"old", headers={"k": "k"})
    request.options.CopyFrom(service.EnqueueOptions(dedup_key="d", on_duplicate=REPLACE))
    engine.call(commands.ENQUEUE, request, service.EnqueueResponse)
    session = DrivenSession(engine, queue="other") if how == "given back" else None
    leased = engine.lease("other") if session is None else []
    put(engine, "new", "d", queue="other")
    if how == "nack":
        engine.nack("other", leased, delay_ms=5000)
    elif how == "expiry":
        engine.sleep(31_000, 1000)
    elif session is not None:
        session.say(window={"size": 0, "give_back": session.lease_ids(0)})

    assert drained(engine, "other") == ["new"]
    engine.sleep(10_000, 1000)
    assert drained(engine, "other") == []


@pytest.mark.parametrize("steps", range(4))
def test_a_kill_at_each_step_of_a_replacement_of_a_leased_message(steps: int, engine: DrivenEngine) -> None:
    put(engine, "first")
    put(engine, "old", "d")
    put(engine, "last")
    leased = engine.lease("q", 2)
    assert [message.payload for message in leased] == [b"first", b"old"]
    put(engine, "new", "d")
    if steps > 0:
        over_a_kill(engine)
    put(engine, "newest", "d")
    if steps > 1:
        over_a_kill(engine)
    assert engine.ack("q", leased[1:]) == [0]
    if steps > 2:
        over_a_kill(engine)

    assert drained(engine) == ["newest", "last"]
    assert engine.stats("q").depth == 0


def test_a_replacement_that_is_taken_back_leaves_the_leased_message_alone(engine: DrivenEngine) -> None:
    put(engine, "old", "d")
    leased = engine.lease("q")
    put(engine, "new", "d")
    assert cancel(engine, keys=["d"]) == [service.CancelMessagesResponse.OUTCOME_CANCELLED]
    engine.nack("q", leased)

    assert drained(engine) == ["old"]


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("failed", [False, True])
def test_the_next_one_replaces_the_leased_message_again(
    killed: bool, failed: bool, engine: DrivenEngine
) -> None:
    put(engine, "old", "d")
    leased = engine.lease("q")
    for payload in ("new", "newer"):
        put(engine, payload, "d")
    cancel(engine, keys=["d"])
    if killed:
        over_a_kill(engine)
    if failed:
        engine.nack("q", leased)
    put(engine, "newest", "d")
    if not failed:
        assert got(engine) == []
        engine.ack("q", leased)

    assert drained(engine) == ["newest"]


def test_a_delay_and_a_lease_are_both_waited_for(engine: DrivenEngine) -> None:
    put(engine, "old", "d")
    leased = engine.lease("q")
    put(engine, "new", "d", delay_ms=1000)
    engine.sleep(2000)
    assert got(engine) == []
    engine.ack("q", leased)
    assert got(engine) == ["new"]

    put(engine, "another", "e")
    leased = engine.lease("q")
    put(engine, "later", "e", delay_ms=1000)
    engine.ack("q", leased)
    assert got(engine) == []
    engine.sleep(1000)
    assert got(engine) == ["later"]


def test_a_dead_letter_lets_its_successor_go(engine: DrivenEngine) -> None:
    create(engine, "dies", max_attempts=1)
    put(engine, "old", "d", queue="dies")
    leased = engine.lease("dies")
    put(engine, "new", "d", queue="dies")
    engine.nack("dies", leased)

    assert drained(engine, "dies") == ["new"]
    assert got(engine, "dies.dlq") == ["old"]


# --- how long a key is known ---------------------------------------------------------------------------


def test_a_key_is_known_beyond_its_window_while_its_message_is_pending(engine: DrivenEngine) -> None:
    put(engine, "old", "d", delay_ms=10 * WINDOW_MS)
    engine.sleep(3 * WINDOW_MS, WINDOW_MS // 2)
    over_a_kill(engine)
    engine.sleep(2 * WINDOW_MS, WINDOW_MS // 2)
    put(engine, "new", "d")
    engine.sleep(10 * WINDOW_MS, WINDOW_MS // 2)

    assert got(engine) == ["new"]


def test_a_key_is_forgotten_with_its_message_once_its_window_is_over(engine: DrivenEngine) -> None:
    put(engine, "old", "d")
    assert drained(engine) == ["old"]
    assert metrics(engine).totals.dedup_keys == 1
    engine.sleep(3 * WINDOW_MS, WINDOW_MS // 2)

    assert metrics(engine).totals.dedup_keys == 0


def test_a_key_that_is_renewed_for_ever_keeps_no_other_one_alive(engine: DrivenEngine) -> None:
    put(engine, "0", "renewed")
    put(engine, "other", "over")
    assert sorted(drained(engine)) == ["0", "other"]
    for number in range(8):
        engine.sleep(WINDOW_MS // 2)
        put(engine, str(number), "renewed")

    assert metrics(engine).totals.dedup_keys == 1


# --- refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"on_duplicate": REPLACE}, {"dedup_key": "d", "max_wait_ms": 5}, {"dedup_key": "d", "on_duplicate": 7}],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(
    options: dict[str, Any], engine: DrivenEngine
) -> None:
    with pytest.raises(Invalid, match=r"options\.(on_duplicate|max_wait_ms): "):
        put(engine, "x", **options)


def test_a_full_queue_takes_what_replaces_one_of_its_messages(engine: DrivenEngine) -> None:
    create(engine, "small", max_depth=2)
    put(engine, "a", "d", queue="small")
    put(engine, "b", queue="small")
    put(engine, "new", "d", queue="small")
    with pytest.raises(Refused):
        put(engine, "c", "e", queue="small")

    assert drained(engine, "small") == ["new", "b"]
