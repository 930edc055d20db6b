"""Which queues the option `queues` means: names, and patterns in which `*` stands for any characters.

Patterns reach what those of a key's rights reach: dead-letter queues and the broker's own only where they say so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from pyspark_fila.broker import BrokerLog
from pyspark_fila.errors import OptionInvalid, QueueNotFound
from pyspark_fila.options import ReadOptions

QUEUES_MAX = 1000
"""Of a query: each is asked for its log's end, and stands in each offset of a checkpoint."""
DEAD_LETTERS, _OWN = ".dlq", "_fila"


def met(options: ReadOptions) -> list[str]:
    """Return the queues that a batch read is of. Raises as `subscribed` and `check_met`."""
    if options.queue:
        return [options.queue]
    meant = subscribed(options, BrokerLog(options.connection, "").queue_names())
    check_met(options, meant)
    return meant


def subscribed(options: ReadOptions, there: Iterable[str]) -> list[str]:
    """Return which of the queues that are there are meant. Raises OptionInvalid where they are too many."""
    meant = [name for name in there if any(_is_meant(pattern, name) for pattern in options.queues)]
    if len(meant) > QUEUES_MAX:
        raise OptionInvalid(
            "queues", f"means {len(meant)} queues, and one query reads {QUEUES_MAX} at most; name fewer"
        )
    return meant


def check_met(options: ReadOptions, meant: Collection[str]) -> None:
    """Raise unless each name is met, and a pattern where there is no name."""
    if options.queue:
        return
    missing = [name for name in options.queues if "*" not in name and name not in meant]
    if missing:
        raise QueueNotFound(
            f'{options.connection.address} has no queue "{missing[0]}", which the option queues names, or shows it to '
            "this key as missing, which has no right on it"
        )
    if not meant:
        raise OptionInvalid(
            "queues",
            f"no queue of {options.connection.address} matches {', '.join(options.queues)}; a key sees the queues that "
            "it has a right on, and only what ends in .dlq meets a dead-letter queue",
        )


def _is_meant(pattern: str, name: str) -> bool:
    if name.endswith(DEAD_LETTERS) and not pattern.endswith(DEAD_LETTERS):
        return False
    if name.startswith(_OWN) and not pattern.startswith(_OWN):
        return False
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None
