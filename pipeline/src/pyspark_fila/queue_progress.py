"""Where a stream stands in one queue: the next micro-batch's end, what is lost, and where the channel is.

What is told here is of one queue; `query_progress` puts those of a query together.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark_fila.broker import BrokerLog, Keeping, LogBounds
from pyspark_fila.errors import DataLoss, OptionInvalid
from pyspark_fila.identity import Offset, check_known, gone_on, stands_at, what_is_wrong
from pyspark_fila.options import EARLIEST, ReadOptions
from pyspark_fila.ranges import LogRange, log

CHANNEL_MOVES_S = 10.0
"""A seek costs the broker work for everything the channel still has pending, so the channel follows at this pace."""
SAMPLES = 5
"""Messages of a stretch that are looked at to tell how large its messages are."""


class QueueProgress:
    """What the query's one driver process remembers: a moment-old view of the log, and where the channel stands."""

    def __init__(
        self,
        options: ReadOptions,
        broker: BrokerLog | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._broker = broker or BrokerLog(options.connection, options.queue)
        self._now_s = now_s
        self._bounds = LogBounds(1, 1)
        self._bounds_until_s = float("-inf")
        self._fixed: LogBounds | None = None
        self._began = False
        self._holds = False
        """Whether the channel has kept what is unread ever since the checkpoint."""
        self._moved_to = 0
        self._moves_at_s = float("-inf")
        self._caught_up: tuple[int, float] | None = None

    def bounds(self, *, fresh: bool = False) -> LogBounds:
        """The log's bounds as of at most `pollIntervalMs` ago."""
        if fresh or self._now_s() >= self._bounds_until_s:
            self._bounds = self._broker.bounds()
            self._bounds_until_s = self._now_s() + self._options.poll_interval_ms / 1000
        return self._bounds

    def initial(self) -> Offset:
        """Where to begin; a channel is placed there, so that what follows is kept from now on."""
        bounds, options = self.bounds(fresh=True), self._options
        if options.starting_time is not None:
            start = self._broker.offset_at(options.starting_time, bounds)
        elif isinstance(options.starting_offset, int):
            start = options.starting_offset
            if start > bounds.head:
                raise OptionInvalid(
                    "startingOffset",
                    f"is {start}, and the next offset of queue {options.queue} is {bounds.head}; a stream begins at an "
                    "offset that is there, or at 'latest'",
                )
        else:
            start = bounds.oldest if options.starting_offset == EARLIEST else bounds.head
        lost = max(0, bounds.oldest - start)
        if lost:
            self._tell_loss(start, bounds)
        self._place_channel(start + lost)
        return stands_at(options.queue, bounds, start + lost, lost)

    def beginning(self) -> Offset:
        """Where to begin in a queue that came while the query was there."""
        bounds = self.bounds(fresh=True)
        return stands_at(self._options.queue, bounds, bounds.oldest)

    def fix_end(self) -> None:
        """Never go beyond what is there now."""
        self._fixed = self.bounds(fresh=True)

    def available(self, start: Offset) -> int | None:
        """How many messages are there to be read, at most; None where `start` means nothing in this queue."""
        check_known(start)
        bounds = self.bounds()
        if self._is_elsewhere(start, bounds):
            return None
        return max(0, self._head(bounds) - max(int(start["offset"]), bounds.oldest))

    def mean_bytes(self, start: Offset, count: int) -> int:
        """How large a message is, headers included, in the stretch of `count` offsets behind `start`.

        A guess: the larger of two means, that of some messages of the stretch and that of all which the queue keeps.
        """
        bounds = self.bounds()
        first = max(start["offset"], bounds.oldest)
        sizes = [self._broker.size_at(first + count * i // SAMPLES) for i in range(min(SAMPLES, count))]
        there = [size for size in sizes if size]
        kept = bounds.stored_bytes // max(1, bounds.head - bounds.oldest)
        return max(1, kept, sum(there) // len(there) if there else 0)

    def next_end(self, start: Offset, most: int) -> Offset:
        """Where the next micro-batch ends, with at most so many messages; 0 for no limit."""
        check_known(start)
        if self._is_elsewhere(start, self.bounds()):
            return self._go_on(start)
        self._begin(start["offset"])
        self._move_channel(start)
        bounds = self.bounds()
        head = self._head(bounds)
        if head <= start["offset"]:
            self._caught_up = (start["offset"], self._now_s())
            return start
        queue, remade = self._options.queue, start.get("remade", 0)
        lost = self._lost(start["offset"], bounds)
        first = self._broker.first_from(max(start["offset"], bounds.oldest))
        if first is None or first[0] >= head:
            # Offsets that no message has. Nothing to read, unless a loss is to be counted.
            if not lost:
                return start
            return stands_at(queue, bounds, min(bounds.oldest, head), start["lost"] + lost, remade)
        end = min(head, first[0] + most) if most else head
        return stands_at(queue, bounds, end, start["lost"] + lost, remade)

    def kept_range(self, start: Offset, end: Offset) -> LogRange:
        """What a micro-batch reads: without the offsets in front of it that no message has."""
        nothing = LogRange(start["offset"], start["offset"])
        if start["offset"] >= end["offset"] or start.get("remade", 0) != end.get("remade", 0):
            return nothing  # the batch in which the query went on elsewhere
        bounds = self.bounds(fresh=True)
        if self._is_elsewhere(end, bounds) and end.get("creation") != bounds.creation:
            return nothing  # the next batch goes on elsewhere, and says so in its offset
        self._lost(start["offset"], bounds)
        first = self._broker.first_from(max(start["offset"], bounds.oldest))
        if first is None or first[0] >= end["offset"]:
            return nothing
        return LogRange(
            first[0],
            end["offset"],
            self._options.fairness_key,
            creation=bounds.creation,
            queue=self._options.queue,
        )

    def _head(self, bounds: LogBounds) -> int:
        return bounds.head if self._fixed is None else min(bounds.head, self._fixed.head)

    # --- which queue it is ------------------------------------------------------------------

    def _is_elsewhere(self, at: Offset, bounds: LogBounds) -> bool:
        """Whether an offset means nothing in the queue that is there now. Raises DataLoss where that is not to be."""
        problem = what_is_wrong(self._options.queue, bounds, at)
        if not problem:
            return False
        if self._options.fail_on_data_loss:
            raise DataLoss(
                f"{problem}. Begin anew with another checkpointLocation, or set failOnDataLoss to false to go on with "
                "what is there"
            )
        log.warning("%s", problem)
        return True

    def _go_on(self, start: Offset) -> Offset:
        """A batch without rows that moves the query to the queue that is there now."""
        bounds = self.bounds(fresh=True)
        self._began = self._holds = False
        self._moved_to, self._caught_up = 0, None
        if self._fixed is not None:
            self._fixed = bounds
        return gone_on(self._options.queue, bounds, start)

    # --- what the log no longer has ---------------------------------------------------------

    def _lost(self, start: int, bounds: LogBounds) -> int:
        """How many offsets from `start` on are gone. Raises DataLoss where that is not to be.

        Offsets also jump without a loss: after a restart the broker goes on behind the block it had reserved. Then
        an empty log looks as if it had lost that block, and only the time tells: what was appended after this query
        had caught up cannot be gone while the queue's settings still keep it.
        """
        gone = bounds.oldest - start
        if gone <= 0 or self._is_only_a_jump(start):
            return 0
        self._tell_loss(start, bounds)
        return gone

    def _tell_loss(self, start: int, bounds: LogBounds) -> None:
        problem = (
            f"queue {self._options.queue} no longer keeps offsets {start} to {bounds.oldest - 1}, which this query has "
            f"not read; the first that is kept is {bounds.oldest}. Keep messages longer than the longest pause of the "
            "query (option channel, or the queue's retention), and set failOnDataLoss to false to go on without them"
        )
        if self._options.fail_on_data_loss:
            raise DataLoss(problem)
        log.warning(problem)

    def _is_only_a_jump(self, start: int) -> bool:
        kept_s = self._kept_s(self._broker.keeping())
        if kept_s == float("inf"):
            return True
        caught_up = self._caught_up
        return caught_up is not None and caught_up[0] >= start and self._now_s() - caught_up[1] < kept_s

    def _kept_s(self, keeping: Keeping) -> float:
        """How long the queue keeps what this query has not read, at least."""
        if keeping.hard_bytes:
            return 0.0
        hard_s = keeping.hard_period_ms / 1000 if keeping.hard_period_ms else float("inf")
        return hard_s if self._holds else min(hard_s, keeping.soft_period_ms / 1000)

    # --- the channel ------------------------------------------------------------------------

    def _begin(self, start: int) -> None:
        """Once a process: see that what is not read yet will be kept."""
        if self._began:
            return
        channel = self._options.channel
        if channel and not self._holds:
            self._holds = self._broker.channel_exists(channel)
        if channel and not self._holds:
            # Somebody deleted it, and what was unread with it.
            self._lost(start, self.bounds(fresh=True))
            self._place_channel(start)
        if not channel and self._options.fail_on_data_loss:
            keeping = self._broker.keeping()
            if not (keeping.soft_period_ms or keeping.soft_bytes):
                queue, more = self._options.queue, self._options.queues
                raise OptionInvalid(
                    "queues" if more else "channel",
                    f"{'cannot be read' if more else 'must be given'}, because queue {queue} keeps no message that all "
                    "its channels are done with, so a stream would miss what is acked before it is read; "
                    f"{'' if more else 'or '}give the queue a soft retention, or set failOnDataLoss to false",
                )
        self._began = True

    def _place_channel(self, start: int) -> None:
        channel = self._options.channel
        if not channel:
            return
        if self._broker.channel_exists(channel):
            self._broker.seek_channel(channel, start)
        else:
            self._broker.create_channel(channel, start)
        self._holds = True
        self._moved_to = start
        self._moves_at_s = self._now_s() + CHANNEL_MOVES_S

    def _move_channel(self, start: Offset) -> None:
        """Let the channel be done with what the checkpoint has; never faster than CHANNEL_MOVES_S."""
        offset = start["offset"]
        if not self._options.channel or offset <= self._moved_to or self._now_s() < self._moves_at_s:
            return
        if self._is_elsewhere(start, self.bounds(fresh=True)):
            return
        self._broker.seek_channel(self._options.channel, offset)
        self._moved_to = offset
        self._moves_at_s = self._now_s() + CHANNEL_MOVES_S
