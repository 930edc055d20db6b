"""What was decided about one message, as the judge takes it."""

from __future__ import annotations

from typing import NamedTuple

from fila_server.history_files.channel_twin import PRIORITY_USUAL

ENDED = ("acked", "dead_lettered", "dropped")
CAME = ("enqueued", "redriven", "rewound")
OF_LIMITS = ("throttled", "released")
HAS_NO_ROW_YET = "no row"

REPLACED = "replaced"
"""The reason of one that gave way to a later one of its dedup key."""


class Row(NamedTuple):
    """A decision about one message. Costs are in thousandths."""

    kind: str
    queue: str
    channel: str
    key: str
    weight: int
    consumer: int
    throttle_keys: tuple[str, ...]
    offset: int
    cost: int
    attempt: int
    held_ms: int
    bucket: str = ""
    """Of `throttled` and `released`: the limit."""
    messages: int = 1
    """Of `throttled`: how many began to wait, of which this is the first. Its cost is that of all."""
    priority: int = PRIORITY_USUAL
    reason: str = ""
    replaces: int = 0
    """Of `enqueued`: the offset of the message whose place it takes, 0 for none."""


def gave_way(row: Row) -> bool:
    """Whether its message ended because another one replaced it."""
    return row.kind == "dropped" and row.reason == REPLACED


def what_follows(rows: list[Row]) -> list[str]:
    """The kind of each row's next one about the same message in this pass; REPLACED where that gave way."""
    newest: dict[tuple[str, str, int], str] = {}
    found = []
    for row in reversed(rows):
        if row.kind in OF_LIMITS:
            found.append("")
            continue
        at = (row.queue, row.channel, row.offset)
        found.append(newest.get(at, HAS_NO_ROW_YET))
        newest[at] = REPLACED if gave_way(row) else row.kind
    return found[::-1]
