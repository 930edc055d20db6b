"""What the core tells by itself, as people read it in the log. The frame is drawn in core/lifecycle/revoked.pxd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog

from fila.v1.admin_pb2 import ReadLogRequest
from fila_server.core.protocol import seam_frames
from fila_server.events import emit

log = structlog.get_logger("fila_server.broker.notices")

QUEUE_EXPIRED: Final = 1
CHANNEL_EXPIRED: Final = 2
DEAD_LETTERS_DROPPED: Final = 3
KEEPS_RETURNING: Final = 4
SINK_LOST: Final = 5
LIMIT_CLOSED: Final = 6
LIMIT_LEARNED: Final = 7
LIMIT_BUDGET: Final = 8


@dataclass(frozen=True, slots=True)
class Notice:
    """One of them."""

    what: int
    queue: str
    channel: str
    number: int
    unreported: int = 0
    """Others of its kind since the last one that was reported."""

    @classmethod
    def of(cls, payload: bytes) -> Notice:
        """Read a NOTICE's payload."""
        reported = seam_frames.Notice.FromString(payload)
        return cls(
            what=reported.what,
            queue=reported.queue.decode(),
            channel=reported.channel.decode(),
            number=reported.number,
            unreported=reported.unreported,
        )

    @property
    def ends_something(self) -> bool:
        """True when a queue or a channel is gone."""
        return self.what in (QUEUE_EXPIRED, CHANNEL_EXPIRED)

    def log(self) -> None:
        """Tell it to the log and the watchers."""
        if self.what == QUEUE_EXPIRED:
            emit("queue.expired", queue=self.queue, messages_dropped=self.number)
        elif self.what == CHANNEL_EXPIRED:
            emit("channel.expired", queue=self.queue, channel=self.channel, unfinished=self.number)
        elif self.what == DEAD_LETTERS_DROPPED:
            emit(
                "queue.dead_letters_dropped",
                queue=self.queue,
                level="warning",
                messages=self.number,
                detail="a queue that expires when idle has no dead-letter queue",
            )
        elif self.what == KEEPS_RETURNING:
            emit(
                "message.keeps_returning",
                queue=self.queue,
                channel=self.channel,
                level="warning",
                offset=self.number,
                detail="it was delivered ten times and came back before anybody had begun it; look at its "
                "consumers (fila consumer list), or take it out by hand",
            )
        elif self.what == LIMIT_BUDGET:
            emit(
                "limit.budget",
                throttle_key=self.queue,
                limit=self.channel,
                spent_percent=self.number,
                unreported=self.unreported,
            )
        elif self.what == SINK_LOST:
            emit(
                "sink.messages_lost",
                level="error",
                sink=self.queue,
                messages=self.number,
                detail="they belong to a published batch and came into no queue: a queue was deleted by force while "
                "the batch was on its way, or the disk is damaged",
            )
        elif self.what == LIMIT_CLOSED:
            emit("limit.closed", limit=self.queue, retry_after_ms=self.number)
        elif self.what == LIMIT_LEARNED:
            emit("limit.learned", limit=self.queue, per_second=self.number / 1000)


def report_lost(messages: int, payload: bytes) -> None:
    """Tell the log of messages whose bytes are gone; the core says it as a LOST answer."""
    lost = ReadLogRequest.FromString(payload)
    log.error(
        "store.messages_lost",
        queue=lost.queue,
        first_offset=lost.from_offset,
        last_offset=lost.to_offset,
        messages=messages,
        detail="their bytes on the disk are damaged; the queue goes on behind them",
    )
