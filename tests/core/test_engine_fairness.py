"""What the ring can't see for itself: which message is next, and that it changed while its key saved for another."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine

DEAR = "1000000"  # a million rounds


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue("q", fairness_key_header="k", cost_header="c", throttle_key_headers=["t"])
    yield made
    made.remove()


def rivals(engine: DrivenEngine, count: int = 30) -> None:
    for _ in range(count):
        engine.enqueue("q", b"rival", {"k": "rival"})


def test_a_key_whose_dear_message_expired_is_not_kept_waiting_for_it(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"dear", {"k": "saver", "c": DEAR}, ttl_ms=1000)
    engine.enqueue("q", b"cheap", {"k": "saver"})
    rivals(engine)
    assert engine.payloads("q", most=2) == [b"rival"] * 2
    engine.sleep(1001)
    assert b"cheap" in engine.payloads("q", most=3)


def test_a_token_lets_an_earlier_message_go_while_its_key_saves_for_a_dear_one(engine: DrivenEngine) -> None:
    engine.set_config("throttle.mail", "1,1")
    engine.enqueue("q", b"first", {"k": "another", "t": "mail"})
    assert engine.payloads("q", most=1) == [b"first"]
    engine.enqueue("q", b"cheap", {"k": "saver", "t": "mail"})
    engine.enqueue("q", b"dear", {"k": "saver", "c": DEAR})
    rivals(engine)
    assert engine.payloads("q", most=2) == [b"rival"] * 2
    engine.sleep(1001)
    assert b"cheap" in engine.payloads("q", most=3)


def test_a_delivery_nobody_saw_gives_its_deficit_back_to_a_key_that_was_paused_meanwhile(
    engine: DrivenEngine,
) -> None:
    for _ in range(2):
        engine.enqueue("q", b"x", {"k": "paused"})
    stream = engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="q", max_in_flight=1))
    engine.others += engine.settle_down()
    pause = admin.SetKeyPolicyRequest(queue="q", fairness_key="paused", paused=True)
    engine.call(commands.SET_KEY_POLICY, pause, admin.SetKeyPolicyResponse)
    engine.submit(commands.CONSUMER_CLOSE, token=stream)
    engine.others += engine.settle_down()
    assert [key.current_deficit for key in engine.stats("q").per_key_stats] == [1000]
