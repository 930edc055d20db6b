"""A gateway with the addresses of a group's nodes: a caller gets the owner's answer, whichever node serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from grpc import StatusCode

from fila.v1 import admin_pb2
from tests.cli.fake_broker import FakeBroker, Refusal
from tests.http.running_gateway import Gateway, start_by_command, wait_for_gateway

pytestmark = [pytest.mark.e2e]


@pytest.fixture
def nodes() -> Iterator[list[FakeBroker]]:
    three = [FakeBroker() for _ in range(3)]
    yield three
    for each in three:
        each.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Gateway]]:
    """Gateways that end with the test."""
    running: list[Gateway] = []

    def started(addresses: str) -> Gateway:
        running.append(start_by_command(tmp_path, addresses))
        return running[-1]

    yield started
    for each in running:
        each.process.kill()
        each.process.wait()


def serves(nodes: list[FakeBroker], owner: FakeBroker) -> None:
    refused = Refusal(StatusCode.UNAVAILABLE, "it follows the log", "NOT_OWNER", owner.address)
    for each in nodes:
        is_it = each is owner
        each.answers["GetQueue"] = admin_pb2.GetQueueResponse() if is_it else refused
        each.answers["CreateQueue"] = (
            admin_pb2.CreateQueueResponse(queue_id=each.address) if is_it else refused
        )


def test_a_gateway_goes_to_the_node_that_serves_and_past_one_that_is_gone(nodes, start):
    gone, first, second = nodes
    gone.stop()
    serves(nodes, second)
    gateway = wait_for_gateway(start(",".join(each.address for each in nodes)))

    def made_at() -> str:
        answer = gateway.post("/v1/queues", {"name": "orders"})
        assert answer.status == 200, answer
        return str(answer.json["queueId"])

    assert gateway.get("/v1/queues/orders").status == 200
    assert made_at() == second.address
    serves(nodes, first)
    assert made_at() == first.address, "a refusal that names the owner costs the caller nothing"
    assert gateway.stop() == 0
    assert "Traceback" not in gateway.log


def test_an_address_that_is_none_among_several_is_named(start):
    gateway = start("127.0.0.1:1,ftp://fila-2")
    assert gateway.process.wait(20) == 2
    assert "'ftp://fila-2' is no address" in gateway.log
