"""What a consumer holds, over time: moments that no event tells are looked for."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any, cast

from fila.holding import Holding
from fila.leases import Answer
from fila.prefetch import AdaptivePrefetch
from tests.sdk.timeless_loop import TimelessLoop


@dataclass
class Held:
    """As much of a message as a holding looks at."""

    lease_id: int
    held_until_s: float = math.inf
    taker: Any = None

    @property
    def id(self) -> str:
        return str(self.lease_id)


def test_behind_a_loop_that_acks_first_nothing_stays_although_the_answer_takes_long() -> None:
    """The answer is no event of its own. The loop works on for as long as it likes, and nothing else happens."""
    loop = TimelessLoop()
    given_back: list[int] = []

    async def told() -> None:
        holding = Holding[Any](AdaptivePrefetch(), loop.time, lambda _, back: given_back.extend(back))
        working = holding.join(1)
        holding.deliver([Held(1), Held(2)])
        first = cast("Held", holding.take_one(working, math.inf))
        answer = Answer()
        holding.forget(first.id, first.lease_id, answer)
        await asyncio.sleep(1.0)
        assert given_back == [], "until the answer it may ask for more at any moment"

        answer.answered_s = loop.time()
        await asyncio.sleep(0.11)

    loop.play(told())
    assert given_back == [2]
