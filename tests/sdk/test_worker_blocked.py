"""Who is blamed for an event loop that does not turn, judged look by look."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from fila.worker.blocked import STUCK_FOR_S, Stall


def job(task: object, limit_s: float | None = 0.5) -> Any:
    """A handler that began at 0 s."""
    return SimpleNamespace(
        task=task, plan=SimpleNamespace(timeout_s=limit_s), began_s=0.0, preempted=asyncio.Future(loop=LOOP)
    )


LOOP = asyncio.new_event_loop()
BLOCKER: Any = object()
NEIGHBOUR: Any = object()


def test_who_blocks_beyond_its_limit_is_blamed_once_it_was_seen_long_enough() -> None:
    stall, blocker, neighbour = Stall(), job(BLOCKER), job(NEIGHBOUR)

    assert stall.culprit(BLOCKER, 0.4, [blocker, neighbour]) is None
    assert stall.culprit(BLOCKER, 0.4 + STUCK_FOR_S - 0.01, [blocker, neighbour]) is None
    assert stall.culprit(BLOCKER, 0.4 + STUCK_FOR_S, [blocker, neighbour]) is blocker


def test_a_neighbour_seen_in_its_first_step_after_a_stall_is_not_blamed() -> None:
    stall, blocker, neighbour = Stall(), job(BLOCKER), job(NEIGHBOUR)
    assert stall.culprit(BLOCKER, 0.4, [blocker, neighbour]) is None
    assert stall.culprit(BLOCKER, 1.9, [blocker, neighbour]) is blocker

    assert stall.culprit(NEIGHBOUR, 2.0, [blocker, neighbour]) is None
    assert stall.culprit(None, 2.1, [blocker, neighbour]) is None
    assert stall.culprit(NEIGHBOUR, 2.2, [blocker, neighbour]) is None


def test_nobody_is_blamed_within_its_limit_or_without_one() -> None:
    slow, endless = job(BLOCKER, limit_s=10), job(NEIGHBOUR, limit_s=None)
    for task in (BLOCKER, NEIGHBOUR):
        stall = Stall()
        assert stall.culprit(task, 1.0, [slow, endless]) is None
        assert stall.culprit(task, 9.0, [slow, endless]) is None


def test_a_message_that_was_taken_already_is_not_taken_twice() -> None:
    stall, blocker = Stall(), job(BLOCKER)
    blocker.preempted.set_result(None)

    assert stall.culprit(BLOCKER, 1.0, [blocker]) is None
    assert stall.culprit(BLOCKER, 2.0, [blocker]) is None
