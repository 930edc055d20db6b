"""When a key is late."""

from __future__ import annotations

LATE_MS = 10_000
"""A key whose next message waits this long is late."""
