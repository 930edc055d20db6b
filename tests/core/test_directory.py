"""Frames that are gone cost nobody a look: counted, never timed."""

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine


def walked(engine: DrivenEngine) -> int:
    steps = engine.core.counters()["walked"]
    assert isinstance(steps, int)
    return steps


def test_frames_that_went_between_two_that_stay_are_not_looked_through(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    for _ in range(500):
        engine.enqueue("q")
    leased = engine.lease("q", 500)
    assert set(engine.ack("q", leased[1:-1])) == {0}
    assert set(engine.nack("q", [leased[0], leased[-1]])) == {0}
    before = walked(engine)
    peek = admin.PeekMessagesRequest(queue="q", max_messages=2)
    found = engine.call(commands.PEEK_MESSAGES, peek, admin.PeekMessagesResponse).messages
    assert [m.metadata.offset for m in found] == [1, 500]
    assert walked(engine) - before <= 100
