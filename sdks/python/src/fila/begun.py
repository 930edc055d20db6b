"""Which messages in hand the broker knows to be begun.

A message that comes back unbegun counts no attempt, so the broker must learn of what the program really has in
hand. Quick messages need no word: their settling says it. A message that came back before is declared before the
program sees it: one that kills its worker at once would else never be declared, and come back uncounted for ever.
What a worker took and whose handler has not started, because another one blocks their loop, is not begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic

from fila.holding import Holding, MessageT
from fila.v1.service_pb2 import ConsumeSessionRequest
from fila.writer import StreamWriter

DECLARE_EVERY_S = 0.0025
"""What is in hand at one look and still at the next is declared: so within 5 ms of being handed out."""

FRAME_LEASES_MAX = 10_000
"""The broker's bound on one frame."""


class Begun(Generic[MessageT]):
    """Declares what a session's loops have in hand."""

    def __init__(self, holding: Holding[MessageT], writer: StreamWriter) -> None:
        self._holding = holding
        self._writer = writer
        self._event_loop = asyncio.get_running_loop()
        self._declared: set[int] = set()
        self._seen: list[MessageT] = []
        self._timer: asyncio.TimerHandle | None = None

    def handed_out(self) -> None:
        """Something is in hand that is not declared."""
        if self._timer is None:
            self._timer = self._event_loop.call_later(DECLARE_EVERY_S, self._look)
            self._holding.is_declaring = True

    def _look(self) -> None:
        self._timer = None
        self._holding.is_declaring = False
        in_hand, declared, waiting = self._holding.in_hand, self._declared, self._holding.not_started
        still = [
            message.lease_id
            for message in self._seen
            if in_hand.get(message.id) is message
            and message.lease_id not in declared
            and message.lease_id not in waiting
        ]
        if still:
            self._post(still)
        if declared and len(declared) > 2 * len(in_hand):
            declared.intersection_update({message.lease_id for message in in_hand.values()})
        self._seen = [message for message in in_hand.values() if message.lease_id not in declared]
        if self._seen:
            self.handed_out()

    def _post(self, lease_ids: Sequence[int]) -> None:
        self._declared.update(lease_ids)
        for first in range(0, len(lease_ids), FRAME_LEASES_MAX):
            self._writer.post(_begun(lease_ids[first : first + FRAME_LEASES_MAX]))

    async def declare(self, messages: Sequence[MessageT]) -> bool:
        """Return when the broker's word for these is written; False when the stream broke meanwhile."""
        lease_ids = [message.lease_id for message in messages]
        self._declared.update(lease_ids)
        written = True
        for first in range(0, len(lease_ids), FRAME_LEASES_MAX):
            written = (
                await self._writer.write(_begun(lease_ids[first : first + FRAME_LEASES_MAX])) and written
            )
        return written

    def declare_anew(self) -> None:
        """The stream is a new one, and what was written to the old one may not have arrived."""
        self._declared.clear()
        waiting = self._holding.not_started
        begun = [held.lease_id for held in self._holding.in_hand.values() if held.lease_id not in waiting]
        if begun:
            self._post(begun)

    def close(self) -> None:
        """Nothing comes any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _begun(lease_ids: Sequence[int]) -> ConsumeSessionRequest:
    return ConsumeSessionRequest(begun=ConsumeSessionRequest.Begun(lease_ids=lease_ids))
