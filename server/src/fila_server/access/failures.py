"""What it costs to come with a wrong key: a wait that grows, by address and by key id. A valid key never waits.

The table is bounded and forgets the oldest, so that nobody can fill the memory; beyond a number of waits under way
an answer leaves at once, so that nobody can fill it with sleepers either.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import OrderedDict
from collections.abc import Awaitable, Callable

ROWS_MAX = 10_000
WAITING_MAX = 1_000
FREE_FAILURES = 3
DELAY_S_FIRST = 0.05
DELAY_S_MAX = 2.0
FORGOTTEN_AFTER_S = 60.0


class Failures:
    """Counts failures and knows how long the next is kept waiting."""

    def __init__(
        self, now_s: Callable[[], float], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._now_s = now_s
        self._sleep = sleep
        self._rows: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._waiting = 0

    def add(self, address: str, key_id: str) -> float:
        """Count a failure; return how many seconds its answer is to wait."""
        counts = [self._count(f"address {network_of(address)}")]
        if key_id:
            counts.append(self._count(f"key {key_id}"))
        beyond = max(counts) - FREE_FAILURES
        return min(DELAY_S_MAX, DELAY_S_FIRST * 2.0 ** min(beyond - 1, 16)) if beyond > 0 else 0.0

    def _count(self, row: str) -> int:
        now_s = self._now_s()
        count, last_s = self._rows.pop(row, (0, now_s))
        if now_s - last_s > FORGOTTEN_AFTER_S:
            count = 0
        self._rows[row] = (count + 1, now_s)
        if len(self._rows) > ROWS_MAX:
            self._rows.popitem(last=False)
        return count + 1

    async def wait(self, delay_s: float) -> None:
        """Wait, unless too many wait already."""
        if delay_s <= 0 or self._waiting >= WAITING_MAX:
            return
        self._waiting += 1
        try:
            await self._sleep(delay_s)
        finally:
            self._waiting -= 1


def network_of(address: str) -> str:
    """The address, or of IPv6 the /64 that one household has."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.IPv6Network((parsed, 64), strict=False).network_address)
    return str(parsed)


def is_loopback(address: str) -> bool:
    """Whether a peer is this machine itself."""
    if address.startswith("127.") or address in ("::1", ""):
        return bool(address)
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)
