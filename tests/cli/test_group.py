"""The command line finds the node of a group that serves: where a standby sends it, or among several addresses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from grpc import StatusCode

from fila.v1 import admin_pb2, events_pb2
from fila_cli.address import targets_of
from tests.cli.fake_broker import FakeBroker, Refusal

SENTENCE = "this node stands by, and no other node is known to serve"
NOBODY = "127.0.0.1:1"


@pytest.fixture
def standby() -> Iterator[FakeBroker]:
    made = FakeBroker()
    yield made
    made.stop()


def stands_by(node: FakeBroker, owner: str = "") -> None:
    refusal = Refusal(StatusCode.UNAVAILABLE, SENTENCE, "NOT_OWNER", owner)
    node.answers |= dict.fromkeys(("GetStatus", "ListQueues", "WatchEvents"), refusal)


@pytest.fixture
def two_queues(broker: FakeBroker) -> FakeBroker:
    queues = [admin_pb2.QueueInfo(name=name) for name in ("emails", "orders")]
    broker.answers["ListQueues"] = admin_pb2.ListQueuesResponse(queues=queues)
    return broker


@pytest.fixture(autouse=True)
def hardly_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fila_cli.group.PAUSE_S", 0.0)
    monkeypatch.setattr("fila_cli.group.PATIENCE_S", 0.0)


def methods(node: FakeBroker) -> list[str]:
    return [method for method, _ in node.asked]


def test_a_call_to_a_standby_is_made_again_at_the_owner(fila, two_queues: FakeBroker, standby: FakeBroker):
    stands_by(standby, two_queues.address)
    ran = fila("queue", "list", "--addr", standby.address, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert "emails" in ran.out
    assert methods(standby) == methods(two_queues) == ["ListQueues"]


def test_a_standby_that_knows_no_owner_is_told_by_its_sentence(fila, standby: FakeBroker):
    stands_by(standby)
    ran = fila("queue", "list", "--addr", standby.address)
    assert ran.code == 1
    assert SENTENCE in ran.err


@pytest.mark.parametrize("knows", [True, False])
def test_of_several_addresses_the_one_that_serves_is_used(
    fila, two_queues: FakeBroker, standby: FakeBroker, knows: bool
):
    stands_by(standby, two_queues.address if knows else "")
    nodes = f"{NOBODY},{standby.address},{two_queues.address}"
    ran = fila("queue", "list", "--addr", nodes, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert "orders" in ran.out
    assert methods(standby) == ["GetStatus"]
    assert methods(two_queues) == ["GetStatus", "ListQueues"]


def test_a_stream_is_opened_at_the_one_that_serves(fila, broker: FakeBroker, standby: FakeBroker):
    stands_by(standby)
    event = events_pb2.Event(kind="queue.created", queue="orders")
    broker.answers["WatchEvents"] = [events_pb2.WatchEventsResponse(events=[event], next_position=2)]
    ran = fila("events", "--addr", f"{standby.address},{broker.address}")
    assert (ran.code, ran.err) == (0, "")
    assert "queue.created" in ran.out
    assert "WatchEvents" not in methods(standby)


def test_who_may_not_ask_for_the_status_has_found_the_owner(
    fila, two_queues: FakeBroker, standby: FakeBroker
):
    stands_by(standby)
    two_queues.answers["GetStatus"] = Refusal(StatusCode.PERMISSION_DENIED, "no", "PERMISSION_DENIED")
    assert fila("queue", "list", "--addr", f"{standby.address},{two_queues.address}").code == 0


def test_where_no_node_serves_all_are_named(fila, standby: FakeBroker):
    ran = fila("queue", "list", "--addr", f"{NOBODY},127.0.0.1:2")
    assert ran.code == 1
    assert "no node at 127.0.0.1:1, 127.0.0.1:2 answers and serves" in ran.err


def test_addresses_have_commas_between_them():
    assert targets_of("a, http://b:1,a:5555") == (["a:5555", "b:1"], False)
    assert targets_of("https://a,b") == (["a:5555", "b:5555"], True)


def test_an_address_that_is_none_is_named(fila):
    ran = fila("queue", "list", "--addr", "a:1,ftp://b")
    assert ran.code == 2
    assert "'ftp://b' is no address" in ran.err
