"""What one caller may take of what all share: memory, trials of keys, turns at the processes that read JSON."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, cast

import pytest
from starlette.datastructures import Headers

from fila.errors import FilaError
from fila.v1.auth_pb2 import WhoAmIResponse
from fila_http import body
from fila_http.body import PIECES_A_TURN, SMALL_BYTES, Budget, Hold, Pace, read_body
from fila_http.calls import Endpoint, Service, answer_call
from fila_http.keys import KNOWN_MAX, NOBODY, NOBODY_REMEMBERED_S, REMEMBERED_S, Keys
from fila_http.options import Bounds
from fila_http.problems import Code, Problem
from fila_http.refusals import Refusals
from fila_http.translators import Turns
from fila_http.v1.routes import ROUTES

# Memory.


@pytest.fixture(autouse=True)
def nothing_is_small(request, monkeypatch):
    """Budgets of a few bytes, but for the tests of what is small."""
    if "small" not in request.node.name:
        monkeypatch.setattr(body, "SMALL_BYTES", 0)


def test_one_holder_has_half_and_the_next_one_finds_room():
    budget = Budget(100)

    assert budget.take("greedy", 30)
    assert budget.take("greedy", 20)
    assert not budget.take("greedy", 1), "it would have more than it leaves"
    assert budget.take("next", 25)
    assert not budget.take("next", 1)
    assert budget.take("third", 12)
    assert budget.held == 87


def test_what_is_small_asks_for_room_and_for_no_share_unless_it_is_a_part():
    budget = Budget(100 * SMALL_BYTES)
    large = 50 * SMALL_BYTES
    assert budget.take("greedy", large)
    assert budget.take("next", 20 * SMALL_BYTES)
    assert not budget.take("greedy", SMALL_BYTES + 1)
    assert not budget.take("greedy", 1, is_part=True)

    assert budget.take("greedy", 0)
    for _ in range(30):
        assert budget.take("greedy", SMALL_BYTES)
    assert not budget.take("greedy", SMALL_BYTES), "there is no room at all"
    assert budget.take("greedy", 0)


def test_what_is_given_back_is_there_for_others():
    budget = Budget(100)
    budget.take("one", 50)
    budget.give_back("one", 50)

    assert budget.held == budget.held_by("one") == 0
    assert budget.take("two", 50)


def test_what_is_larger_than_all_passes_alone():
    budget = Budget(100)
    assert budget.take("one", 1000)
    assert not budget.take("two", 1)


async def test_a_request_gives_back_what_it_held_and_says_whose_it_is():
    budget = Budget(100)
    with Hold(budget) as first:
        first.holder = "key"
        first.take(40)
        with Hold(budget) as second:
            second.holder = "key"
            with pytest.raises(Problem) as told:
                second.take(20)
        assert (told.value.status, told.value.reason) == (503, "OVERLOADED")
        assert "40 of them are this caller's" in told.value.detail
        assert budget.held == 40
    assert budget.held == 0


async def test_a_stream_waits_for_room_instead():
    budget = Budget(10)
    budget.take("one", 5)
    waiting = asyncio.ensure_future(budget.take_in_turn("one", 5))
    await asyncio.sleep(0)
    assert not waiting.done()
    budget.give_back("one", 5)
    await waiting
    assert budget.held == 5


async def test_a_body_waits_for_room_in_time_and_few_bodies_do(monkeypatch):
    monkeypatch.setattr(body, "WAITING_MAX", 1)
    budget = Budget(10)
    with Hold(budget) as first, Hold(budget) as second, Hold(budget) as third:
        first.holder = second.holder = third.holder = "key"
        await first.take_in_time(5, 60)
        waiting = asyncio.ensure_future(second.take_in_time(5, 60))
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="are this caller's"):
            await third.take_in_time(5, 60)
        budget.give_back("key", 5)
        first.count = 0
        await waiting
        with pytest.raises(Problem, match="are this caller's"):
            await third.take_in_time(5, 0)
        assert budget.waiting == 0
    assert budget.held == 0


@pytest.mark.parametrize(("held", "status", "reason"), [(10, 503, "OVERLOADED"), (0, 408, "BODY_TOO_SLOW")])
async def test_a_body_that_is_late_is_told_whether_it_had_no_room_or_did_not_come(held, status, reason):
    async def nothing_comes() -> Any:
        await asyncio.get_running_loop().create_future()

    budget = Budget(10)
    with Hold(budget) as other, Hold(budget) as hold:
        other.holder = hold.holder = "key"
        await other.take_in_time(held, 60)
        with pytest.raises(Problem) as refused:
            await read_body(Headers({"content-length": "5"}), nothing_comes, Bounds(body_s_max=0), hold)
    assert (refused.value.status, refused.value.reason) == (status, reason)


async def test_pieces_of_large_bodies_are_read_a_few_a_turn_of_the_loop():
    pace = Pace()
    turns = [asyncio.ensure_future(pace.turn()) for _ in range(3 * PIECES_A_TURN)]
    done: list[int] = []
    while len(done) < 8:
        await asyncio.sleep(0)
        done.append(sum(turn.done() for turn in turns))

    assert all(after - before <= PIECES_A_TURN for before, after in itertools.pairwise(done))
    assert done[-1] == len(turns)
    leaving = asyncio.ensure_future(pace.turn())
    await asyncio.sleep(0)
    leaving.cancel()
    async with asyncio.timeout(1):
        await pace.turn()


# Keys.


class Broker:
    """Says which keys it takes; wrong ones it keeps waiting."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.asked: list[str] = []
        self.taken = {"right"}
        self.word = asyncio.Event()
        self.refusals = NoRefusals()

    def keys(self, **bounds: float) -> Keys:
        return Keys(self.ask, lambda: self.now_s, self.refusals, **bounds)  # type: ignore[arg-type]

    async def ask(self, key: str) -> WhoAmIResponse:
        self.asked.append(key)
        if key.startswith("wrong"):
            await self.word.wait()
        if key not in self.taken:
            error = FilaError("no")
            error.code = Code.UNAUTHENTICATED
            raise error
        return WhoAmIResponse(principal=key)


async def test_a_key_is_asked_for_once_in_a_while():
    broker = Broker()
    keys = broker.keys()
    for _ in range(3):
        assert (await keys.whose("right")).principal == "right"
    assert broker.asked == ["right"]

    broker.now_s += REMEMBERED_S
    await keys.whose("right")
    assert broker.asked == ["right"] * 2


async def test_callers_of_one_key_wait_for_one_word():
    broker = Broker()
    broker.taken.add("wrong at first sight")
    keys = broker.keys()
    waiting = [asyncio.ensure_future(keys.whose("wrong at first sight")) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    broker.word.set()

    await asyncio.gather(*waiting[1:])
    assert len(broker.asked) == 1


async def test_a_key_that_was_refused_is_asked_for_again_and_one_that_ended_is_forgotten():
    broker = Broker()
    keys = broker.keys()
    for _ in range(2):
        with pytest.raises(FilaError):
            await keys.whose("other")
    assert broker.asked == ["other"] * 2
    broker.taken.add("other")
    await keys.whose("other")

    broker.taken.clear()
    keys.forget("other")
    with pytest.raises(FilaError):
        await keys.whose("other")


async def test_callers_without_a_key_cost_the_broker_one_word_a_second():
    broker = Broker()
    keys = broker.keys()
    for _ in range(3):
        with pytest.raises(FilaError):
            await keys.whose(NOBODY)
    assert broker.asked == [NOBODY]

    broker.taken.add(NOBODY)
    broker.now_s += NOBODY_REMEMBERED_S
    await keys.whose(NOBODY)


async def test_a_refusal_waits_and_no_more_than_so_many_do():
    refusals = Refusals(wait_s=60, waiting_max=3)
    waiting = [asyncio.ensure_future(refusals.wait()) for _ in range(5)]
    async with asyncio.timeout(10):
        await asyncio.gather(*waiting[:2])

    assert not any(each.done() for each in waiting[2:])
    waiting.pop().cancel()
    await asyncio.sleep(0)
    waiting.append(asyncio.ensure_future(refusals.wait()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting[2].done(), "who left took no place"
    for each in waiting:
        each.cancel()


class NoRefusals(Refusals):
    """None waits, and how many would have is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def wait(self) -> None:
        self.count += 1


async def test_who_shows_no_key_waits_for_its_refusal_each_time():
    broker = Broker()
    keys = broker.keys()
    for _ in range(3):
        with pytest.raises(FilaError):
            await keys.whose(NOBODY)
    assert broker.refusals.count == 3
    with pytest.raises(FilaError):
        await keys.whose("other")
    assert broker.refusals.count == 3, "the broker itself keeps a wrong key waiting"


@pytest.mark.parametrize(("length", "status", "waits"), [("11", 413, 1), ("x", 400, 0)])
async def test_who_breaks_a_bound_waits_for_its_refusal_and_who_is_merely_wrong_does_not(
    length, status, waits
):
    broker = Broker()
    bounds = Bounds(body_bytes_max=10)
    nobody = cast("Any", None)
    service = Service(nobody, bounds, Budget(100), broker.keys(), nobody, broker.refusals, nobody)
    told = []

    async def send(event: Any) -> None:
        told.append(event)

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(b"authorization", b"Bearer right"), (b"content-length", length.encode())],
        "path_params": {},
        "query_string": b"",
        "state": {},
    }
    route = next(route for route in ROUTES if route.name == "Lease")
    await Endpoint(service, {"POST": (route, answer_call)})(scope, cast("Any", None), send)

    assert (told[0]["status"], broker.refusals.count) == (status, waits)


async def test_a_right_key_is_told_while_more_wrong_ones_wait_than_may():
    broker = Broker()
    keys = broker.keys(tried_max=4)
    wrong = [asyncio.ensure_future(keys.whose(f"wrong {number}")) for number in range(6)]
    await asyncio.sleep(0)
    await keys.whose("right")
    await asyncio.sleep(0)

    ended = await asyncio.gather(*wrong[:3], return_exceptions=True)
    assert {each.status for each in ended if isinstance(each, Problem)} == {503}
    assert len([each for each in ended if isinstance(each, Problem)]) == 3
    assert not any(each.done() for each in wrong[3:])
    for each in wrong:
        each.cancel()


async def test_a_broker_that_says_nothing_in_time_is_told():
    broker = Broker()
    with pytest.raises(Problem, match="did not say"):
        await broker.keys(tried_s_max=0.001).whose("wrong")


async def test_so_many_keys_are_remembered_and_no_more():
    broker = Broker()
    keys = broker.keys()
    for number in range(KNOWN_MAX + 1):
        broker.taken.add(f"key {number}")
        await keys.whose(f"key {number}")
    await keys.whose(f"key {KNOWN_MAX}")
    assert len(broker.asked) == KNOWN_MAX + 1
    await keys.whose("key 0")
    assert len(broker.asked) == KNOWN_MAX + 2


# Turns.


async def test_one_holder_has_half_of_the_places_and_the_next_goes_at_once():
    turns = Turns(4, 2)
    await turns.take("greedy")
    await turns.take("greedy")
    third = asyncio.ensure_future(turns.take("greedy"))
    await asyncio.sleep(0)
    assert not third.done()

    async with asyncio.timeout(1):
        await turns.take("next")
    turns.give_back("greedy")
    async with asyncio.timeout(1):
        await third


async def test_holders_that_wait_take_turns():
    turns = Turns(1, 1)
    await turns.take("first")
    order: list[str] = []

    async def go(holder: str) -> None:
        await turns.take(holder)
        order.append(holder)
        turns.give_back(holder)

    waiting = [asyncio.ensure_future(go(holder)) for holder in ("a", "a", "a", "b", "c")]
    await asyncio.sleep(0)
    turns.give_back("first")
    await asyncio.gather(*waiting)
    assert order == ["a", "b", "c", "a", "a"]


async def test_who_leaves_while_it_waits_takes_no_place():
    turns = Turns(1, 1)
    await turns.take("first")
    leaving = asyncio.ensure_future(turns.take("leaving"))
    called = asyncio.ensure_future(turns.take("called"))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    turns.give_back("first")
    called.cancel()  # its turn came, and it went all the same
    await asyncio.gather(leaving, called, return_exceptions=True)

    async with asyncio.timeout(1):
        await turns.take("next")
