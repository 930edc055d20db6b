"""What closed connections leave behind: nothing, and their memory goes back to the system."""

from collections.abc import Iterator

import pytest

from tests.core.test_memory_given_back import rounds
from tests.grpc_edge.told_edge import ToldEdge

ROUNDS = 12
"""So many that the bound on how often memory is given back is over."""


@pytest.fixture
def edge() -> Iterator[ToldEdge]:
    edge = ToldEdge()
    yield edge
    edge.close()


def test_memory_is_given_back_when_connections_close_although_nothing_is_written(edge: ToldEdge) -> None:
    clients = [edge.redis_client() for _ in range(3)]
    rounds(edge.engine, ROUNDS)
    assert rounds(edge.engine, ROUNDS) == 0

    for client in clients:
        client.close()

    # Not exactly once: the edge's thread frees them one by one, and the first may go with a round of its own.
    edge.run_until(lambda: rounds(edge.engine, ROUNDS) >= 1, "memory was given back")
