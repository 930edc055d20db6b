"""What somebody who watches queues asks with a client: keys found by name, numbers as they change, the last hour."""

from __future__ import annotations

from fila import methods
from fila.answers import FoundKeys, answer
from fila.arguments import make
from fila.connection import Connection
from fila.v1 import watch_pb2 as wire


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
