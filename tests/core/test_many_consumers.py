"""Thousands of consumers without room: how many are looked at for a message is bounded a pass, and nobody is missed."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession
from tests.core.test_bounded_work import WORK_PER_STAGE, count, fill, run_dry
from tests.core.test_holders import ACME, of

MANY = 2 * WORK_PER_STAGE + 500


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    for name in ("q", "r"):
        made.create_queue(name, visibility_timeout_ms=3_600_000)
    yield made
    made.remove()


def open_sessions(engine: DrivenEngine, how_many: int, holder: bytes = b"", **open_: int) -> list[int]:
    """Their tokens. They work on what they are given at once, so nobody counts them as silent."""
    opening = service.ConsumeSessionRequest(open={"queue": "q", **open_}).SerializeToString() + holder
    tokens = []
    for first in range(0, how_many, 500):
        tokens += [engine.submit(commands.SESSION_OPEN, opening) for _ in range(min(500, how_many - first))]
        run_dry(engine)
    return tokens


def delivered(engine: DrivenEngine) -> list[tuple[int, messages.Message]]:
    """Whose, and what, since this was asked last; each frame is said to be written."""
    found = [out for out in engine.others if out[1] == commands.DELIVERY]
    engine.others = []
    new = []
    for token, _, _, payload in found:
        new += [(token, m) for m in service.ConsumeSessionResponse.FromString(payload).delivery.messages]
        engine.submit(commands.WRITTEN, b"", token)
    return new


def longest_look(engine: DrivenEngine) -> int:
    """Passes until none wants another; what the one that looked through most looked through."""
    longest = 0
    for _ in range(10_000):
        before = count(engine, "walked")
        again = engine.run_pass()
        longest = max(longest, count(engine, "walked") - before)
        found = engine.core.drain()
        engine.others += found
        if not (engine.commit() or found or (again is not None and again <= engine.mono_ns)):
            return longest
    raise AssertionError("the core never comes to rest")


def test_a_look_for_a_consumer_with_room_goes_on_in_the_next_pass(engine: DrivenEngine) -> None:
    fill(engine, "q", MANY + 3)
    tokens = open_sessions(engine, MANY, max_in_flight=1)
    holding = dict(delivered(engine))
    assert sorted(holding) == tokens, "each has one, and is full"
    longest_look(engine)

    for token in (tokens[-1], tokens[0], tokens[MANY // 2]):
        leased = service.Settle(lease_ids=[holding[token].metadata.lease_id])
        engine.submit(commands.SESSION, service.ConsumeSessionRequest(ack=leased), token)
        assert longest_look(engine) <= WORK_PER_STAGE
        [(whose, _)] = delivered(engine)
        assert whose == token, "the one with room"


def test_who_gets_room_behind_the_look_is_found_too(engine: DrivenEngine) -> None:
    fill(engine, "q", MANY)
    tokens = open_sessions(engine, MANY, max_in_flight=1)
    holding = dict(delivered(engine))
    longest_look(engine)

    fill_one = service.EnqueueRequest(queue="q", payload=b"x")
    engine.submit(commands.ENQUEUE, fill_one)
    looked_at = count(engine, "walked")
    while count(engine, "walked") == looked_at:  # the pass that begins to look, and does not come round
        engine.run_pass()
        engine.commit()
        engine.core.drain()
    assert count(engine, "walked") - looked_at == WORK_PER_STAGE
    leased = service.Settle(lease_ids=[holding[tokens[0]].metadata.lease_id])
    engine.submit(commands.SESSION, service.ConsumeSessionRequest(ack=leased), tokens[0])
    longest_look(engine)

    assert [whose for whose, _ in delivered(engine)] == [tokens[0]]


def test_room_for_one_message_more_wakes_one_of_the_consumers_that_wait_for_it(engine: DrivenEngine) -> None:
    fill(engine, "q", 50)
    open_sessions(engine, MANY, holder=of(ACME, 1))
    [(_, message)] = delivered(engine)
    served = []
    for _ in range(20):
        before = count(engine, "work")
        assert engine.ack("q", [message]) == [0]
        run_dry(engine)
        assert count(engine, "work") - before < 50, "not each of those that wait"
        [(whose, message)] = delivered(engine)
        served.append(whose)
    assert len(set(served)) == 20, "who waits longest is next"


def test_where_those_who_wait_longest_cannot_take_the_room_the_next_ones_do(engine: DrivenEngine) -> None:
    fill(engine, "q", 2)
    fill(engine, "r", 5)
    first = DrivenSession(engine, "q", holder=of(ACME, 1))
    stopped = [DrivenSession(engine, "r", holder=of(ACME, 1)) for _ in range(3)]
    last = DrivenSession(engine, "q", holder=of(ACME, 1))
    assert [len(each.messages) for each in (first, *stopped, last)] == [1, 0, 0, 0, 0]
    pause = admin.SetKeyPolicyRequest(queue="r", fairness_key="default", paused=True)
    engine.call(commands.SET_KEY_POLICY, pause, admin.SetKeyPolicyResponse)

    engine.ack("q", first.messages)

    assert len(first.read()) + len(last.read()) == 1
    assert [len(each.read()) for each in stopped] == [0, 0, 0]
