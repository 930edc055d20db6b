"""Dead letters back to where they failed, page by page, so that `fila dlq redrive` can say how far it has come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fila_cli.progress import Progress
from fila_cli.session import Session, Stopped

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import RedriveRequest, RedriveResponse

_PAGE_MESSAGES_MAX = 1_000
_PAGES_A_SECOND = 4


class Redrive:
    """Moves dead letters page by page, with what is pending at its start as its end."""

    def __init__(
        self,
        session: Session,
        dlq: str,
        *,
        count: int = 0,
        rate: float | None = None,
        offsets: list[int] | None = None,
    ) -> None:
        self._session = session
        self._dlq = dlq
        self._count = count
        self._rate = rate
        self._offsets = offsets

    def run(self) -> RedriveResponse:
        """Return what was moved in all. Raises Stopped with what was moved so far; what else ends it is raised
        once that was told."""
        from fila.v1 import admin_pb2

        session = self._session
        done = admin_pb2.RedriveResponse()
        asked = admin_pb2.GetStatsRequest(queue=self._dlq, max_keys=1)
        stats = session.admin.GetStats(asked, timeout=session.timeout_s)
        total = (
            len(self._offsets) if self._offsets is not None else min(self._count or stats.depth, stats.depth)
        )
        request = admin_pb2.RedriveRequest(dlq_queue=self._dlq, up_to_offset=max(1, stats.head_offset - 1))
        began_s = time.monotonic()
        with Progress("dead letter", total, told_as="moved back") as progress:
            try:
                while self._next_page(request, done):
                    answer = session.admin.Redrive(request, timeout=session.timeout_s)
                    _add(done, answer)
                    progress.add(answer.redriven)
                    if self._is_over(request, answer, done):
                        break
                    request.after_offset = answer.last_offset
                    if self._rate:
                        time.sleep(max(0.0, began_s + done.redriven / self._rate - time.monotonic()))
            except KeyboardInterrupt:
                raise Stopped(f"{progress.summary()} moved back; the rest stay in {self._dlq}") from None
        return done

    def _next_page(self, request: RedriveRequest, done: RedriveResponse) -> bool:
        """Say in the request what the next page is; False when there is none."""
        size = _PAGE_MESSAGES_MAX
        if self._rate:
            size = max(1, min(size, int(self._rate / _PAGES_A_SECOND)))
        if self._offsets is not None:
            named = [offset for offset in self._offsets if offset > done.last_offset][:size]
            del request.offsets[:]
            request.offsets.extend(named)
            return bool(named)
        request.count = min(size, self._count - done.redriven) if self._count else size
        return True

    def _is_over(self, request: RedriveRequest, answer: RedriveResponse, done: RedriveResponse) -> bool:
        if self._offsets is not None:
            return answer.last_offset >= self._offsets[-1]
        # A page that is not full has met the end, and so has one that came as far as the last dead letter.
        is_last = answer.redriven < request.count or answer.last_offset >= request.up_to_offset
        return is_last or (self._count > 0 and done.redriven >= self._count)


def _add(done: RedriveResponse, answer: RedriveResponse) -> None:
    done.redriven += answer.redriven
    done.stuck += answer.stuck
    done.last_offset = answer.last_offset
