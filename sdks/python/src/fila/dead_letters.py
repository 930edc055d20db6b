"""Long operations on dead letters, and dead letters sent back in another form, as methods of a client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from fila import methods
from fila.answers import answer
from fila.arguments import make, require_number
from fila.connection import Connection
from fila.moments import to_timestamp
from fila.resumed import responses
from fila.v1 import operation_pb2 as wire


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Which dead letters are meant: what is given must all hold."""

    fairness_key: str = ""
    reason: str = ""
    """`max_attempts`, `on_failure`, `ttl`, `rejected` or `skipped`."""
    error: str = ""
    """A text that the last error has in it."""
    died_from: datetime | None = None
    died_before: datetime | None = None
    source_channel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRequest:
    """What an operation was asked to do."""

    dlq_queue: str
    kind: str
    """`redrive`, `delete` or `purge`."""
    filter: DeadLetterFilter | None = None
    rate_per_second: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation, and how it stands."""

    id: str
    state: str
    """`running`, `done`, `cancelled`, `failed`, or `stopped` with the broker."""
    looked_at: int = 0
    done: int = 0
    stuck: int = 0
    """Meant, and could not be moved."""
    total: int = 0
    """Dead letters that were there when it started."""
    last_offset: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str = ""
    principal: str = ""
    peer: str = ""
    request: OperationRequest | None = None


_KINDS = {
    "redrive": wire.StartOperationRequest.KIND_REDRIVE,
    "delete": wire.StartOperationRequest.KIND_DELETE,
    "purge": wire.StartOperationRequest.KIND_PURGE,
}


class DeadLetterCalls:
    """The calls of FilaAdmin about dead letters that take their time."""

    _connection: Connection

    async def start_operation(
        self,
        dlq: str,
        kind: Literal["redrive", "delete", "purge"],
        *,
        filter: DeadLetterFilter | None = None,  # noqa: A002 - the wire's word
        rate_per_second: float = 0,
    ) -> Operation:
        """Start to move dead letters back or to drop them, in the broker itself. Raises QueueNotFound, Invalid,
        Conflict (one runs on that queue already), SourceQueueGone."""
        request = make(
            wire.StartOperationRequest,
            dlq_queue=dlq,
            rate_per_second=rate_per_second,
        )
        request.kind = _KINDS[kind]
        if filter is not None:
            request.filter.CopyFrom(_filter(filter))
        told = await self._connection.call(methods.START_OPERATION, request, {"queue": dlq})
        return answer(Operation, told.operation)

    async def list_operations(self, dlq: str = "") -> list[Operation]:
        """Return operations, newest first, those that have ended, too."""
        request = make(wire.ListOperationsRequest, dlq_queue=dlq)
        told = await self._connection.call(methods.LIST_OPERATIONS, request, {"queue": dlq})
        return [answer(Operation, each) for each in told.operations]

    async def cancel_operation(self, dlq: str, operation_id: str) -> Operation:
        """End an operation; what it did is done. Raises NotFound."""
        request = make(wire.CancelOperationRequest, dlq_queue=dlq, id=operation_id)
        told = await self._connection.call(methods.CANCEL_OPERATION, request, {"queue": dlq})
        return answer(Operation, told.operation)

    async def watch_operation(self, dlq: str, operation_id: str) -> AsyncIterator[Operation]:
        """Loop over how an operation stands: at once, then each time it has come further (at most twice a second),
        until it has ended. A broken stream is opened again. Raises NotFound; Unavailable when the broker stays away
        for `retry_for_s`."""
        request = make(wire.WatchOperationRequest, dlq_queue=dlq, id=operation_id)
        state = wire.Operation.STATE_RUNNING
        standings = responses(
            self._connection,
            methods.WATCH_OPERATION,
            request,
            {"queue": dlq},
            goes_on=lambda: state == wire.Operation.STATE_RUNNING,
        )
        async with aclosing(standings):
            async for told in standings:
                state = told.operation.state
                yield answer(Operation, told.operation)

    async def edit_dead_letter(
        self, dlq: str, offset: int, *, payload: bytes, headers: Mapping[str, str] | None = None
    ) -> str:
        """Send a dead letter back with this payload and these headers in place of its own. Return the new message's
        id. Raises QueueNotFound, MessageNotFound, Invalid, Conflict."""
        require_number("offset", offset)
        request = make(
            wire.EditDeadLetterRequest,
            dlq_queue=dlq,
            offset=offset,
            payload=payload,
            headers=dict(headers or {}),
        )
        told = await self._connection.call(methods.EDIT_DEAD_LETTER, request, {"queue": dlq})
        return told.message_id


def _filter(given: DeadLetterFilter) -> wire.DeadLetterFilter:
    wanted = make(
        wire.DeadLetterFilter,
        fairness_key=given.fairness_key,
        reason=given.reason,
        error=given.error,
        source_channel=given.source_channel,
    )
    if given.died_from is not None:
        wanted.died_from.CopyFrom(to_timestamp(given.died_from))
    if given.died_before is not None:
        wanted.died_before.CopyFrom(to_timestamp(given.died_before))
    return wanted
