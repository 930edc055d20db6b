"""Which queue a stream's offset is of, and what it means where the queue is another one by now.

An offset counts in one queue's log. A queue that was deleted and made anew begins to count again, and another queue
has counted by itself: there an old offset would skip what was never read. So an offset carries its queue's name and
creation id, and both are compared with the broker's before anything is read.
"""

from __future__ import annotations

from typing import Any

from pyspark_fila.broker import LogBounds
from pyspark_fila.errors import DataLoss, OptionInvalid

Offset = dict[str, Any]
"""Where a stream stands, as its checkpoint keeps it.

queue, creation: the queue's name and creation id. Checkpoints of older versions have neither.
offset: the next one to read.
lost: how many were gone before they could be read, since the query began.
remade: how often the query went on with another queue than it had read: what the one before still held is not known.
"""
KEYS = frozenset(("queue", "creation", "offset", "lost", "remade"))
KEYS_OF_SEVERAL = frozenset(("queues", "gone"))
"""Where a query of several queues stands: each queue's own offset by its name, and how many queues went."""


def stands_at(queue: str, bounds: LogBounds, offset: int, lost: int = 0, remade: int = 0) -> Offset:
    """Return the offset in the queue that `bounds` are of."""
    return {"queue": queue, "creation": bounds.creation, "offset": offset, "lost": lost, "remade": remade}


def check_known(offset: Offset) -> None:
    """Raise OptionInvalid for an offset that a newer version wrote."""
    unknown = sorted(set(offset) - (KEYS_OF_SEVERAL if "queues" in offset else KEYS))
    if unknown:
        raise OptionInvalid(
            "checkpointLocation",
            f"its offset says {', '.join(unknown)}, which this version of fila-spark does not know: a newer one wrote "
            "it; go on with that one",
        )


def parts_of(queue: str, start: Offset) -> dict[str, Offset]:
    """Return each queue's own offset by its name; `queue` is the one that the query names, empty where it may read
    several. Raises OptionInvalid for the offset of a query of the other kind."""
    check_known(start)
    if bool(queue) == ("queues" in start):
        of, now = f'the one queue "{start.get("queue", "")}"', "queues"
        if queue:
            of, now = f"several queues ({', '.join(sorted(start['queues'])) or 'none yet'})", "queue"
        raise OptionInvalid(
            "checkpointLocation",
            f"is of a query that read {of}, and this one has the option {now}; begin with another checkpointLocation",
        )
    if queue:
        return {queue: start}
    return {name: {"queue": name, **part} for name, part in start["queues"].items()}


def joined(queue: str, parts: dict[str, Offset], gone: int) -> Offset:
    """Return the offset of a query that stands so in each of its queues."""
    if queue:
        return parts[queue]
    without = {
        name: {key: part[key] for key in part if key != "queue"} for name, part in sorted(parts.items())
    }
    return {"queues": without, "gone": gone}


def what_is_wrong(queue: str, bounds: LogBounds, start: Offset) -> str:
    """Return why `start` means nothing in that queue: what was, and what is. Empty where it goes on."""
    now = f'queue "{queue}" now has the offsets {bounds.oldest} to {bounds.head - 1}, creation id {bounds.creation}'
    was, made = start.get("queue", queue), start.get("creation", "")
    if was != queue:
        return (
            f'the checkpoint is of queue "{was}", read up to offset {start["offset"] - 1}, and the query names another '
            f"one: {now}"
        )
    if made and bounds.creation and made != bounds.creation:
        return (
            f'queue "{queue}" was made anew: the checkpoint is of the one with the creation id {made}, read up to '
            f"offset {start['offset'] - 1}; {now}"
        )
    if bounds.head < start["offset"]:
        return (
            f'the log of queue "{queue}" is shorter than the checkpoint, which has read up to offset '
            f"{start['offset'] - 1}: {now}. It was made anew, or its broker went back to a backup"
        )
    return ""


def gone_on(queue: str, bounds: LogBounds, start: Offset) -> Offset:
    """Return where a query goes on that may lose messages, where `what_is_wrong` has found something.

    In the same queue with a shorter log, behind what there is; what is missing up to `start` is lost. In another one
    from its beginning, and so where a checkpoint does not say which queue it knew.
    """
    lost, remade = start.get("lost", 0), start.get("remade", 0)
    same = start.get("queue") == queue and start.get("creation") == bounds.creation != ""
    if same:
        return stands_at(queue, bounds, bounds.head, lost + start["offset"] - bounds.head, remade)
    return stands_at(queue, bounds, bounds.oldest, lost, remade + 1)


def check_same(queue: str, planned: str, bounds: LogBounds) -> None:
    """Raise DataLoss where a task has read from another queue than the one that it was planned for."""
    if planned and bounds.creation and planned != bounds.creation:
        raise DataLoss(
            f'queue "{queue}" was made anew while it was read: creation id {planned} before, {bounds.creation} now; '
            "nothing of this read counts"
        )
