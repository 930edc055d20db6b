"""The synchronous twin: one shape with the asynchronous client, and usable from many threads."""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fila
import fila.sync
from fila import ClientClosed, LeaseLost, QueueNotFound, Unavailable
from fila.consumer import Consumer as AsyncConsumer
from tests.sdk.fake_broker import FakeBroker

SETTLE_TIMEOUT_S = 30.0


@pytest.fixture
def client(broker_thread: FakeBroker) -> Iterator[fila.sync.FilaClient]:
    with fila.sync.FilaClient.connect(broker_thread.address) as client:
        yield client


def until(holds: Callable[[], object]) -> None:
    give_up_at_s = time.monotonic() + SETTLE_TIMEOUT_S
    while not holds():
        assert time.monotonic() < give_up_at_s
        time.sleep(0.001)


def public_methods(kind: type) -> dict[str, Any]:
    return {name: m for name, m in inspect.getmembers(kind, inspect.isroutine) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("asynchronous", "synchronous"),
    [(fila.FilaClient, fila.sync.FilaClient), (fila.Message, fila.sync.Message)],
)
def test_both_have_the_same_calls_with_the_same_parameters(asynchronous: type, synchronous: type) -> None:
    theirs, ours = public_methods(asynchronous), public_methods(synchronous)

    assert theirs.keys() == ours.keys()
    for name, method in theirs.items():
        assert inspect.signature(method).parameters == inspect.signature(ours[name]).parameters, name


def test_both_consumers_are_looped_over_alike() -> None:
    for name in ("batches", "close"):
        theirs, ours = getattr(AsyncConsumer, name), getattr(fila.sync.Consumer, name)
        assert inspect.signature(theirs).parameters == inspect.signature(ours).parameters


def test_what_is_enqueued_is_consumed_and_acked(
    broker_thread: FakeBroker, client: fila.sync.FilaClient
) -> None:
    message_id = client.enqueue("orders", headers={"tenant": "acme"}, payload=b"hello")

    for msg in client.consume("orders"):
        assert (msg.id, msg.payload) == (message_id, b"hello")
        client.ack("orders", msg.id)
        break

    orders = broker_thread.queues["orders"]
    assert not orders.leased
    assert not orders.ready


def test_leaving_a_loop_gives_back_what_was_not_looked_at(
    broker_thread: FakeBroker, client: fila.sync.FilaClient
) -> None:
    client.enqueue_many("orders", [b"%d" % i for i in range(20)])
    orders = broker_thread.queues["orders"]

    for msg in client.consume("orders"):
        msg.ack()
        if msg.offset == 3:
            break

    until(lambda: len(orders.ready) == 17 and not orders.leased)


def test_messages_are_settled_one_by_one_and_many_at_once(
    broker_thread: FakeBroker, client: fila.sync.FilaClient
) -> None:
    client.enqueue_many("orders", [b"%d" % i for i in range(6)])
    orders = broker_thread.queues["orders"]

    failed, extended, *rest = client.lease("orders", 6)
    failed.nack("down", delay_ms=10)
    extended.extend(1000)
    client.nack("orders", extended.id, "down")
    client.ack_many(rest)

    assert [(error, delay) for _, error, delay in orders.nacks] == [("down", 10), ("down", None)]
    assert not orders.leased
    with pytest.raises(LeaseLost):
        failed.ack()


def test_batches_are_lists_of_what_arrived(client: fila.sync.FilaClient) -> None:
    client.enqueue_many("orders", [b"x"] * 30)

    sizes = []
    for batch in client.consume("orders").batches(10):
        sizes.append(len(batch))
        client.ack_many(batch)
        if sum(sizes) >= 30:
            break

    assert sum(sizes) == 30
    assert max(sizes) <= 10


def test_a_loop_ends_when_nothing_came_for_as_long_as_it_was_told(client: fila.sync.FilaClient) -> None:
    began_s = time.monotonic()

    assert [*client.consume("orders", stop_when_idle_s=0.1)] == []

    assert time.monotonic() - began_s >= 0.1


def test_threads_share_a_client(broker_thread: FakeBroker, client: fila.sync.FilaClient) -> None:
    threads = [threading.Thread(target=client.enqueue, args=("orders", b"%d" % i)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(m.payload for m in broker_thread.queues["orders"].log) == sorted(
        b"%d" % i for i in range(20)
    )


def test_closing_a_consumer_ends_another_threads_loop(client: fila.sync.FilaClient) -> None:
    consumer = client.consume("orders")
    ended = threading.Event()

    def work() -> None:
        for _ in consumer:
            pass
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    consumer.close()

    assert ended.wait(SETTLE_TIMEOUT_S)
    thread.join()


def test_errors_are_raised_where_they_belong(client: fila.sync.FilaClient) -> None:
    with pytest.raises(QueueNotFound):
        client.enqueue("order", b"x")
    with pytest.raises(QueueNotFound):
        next(iter(client.consume("order")))


def test_the_log_is_read_to_its_end(client: fila.sync.FilaClient) -> None:
    client.enqueue_many("orders", [b"x"] * 7)

    assert [message.offset for message in client.read_log("orders", from_offset=3)] == [3, 4, 5, 6, 7]


def test_a_closed_client_says_so_and_leaves_no_thread(broker_thread: FakeBroker) -> None:
    before = threading.active_count()
    client = fila.sync.FilaClient.connect(broker_thread.address)
    client.close()
    client.close()

    with pytest.raises(ClientClosed):
        client.enqueue("orders", b"x")
    assert threading.active_count() == before


def test_a_client_that_could_not_connect_leaves_no_thread() -> None:
    before = threading.active_count()

    with pytest.raises(Unavailable):
        fila.sync.FilaClient.connect("127.0.0.1:1", connect_timeout_s=0.1)

    assert threading.active_count() == before


def in_a_forked_child(work: Callable[[], object]) -> int:
    """Run `work` in a child of this process; return its exit code, -9 when it had to be killed."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    give_up_at_s = time.monotonic() + SETTLE_TIMEOUT_S
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > give_up_at_s:
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
            break
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(ended[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_in_a_forked_child_every_call_says_that_the_connection_did_not_survive_the_fork(
    broker_thread: FakeBroker, client: fila.sync.FilaClient
) -> None:
    def calls() -> None:
        with pytest.raises(RuntimeError, match="does not survive a fork"):
            client.enqueue("orders", payload=b"from the child")
        with pytest.raises(RuntimeError, match="does not survive a fork"):
            next(iter(client.consume("orders")))
        with pytest.raises(RuntimeError, match="spawn or forkserver"):
            fila.sync.FilaClient.connect(broker_thread.address)
        client.close()

    assert in_a_forked_child(calls) == 0
    assert client.enqueue("orders", payload=b"from the parent, as before")
