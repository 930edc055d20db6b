"""A limit is shared as a queue is: what waits for one bucket takes turns by weight and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession
from tests.simulation.histories import Bench
from tests.simulation.shared_limits import bench

HISTORIES = 500
HISTORIES_A_TEST = 250
INTERVALS_A_HISTORY_MIN = 100


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    for queue in ("q", "r"):
        made.create_queue(
            queue,
            fairness_key_header="k",
            weight_header="w",
            cost_header="c",
            throttle_key_headers=["t", "u"],
            visibility_timeout_ms=3_600_000,
        )
    yield made
    made.remove()


def consumer(engine: DrivenEngine, queue: str = "q") -> DrivenSession:
    return DrivenSession(engine, queue, tracks_begun=False, max_in_flight=10_000)


def send(engine: DrivenEngine, key: str, count: int, queue: str = "q", **headers: str) -> None:
    for _ in range(count):
        engine.enqueue(queue, key.encode(), {"k": key, "t": "provider", **headers})


def over(engine: DrivenEngine, session: DrivenSession, tokens: int, ms: int = 50) -> Counter[str]:
    """What went in the time of so many tokens."""
    before = len(session.payloads)
    for _ in range(tokens):
        engine.mono_ns += 10  # past the moment of the token
        engine.sleep(ms)
        session.read()
    return Counter(payload.decode() for payload in session.payloads[before:])


@pytest.fixture(scope="module")
def judge() -> Iterator[Bench]:
    made = bench()
    yield made
    made.engine.remove()


@pytest.mark.parametrize("first", range(1, HISTORIES + 1, HISTORIES_A_TEST))
def test_in_random_histories_the_twins_keys_go_and_every_interval_keeps_the_promise(
    judge: Bench, first: int
) -> None:
    judged = judge.run(first, HISTORIES_A_TEST)

    assert judged >= INTERVALS_A_HISTORY_MIN * HISTORIES_A_TEST


def test_one_bucket_gives_three_of_weight_3_for_one_of_1_and_ten_of_cost_1_for_one_of_10(
    engine: DrivenEngine,
) -> None:
    engine.set_config("throttle.provider", "20,1")
    send(engine, "a", 200, w="3")
    send(engine, "b", 80)
    send(engine, "c", 20, c="10")
    session = consumer(engine)

    went = over(engine, session, 246)  # six rounds of thirty and ten and one

    assert went == {"a": 180, "b": 60, "c": 6}


def test_a_new_weight_counts_for_what_waits_in_a_line_already(engine: DrivenEngine) -> None:
    engine.set_config("throttle.provider", "20,1")
    send(engine, "a", 100)
    send(engine, "b", 100)
    session = consumer(engine)
    assert over(engine, session, 20) == {"a": 10, "b": 10}

    policy = admin.SetKeyPolicyRequest(queue="q", fairness_key="a", weight=4)
    engine.call(commands.SET_KEY_POLICY, policy, admin.SetKeyPolicyResponse)

    assert over(engine, session, 50) == {"a": 40, "b": 10}


def test_a_key_has_one_turn_at_a_bucket_whatever_other_buckets_its_messages_name(
    engine: DrivenEngine,
) -> None:
    engine.set_config("throttle.provider", "20,1")
    for other in ("x", "y", "z"):
        send(engine, "many", 40, u=other)
    send(engine, "one", 40)
    session = consumer(engine)

    assert over(engine, session, 40) == {"many": 20, "one": 20}


def test_of_a_keys_messages_at_a_bucket_the_oldest_goes_first(engine: DrivenEngine) -> None:
    engine.set_config("throttle.provider", "20,1")
    for number in range(9):
        headers = {"k": "a", "t": "provider", "u": f"u{number % 3}"}
        engine.enqueue("q", b"%d" % number, headers)
    session = consumer(engine)

    over(engine, session, 10)

    assert session.payloads == [b"%d" % number for number in range(9)]


def test_queues_at_one_bucket_take_equal_turns_whatever_their_keys_weigh(engine: DrivenEngine) -> None:
    engine.set_config("throttle.provider", "20,1")
    for key in range(10):
        send(engine, f"q{key}", 10, w="100")
    send(engine, "r", 60, "r", c="50")
    sessions = consumer(engine), consumer(engine, "r")
    for _ in range(100):
        engine.mono_ns += 10
        engine.sleep(50)
        for session in sessions:
            session.read()

    went = [len(session.payloads) for session in sessions]

    assert abs(went[0] - went[1]) <= 1


def test_a_key_that_waits_for_tokens_saves_for_a_dear_message_and_pays_for_it_once(
    engine: DrivenEngine,
) -> None:
    engine.set_config("throttle.provider", "20,1")
    send(engine, "dear", 3, c="20")
    send(engine, "cheap", 100)
    session = consumer(engine)

    went = over(engine, session, 63)

    assert went == {"cheap": 60, "dear": 3}


def test_costs_that_were_not_known_when_a_burst_was_given_out_are_paid_with_the_next_tokens(
    engine: DrivenEngine,
) -> None:
    engine.set_config("throttle.provider", "20,10")
    session = consumer(engine)
    send(engine, "first", 10)
    session.read()  # the burst is spent
    send(engine, "grows", 1)
    send(engine, "grows", 30, c="5")
    send(engine, "even", 200)
    # Ten tokens at once: for five messages of each key, of which the one's were thought to cost as its first.
    assert over(engine, session, 1, ms=500) == {"grows": 5, "even": 5}

    went = over(engine, session, 16)

    assert went == {"even": 16}, "the sixteen that the other one's four messages cost more"
    assert over(engine, session, 12) == {"even": 10, "grows": 2}


def test_tokens_spoken_for_where_nobody_has_room_are_others_and_are_not_charged(engine: DrivenEngine) -> None:
    engine.set_config("throttle.provider", "20,4")
    other = consumer(engine, "r")
    send(engine, "first", 4, "r")
    other.read()  # the burst is spent
    send(engine, "a", 40, c="8")
    send(engine, "b", 200)
    full = DrivenSession(engine, "q", tracks_begun=False, max_in_flight=1)
    over(engine, full, 1)
    while len(full.payloads) < 90:
        over(engine, full, 4)  # nobody in q has room: four tokens are spoken for there
        send(engine, "r", 4, "r")
        other.read()
        engine.ack("q", full.messages[-1:])
        full.read()

    went = Counter(full.payloads)

    assert len(other.payloads) > 250
    assert went[b"a"] == pytest.approx(10, abs=1)


def test_a_message_that_comes_back_unwritten_is_not_paid_for_twice_in_the_line(engine: DrivenEngine) -> None:
    engine.set_config("throttle.provider", "20,1")
    send(engine, "a", 60)
    send(engine, "b", 60)
    session = consumer(engine)
    over(engine, session, 10)
    for _ in range(10):  # each key with a token gives it back at once
        broken = session
        engine.mono_ns += 10
        engine.sleep(50)
        broken.read(written=False)
        broken.breaks()
        session = consumer(engine)

    went = over(engine, session, 20)

    assert abs(went["a"] - went["b"]) <= 2


def test_tokens_that_came_late_and_all_at_once_are_all_given_out(engine: DrivenEngine) -> None:
    engine.set_config("throttle.provider", "200,1")
    for key in ("a", "b"):
        send(engine, key, 10)

    got = len(engine.lease("q", 1))
    for _ in range(20):
        engine.advance(30)  # a pull comes before the timers of its pass, and finds what earned in 30 ms
        got += len(engine.lease("q", 1))

    assert got == 20


def test_who_waits_goes_at_once_when_the_limit_is_taken_away(engine: DrivenEngine) -> None:
    engine.set_config("throttle.provider", "1,1")
    for key in ("a", "b", "c"):
        send(engine, key, 5, u=key)
        send(engine, key, 5)
    session = consumer(engine)

    engine.set_config("throttle.provider", "")
    session.read()

    assert Counter(session.payloads) == {b"a": 10, b"b": 10, b"c": 10}
