"""What a client is told of the broker itself, without `await`; told in `fila.observing`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fila.observations import BrokerStatus, Event, KeyPolicyState, LateKeys
from fila.sync.admin import AdminCalls


class ObservingCalls(AdminCalls):
    """The calls of FilaAdmin that concern more than one queue, and those about what was done to single keys."""

    def get_status(self, *, queue: str = "", fairness_key: str = "", max_troubles: int = 0) -> BrokerStatus:
        """Say what is wrong, and how the broker is: version, disk, connections, damage. Who is no admin is told the
        version, the disk and whether it is stopping, and troubles of its queues.

        `queue` leaves only troubles of that queue, and `fairness_key` leaves out the pauses of other keys. At most
        `max_troubles` are told (0: 4, at most 100).
        """
        return self._run(
            self._client.get_status(queue=queue, fairness_key=fairness_key, max_troubles=max_troubles)
        )

    def list_late(self, queue: str = "", *, max_keys: int = 0) -> LateKeys:
        """Rank the fairness keys of one queue, or of all, by how long their next message has been waiting.

        At most `max_keys` (0: 20, at most 1,000). Raises QueueNotFound.
        """
        return self._run(self._client.list_late(queue, max_keys=max_keys))

    def list_key_policies(self, queue: str, *, fairness_key: str = "") -> list[KeyPolicyState]:
        """Return what was set for single keys of a queue, or for the one named, also when that is nothing.
        Raises QueueNotFound."""
        return self._run(self._client.list_key_policies(queue, fairness_key=fairness_key))

    def drop_dead_letters(self, dlq: str, offsets: Sequence[int]) -> int:
        """Drop the dead letters with these offsets (1 to 1,000) for good. Return how many were there.
        Raises QueueNotFound, Invalid."""
        return self._run(self._client.drop_dead_letters(dlq, offsets))

    def watch_events(
        self,
        *,
        queue: str = "",
        kinds: Sequence[str] = (),
        fairness_key: str = "",
        after_position: int = 0,
        follow: bool = False,
    ) -> Iterator[Event]:
        """Loop over what happened, oldest first; with `follow` also over what happens from then on.

        kinds           only these: `queue.created`, or `queue` for all that begin with it; at most 64
        after_position  only those after this event's `position`; 0: all that are kept

        A broken stream is resumed where it was. Raises QueueNotFound, NotAllowed; Unavailable when the broker stays
        away for `retry_for_s`.
        """
        events = self._client.watch_events(
            queue=queue, kinds=kinds, fairness_key=fairness_key, after_position=after_position, follow=follow
        )
        # What happens is told when it happens, not when enough of it has come together.
        return self._iterate(events, ahead_max=1) if follow else self._iterate(events)
