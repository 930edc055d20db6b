"""What queues take from senders' headers, as the broker told each caller: asked once in REMEMBERED_S, not each time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from fila.v1.admin_pb2 import Intake

REMEMBERED_S = 10.0
"""How long a change of the queue's setting may go unnoticed."""

KNOWN_MAX = 10_000


class Intakes:
    """By caller and queue: who may not produce there is told of none."""

    def __init__(self, ask: Callable[[str, str], Awaitable[Intake]], now_s: Callable[[], float]) -> None:
        self._ask = ask
        self._now_s = now_s
        self._known: OrderedDict[tuple[str, str], tuple[float, Intake]] = OrderedDict()
        """Until when, those that were asked for last at the end."""

    async def of(self, key: str, queue: str) -> Intake:
        """Return it. Raises FilaError where the broker can't be asked."""
        until_s, known = self._known.get((key, queue), (0.0, None))
        if known is not None and until_s > self._now_s():
            return known
        told = await self._ask(key, queue)
        self._known[key, queue] = (self._now_s() + REMEMBERED_S, told)
        self._known.move_to_end((key, queue))
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return told
