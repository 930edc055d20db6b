"""A walk over all keys of a queue, a part of its table a command: no part keeps the scheduler longer than a millisecond
or two, and messages go on between two of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

ANEW_MAX = 3
"""How often a walk begins anew because the table has grown or shrunk in between."""

Call = Callable[[int, bytes], Awaitable[bytes]]
"""Broker.call."""


async def walk_keys(call: Call, command: int, page: Any, answers: Any) -> AsyncGenerator[Any, None]:
    """Each part's answer; None where the walk begins anew: all that was found before will be found again.

    `page` is the frame of `command`, and `answers` the class of its answer; both have `cursor` and `capacity`. What
    else stands in `page` may be changed between two parts. Raises what the command is refused with.
    """
    anew = 0
    while True:
        part = answers.FromString(await call(command, page.SerializeToString()))
        is_another = bool(page.capacity) and part.capacity != page.capacity
        if is_another and anew < ANEW_MAX:
            anew += 1
            page.cursor, page.capacity = 0, part.capacity
            yield None
            continue
        yield part
        if is_another or not part.cursor:
            return
        page.cursor, page.capacity = part.cursor, part.capacity
