"""A queue's table of keys, looked at part after part: no part keeps the scheduler longer than a millisecond or two, and
messages go on between two of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

ANEW_MAX = 3
"""How often a walk begins anew because the table has grown or shrunk in between."""

Call = Callable[[int, bytes], Awaitable[bytes]]
"""Broker.call."""


async def parts(call: Call, command: int, page: Any, answers: Any) -> AsyncGenerator[tuple[Any, bool], None]:
    """Each part's answer, and whether the walk began anew with it: then what was counted before is counted again.

    `page` is the frame of `command`, and `answers` the class of its answer; both have `cursor` and `capacity`.
    Raises what the command is refused with.
    """
    anew = 0
    while True:
        part = answers.FromString(await call(command, page.SerializeToString()))
        begins_anew = bool(page.capacity) and part.capacity != page.capacity
        anew += begins_anew
        yield part, begins_anew
        page.cursor, page.capacity = part.cursor, part.capacity
        if not part.cursor or anew > ANEW_MAX:
            return
