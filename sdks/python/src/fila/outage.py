"""Tells people and the program when a consumer's stream is lost, and when it is back."""

from __future__ import annotations

import logging
from typing import Literal

from fila.connection import Connection
from fila.connection_events import ConnectionEvent
from fila.errors import FilaError

_log = logging.getLogger("fila")

_PARTING = ("SHUTTING_DOWN", "NOT_OWNER")
"""The broker stops; or it hands over to another node of its group."""


class Outage:
    """What one session has told so far: each loss once, and each return."""

    def __init__(self, connection: Connection, queue: str, channel: str) -> None:
        self._connection = connection
        self._queue = queue
        self._channel = channel
        self._since_s: float | None = None

    def begins(self, error: FilaError) -> None:
        """A stream that stood is lost."""
        self._since_s = self._connection.options.clock.now_s()
        _log.warning("consumer of %s lost its stream, reopening it: %s", self._queue, error)
        kind: Literal["draining", "lost"] = "draining" if error.reason in _PARTING else "lost"
        self._connection.tell(
            ConnectionEvent(kind=kind, queue=self._queue, channel=self._channel, error=error)
        )

    def ends(self, leases_lost: int) -> None:
        """A stream stands; the first one of a session is nothing to tell."""
        if self._since_s is None:
            return
        outage_s = self._connection.options.clock.now_s() - self._since_s
        self._since_s = None
        _log.warning(
            "consumer of %s has its stream back after %.1f s, %d leases lost",
            self._queue, outage_s, leases_lost,
        )  # fmt: skip
        self._connection.tell(
            ConnectionEvent(
                kind="back",
                queue=self._queue,
                channel=self._channel,
                outage_s=outage_s,
                leases_lost=leases_lost,
            )
        )
