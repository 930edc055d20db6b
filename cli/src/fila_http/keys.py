"""Whose key comes is asked before anything else of a request is read: a stranger's costs the gateway a head, no more.

A key that the broker knew a moment ago is let in without asking, so an honest caller is asked for once in
`REMEMBERED_S`. That lets a request in and nothing else: what the call may do the broker judges each time.

The broker keeps a wrong key waiting, and tells a right one at once. So of those under trial the one that waits longest
is the least likely to be right, and makes room for the next: strangers with keys that are none hold up nobody. Who
shows no key where one is asked for is kept waiting here (`refusals.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers

from fila.errors import FilaError
from fila.v1.auth_pb2 import RIGHT_PRODUCE, WhoAmIResponse
from fila_http.problems import Code, Problem, busy, from_error, invalid
from fila_http.refusals import Refusals

REMEMBERED_S = 10.0
"""How long a key that was right lets bodies in. One that is revoked meanwhile is refused by the broker."""

NOBODY_REMEMBERED_S = 1.0
"""How long the broker is not asked again whether it serves callers without a key."""

KNOWN_MAX = 10_000
TRIED_MAX = 64
TRIED_S_MAX = 10.0
NOBODY = ""
KEY_IN_PATH = "key"
"""Where an address holds one, as the routes call it."""

_KEY = re.compile(r"[\x21-\x7e]{1,512}")


class Keys:
    """Those that callers of one broker came with."""

    def __init__(
        self,
        ask: Callable[[str], Awaitable[WhoAmIResponse]],
        now_s: Callable[[], float],
        refusals: Refusals,
        *,
        tried_max: int = TRIED_MAX,
        tried_s_max: float = TRIED_S_MAX,
    ) -> None:
        """`ask` says whose a key is; it raises FilaError for one that the broker does not take."""
        self._ask = ask
        self._now_s = now_s
        self._refusals = refusals
        self._tried_max = tried_max
        self._tried_s_max = tried_s_max
        self._known: OrderedDict[str, tuple[float, WhoAmIResponse]] = OrderedDict()
        """Until when, and whose, those that were used last at the end."""

        self._under_trial: dict[str, asyncio.Task[WhoAmIResponse]] = {}
        self._nobody_until_s = 0.0
        self._nobodys_refusal: FilaError | None = None

    async def whose(self, key: str) -> WhoAmIResponse:
        """Whose it is. Raises the broker's refusal; Problem, 503, where it says nothing."""
        now_s = self._now_s()
        until_s, known = self._known.get(key, (now_s, None))
        if known is not None and until_s > now_s:
            return known
        told = await (self._nobody(now_s) if key == NOBODY else self._tried(key))
        self._known[key] = (self._now_s() + REMEMBERED_S, told)
        self._known.move_to_end(key)
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return told

    def forget(self, key: str) -> None:
        """The broker does not take it any more."""
        self._known.pop(key, None)

    async def _nobody(self, now_s: float) -> WhoAmIResponse:
        if self._nobodys_refusal is None or self._nobody_until_s <= now_s:
            try:
                return await self._tried(NOBODY)
            except FilaError as refusal:
                if refusal.code is not Code.UNAUTHENTICATED:
                    raise
                self._nobodys_refusal = refusal
                self._nobody_until_s = self._now_s() + NOBODY_REMEMBERED_S
        await self._refusals.wait()
        raise self._nobodys_refusal

    async def _tried(self, key: str) -> WhoAmIResponse:
        trial = self._under_trial.get(key)
        if trial is None:
            while len(self._under_trial) >= self._tried_max:
                self._under_trial.pop(next(iter(self._under_trial))).cancel()
            trial = asyncio.ensure_future(self._asked_in_time(key))
            self._under_trial[key] = trial
            trial.add_done_callback(lambda ended: self._end(key, ended))
        # A caller with the same key waits for the same word.
        await asyncio.wait((trial,))
        if trial.cancelled():
            raise busy(
                "too many keys are tried at this moment, and this one waited longest; try again in a second"
            )
        return trial.result()

    async def _asked_in_time(self, key: str) -> WhoAmIResponse:
        try:
            async with asyncio.timeout(self._tried_s_max):
                return await self._ask(key)
        except TimeoutError:
            raise busy(
                f"the broker did not say within {self._tried_s_max:g} s whether it knows this key; try again"
            ) from None

    def _end(self, key: str, trial: asyncio.Task[WhoAmIResponse]) -> None:
        if self._under_trial.get(key) is trial:
            del self._under_trial[key]
        if not trial.cancelled():
            trial.exception()  # the caller may be gone


# Where a key stands.


def key_of(headers: Headers) -> str:
    """The caller's key, "" for none. Raises Problem."""
    given = headers.getlist("authorization")
    if not given:
        return ""
    scheme, _, key = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not _KEY.fullmatch(key.strip()):
        raise from_error(_unauthenticated())
    return key.strip()


def key_in_address(address: str, headers: Headers) -> str:
    """The key that an address holds. Raises Problem."""
    if "authorization" in headers:
        raise invalid(
            "the address holds the caller's key; leave Authorization out, or use the address without"
        )
    if not _KEY.fullmatch(address):
        raise from_error(_unauthenticated("the address ends in no key; make one with `fila auth key create`"))
    return address


def check_address(whose: WhoAmIResponse, queue: str) -> None:
    """Raises Problem for a key that may do more than an address should: it is passed on, and stands in others' logs."""
    only = [(RIGHT_PRODUCE, queue)]
    if whose.auth_enabled and [(each.right, each.queue) for each in whose.permissions] != only:
        raise Problem(
            403,
            "PERMISSION_DENIED",
            f"a key in an address may do nothing but produce to {queue!r}, and this one's holder may do other things; "
            f"make one for it alone: `fila auth key create NAME`, `fila auth grant NAME --produce {queue}`",
            Code.PERMISSION_DENIED,
        )


def _unauthenticated(
    said: str = "send the key as `Authorization: Bearer fila_...`, once, and no other scheme",
) -> FilaError:
    error = FilaError(said)
    error.code = Code.UNAUTHENTICATED
    error.reason = "UNAUTHENTICATED"
    return error
