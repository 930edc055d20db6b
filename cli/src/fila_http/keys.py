"""Whose key comes is asked before anything else of a request is read: a stranger's costs the door a head, no more.

A key that the broker knew a moment ago is let in without asking, so an honest caller is asked for once in
`REMEMBERED_S`. That lets a request in and nothing else: what the call may do the broker judges each time.

The broker keeps a wrong key waiting, and tells a right one at once. So of those under trial the one that waits longest
is the least likely to be right, and makes room for the next: strangers with keys that are none hold up nobody. Who
shows no key where one is asked for is kept waiting here, since a refusal that costs nothing is asked for again at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from fila.errors import FilaError
from fila_http.problems import Code, busy

REMEMBERED_S = 10.0
"""How long a key that was right lets bodies in. One that is revoked meanwhile is refused by the broker."""

NOBODY_REMEMBERED_S = 1.0
"""How long the broker is not asked again whether it serves callers without a key."""

NOBODY_WAITS_S = 0.25
"""How long such a caller waits for its refusal."""

KNOWN_MAX = 10_000
TRIED_MAX = 64
TRIED_S_MAX = 10.0
NOBODY = ""


class Keys:
    """Those that callers of one broker came with."""

    def __init__(
        self,
        ask: Callable[[str], Awaitable[object]],
        now_s: Callable[[], float],
        *,
        tried_max: int = TRIED_MAX,
        tried_s_max: float = TRIED_S_MAX,
        nobody_waits_s: float = NOBODY_WAITS_S,
    ) -> None:
        """`ask` raises FilaError for a key that the broker does not take."""
        self._ask = ask
        self._now_s = now_s
        self._tried_max = tried_max
        self._tried_s_max = tried_s_max
        self._nobody_waits_s = nobody_waits_s
        self._known_until_s: OrderedDict[str, float] = OrderedDict()
        self._under_trial: dict[str, asyncio.Task[None]] = {}
        self._kept: OrderedDict[asyncio.Event, None] = OrderedDict()
        """Callers without a key that wait for their refusal, and what ends the wait of each."""

        self._nobody_until_s = 0.0
        self._nobodys_refusal: FilaError | None = None

    async def check(self, key: str) -> None:
        """Return where the broker takes the key. Raises its refusal; Problem, 503, where it says nothing."""
        now_s = self._now_s()
        if self._known_until_s.get(key, now_s) > now_s:
            return
        if key == NOBODY:
            await self._check_nobody(now_s)
        else:
            await self._tried(key)
        self._known_until_s[key] = self._now_s() + REMEMBERED_S
        self._known_until_s.move_to_end(key)
        while len(self._known_until_s) > KNOWN_MAX:
            self._known_until_s.popitem(last=False)

    def forget(self, key: str) -> None:
        """The broker does not take it any more."""
        self._known_until_s.pop(key, None)

    async def _check_nobody(self, now_s: float) -> None:
        if self._nobodys_refusal is None or self._nobody_until_s <= now_s:
            try:
                await self._tried(NOBODY)
            except FilaError as refusal:
                if refusal.code is not Code.UNAUTHENTICATED:
                    raise
                self._nobodys_refusal = refusal
                self._nobody_until_s = self._now_s() + NOBODY_REMEMBERED_S
            else:
                return
        while len(self._kept) >= self._tried_max:
            self._kept.popitem(last=False)[0].set()
        told = asyncio.Event()
        self._kept[told] = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._nobody_waits_s):
                await told.wait()
        self._kept.pop(told, None)
        raise self._nobodys_refusal

    async def _tried(self, key: str) -> None:
        trial = self._under_trial.get(key)
        if trial is None:
            while len(self._under_trial) >= self._tried_max:
                self._under_trial.pop(next(iter(self._under_trial))).cancel()
            trial = asyncio.ensure_future(self._asked_in_time(key))
            self._under_trial[key] = trial
            trial.add_done_callback(lambda ended: self._end(key, ended))
        # Whoever comes with the same key waits for the same word.
        await asyncio.wait((trial,))
        if trial.cancelled():
            raise busy(
                "too many keys are tried at this moment, and this one waited longest; try again in a second"
            )
        trial.result()

    async def _asked_in_time(self, key: str) -> None:
        try:
            async with asyncio.timeout(self._tried_s_max):
                await self._ask(key)
        except TimeoutError:
            raise busy(
                f"the broker did not say within {self._tried_s_max:g} s whether it knows this key; try again"
            ) from None

    def _end(self, key: str, trial: asyncio.Task[None]) -> None:
        if self._under_trial.get(key) is trial:
            del self._under_trial[key]
        if not trial.cancelled():
            trial.exception()  # whoever asked may be gone
