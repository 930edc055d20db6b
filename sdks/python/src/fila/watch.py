"""What somebody who watches queues asks with a client: keys found by name, numbers as they change, the last hour."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Literal

from fila import methods
from fila.answers import FoundKeys, answer
from fila.arguments import make
from fila.connection import Connection
from fila.resumed import responses
from fila.v1 import watch_pb2 as wire
from fila.watched import Series, StatsChange

Order = Literal["backlog", "late", "arriving", "served", "off_share"]


class WatchCalls:
    """The calls of FilaAdmin that only look, as methods of a client."""

    _connection: Connection

    async def find_keys(
        self, queue: str, prefix: str = "", *, channel: str | None = None, limit: int = 0
    ) -> FoundKeys:
        """Find the fairness keys that begin so, most pending first; at most `limit` (0: 20, up to 256).
        Raises QueueNotFound, ChannelNotFound."""
        request = make(wire.FindKeysRequest, queue=queue, channel=channel or "", prefix=prefix, limit=limit)
        known = {"queue": queue, "channel": channel or "default"}
        told = await self._connection.call(methods.FIND_KEYS, request, known)
        return answer(FoundKeys, told)

    async def get_series(self, queue: str, *, channel: str | None = None, keys: Sequence[str] = ()) -> Series:
        """Look back at the last hour of a channel and of up to 50 keys, which are recorded for an hour from now on.
        Raises QueueNotFound, Invalid."""
        request = make(wire.GetSeriesRequest, queue=queue, channel=channel or "", keys=list(keys))
        told = await self._connection.call(methods.GET_SERIES, request, {"queue": queue})
        return answer(Series, told)

    async def watch_stats(
        self,
        queues: Sequence[str] = (),
        *,
        channel: str | None = None,
        order: Order = "backlog",
        top: int | None = None,
        keys: Sequence[str] = (),
    ) -> AsyncIterator[StatsChange]:
        """Loop over what changes in up to 20 queues and their leading keys, about once a second; without queues, in
        all of them, keys left out: of these the `top` in which most waits, 2,000 if it is None. A broken stream is
        opened again, and begins with everything.

        Raises QueueNotFound, ChannelNotFound, Invalid; Unavailable when the broker stays away for `retry_for_s`.
        """
        if isinstance(queues, str) or isinstance(keys, str):
            raise TypeError("queues and keys must be sequences of str, not one str")
        request = make(
            wire.WatchStatsRequest,
            queues=list(queues),
            channel=channel or "",
            order=wire.WatchStatsRequest.Order.Value(f"ORDER_{order.upper()}"),
            top=top,
            keys=list(keys),
        )
        about = {"queue": ", ".join(queues)}
        changes = responses(self._connection, methods.WATCH_STATS, request, about, goes_on=lambda: True)
        async with aclosing(changes):
            async for change in changes:
                yield answer(StatsChange, change)
