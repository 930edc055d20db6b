"""A message's id as text: RFC 9562's form, digits in either case, and nothing else."""

from uuid import UUID

import grpc

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine

NO_DIGITS = "/:@G`g-\x00~"
"""What stands before and behind the digits, and the like."""


def settled(engine: DrivenEngine, lease_id: int, ids: list[str]) -> list[int]:
    """How the broker answers an ack by each of these."""
    items = [service.SettleItem(message_id=each, lease_id=lease_id) for each in ids]
    request = service.AckBatchRequest(queue="q", items=items)
    return [
        each.code for each in engine.call(commands.ACK_BATCH, request, service.SettleBatchResponse).results
    ]


def test_an_id_is_a_uuid_and_comes_back_as_it_was_given_in_either_case(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    for _ in range(300):
        engine.enqueue("q")
    for message in engine.lease("q", 1_000):
        assert str(UUID(message.id)) == message.id
        assert settled(engine, message.metadata.lease_id, [message.id.upper()]) == [0]


def test_an_id_with_one_wrong_character_is_none_wherever_that_stands(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q")
    (message,) = engine.lease("q")
    right = message.id
    wrong = [
        right[:place] + other + right[place + 1 :]
        for place in range(36)
        for other in NO_DIGITS
        if other != right[place]
    ]
    wrong += [right[:place] + "a" + right[place + 1 :] for place in (8, 13, 18, 23)]
    wrong += [right[:-1], right + "0", right.replace("-", "") + "0000"]

    codes = settled(engine, message.metadata.lease_id, wrong)

    assert set(codes) == {grpc.StatusCode.INVALID_ARGUMENT.value[0]}
    assert settled(engine, message.metadata.lease_id, [right]) == [0]
