"""The kinds of trouble, by harm, and in numbers when each begins and ends: the one table that the sentence, the metric
and the alerts go by. docs/operations/troubles.md shows it; a test holds the two together.
"""

from __future__ import annotations

from typing import NamedTuple

FAILING_PART = 0.2
FAILING_PART_ENDS = 0.1
FAILING_MIN = 10
FAILING_S = 60.0
DEAD_S = 900.0
LIMIT_WAIT_S = 60.0
LIMIT_WAIT_ENDS_S = 30.0
LIMIT_GROWS_S = 30.0
FLOOD_PART = 0.5
FLOOD_MIN = 100
FLOOD_S = 60.0
LATE_MS = 10_000
"""A fairness key whose next message waits this long is late."""


class Kind(NamedTuple):
    """One kind. `begins_s`: for how long it must be so before it is told; `ends_s`: no more before it is over."""

    number: int
    """Of v1.Trouble.Kind."""
    name: str
    begins: str
    begins_s: float
    ends: str
    ends_s: float


LOST = Kind(1, "lost", "a message, or a range of a queue's log, is lost", 0, "an admin acknowledges it", 0)
DAMAGED = Kind(
    2, "damaged", "a start met damage on the disk, and lost nothing by it", 0, "an admin acknowledges it", 0
)
DISK = Kind(3, "disk", "enqueues, or all writes, are refused for want of room", 0, "they are taken again", 0)
CIRCUIT_OPEN = Kind(
    4, "circuit_open", "a script is not called any more, because it fails", 0, "it works again", 0
)
NOBODY_CONSUMES = Kind(
    5,
    "nobody_consumes",
    "a channel has ready messages, no consumer and no waiting pull, and none is delivered; "
    "its queue is neither paused nor for dead letters",
    120,
    "somebody consumes, or nothing is ready",
    0,
)
FAILING = Kind(
    6,
    "failing",
    f"in {FAILING_S:.0f} s at least {FAILING_MIN} deliveries fail and are {FAILING_PART:.0%} of those that end, "
    f"or in {DEAD_S / 60:.0f} min as many messages become dead letters, and such a part",
    0,
    f"in {FAILING_S:.0f} s less than {FAILING_PART_ENDS:.0%} fail, and no such part became dead letters",
    0,
)
PAUSED = Kind(
    7, "paused", "a queue or a fairness key is paused, and something of it is ready", 0, "neither is so", 0
)
LIMIT_BEHIND = Kind(
    8,
    "limit_behind",
    f"what waits for a throttle needs more than {LIMIT_WAIT_S:.0f} s at the rate that its limit lets through, "
    "and grows",
    60,
    f"what waits needs less than {LIMIT_WAIT_ENDS_S:.0f} s, or waits for its budget",
    0,
)
BUDGET_SPENT = Kind(
    10,
    "budget_spent",
    "the budget of a throttle is spent for this period, and messages wait for the next one",
    60,
    "the next period begins, more is allowed, or none waits",
    0,
)
FLOOD = Kind(
    9,
    "flood",
    f"a fairness key has over {FLOOD_PART:.0%} of what waits in a channel, and at least {FLOOD_MIN} messages. In "
    f"{FLOOD_S:.0f} s more of it comes than is delivered, and another key waits {LATE_MS // 1000} s for its turn",
    20,
    "one of these is not so",
    20,
)

KINDS = (
    *(LOST, DAMAGED, DISK, CIRCUIT_OPEN, NOBODY_CONSUMES),
    *(FAILING, PAUSED, LIMIT_BEHIND, BUDGET_SPENT, FLOOD),
)
"""The worst first."""
OF_THROTTLES = (LIMIT_BEHIND, BUDGET_SPENT)
"""What these are about waits in several queues."""
