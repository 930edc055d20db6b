"""What all Redis clients together may have carried out in one turn of the loop, under a told clock."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from fila_server.config.schema import Limits, Redis
from fila_server.edge.redis import port as redis_port
from fila_server.edge.redis.port import REDIS_COMMAND, SLICE_NS, RedisPort

STEP_NS = 50_000
OF_A_TURN = SLICE_NS // STEP_NS + 1


class Client:
    """Time passes when it works."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number

    def carry_out(self, _args: list[bytes], _argc: int) -> None:
        self.world.now_ns += STEP_NS
        self.world.done.append(self.number)


class World:
    def __init__(self, clients: int) -> None:
        self.now_ns = 0
        self.done: list[int] = []
        nobody: Any = None
        self.port = RedisPort(
            nobody, nobody, Redis(), Limits(), "data", lambda _: True, nobody, lambda: self.now_ns
        )
        cast("Any", self.port)._clients = {number: Client(self, number) for number in range(clients)}

    def ask(self, client: int) -> None:
        self.port.take(REDIS_COMMAND, client, 1, redis_port._LENGTH.pack(4) + b"PING")


async def turn() -> None:
    await asyncio.sleep(0)


async def test_what_little_is_asked_is_done_in_the_same_turn_and_the_loop_is_left_alone_then():
    world = World(3)
    for client in range(3):
        world.ask(client)
    await turn()

    assert world.done == [0, 1, 2]
    before_ns = world.now_ns
    await turn()
    assert world.now_ns == before_ns


@pytest.mark.parametrize("clients", [1, 50])
async def test_together_clients_take_no_more_of_a_turn_than_the_slice(clients: int):
    world = World(clients)
    for number in range(1000):
        world.ask(number % clients)

    turns = 0
    while len(world.done) < 1000:
        before = len(world.done)
        await turn()
        assert 0 < len(world.done) - before <= OF_A_TURN
        turns += 1
    assert turns >= 1000 // OF_A_TURN


async def test_those_who_ask_are_served_in_the_order_in_which_they_asked():
    world = World(10)
    asked = [number % 10 for number in range(500)]
    for client in asked:
        world.ask(client)
    while len(world.done) < 500:
        await turn()

    assert world.done == asked
