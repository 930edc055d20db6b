"""A core that nobody's messages are in flight in, for those who tell it bounds."""

from __future__ import annotations

from fila_server.core.protocol import seam_frames


def answer_to_holders(frame: bytes) -> tuple[list[int], bytes]:
    """The bounds that a HOLDERS command tells, and its answer: none of its holders has anything."""
    holders = seam_frames.Holders.FromString(frame).holders
    held = seam_frames.Held()
    for _ in holders:
        held.rows.add()
    return [holder.most for holder in holders], bytes(held.SerializeToString())
