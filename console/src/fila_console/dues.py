"""Where weights decide what a key is due, and where something else does: a limit, a pause, a delay.

A key's due is the part that its weight gives it among the keys that take turns. One that is held back by its rate, its
bucket or its cap takes no turns meanwhile; by weight alone it would be due what it was never let to have, up to all of
it, and four such keys 100 % each. So no due is shown for it.
"""

from __future__ import annotations

from fila.answers import KeyState
from fila.explanation import KeyExplanation
from fila.watched import KeySeriesPoint, SeriesPoint
from fila_console.cells import Cell, cell
from fila_console.wording import UNKNOWN, part

HELD = frozenset(("throttled", "rate_limited", "capped", "in_order", "beyond_committed"))
_SERVED_ITS_DUE = 0.9

_NOW = {
    "throttled": "its rate limit decides",
    "rate_limited": "the rate set for it decides",
    "capped": "its cap decides",
    "in_order": "its order decides",
    "beyond_committed": "others' committed rates decide",
    "paused": "none while paused",
    "delayed": "none yet: all is delayed",
    "leased": "nothing waits",
    "empty": "nothing waits",
}


def due_now(told: KeyExplanation) -> Cell:
    """What a key is due at this moment."""
    return cell(_NOW.get(told.state) or f"{part(told.due_share)} by weight")


def due_lately(told: KeyState, due: float | None) -> Cell:
    """What a key was due of all that was served lately, for a narrow column."""
    if told.paused or due is None:
        return cell(UNKNOWN)
    if told.state in HELD:
        return cell("limited", tone="quiet", title="A limit decides what it gets, not its weight")
    return cell(part(due))


def due_then(point: KeySeriesPoint, channel: SeriesPoint) -> float | None:
    """The cost that a key was due in these ten seconds; None where nothing was recorded, or a limit or a pause held
    messages of the channel back while the key got less than that."""
    if not point.recorded:
        return None
    waits = channel.waits
    was_limited = waits is not None and waits.throttle_ms + waits.held_ms > 0
    if was_limited and point.pending and point.served < point.due * _SERVED_ITS_DUE:
        return None
    return point.due
