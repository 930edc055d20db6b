"""What somebody who watches queues asks with a client, without `await`; told in `fila.watch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fila.answers import FoundKeys
from fila.sync.admin import AdminCalls
from fila.watch import Order
from fila.watched import Series, StatsChange


class WatchCalls(AdminCalls):
    """The calls of FilaAdmin that only look, as methods of a client."""

    def find_keys(
        self, queue: str, prefix: str = "", *, channel: str | None = None, limit: int = 0
    ) -> FoundKeys:
        """Find the fairness keys that begin so, most pending first; at most `limit` (0: 20, up to 256).
        Raises QueueNotFound, ChannelNotFound."""
        return self._run(self._client.find_keys(queue, prefix, channel=channel, limit=limit))

    def get_series(self, queue: str, *, channel: str | None = None, keys: Sequence[str] = ()) -> Series:
        """Look back at the last hour of a channel and of up to 50 keys, which are recorded for an hour from now on.
        Raises QueueNotFound, Invalid."""
        return self._run(self._client.get_series(queue, channel=channel, keys=keys))

    def watch_stats(
        self,
        queues: Sequence[str] = (),
        *,
        channel: str | None = None,
        order: Order = "backlog",
        top: int | None = None,
        keys: Sequence[str] = (),
    ) -> Iterator[StatsChange]:
        """Loop over what changes in up to 20 queues and their leading keys, about once a second; without queues, in
        all of them, keys left out: of these the `top` in which most waits, 2,000 if it is None. A broken stream is
        opened again, and begins with everything.

        Raises QueueNotFound, ChannelNotFound, Invalid; Unavailable when the broker stays away for `retry_for_s`.
        """
        changes = aiter(self._client.watch_stats(queues, channel=channel, order=order, top=top, keys=keys))

        async def following() -> StatsChange | None:
            return await anext(changes, None)

        while (change := self._run(following())) is not None:
            yield change
