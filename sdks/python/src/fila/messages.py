"""What goes in and what comes out: MessageId and NewMessage; StoredMessage and Message.

A delivery frame is decoded once, by protobuf's C code. The classes here only point into that frame
and read a field when it is asked for, so a message costs the loop little. The price: one message
kept for long keeps its whole frame (at most 4 MiB) in memory; keep its payload instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from fila.arguments import make
from fila.moments import to_datetime, to_timestamp
from fila.nack import Nack, limited_nack
from fila.v1 import messages_pb2 as wire
from fila.v1.service_pb2 import EnqueueMessage, EnqueueOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from fila.loops import Loop
    from fila.settle import Settler


_REPLACE = EnqueueOptions.ON_DUPLICATE_REPLACE


class MessageId(str):
    """A message's id, and the offset its queue gave it. It is a plain string wherever one is wanted."""

    __slots__ = ("offset",)
    offset: int

    def __new__(cls, message_id: str, offset: int = 0) -> Self:
        """Make an id that knows its offset."""
        self = super().__new__(cls, message_id)
        self.offset = offset
        return self

    def __reduce__(self) -> tuple[type[MessageId], tuple[str, int]]:
        return MessageId, (str(self), self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message for `enqueue_many`."""

    payload: bytes = b""
    headers: Mapping[str, str] | None = None
    delay_ms: int | None = None
    """Not ready before this many milliseconds from now. Not together with `deliver_at`."""
    deliver_at: datetime | None = None
    """Not ready before this moment (timezone-aware)."""
    ttl_ms: int | None = None
    """Dropped when nobody has leased it this many milliseconds after it was accepted."""
    dedup_key: str | None = None
    """A second enqueue with this key within the queue's window answers the first one's id."""
    replace: bool = False
    """The latest wins: an earlier message with this `dedup_key` that is not delivered yet gives way to this one."""
    max_wait_ms: int = 0
    """With `replace`: however often it is replaced, its delay ends at the latest so long after the first."""
    fairness_key: str = ""
    """Its fairness key, where the queue has `allow_producer_routing`; else its headers and the queue decide."""
    weight: int = 0
    """The weight of that key, 1 to 1000, in the same way."""
    cost: float = 0
    """What a delivery costs its key, 0.001 to 1,000,000, in the same way."""
    priority: int | None = None
    """0 to 3 among the messages of its fairness key, 3 first; None as the queue's `priority_header` says, else 1."""


def encode_options(
    delay_ms: int | None,
    deliver_at: datetime | None,
    ttl_ms: int | None,
    dedup_key: str | None,
    *,
    replace: bool = False,
    max_wait_ms: int = 0,
    fairness_key: str = "",
    weight: int = 0,
    cost: float = 0,
    priority: int | None = None,
) -> EnqueueOptions | None:
    """Return the options' message, or None when nothing was asked for."""
    is_plain = delay_ms is None and deliver_at is None and ttl_ms is None and priority is None
    if is_plain and not (dedup_key or replace or max_wait_ms or fairness_key or weight or cost):
        return None
    return make(
        EnqueueOptions,
        delay_ms=delay_ms or 0,
        deliver_at=None if deliver_at is None else to_timestamp(deliver_at),
        ttl_ms=ttl_ms,
        dedup_key=dedup_key or "",
        on_duplicate=_REPLACE if replace else None,
        max_wait_ms=max_wait_ms,
        fairness_key=fairness_key,
        weight=weight,
        cost=cost,
        priority=priority,
    )


def may_repeat(options: EnqueueOptions) -> bool:
    """Whether a message that may be stored already can be sent again.

    One that replaces others could replace a newer one.
    """
    return bool(options.dedup_key) and options.on_duplicate != _REPLACE


def encode_into(
    messages: RepeatedCompositeFieldContainer[EnqueueMessage], message: NewMessage | bytes
) -> int:
    """Append one message to a batch, in place: a copy would cost more than the rest. Return its size in bytes."""
    if not isinstance(message, NewMessage):
        if not isinstance(message, bytes):
            raise TypeError(f"a message must be NewMessage or bytes, got {type(message).__name__}")
        return messages.add(payload=message).ByteSize()
    encoded = messages.add()
    try:
        encoded.payload = message.payload
        if message.headers:
            headers = encoded.headers
            for key, value in message.headers.items():
                headers[key] = value
    except (TypeError, ValueError, AttributeError):
        make(EnqueueMessage, payload=message.payload, headers=message.headers)  # says which it is
        raise
    options = encode_options(
        message.delay_ms,
        message.deliver_at,
        message.ttl_ms,
        message.dedup_key,
        replace=message.replace,
        max_wait_ms=message.max_wait_ms,
        fairness_key=message.fairness_key,
        weight=message.weight,
        cost=message.cost,
        priority=message.priority,
    )
    if options is not None:
        encoded.options.CopyFrom(options)
    return encoded.ByteSize()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """Why a message is in a dead-letter queue."""

    source_queue: str
    source_channel: str
    reason: str
    """`max_attempts`, `on_failure`, `ttl`, `rejected` or `skipped`."""
    last_error: str
    attempts: int
    at: datetime


class StoredMessage:
    """A message as it is peeked at or read from the log: nobody's lease, nothing to settle."""

    __slots__ = ("_wire", "id")

    def __init__(self, message: wire.Message) -> None:
        self._wire = message
        self.id: str = message.id
        """UUIDv7 made at enqueue; retry, dead-letter and redrive keep it."""

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.id} queue={self.queue!r} offset={self.offset}"
            f" attempt_count={self.attempt_count} payload={len(self.payload)} B>"
        )

    @property
    def payload(self) -> bytes:
        """The producer's bytes."""
        return self._wire.payload

    @property
    def headers(self) -> dict[str, str]:
        """What the producer sent along; a copy."""
        return dict(self._wire.headers)

    @property
    def queue(self) -> str:
        """The queue it is in."""
        return self._wire.metadata.queue_id

    @property
    def channel(self) -> str:
        """The channel it was delivered in."""
        return self._wire.metadata.channel

    @property
    def offset(self) -> int:
        """Position in the queue's log, from 1."""
        return self._wire.metadata.offset

    @property
    def fairness_key(self) -> str:
        """The key it is scheduled under."""
        return self._wire.metadata.fairness_key

    @property
    def weight(self) -> int:
        """The fairness key's relative share."""
        return self._wire.metadata.weight

    @property
    def cost(self) -> float:
        """What a delivery costs its fairness key."""
        return self._wire.metadata.cost

    @property
    def priority(self) -> int:
        """Its priority within its fairness key, 0 to 3, where 3 goes first; 1 unless somebody said so."""
        metadata = self._wire.metadata
        return metadata.priority if metadata.HasField("priority") else 1

    @property
    def throttle_keys(self) -> tuple[str, ...]:
        """Token buckets it needs a token from."""
        return tuple(self._wire.metadata.throttle_keys)

    @property
    def attempt_count(self) -> int:
        """Earlier deliveries in this channel that were begun and failed; 0 at the first. A delivery that came back
        before a program saw it does not count."""
        return self._wire.metadata.attempt_count

    @property
    def enqueued_at(self) -> datetime:
        """When the producer's call was accepted."""
        return to_datetime(self._wire.timestamps.enqueued_at)

    @property
    def appended_at(self) -> datetime:
        """When this log entry was appended."""
        return to_datetime(self._wire.timestamps.appended_at)

    @property
    def due_at(self) -> datetime | None:
        """When a delayed message becomes ready, as `peek` shows it; None where it is not delayed."""
        timestamps = self._wire.timestamps
        return to_datetime(timestamps.due_at) if timestamps.HasField("due_at") else None

    @property
    def dead_letter(self) -> DeadLetter | None:
        """Why it was given up; None outside dead-letter queues."""
        if not self._wire.metadata.HasField("dead_letter"):
            return None
        letter = self._wire.metadata.dead_letter
        return DeadLetter(
            source_queue=letter.source_queue,
            source_channel=letter.source_channel,
            reason=letter.reason,
            last_error=letter.last_error,
            attempts=letter.attempts,
            at=to_datetime(letter.at),
        )


class LeasedMessage(StoredMessage):
    """A delivery: a stored message, and the lease under which this client holds it."""

    __slots__ = ("_settler", "held_until_s", "lease_id", "must_declare", "taker")

    taker: Loop
    """Its session's: the loop that took it out of the buffer."""

    def __init__(self, message: wire.Message, settler: Settler, held_until_s: float) -> None:
        self._wire = message
        self.id = message.id
        metadata = message.metadata
        self.lease_id: int = metadata.lease_id
        """This delivery's lease; a new number each time."""
        self.must_declare: bool = metadata.redelivered or metadata.came_back
        """Your program must not see it before the broker knows that it is begun: otherwise one that kills its worker
        at once would come back uncounted for ever."""
        self._settler = settler
        self.held_until_s = held_until_s
        """When the lease ends, on the client's monotonic clock: no two machines' clocks agree."""

    @property
    def redelivered(self) -> bool:
        """Somebody had begun it in this channel before, and it failed or came back."""
        return self._wire.metadata.redelivered

    @property
    def came_back(self) -> bool:
        """It was sent to a consumer of this channel before, and came back before anybody had begun it."""
        return self._wire.metadata.came_back

    @property
    def leased_at(self) -> datetime:
        """When it was delivered, by the broker's clock."""
        return to_datetime(self._wire.timestamps.leased_at)

    @property
    def lease_expires_at(self) -> datetime:
        """When the lease ends as it was delivered, by the broker's clock; `extend` answers the new one."""
        return to_datetime(self._wire.timestamps.lease_expires_at)

    @property
    def lost(self) -> str:
        """Why the broker took the lease back while you worked (EXPIRED, SEEK, QUEUE_DELETED, LEASE_LOST, ...);
        empty while the message is yours. An ack of a lost message is refused."""
        return self._settler.lost.reason(self.lease_id)

    def on_lost(self, callback: Callable[[], object]) -> None:
        """Call back on the client's thread when the lease is lost, so that you can stop; at once if it is already."""
        self._settler.lost.call_when_lost(self.lease_id, callback)


class Message(LeasedMessage):
    """A delivery to work on and then settle, by `ack` or `nack`, before its lease ends.

    `ack` and `nack` are on their way when they are called; await them to know that they are
    durable, or to learn that they were refused:

        await msg.ack()      # durable
        msg.ack()            # on its way; a refusal is only logged
    """

    __slots__ = ()

    def ack(self) -> Awaitable[None]:
        """The message is done. Awaiting raises LeaseLost when the lease had ended, MessageNotFound when
        the message is gone, Unavailable when the broker is."""
        return self._settler.ack(self.id, self.lease_id)

    def nack(
        self, error: str = "", delay_ms: int | None = None, *, dead_letter: bool = False
    ) -> Awaitable[None]:
        """The message failed. `error` (text, kept with a dead letter) says why; the queue's policy decides when it
        comes back, or `delay_ms` (milliseconds) does. With `dead_letter` it never does: see `reject`. Awaiting raises
        as for `ack`."""
        return self._settler.nack(self.id, self.lease_id, Nack(error, delay_ms, dead_letter))

    def reject(self, error: str = "") -> Awaitable[None]:
        """The message can never succeed: make it a dead letter now, with the reason `rejected`, whatever the queue's
        policy says. Awaiting raises as for `ack`."""
        return self._settler.nack(self.id, self.lease_id, Nack(error, dead_letter=True))

    def release(self) -> Awaitable[None]:
        """The message did not fail, but you will not finish it: it goes back to its place, and no attempt counts.
        Awaiting raises as for `ack`, and NotSupported where the broker is too old to do it."""
        return self._settler.nack(self.id, self.lease_id, Nack(release=True))

    def limited(
        self, retry_after_s: float | None = None, *, limit: str = "", error: str = ""
    ) -> Awaitable[None]:
        """The provider behind a limit refused the call (HTTP's 429), and asked for `retry_after_s`. For all workers,
        the limit closes for so long, at most 5 minutes, and slows down. The message did not fail: it goes back to its
        place and comes when the limit lets it. `limit` is one of `throttle_keys`; left out it is each of them whose
        limit learns. Where none does, this is a nack with that delay. Awaiting raises as for `ack`, and Invalid for a
        limit that the message does not name."""
        return self._settler.nack(self.id, self.lease_id, limited_nack(error, retry_after_s, limit))

    async def extend(self, extend_ms: int) -> datetime:
        """Hold the message for `extend_ms` milliseconds from now (at most 12 h). Return when the lease now
        ends, by the broker's clock. Raises LeaseLost when it had ended."""
        expires_at = await self._settler.extend(self.id, self.lease_id, extend_ms)
        self.held_until_s = max(self.held_until_s, self._settler.now_s() + extend_ms / 1000)
        return expires_at
