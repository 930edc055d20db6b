"""A log that lost its end: a new incarnation begins with one copy, and no other one is taken for it."""

from __future__ import annotations

import pytest

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.runtime.store_copy import ANEW, FOLLOWS, HALTS, OWNS
from tests.core.driven_group import Group, Node, Serving

LATER, EVEN_LATER = 1_764_000_000, 1_764_000_009
"""Incarnations."""


def enqueue(owner: Serving, *payloads: bytes) -> None:
    for payload in payloads:
        owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=payload))
    owner.settle_down()


def reads(node: Node) -> None:
    while node.follow():
        pass


def waiting(owner: Serving) -> set[bytes]:
    owner.advance(1_000)
    token = owner.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=100))
    [told] = [payload for told, _, _, payload in owner.settle_down() if told == token]
    return {message.payload for message in service.LeaseResponse.FromString(told).messages}


def halts(node: Node) -> str:
    """After it began anew; why."""
    node.kill()
    node.start()
    reads(node)
    assert node.copy.state == HALTS
    return node.copy.why


def reseed(node: Node, incarnation: int = LATER) -> Serving:
    """As the operator's command does."""
    node.copy.rebase(len(node.log))
    assert node.copy.bid(incarnation, node.clock.wall_ns // 1_000_000, incarnation=incarnation)
    node.end.turn(node.clock.now_ms, 999)
    reads(node)
    assert node.copy.state == OWNS
    assert node.engine is not None
    node.engine.settle_down()
    return node.engine


def take_copy(node: Node, source: Node) -> None:
    node.take_copy(source)
    reads(node)


@pytest.fixture
def group():
    made = Group()
    yield made
    for node in made.nodes:
        node.remove()


@pytest.mark.parametrize("is_made_anew", [False, True], ids=["its end is lost", "it was made anew"])
def test_a_group_goes_on_from_the_copy_that_is_chosen_with_all_that_was_answered(group, is_made_anew):
    owner, behind = group.owner(), group.node()
    enqueue(owner, b"one", b"two")
    reads(behind)
    enqueue(owner, b"three")
    first = group.nodes[0]
    group.log.cut(len(group.log) if is_made_anew else 1)
    assert "it lost its end" in halts(first)

    served = reseed(first)
    enqueue(served, b"four")
    reads(behind)
    if behind.copy.state != HALTS:  # it was not as far as the log's new end
        behind.copy.look_again()
        reads(behind)
    assert behind.copy.state == HALTS
    take_copy(behind, first)
    assert (behind.copy.state, behind.copy.term) == (FOLLOWS, first.copy.term)
    assert behind.copy.incarnation == LATER

    first.kill()
    first.start()
    successor = behind.take_over(nonce=99)
    successor.settle_down()
    assert waiting(successor) == {b"one", b"two", b"three", b"four"}
    reads(first)
    assert first.copy.term == behind.copy.term


def test_a_copy_that_stands_elsewhere_reads_no_further_than_the_takeover(group):
    owner, behind = group.owner(), group.node()
    reads(behind)
    enqueue(owner, b"one", b"two")
    group.log.cut(1)
    halts(group.nodes[0])
    reseed(group.nodes[0])
    reads(behind)
    assert behind.copy.halted[0] == ANEW
    assert "goes on from another copy than this one" in behind.copy.why


def test_a_node_that_dies_between_is_reseeded_again_by_a_later_incarnation(group):
    owner = group.owner()
    enqueue(owner, b"one")
    [node] = group.nodes
    group.log.cut(1)
    halts(node)
    node.copy.rebase(len(group.log))
    assert node.copy.bid(1, 0, incarnation=LATER)
    node.end.turn(group.clock.now_ms, 999)
    halts(node)
    assert waiting(reseed(node, EVEN_LATER)) == {b"one"}


def test_what_an_owner_of_the_lost_log_still_appends_is_stale(group):
    owner = group.owner()
    enqueue(owner, b"one")
    [node] = group.nodes
    owner.lands = False
    owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"late"))
    owner.run_pass()
    group.log.cut(1)
    ghost = node.kill()
    node.start()
    reads(node)
    assert node.copy.state == HALTS
    served = reseed(node)
    while ghost.turn(group.clock.now_ms, 999):
        pass
    served.settle_down()
    assert waiting(served) == {b"one"}
