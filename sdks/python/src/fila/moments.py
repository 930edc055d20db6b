"""A moment, as programs have it and as the wire does."""

from __future__ import annotations

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp


def to_timestamp(moment: datetime) -> Timestamp:
    """Return a moment as the wire wants it. A naive one is refused: it names no moment."""
    if moment.tzinfo is None:
        raise ValueError(f"a moment needs a time zone, got {moment!r}; use datetime.now(UTC) + ...")
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def to_datetime(timestamp: Timestamp) -> datetime:
    """Return a wire timestamp as an aware datetime in UTC."""
    return timestamp.ToDatetime(tzinfo=UTC)
