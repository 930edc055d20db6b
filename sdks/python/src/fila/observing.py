"""What a client is told of the broker itself: its state, who waits longest, what was set for keys, what happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from fila import methods
from fila.answers import answer
from fila.arguments import make, require_text
from fila.connection import Connection
from fila.observations import BrokerStatus, Event, KeyPolicyState, LateKeys
from fila.resumed import responses
from fila.v1 import events_pb2 as wire


class ObservingCalls:
    """The calls of FilaAdmin that concern more than one queue, and those about what was done to single keys."""

    _connection: Connection

    async def get_status(
        self, *, queue: str = "", fairness_key: str = "", max_troubles: int = 0
    ) -> BrokerStatus:
        """Say what is wrong, and how the broker is: version, disk, connections, damage. Who is no admin is told the
        version, the disk and whether it is stopping, and troubles of its queues.

        `queue` leaves only troubles of that queue, and `fairness_key` leaves out the pauses of other keys. At most
        `max_troubles` are told (0: 4, at most 100).
        """
        request = make(
            wire.GetStatusRequest, queue=queue, fairness_key=fairness_key, max_troubles=max_troubles
        )
        told = await self._connection.call(methods.GET_STATUS, request, {})
        return answer(BrokerStatus, told)

    async def list_late(self, queue: str = "", *, max_keys: int = 0) -> LateKeys:
        """Rank the fairness keys of one queue, or of all, by how long their next message has been waiting.

        At most `max_keys` (0: 20, at most 1,000). Raises QueueNotFound.
        """
        request = make(wire.ListLateRequest, queue=queue, max_keys=max_keys)
        told = await self._connection.call(methods.LIST_LATE, request, {"queue": queue})
        return answer(LateKeys, told)

    async def list_key_policies(self, queue: str, *, fairness_key: str = "") -> list[KeyPolicyState]:
        """Return what was set for single keys of a queue, or for the one named, also when that is nothing.
        Raises QueueNotFound."""
        require_text("queue", queue)
        request = make(wire.ListKeyPoliciesRequest, queue=queue, fairness_key=fairness_key)
        told = await self._connection.call(methods.LIST_KEY_POLICIES, request, {"queue": queue})
        return [answer(KeyPolicyState, each) for each in told.policies]

    async def drop_dead_letters(self, dlq: str, offsets: Sequence[int]) -> int:
        """Drop the dead letters with these offsets (1 to 1,000) for good. Return how many were there.
        Raises QueueNotFound, Invalid."""
        require_text("dlq", dlq)
        request = make(wire.DropDeadLettersRequest, dlq_queue=dlq, offsets=offsets)
        return (await self._connection.call(methods.DROP_DEAD_LETTERS, request, {"queue": dlq})).dropped

    async def watch_events(
        self,
        *,
        queue: str = "",
        kinds: Sequence[str] = (),
        fairness_key: str = "",
        after_position: int = 0,
        follow: bool = False,
    ) -> AsyncIterator[Event]:
        """Loop over what happened, oldest first; with `follow` also over what happens from then on.

        kinds           only these: `queue.created`, or `queue` for all that begin with it; at most 64
        after_position  only those after this event's `position`; 0: all that are kept

        A broken stream is resumed where it was. Raises QueueNotFound, NotAllowed; Unavailable when the broker stays
        away for `retry_for_s`.
        """
        request = make(
            wire.WatchEventsRequest,
            queue=queue,
            kinds=kinds,
            fairness_key=fairness_key,
            after_position=after_position,
            follow=follow,
        )
        about = {"queue": queue}
        happened = responses(
            self._connection, methods.WATCH_EVENTS, request, about, goes_on=lambda: request.follow
        )
        async with aclosing(happened):
            async for response in happened:
                request.after_position = response.next_position
                for event in response.events:
                    yield answer(Event, event)
