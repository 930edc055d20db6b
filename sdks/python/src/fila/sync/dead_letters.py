"""Long operations on dead letters, without `await`; told in `fila.dead_letters`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from fila.dead_letters import DeadLetterFilter, Operation
from fila.sync.watch import WatchCalls


class DeadLetterCalls(WatchCalls):
    """The calls of FilaAdmin about dead letters that take their time."""

    def start_operation(
        self,
        dlq: str,
        kind: Literal["redrive", "delete", "purge"],
        *,
        filter: DeadLetterFilter | None = None,  # noqa: A002 - the wire's word
        rate_per_second: float = 0,
    ) -> Operation:
        """Start to move dead letters back or to drop them, in the broker itself. Raises QueueNotFound, Invalid,
        Conflict (one runs on that queue already), SourceQueueGone."""
        return self._run(
            self._client.start_operation(dlq, kind, filter=filter, rate_per_second=rate_per_second)
        )

    def list_operations(self, dlq: str = "") -> list[Operation]:
        """Return operations, newest first, those that have ended, too."""
        return self._run(self._client.list_operations(dlq))

    def cancel_operation(self, dlq: str, operation_id: str) -> Operation:
        """End an operation; what it did is done. Raises NotFound."""
        return self._run(self._client.cancel_operation(dlq, operation_id))

    def watch_operation(self, dlq: str, operation_id: str) -> Iterator[Operation]:
        """Loop over how an operation stands: at once, then each time it has come further (at most twice a second),
        until it has ended. A broken stream is opened again. Raises NotFound; Unavailable when the broker stays away
        for `retry_for_s`."""
        return self._iterate(self._client.watch_operation(dlq, operation_id), ahead_max=1)

    def edit_dead_letter(
        self, dlq: str, offset: int, *, payload: bytes, headers: Mapping[str, str] | None = None
    ) -> str:
        """Send a dead letter back with this payload and these headers in place of its own. Return the new message's
        id. Raises QueueNotFound, MessageNotFound, Invalid, Conflict."""
        return self._run(self._client.edit_dead_letter(dlq, offset, payload=payload, headers=headers))
