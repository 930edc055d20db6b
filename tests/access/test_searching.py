"""A search for queues finds and counts those that its key may know of, and no other."""

from __future__ import annotations

import pytest

from fila.v1 import admin_pb2
from tests.access.guarded_server import Client, Guarded

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]


def found(caller: Client) -> tuple[set[str], int]:
    answer = caller.admin.ListQueues(admin_pb2.ListQueuesRequest(containing="SEARCHED", page_size=1000))
    return {each.name for each in answer.queues}, answer.matched


@pytest.mark.parametrize("right", ["produce", "consume", "view"])
def test_a_search_finds_and_counts_only_queues_one_may_know(guarded: Guarded, right: str):
    mine, others = f"searched-{right}", f"searched-not-{right}"
    for name in (mine, others):
        guarded.admin.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name))
    caller = guarded.make_key(f"search-{right}", f"{right} {mine}")

    assert found(caller) == ({mine}, 1)
    names, matched = found(guarded.admin)
    assert {mine, others} <= names
    assert matched == len(names)
