"""Keys that somebody comes with, tried at the broker: a valid one is told at once, a wrong one is kept waiting there.

So of those that are under trial the one that waits longest is the least likely to be valid, and makes room for the
next: however many wrong keys come, they hold up nobody who has a right one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fila.principals import Identity
from fila_console.trouble import Trouble

TRIED_MAX = 64
TRY_S_MAX = 10.0


class Tries:
    """Those of one broker."""

    def __init__(
        self,
        ask: Callable[[str], Awaitable[Identity]],
        *,
        most: int = TRIED_MAX,
        longest_s: float = TRY_S_MAX,
    ) -> None:
        """`ask` says whose a key is, or raises Trouble; at most so many are asked for at a time."""
        self._ask = ask
        self._most = most
        self._longest_s = longest_s
        self._under_trial: dict[asyncio.Task[Identity], None] = {}

    async def whose(self, key: str) -> Identity:
        """Whose key this is. Raises Trouble: 429 where it made room for others that came, 503 without an answer."""
        while len(self._under_trial) >= self._most:
            oldest = next(iter(self._under_trial))
            del self._under_trial[oldest]
            oldest.cancel()
        trial = asyncio.ensure_future(self._ask(key))
        self._under_trial[trial] = None
        try:
            await asyncio.wait((trial,), timeout=self._longest_s)
        finally:
            made_room = trial not in self._under_trial
            self._under_trial.pop(trial, None)
            is_told = trial.done() and not trial.cancelled()
            trial.cancel()
        if is_told:
            return trial.result()
        if made_room:
            raise Trouble(
                429, "Too many come at this moment", "Each key is tried first.", "Try again in a second."
            )
        raise Trouble(503, "The broker does not answer", "It took too long.", "Try again.")
