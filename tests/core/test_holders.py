"""What a principal's consumers hold in flight together, over all queues, and its bound."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.explain import ask_forecast
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.driven_session import DrivenSession

ACME, GLOB = 7, 8


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    for name in ("q", "r"):
        made.create_queue(name, max_attempts=1000)
    yield made
    made.remove()


def of(principal: int, most: int) -> bytes:
    """As the edge puts it behind what opens a consumer (requests/rights): fields 14 and 13."""
    return bytes((14 << 3, principal, 13 << 3, most))


def fill(engine: DrivenEngine, queue: str, count: int) -> None:
    request = service.EnqueueBatchRequest(queue=queue)
    for _ in range(count):
        request.messages.add(payload=b"x")
    engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)


def pull(
    engine: DrivenEngine, queue: str, holder: bytes, most: int = 100, wait_ms: int = 0
) -> list[messages.Message]:
    request = service.LeaseRequest(queue=queue, max_messages=most, wait_ms=wait_ms).SerializeToString()
    return list(engine.call(commands.LEASE, request + holder, service.LeaseResponse).messages)


def held(engine: DrivenEngine, *bounds: tuple[int, int]) -> list[tuple[int, int]]:
    """Say how many each may have; (how many each has, pulls refused since this was asked last)."""
    asked = seam_frames.Holders()
    for principal, most in bounds:
        asked.holders.add(principal=principal, most=most)
    told = engine.call(commands.HOLDERS, asked, seam_frames.Held)
    return [(row.in_flight, row.refused) for row in told.rows]


def test_sessions_and_pulls_of_one_name_hold_no_more_than_its_bound_together(engine: DrivenEngine) -> None:
    fill(engine, "q", 20)
    fill(engine, "r", 20)
    one = DrivenSession(engine, "q", holder=of(ACME, 5), max_in_flight=3)
    two = DrivenSession(engine, "r", holder=of(ACME, 5))
    other = DrivenSession(engine, "r", holder=of(GLOB, 6))

    assert (len(one.messages), len(two.messages), len(other.messages)) == (3, 2, 6)
    assert held(engine, (ACME, 5), (GLOB, 6), (99, 1)) == [(5, 0), (6, 0), (0, 0)]
    engine.ack("q", one.messages[:2])
    assert len(one.read()) + len(two.read()) == 2
    assert len(DrivenSession(engine, "q", holder=of(ACME, 5)).messages) == 0
    assert len(DrivenSession(engine, "q", max_in_flight=4).messages) == 4, "nobody's has no bound"


@pytest.mark.parametrize("how", ["ack", "nack", "runs out", "comes back", "queue goes"])
def test_however_a_lease_ends_there_is_room_for_another(engine: DrivenEngine, how: str) -> None:
    fill(engine, "q", 4)
    leased = pull(engine, "q", of(ACME, 4)) if how != "comes back" else []
    first = DrivenSession(engine, "q", holder=of(ACME, 4))
    fill(engine, "r", 9)
    waiting = DrivenSession(engine, "r", holder=of(ACME, 4))
    assert (len(leased) + len(first.messages), len(waiting.messages)) == (4, 0)

    if how == "ack":
        engine.ack("q", leased)
    elif how == "nack":
        engine.nack("q", leased, delay_ms=3_600_000)
    elif how == "comes back":
        first.say(close={})
    elif how == "runs out":
        first.say(close={})
        engine.sleep(40_000, 1000)
    else:
        request = admin.DeleteQueueRequest(queue="q", force=True)
        engine.call(commands.DELETE_QUEUE, request, admin.DeleteQueueResponse)
        engine.sleep(1000, 100)
    assert len(waiting.read()) == 4
    assert held(engine, (ACME, 4)) == [(4, 0)]


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("how", ["ack", "nack", "ack beside an enqueue"])
def test_consumers_of_one_name_at_its_bound_are_served_in_turn(
    engine: DrivenEngine, most: int, how: str
) -> None:
    """Whose lease ends stands behind the one that stopped longest ago, with messages of its own ready or not."""
    for queue in ("q", "r"):
        fill(engine, queue, 200)
    sessions = [DrivenSession(engine, queue, holder=of(ACME, most)) for queue in ("q", "r")]
    owned = [("q", message) for message in sessions[0].messages]
    got = {"q": 0, "r": 0}
    for _ in range(100):
        queue, message = owned.pop(0)
        if how == "ack beside an enqueue":
            request = service.EnqueueRequest(queue=queue, payload=b"x")
            engine.submit(commands.ENQUEUE, request)
        if how == "nack":
            engine.nack(queue, [message])
        else:
            engine.ack(queue, [message])
        for name, session in zip(("q", "r"), sessions, strict=True):
            new = session.read()
            got[name] += len(new)
            owned += [(name, each) for each in new]
    assert sum(got.values()) == 100
    assert abs(got["q"] - got["r"]) <= most


@pytest.mark.parametrize("most", [1, 4])
def test_what_is_given_back_at_the_bound_makes_room_for_who_stopped_and_not_for_who_gave_it_back(
    engine: DrivenEngine, most: int
) -> None:
    """The giver never stopped: it had all there was of its queue, and finds its own message there again."""
    fill(engine, "q", most)
    fill(engine, "r", 100)
    giver = DrivenSession(engine, "q", holder=of(ACME, most))
    waiting = DrivenSession(engine, "r", holder=of(ACME, most))
    assert (len(giver.messages), waiting.messages) == (most, [])
    for _ in range(10):
        engine.nack("q", giver.messages[-1:])
        [message] = waiting.read()
        assert giver.read() == []
        engine.ack("r", [message])
        assert (len(giver.read()), waiting.read()) == (1, [])


def test_who_asks_beside_each_ack_takes_turns_with_who_waits_at_the_bound(engine: DrivenEngine) -> None:
    """An ack and the next pull come in one go, and so in one pass."""
    for queue in ("q", "r"):
        fill(engine, queue, 50)
    pulled = pull(engine, "q", of(ACME, 1), most=1)
    waiting = DrivenSession(engine, "r", holder=of(ACME, 1))
    request = service.LeaseRequest(queue="q", max_messages=1, wait_ms=60_000).SerializeToString()
    for _ in range(5):
        items = [service.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id) for each in pulled]
        engine.submit(commands.ACK_BATCH, service.AckBatchRequest(queue="q", items=items))
        token = engine.submit(commands.LEASE, request + of(ACME, 1))
        given = waiting.read()
        assert len(given) == 1
        engine.ack("r", given)
        assert waiting.read() == []
        pulled = list(service.LeaseResponse.FromString(engine.answer_of(token)[1]).messages)


@pytest.mark.parametrize("kind", ["pull", "stream", "session"])
def test_who_comes_as_a_place_is_freed_stands_behind_who_waits_for_it(
    engine: DrivenEngine, kind: str
) -> None:
    for queue in ("q", "r"):
        fill(engine, queue, 9)
    pulled = pull(engine, "q", of(ACME, 1), most=1)
    waiting = DrivenSession(engine, "r", holder=of(ACME, 1))
    items = [service.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id) for each in pulled]
    engine.submit(commands.ACK_BATCH, service.AckBatchRequest(queue="q", items=items))
    if kind == "pull":
        with pytest.raises(Refused, match="and there are 0, others wait for the rest"):
            pull(engine, "q", of(ACME, 1), most=1)
    elif kind == "stream":
        request = service.ConsumeRequest(queue="q").SerializeToString()
        engine.submit(commands.CONSUME_OPEN, request + of(ACME, 1))
    else:
        DrivenSession(engine, "q", holder=of(ACME, 1))

    assert len(waiting.read()) == 1
    assert (engine.stats("q").in_flight, engine.stats("r").in_flight) == (0, 1)


def test_a_pull_at_the_bound_is_refused_where_it_would_find_messages(engine: DrivenEngine) -> None:
    fill(engine, "q", 9)
    first = pull(engine, "q", of(ACME, 5), most=4)
    assert len(pull(engine, "q", of(ACME, 5))) == 1, "what there is room for"

    with pytest.raises(Refused, match="at most 5 messages in flight") as refused:
        pull(engine, "q", of(ACME, 5))
    assert (refused.value.code, refused.value.reason) == (errors.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
    assert pull(engine, "r", of(ACME, 5)) == [], "there is nothing that it could not be given"
    assert len(pull(engine, "q", of(GLOB, 5))) == 4
    assert held(engine, (ACME, 5)) == [(5, 1)]
    assert held(engine, (ACME, 5)) == [(5, 0)], "a refusal is told once"

    engine.ack("q", first)
    assert held(engine, (ACME, 5)) == [(1, 0)]


def test_a_pull_at_the_bound_of_a_paused_queue_is_answered_with_nothing(engine: DrivenEngine) -> None:
    """Pausing is why it gets nothing: were there room, it would get nothing either."""
    fill(engine, "q", 9)
    assert len(pull(engine, "q", of(ACME, 5))) == 5
    pause = admin.UpdateQueueRequest(queue="q", config=admin.QueueConfig(paused=True))
    engine.call(commands.UPDATE_QUEUE, pause, admin.UpdateQueueResponse)

    assert pull(engine, "q", of(ACME, 5)) == []
    assert held(engine, (ACME, 5)) == [(5, 0)]


def test_who_asks_why_a_message_waits_is_told_that_it_is_the_quota(engine: DrivenEngine) -> None:
    def told() -> tuple[list[bool], int, int]:
        request = admin.ListConsumersRequest(queue="q")
        roster = engine.call(commands.LIST_CONSUMERS, request, admin.ListConsumersResponse).consumers
        answered = engine.call(
            commands.EXPLAIN_KEY, ask_forecast("q", "", "default"), seam_frames.Explained
        ).forecast
        return [each.at_quota for each in roster], answered.consumers.at_quota, answered.consumers.with_room

    fill(engine, "q", 9)
    first = DrivenSession(engine, "q", holder=of(ACME, 4))
    DrivenSession(engine, "q", holder=of(GLOB, 9), max_in_flight=1)
    DrivenSession(engine, "q", max_in_flight=1)
    DrivenSession(engine, "q", holder=of(ACME, 4))
    assert told() == ([True, False, False, True], 2, 0)

    held(engine, (ACME, 0))
    assert len(first.read()) > 0
    assert told()[:2] == ([False] * 4, 0)


def test_a_pull_that_waits_for_room_is_answered_when_there_is_some(engine: DrivenEngine) -> None:
    fill(engine, "q", 3)
    (first,) = pull(engine, "q", of(ACME, 1))
    request = service.LeaseRequest(queue="q", max_messages=9, wait_ms=10_000).SerializeToString()
    token = engine.submit(commands.LEASE, request + of(ACME, 1))
    engine.sleep(1000)
    engine.ack("q", [first])
    status, payload = engine.answer_of(token)
    assert (status, len(service.LeaseResponse.FromString(payload).messages)) == (errors.OK, 1)

    token = engine.submit(commands.LEASE, request + of(ACME, 1))
    engine.sleep(1)
    engine.sleep(11_000)
    assert engine.answer_of(token)[0] == errors.RESOURCE_EXHAUSTED, "it waited in vain"


def test_a_bound_that_is_raised_counts_at_once_and_one_that_is_lowered_takes_nothing_back(
    engine: DrivenEngine,
) -> None:
    fill(engine, "q", 30)
    session = DrivenSession(engine, "q", holder=of(ACME, 0))
    assert len(session.messages) == 30, "0 is no bound"
    assert held(engine, (ACME, 10)) == [(30, 0)]
    fill(engine, "q", 30)
    engine.ack("q", session.messages[:20])
    assert session.read() == []
    engine.ack("q", session.messages[20:21])
    assert len(session.read()) == 1

    held(engine, (ACME, 15))
    assert len(session.read()) == 5
    held(engine, (ACME, 0))
    assert len(session.read()) == 24


def test_a_bound_that_is_made_smaller_counts_from_then_on_for_who_holds_more(engine: DrivenEngine) -> None:
    fill(engine, "q", 30)
    session = DrivenSession(engine, "q", holder=of(ACME, 10))
    assert len(session.messages) == 10
    assert held(engine, (ACME, 4)) == [(10, 0)]

    engine.ack("q", session.messages[:6])
    assert session.read() == []
    with pytest.raises(Refused, match="at most 4 messages in flight"):
        pull(engine, "q", of(ACME, 4))
    engine.ack("q", session.messages[6:9])
    assert len(session.read()) == 3
    assert held(engine, (ACME, 4)) == [(4, 1)]


def test_what_was_leased_before_a_restart_counts_again_with_the_session_that_resumes(
    engine: DrivenEngine,
) -> None:
    fill(engine, "q", 10)
    session = DrivenSession(engine, "q", holder=of(ACME, 4))
    session.begin()
    engine.kill()
    engine.reopen()
    assert held(engine, (ACME, 4)) == [(0, 0)]
    resumed = session.resumed(0, 1, 2, 3, holder=of(ACME, 4))
    assert held(engine, (ACME, 4)) == [(4, 0)]
    assert resumed.messages == []
    engine.ack("q", session.messages)
    assert len(resumed.read()) == 4


def test_a_session_resumed_by_another_name_is_that_names(engine: DrivenEngine) -> None:
    fill(engine, "q", 10)
    session = DrivenSession(engine, "q", holder=of(ACME, 4))
    session.begin()
    session.breaks()
    resumed = session.resumed(0, 1, 2, 3, holder=of(GLOB, 5))
    assert (len(resumed.messages), held(engine, (ACME, 4), (GLOB, 5))) == (1, [(0, 0), (5, 0)])


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_holds_and_nothing_is_left_waiting_whatever_happens(
    engine: DrivenEngine, seed: int
) -> None:
    dice = random.Random(seed)
    bounds = {ACME: dice.randint(1, 6), GLOB: dice.randint(1, 40)}
    sessions = [
        (owner, queue, DrivenSession(engine, queue, holder=of(owner, bounds[owner]), max_in_flight=size))
        for owner, queue, size in ((ACME, "q", 3), (ACME, "r", 8), (ACME, "q", 100), (GLOB, "r", 2))
    ]
    sent = {"q": 0, "r": 0}
    owned: dict[int, list[tuple[str, messages.Message]]] = {ACME: [], GLOB: []}
    done = 0

    def take() -> None:
        while True:
            new = [(owner, queue, message) for owner, queue, each in sessions for message in each.read()]
            if not new:
                break
            for owner, queue, message in new:
                owned[owner].append((queue, message))
        rows = held(engine, *bounds.items())
        assert rows == [(len(owned[owner]), 0) for owner in bounds]
        assert all(len(owned[owner]) <= most for owner, most in bounds.items())

    for owner, queue, session in sessions:
        owned[owner] += [(queue, message) for message in session.messages]
    for _ in range(60):
        queue = dice.choice(["q", "r"])
        count = dice.randint(0, 5)
        fill(engine, queue, count)
        sent[queue] += count
        take()
        owner = dice.choice([ACME, GLOB])
        dice.shuffle(owned[owner])
        settled = [owned[owner].pop() for _ in range(dice.randint(0, len(owned[owner])))]
        for name in ("q", "r"):
            engine.ack(name, [message for queue, message in settled if queue == name])
        done += len(settled)
        take()
    while any(owned.values()):
        for holding in owned.values():
            settled = holding.copy()
            holding.clear()
            for name in ("q", "r"):
                engine.ack(name, [message for queue, message in settled if queue == name])
            done += len(settled)
        take()
    assert done == sum(sent.values())
