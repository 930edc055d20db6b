"""What a producer says of how its message is shared: where the queue lets it, below a hook, never over a tenant."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from fila_server.errors import Invalid
from tests.core.driven_engine import DrivenEngine, Refused

ROUTED: dict[str, Any] = {
    "fairness_key_header": "k",
    "weight_header": "w",
    "cost_header": "c",
    "allow_producer_routing": True,
}
HEADERS = {"k": "header", "w": "2", "c": "3"}


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue("q", **ROUTED, max_attempts=1)
    yield made
    made.remove()


def put(
    engine: DrivenEngine, queue: str = "q", headers: dict[str, str] | None = None, **options: Any
) -> None:
    request = service.EnqueueRequest(
        queue=queue, headers=HEADERS if headers is None else headers, payload=b"x"
    )
    request.options.CopyFrom(service.EnqueueOptions(**options))
    engine.call(commands.ENQUEUE, request, service.EnqueueResponse)


def routed(engine: DrivenEngine, queue: str = "q") -> tuple[str, int, float]:
    request = admin.PeekMessagesRequest(queue=queue, max_messages=1)
    (message,) = engine.call(commands.PEEK_MESSAGES, request, admin.PeekMessagesResponse).messages
    return message.metadata.fairness_key, message.metadata.weight, message.metadata.cost


def test_what_the_producer_says_counts_over_headers_each_part_by_itself(engine: DrivenEngine) -> None:
    put(engine, fairness_key="own", weight=7, cost=2.5)
    assert routed(engine) == ("own", 7, 2.5)
    engine.create_queue("second", **ROUTED)
    put(engine, "second", cost=4)
    assert routed(engine, "second") == ("header", 2, 4)


def test_it_is_kept_over_a_kill(engine: DrivenEngine) -> None:
    put(engine, fairness_key="own", weight=7, cost=2.5)
    engine.kill()
    engine.reopen()

    assert routed(engine) == ("own", 7, 2.5)


@pytest.mark.parametrize("said", [{"fairness_key": "own"}, {"weight": 2}, {"cost": 0.5}])
def test_a_queue_that_does_not_let_it_refuses_and_says_what_to_do(
    said: dict[str, Any], engine: DrivenEngine
) -> None:
    engine.create_queue("closed", fairness_key_header="k")
    with pytest.raises(Refused, match="allow_producer_routing"):
        put(engine, "closed", **said)
    put(engine, "closed", delay_ms=0, dedup_key="d")

    assert routed(engine, "closed") == ("header", 1, 1)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"fairness_key": "x" * 4097}, r"options\.fairness_key: at most"),
        ({"weight": 1001}, r"options\.weight, options\.cost: 1 to 1000"),
        ({"cost": -1.0}, r"options\.weight, options\.cost: 1 to 1000"),
        ({"cost": float("nan")}, r"options\.weight, options\.cost: 1 to 1000"),
        ({"cost": 1e9}, r"options\.weight, options\.cost: 1 to 1000"),
    ],
)
def test_what_is_out_of_bounds_is_refused(said: dict[str, Any], sentence: str, engine: DrivenEngine) -> None:
    with pytest.raises(Invalid, match=sentence):
        put(engine, **said)


def test_a_message_that_is_rewritten_on_its_way_in_keeps_what_was_said(engine: DrivenEngine) -> None:
    """Its headers come behind its payload, so its bytes move, and with them the key."""
    head = service.EnqueueRequest(queue="q", payload=b"x").SerializeToString()
    options = service.EnqueueOptions(fairness_key="own", dedup_key="d")
    tail = service.EnqueueRequest(payload=b"y", headers=HEADERS, options=options).SerializeToString()
    engine.call(commands.ENQUEUE, head + tail, service.EnqueueResponse)

    assert routed(engine)[0] == "own"


def test_a_redriven_message_keeps_the_key_the_weight_and_the_cost_that_it_had(engine: DrivenEngine) -> None:
    put(engine, fairness_key="own", weight=7, cost=2.5)
    put(engine, fairness_key="own", weight=7, cost=1)
    engine.nack("q", engine.lease("q", 1))
    page = seam_frames.RedrivePage(dlq_queue=b"q.dlq").SerializeToString()
    engine.call(commands.REDRIVE_MOVE, page, seam_frames.RedrivenPage)
    engine.ack("q", engine.lease("q", 1))

    assert routed(engine) == ("own", 7, 2.5)
