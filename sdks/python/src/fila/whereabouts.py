"""One message: where it is, and taking it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fila import methods
from fila.answers import answer
from fila.arguments import make, require_count, require_texts
from fila.connection import Connection
from fila.explanation import Forecast
from fila.messages import DeadLetter
from fila.v1 import admin_pb2 as wire
from fila.v1 import service_pb2 as wire_service


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEvent:
    """Something that was decided about a message."""

    at: datetime | None = None
    kind: str = ""
    """By the names of docs/history.md of the broker: `enqueued`, `delivered`, `nacked`, `acked`, ..."""
    fairness_key: str = ""
    consumer_id: int = 0
    bucket: str = ""
    """The throttle key that held it or let it go."""
    reason: str = ""
    attempts: int = 0
    """Attempts that failed before."""
    held_ms: int = 0
    """How long a consumer or a throttle held it, or it will be delayed."""
    waited_ms: int = 0
    """Of a delivery: how long it had waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePast:
    """What the broker's history has of one message."""

    missing: str = ""
    """Why nothing of it is told; otherwise empty."""
    events: list[PastEvent] = field(default_factory=list)
    """The oldest first."""
    offset: int = 0
    until: datetime | None = None
    """Up to when the files that were read tell."""
    more: bool = False
    """The history goes on behind that, too long to read for one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStatus:
    """Where one message is in one channel; what does not apply is empty."""

    state: str
    """`waiting`, `delayed`, `leased`, `deciding` (it failed; the queue's script is asked), `dead` or `not_known`: it
    is done, taken back, or was never there."""
    message_id: str = ""
    offset: int = 0
    fairness_key: str = ""
    enqueued_at: datetime | None = None
    attempts: int = 0
    """How often it failed."""
    last_error: str = ""
    place: int = 0
    """Which of its key's waiting messages it is; 1 goes next."""
    place_is_estimated: bool = False
    cause: str = ""
    """What it waits for, in the words of `KeyExplanation.state`."""
    blocking_bucket: str = ""
    blocking_part: str = ""
    """What of that bucket's limit holds it back: `rate`, `slots` or `budget`."""
    blocking_rate: int = 0
    """Which of that limit's rates does, where it has several: 1 is the first."""
    nobody_consumes: bool = False
    """Of `no_consumer`: nobody consumes the channel at all, with room or without; a tenant is not told."""
    until: datetime | None = None
    """When its delay ends, or what it waits for."""
    forecast: Forecast | None = None
    consumer_id: int = 0
    """Who has it; 0 when it was pulled."""
    consumer_name: str = ""
    leased_at: datetime | None = None
    lease_expires_at: datetime | None = None
    begun: bool = False
    dead_letter: DeadLetter | None = None
    past: MessagePast | None = None
    """What happened to it; only where that was asked for."""
    waits_for: str = ""
    """The message that it replaces, where that one is leased: it goes once that lease has ended."""
    priority: int = 1
    """Among the messages of its fairness key, 0 to 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMessage:
    """One message that is not done, without its headers and payload."""

    message_id: str
    offset: int
    fairness_key: str
    state: str
    """`waiting`, `delayed`, `leased`, `deciding` or `dead`, as `MessageStatus` has it."""
    enqueued_at: datetime | None = None
    due_at: datetime | None = None
    """When its delay ends, or its lease."""
    attempts: int = 0
    """How often it failed here."""
    age_ms: int = 0
    """Since when it has been here, or its first delay is over."""
    cost: float = 0.0
    priority: int = 1
    """Among the messages of its fairness key, 0 to 3."""


class MessageCalls:
    """The calls about single messages, as methods of a client."""

    _connection: Connection

    async def get_message(
        self,
        queue: str,
        message_id: str = "",
        *,
        dedup_key: str = "",
        channel: str | None = None,
        with_past: bool = False,
    ) -> MessageStatus:
        """Say where one message is, named by its id or its dedup key: it waits, is delayed or leased, failed, is dead,
        or is not known any more. `with_past`: also what happened to it, as far as the broker's history has it.
        Raises QueueNotFound, ChannelNotFound, Invalid."""
        request = make(
            wire.GetMessageRequest,
            queue=queue,
            channel=channel or "",
            message_id=message_id,
            dedup_key=dedup_key,
            with_past=with_past,
        )
        known = {"queue": queue, "channel": channel or "default"}
        told = await self._connection.call(methods.GET_MESSAGE, request, known)
        return answer(MessageStatus, told)

    async def list_pending(
        self,
        queue: str,
        *,
        max_messages: int = 100,
        after_offset: int = 0,
        fairness_key: str = "",
        channel: str | None = None,
    ) -> list[PendingMessage]:
        """List messages that are not done, in offset order: what each is doing and since when (at most 1,000;
        `after_offset` turns the page). The right `view` is enough. Raises QueueNotFound, ChannelNotFound."""
        require_count("max_messages", max_messages)
        request = make(
            wire.ListPendingRequest,
            queue=queue,
            channel=channel or "",
            max_messages=max_messages,
            after_offset=after_offset,
            fairness_key=fairness_key,
        )
        known = {"queue": queue, "channel": channel or "default"}
        told = await self._connection.call(methods.LIST_PENDING, request, known)
        return [answer(PendingMessage, message) for message in told.messages]

    async def cancel_messages(
        self,
        queue: str,
        message_ids: Sequence[str] = (),
        *,
        dedup_keys: Sequence[str] = (),
        channel: str | None = None,
    ) -> list[str]:
        """Take messages back that are not done, named by their ids or dedup keys, at most 10,000 a call.

        Return what became of each, ids first: `cancelled`, `revoked` (a consumer had it, whose ack is refused from now
        on) or `not_found`. Raises QueueNotFound, ChannelNotFound, Invalid.
        """
        require_texts("message_ids", message_ids)
        require_texts("dedup_keys", dedup_keys)
        request = make(
            wire_service.CancelMessagesRequest,
            queue=queue,
            channel=channel or "",
            message_ids=message_ids,
            dedup_keys=dedup_keys,
        )
        known = {"queue": queue, "channel": channel or "default"}
        told = await self._connection.call(methods.CANCEL_MESSAGES, request, known)
        names = wire_service.CancelMessagesResponse.Outcome.Name
        return [names(outcome).removeprefix("OUTCOME_").lower() for outcome in told.outcomes]
