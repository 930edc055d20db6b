"""What a nack asks for."""

from __future__ import annotations

from typing import NamedTuple


class Nack(NamedTuple):
    """Messages that are nacked alike travel together."""

    error: str = ""
    """What went wrong; hooks read it and a dead letter keeps it."""
    delay_ms: int | None = None
    """Retry after exactly so long, instead of the policy's backoff."""
    dead_letter: bool = False
    """Now, whatever the queue's policy says."""
    release: bool = False
    """It did not fail: back to its place, uncounted."""
