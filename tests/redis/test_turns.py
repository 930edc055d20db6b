"""What all Redis clients together may do in one turn of the loop, under a told clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fila_server.edges.redis.turns import SHARE_NS, SLICE_NS, Turns

STEP_NS = 50_000


class Loop:
    """Time passes when somebody works."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.soon: list[Callable[[], None]] = []
        self.turns = Turns(self.soon.append, lambda: self.now_ns)

    def turn(self) -> None:
        soon, self.soon[:] = list(self.soon), []
        for call in soon:
            call()


class Client:
    def __init__(self, loop: Loop, steps: int) -> None:
        self.loop = loop
        self.left = steps
        self.done_in_turns: list[int] = []

    def work(self, until_ns: int) -> bool:
        done = 0
        while self.left and self.loop.now_ns <= until_ns:
            self.loop.now_ns += STEP_NS
            self.left -= 1
            done += 1
        self.done_in_turns.append(done)
        return self.left > 0


@pytest.fixture
def loop() -> Loop:
    return Loop()


def test_a_client_with_little_to_do_is_served_at_once(loop: Loop):
    client = Client(loop, 3)
    loop.turns.enter(client)

    assert client.left == 0
    assert not loop.turns.is_in_line(client)


def test_a_client_with_much_to_do_stops_after_the_slice_and_goes_on_in_the_next_turns(loop: Loop):
    client = Client(loop, 1000)
    loop.turns.enter(client)
    assert loop.now_ns <= SLICE_NS + STEP_NS
    assert loop.turns.is_in_line(client)

    turns = 0
    while client.left:
        began_ns = loop.now_ns
        loop.turn()
        assert 0 < loop.now_ns - began_ns <= SLICE_NS + STEP_NS
        turns += 1
    assert turns >= 1000 * STEP_NS // SLICE_NS - 2


def test_together_many_take_no_more_of_a_turn_than_one(loop: Loop):
    clients = [Client(loop, 1000) for _ in range(50)]
    for client in clients:
        loop.turns.enter(client)
    assert loop.now_ns <= SLICE_NS + STEP_NS

    for _ in range(20):
        began_ns = loop.now_ns
        loop.turn()
        assert loop.now_ns - began_ns <= SLICE_NS + SHARE_NS + STEP_NS


def test_those_in_line_are_served_in_turn(loop: Loop):
    loop.turns.enter(Client(loop, 10**9))
    others = [Client(loop, 100) for _ in range(10)]
    for client in others:
        loop.turns.enter(client)
    for _ in range(8):
        loop.turn()

    done = [100 - client.left for client in others]
    assert min(done) > 0
    assert max(done) - min(done) <= SHARE_NS // STEP_NS + 1


def test_a_client_that_leaves_is_not_called_again(loop: Loop):
    first, second = Client(loop, 10**9), Client(loop, 5)
    loop.turns.enter(first)
    loop.turns.enter(second)
    loop.turns.leave(first)
    loop.turns.leave(first)
    loop.turn()

    assert second.left == 0
    assert len(first.done_in_turns) == 1
    assert loop.soon == []


def test_when_nobody_has_anything_to_do_the_loop_is_left_alone(loop: Loop):
    loop.turns.enter(Client(loop, 3))
    loop.turn()

    assert loop.soon == []
