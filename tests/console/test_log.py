"""The page of a queue's log: where it ends."""

from __future__ import annotations

import pytest

from fila import StoredMessage
from fila.v1.messages_pb2 import Message
from fila_console.upstream import Upstream


class GappedBroker(Upstream):
    """One queue's log, of which only offsets are asked."""

    def __init__(self, there: list[int]) -> None:
        """Nothing is connected."""
        self.there = there
        self.reads = 0

    async def read_log(self, queue: str, most: int, from_offset: int = 0, *_: object) -> list[StoredMessage]:
        self.reads += 1
        found = [offset for offset in self.there if offset >= from_offset]
        return [StoredMessage(Message(metadata={"offset": offset})) for offset in found[:most]]


@pytest.mark.parametrize(
    ("there", "head"),
    [
        ([1, 2, 3], 4),
        ([1, 2, 3], 1_000_000),
        ([7], 8),
        ([7], 1_000_000),
        ([1, 5, 999_999, 1_000_000], 2_000_000),
    ],
)
async def test_the_newest_message_of_a_log_is_found_below_what_a_crash_left_out(there: list[int], head: int):
    broker = GappedBroker(there)

    assert await broker.newest_offset("q", there[0], head) == there[-1]
    assert broker.reads <= 22
