"""What records know a node and its group by."""

from __future__ import annotations

import hashlib


def node_number(name: str) -> int:
    """What records know a node by."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") >> 1


def group_id(name: str) -> bytes:
    """What takeovers know a group by."""
    return hashlib.sha256(b"group " + name.encode()).digest()[:16]
