"""What a program may want to know of its connection: lost, back, draining."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fila.errors import FilaError


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionEvent:
    """Something happened to a consumer's stream. `ClientOptions.on_connection` is called with it, on the client's
    own thread; it must not block."""

    kind: Literal["lost", "back", "draining"]
    """`lost`: the stream broke, and is being reopened. `draining`: the same, because the broker said that it is
    stopping, or that another node of its group serves. `back`: the stream is open again."""
    queue: str
    channel: str
    error: FilaError | None = None
    """Why it was lost; None when it is back."""
    outage_s: float = 0.0
    """When it is back: for how long it was gone, in seconds."""
    leases_lost: int = 0
    """When it is back: how many leases were lost with it."""
