"""What somebody who watches queues asks with a client, without `await`; told in `fila.watch`."""

from __future__ import annotations

from fila.answers import FoundKeys
from fila.sync.admin import AdminCalls


class WatchCalls(AdminCalls):
    """The calls of FilaAdmin that only look, as methods of a client."""

    def find_keys(
        self, queue: str, prefix: str = "", *, channel: str | None = None, limit: int = 0
    ) -> FoundKeys:
        """Find the fairness keys that begin so, most pending first; at most `limit` (0: 20, up to 256).
        Raises QueueNotFound, ChannelNotFound."""
        return self._run(self._client.find_keys(queue, prefix, channel=channel, limit=limit))
