"""How far streams are behind the logs that they read, from the progress that Spark reports.

PySpark gives a Python source no hook for metrics, so what it would have put there is worked out of the offsets.

    spark.streams.addListener(LagListener(print))
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

log = logging.getLogger("pyspark_fila")


@dataclass(frozen=True, slots=True)
class Lag:
    """How one query stands after a micro-batch, over all of its sources of Fila."""

    query: str
    """Its name, or its id where it has none."""
    batch: int
    queues: dict[str, int] = field(default_factory=dict)
    """By queue, how many offsets lie between what is read and the log's end. Messages are as many at most: offsets jump
    when a broker starts again."""
    lost: int = 0
    """Offsets that were gone before they could be read, since the query began."""
    remade: int = 0
    """How often the query went on in a queue that had been made anew."""
    gone: int = 0
    """Queues that the query read and that are not there any more."""

    @property
    def behind(self) -> int:
        """Over all queues."""
        return sum(self.queues.values())


def lag_of(progress: Any) -> Lag | None:
    """Return how far a query is behind, by one of its progress reports (`query.lastProgress`, or a listener's); None
    where it reads nothing of Fila."""
    told = json.loads(progress.json) if hasattr(progress, "json") else progress
    queues: dict[str, int] = {}
    sums = dict.fromkeys(("lost", "remade", "gone"), 0)
    for source in told["sources"]:
        end, latest = (_offset(source.get(name)) for name in ("endOffset", "latestOffset"))
        parts = _parts(end)
        if parts is None:
            continue
        heads = _parts(latest) or {}
        for name, part in parts.items():
            head = heads.get(name, part)["offset"]
            queues[name] = queues.get(name, 0) + max(0, head - part["offset"])
            sums["lost"] += part.get("lost", 0)
            sums["remade"] += part.get("remade", 0)
        sums["gone"] += end.get("gone", 0)
    if not queues and not sums["gone"]:
        return None
    return Lag(told.get("name") or told["id"], told["batchId"], dict(sorted(queues.items())), **sums)


class LagListener(StreamingQueryListener):
    """Tells of each micro-batch how far its query is behind; also while a query has nothing to read."""

    def __init__(self, tell: Callable[[Lag], object] | None = None) -> None:
        self._tell = tell or (lambda lag: log.info("%s", lag))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Tell."""
        lag = lag_of(event.progress)
        if lag is not None:
            self._tell(lag)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing."""


def _offset(told: Any) -> dict[str, Any]:
    """Spark has an offset as a text or, where it read the text, as what it says."""
    try:
        read = json.loads(told) if isinstance(told, str) else told
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _parts(offset: dict[str, Any]) -> dict[str, Any] | None:
    """Each queue's own offset by its name; None where it is of another source."""
    if isinstance(offset.get("queues"), dict):
        return dict(offset["queues"])
    return {offset["queue"]: offset} if "queue" in offset and "offset" in offset else None
