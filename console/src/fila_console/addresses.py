"""Where the pages of queues and keys are. A queue's name stands in the path; a key may hold anything, and does not."""

from __future__ import annotations

from urllib.parse import quote


def broker_path(broker: str, *more: str) -> str:
    """The address of a page of the broker."""
    return "/".join(["/b", quote(broker, safe=""), *more])


def queue_path(broker: str, queue: str, *more: str) -> str:
    """The address of a queue's page."""
    return broker_path(broker, "queues", quote(queue, safe=""), *more)


def key_path(broker: str, queue: str, key: str, channel: str = "") -> str:
    """The address of a key's page."""
    shown = f"&channel={quote(channel, safe='')}" if channel not in ("", "default") else ""
    return f"{queue_path(broker, queue, 'key')}?key={quote(key, safe='')}{shown}"
