"""What of the messages in hand is declared begun, and when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fila.begun import Begun
from fila.v1.service_pb2 import ConsumeSessionRequest


class Session:
    """What Begun sees of a session, and what it wrote."""

    def __init__(self, *lease_ids: int) -> None:
        in_hand = {
            str(lease_id): SimpleNamespace(id=str(lease_id), lease_id=lease_id) for lease_id in lease_ids
        }
        self.holding: Any = SimpleNamespace(in_hand=in_hand, not_started=set(), is_declaring=False)
        self.declared: list[int] = []
        self.begun: Begun[Any] = Begun(self.holding, self)  # type: ignore[arg-type]

    def post(self, frame: ConsumeSessionRequest) -> None:
        self.declared += frame.begun.lease_ids

    def look_twice(self) -> None:
        """Two looks: 5 ms."""
        self.begun._look()
        self.begun._look()


async def test_what_is_in_hand_at_one_look_and_still_at_the_next_is_begun() -> None:
    session = Session(1, 2)

    session.begun._look()
    assert session.declared == []
    del session.holding.in_hand["2"]
    session.begun._look()

    assert session.declared == [1]
    session.begun.close()


async def test_what_waits_for_its_handler_to_start_is_not_begun_until_it_does() -> None:
    session = Session(1, 2)
    session.holding.not_started.add(2)

    session.look_twice()
    session.look_twice()
    assert session.declared == [1]
    session.holding.not_started.discard(2)
    session.look_twice()

    assert session.declared == [1, 2]
    session.begun.close()


async def test_a_resumed_session_says_anew_what_has_started() -> None:
    session = Session(1, 2)
    session.holding.not_started.add(2)

    session.begun.declare_anew()

    assert session.declared == [1]
