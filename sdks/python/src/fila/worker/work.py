"""A message as a handler sees it: plain data, which can also cross to another process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from fila.messages import LeasedMessage


class Cancellation:
    """Whether work is wanted still. In another process it never says no: there the process is ended instead."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """The work is not wanted any more."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the lease is lost, the time is over, or the worker stops."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep for `timeout_s` seconds, or until the work is cancelled; say whether it is."""
        return self._event.wait(timeout_s)

    def __reduce__(self) -> tuple[type[Cancellation], tuple[()]]:
        return Cancellation, ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkMessage:
    """One message to handle. It is settled by what the handler returns or raises."""

    id: str
    queue: str
    channel: str
    payload: bytes
    headers: Mapping[str, str]
    fairness_key: str
    offset: int
    attempt_count: int
    """Earlier deliveries that were begun and failed; 0 at the first."""
    redelivered: bool
    """Somebody had begun it before, and it failed or came back."""
    enqueued_at: datetime
    cancellation: Cancellation = field(default_factory=Cancellation)
    """For handlers in threads: asyncio's are cancelled."""


def work_message(message: LeasedMessage) -> WorkMessage:
    """Return a delivery as a handler sees it."""
    return WorkMessage(
        id=message.id,
        queue=message.queue,
        channel=message.channel,
        payload=message.payload,
        headers=dict(message.headers),
        fairness_key=message.fairness_key,
        offset=message.offset,
        attempt_count=message.attempt_count,
        redelivered=message.redelivered,
        enqueued_at=message.enqueued_at,
    )
