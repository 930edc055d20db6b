"""Failure events in, decisions out: each gets one, in order, and the loop gets its turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from fila_server.core.protocol import seam_frames
from fila_server.hooks.failures import FailureJudge
from fila_server.hooks.stage import HookStage
from tests.hooks.conftest import ManualClock

JUDGE = """
function on_failure(msg)
  if msg.error == "hopeless" then return { action = "dlq" } end
  if msg.error == "later" then return { action = "retry", delay_ms = 1500 } end
  if msg.error == "now" then return { action = "retry", delay_ms = 0 } end
  if msg.error == "seen" then
    assert(msg.queue == "orders" and msg.channel == "audit" and msg.id == "id-1" and msg.attempts == 3)
    assert(msg.fairness_key == "acme" and msg.headers.tenant == "acme")
  end
  if msg.error == "broken" then error("broken") end
  return { action = "retry" }
end"""

BY_POLICY, RETRY, DEAD_LETTER = (
    (seam_frames.BY_POLICY, None),
    (seam_frames.RETRY, None),
    (seam_frames.DEAD_LETTER, None),
)


@dataclass
class Loop:
    """Runs what is due when a test says so; counts the turns."""

    due: deque[Callable[[], None]] = field(default_factory=deque)
    turns: int = 0

    def call_soon(self, work: Callable[[], None]) -> None:
        self.due.append(work)

    def run(self) -> None:
        while self.due:
            self.turns += 1
            self.due.popleft()()


@dataclass
class Desk:
    stage: HookStage
    loop: Loop
    decisions: list[tuple[int, tuple[int, int | None]]]
    desk: FailureJudge

    def fail(self, number: int, error: str, queue: bytes = b"orders") -> None:
        event = seam_frames.FailureEvent(
            queue=queue,
            channel=b"audit",
            message_id=b"id-1",
            attempts=3,
            error=error.encode(),
            fairness_key=b"acme",
        )
        event.headers.add(name=b"tenant", value=b"acme")
        self.desk.take(number, event.SerializeToString())


@pytest.fixture
def desk(clock: ManualClock) -> Desk:
    stage = HookStage(now_ns=clock, seed=1)
    stage.set_queue("orders", on_failure_script=JUDGE)
    loop, decisions = Loop(), []

    def post(number: int, frame: bytes) -> None:
        clock.advance(ms=1)
        decision = seam_frames.Decision.FromString(frame)
        delay_ms = decision.delay_ms if decision.HasField("delay_ms") else None
        decisions.append((number, (decision.action, delay_ms)))

    desk = FailureJudge(stage, post, now_ns=clock, call_soon=loop.call_soon)
    return Desk(stage, loop, decisions, desk)


def test_each_failure_gets_its_decision_in_order(desk: Desk) -> None:
    desk.desk.start()
    for number, error in enumerate(("hopeless", "later", "now", "seen", "")):
        desk.fail(number, error)

    desk.loop.run()

    assert desk.decisions == [
        (0, DEAD_LETTER),
        (1, (seam_frames.RETRY, 1500)),
        (2, (seam_frames.RETRY, 0)),
        (3, RETRY),
        (4, RETRY),
    ]


def test_a_script_that_fails_or_is_gone_leaves_it_to_the_policy(desk: Desk) -> None:
    desk.desk.start()
    for number in range(4):
        desk.fail(number, "broken")
    desk.fail(4, "hopeless")
    desk.fail(5, "hopeless", queue=b"other")

    desk.loop.run()

    assert [decision for _, decision in desk.decisions] == [BY_POLICY] * 6
    (status,) = desk.stage.status("orders")
    assert (status.breaker, status.counters.errors, status.counters.fallbacks) == ("open", 3, 5)


def test_an_event_nobody_can_read_still_gets_a_decision(desk: Desk) -> None:
    desk.desk.start()
    desk.desk.take(7, b"\xff\xff")

    desk.loop.run()

    assert desk.decisions == [(7, BY_POLICY)]


def test_what_fails_before_the_scripts_are_known_waits_for_them(desk: Desk) -> None:
    desk.fail(1, "hopeless")
    desk.loop.run()
    assert desk.decisions == []

    desk.desk.start()
    desk.loop.run()

    assert desk.decisions == [(1, DEAD_LETTER)]


def test_many_failures_at_once_leave_the_loop_its_turns(desk: Desk) -> None:
    desk.desk.start()
    for number in range(100):
        desk.fail(number, "hopeless")

    desk.loop.run()

    # A decision takes a millisecond on this clock, a slice two and a half: three a turn.
    assert len(desk.decisions) == 100
    assert desk.loop.turns == 34
