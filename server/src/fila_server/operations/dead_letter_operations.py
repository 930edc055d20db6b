"""Long operations on dead letters: redrive, delete, purge, in the broker; a closed tab stops nothing.

    look   a page of the dead-letter queue
    sift   those that the filter means
    do     move them back (redrive.py), or drop them
    tell   watchers, and once a second and before each long pause the record of it, from which a restart knows how far
           it had come

One operation runs on a queue at a time, and RUNNING_MAX in all. What it did stays done and counted, however it ends: a
cancellation waits for the page at hand, and a server that drains waits for the last record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import structlog

from fila.v1 import admin_pb2
from fila.v1 import operation_pb2 as pb
from fila.v1.messages_pb2 import Message
from fila_server import errors
from fila_server.access.admission import Caller
from fila_server.broker.calls import NOBODY, Broker
from fila_server.broker.mirror import DLQ_SUFFIX
from fila_server.core.protocol import commands, seam_frames
from fila_server.events import emit
from fila_server.hooks.packed import KeyLimits
from fila_server.operations.redrive import PAGE_MESSAGES_MAX, PAGES_A_SECOND, Redrive, drop, pause

log = structlog.get_logger("fila_server.operations.dead_letter_operations")

RUNNING_MAX = 8
ENDED_KEPT = 100
WATCHERS_MAX = 100
RECORD_EVERY_S = 1.0
REPORT_EVERY_S = 0.5
OVERLOADED_RETRY_S = 0.1
RECORD_TRIES = 20
"""Of how an operation ended, while the broker is overloaded."""

_PREFIX = b"operation/"
_RUNNING = pb.Operation.STATE_RUNNING
_NO_FILTER = pb.DeadLetterFilter()


class _Run:
    """One operation that runs, or has ended."""

    def __init__(self, operation: pb.Operation) -> None:
        self.operation = operation
        self.task: asyncio.Task[None] | None = None
        self.changed = asyncio.Event()
        self.recorded_s = 0.0

    def report(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


class DeadLetterOperations:
    """All operations. Belongs to the loop's thread."""

    def __init__(
        self, broker: Broker, key_limits: KeyLimits, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._broker = broker
        self._key_limits = key_limits
        self._now_s = now_s
        self._runs: dict[str, _Run] = {}
        self._loading: asyncio.Future[None] | None = None
        self._watchers = 0
        self._draining = asyncio.Event()
        broker.at_drain(self._stop)

    # --- what is asked --------------------------------------------------------------------------

    async def start(self, request: pb.StartOperationRequest, caller: Caller) -> pb.Operation:
        """Check, record, and begin. Raises QueueNotFound, Invalid, Conflict, SourceQueueGone, LimitExceeded."""
        await self._load()
        dlq = request.dlq_queue
        total, up_to_offset = await self._extent(request)
        running = [run for run in self._runs.values() if run.operation.state == _RUNNING]
        if any(run.operation.request.dlq_queue == dlq for run in running):
            raise errors.Conflict(
                f'an operation runs on "{dlq}" already; wait for its end, or cancel it (ListOperations tells its id)'
            )
        if len(running) >= RUNNING_MAX:
            raise errors.LimitExceeded(
                "operations", f"that run must be at most {RUNNING_MAX}; wait for one to end"
            )
        now_ms = time.time_ns() // 1_000_000
        operation = pb.Operation(
            id=f"{now_ms:013d}-{os.urandom(4).hex()}",
            request=request,
            state=_RUNNING,
            total=total,
            principal=caller.name if caller.number is not None else "",
            peer=caller.peer,
        )
        operation.started_at.FromMilliseconds(now_ms)
        run = self._runs[operation.id] = _Run(operation)
        try:
            await self._record(run)
        except BaseException:  # its caller's deadline, too: what has no task must not count as running
            del self._runs[operation.id]
            raise
        run.task = asyncio.get_running_loop().create_task(self._run(run, up_to_offset))
        self._emit("operation.started", operation)
        await self._forget_old()
        return operation

    async def listed(self, dlq: str, sees: Callable[[str], bool]) -> list[pb.Operation]:
        """Newest first. Raises QueueNotFound."""
        self._check_there(dlq)
        await self._load()
        return [
            run.operation
            for _, run in sorted(self._runs.items(), reverse=True)
            if dlq in ("", run.operation.request.dlq_queue) and sees(run.operation.request.dlq_queue)
        ]

    async def cancel(self, dlq: str, operation_id: str) -> pb.Operation:
        """End it after the page at hand; one that has ended stays as it is. Raises NotFound."""
        run = await self._find(dlq, operation_id)
        if run.task is not None and run.operation.state == _RUNNING:
            run.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(asyncio.gather(run.task, return_exceptions=True))
        return run.operation

    async def watch(self, dlq: str, operation_id: str) -> AsyncGenerator[bytes, None]:
        """How it stands, until it has ended. Raises NotFound, Overloaded."""
        run = await self._find(dlq, operation_id)
        if self._watchers >= WATCHERS_MAX:
            raise errors.Overloaded(f"watchers: {WATCHERS_MAX} watch already, and no more may; end one first")
        self._watchers += 1
        draining = asyncio.Event()

        def end() -> None:
            draining.set()
            run.report()

        stay = self._broker.at_drain(end)
        try:
            while True:
                changed, state = run.changed, run.operation.state
                yield pb.WatchOperationResponse(operation=run.operation).SerializeToString()
                # It may have ended while this was read: then that is told, too.
                if state != _RUNNING or draining.is_set():
                    return
                await changed.wait()
                await asyncio.sleep(REPORT_EVERY_S)
        finally:
            self._watchers -= 1
            stay()

    def _stop(self) -> asyncio.Future[list[BaseException | None]] | None:
        """End what runs, after the page at hand; done when each has left its record."""
        self._draining.set()
        tasks = [run.task for run in self._runs.values() if run.task is not None and not run.task.done()]
        return asyncio.gather(*tasks, return_exceptions=True) if tasks else None

    # --- one operation --------------------------------------------------------------------------

    async def _extent(self, request: pb.StartOperationRequest) -> tuple[int, int]:
        """How many dead letters there are, and the last one that is meant."""
        dlq = request.dlq_queue
        source = dlq.removesuffix(DLQ_SUFFIX)
        asked = admin_pb2.GetStatsRequest(queue=dlq, max_keys=1)
        reply = await self._broker.call(commands.GET_STATS, asked.SerializeToString())
        if source == dlq:
            raise errors.Invalid(
                "dlq_queue", f'must be a dead-letter queue, named <queue>{DLQ_SUFFIX}, got "{dlq}"'
            )
        if request.kind == pb.StartOperationRequest.KIND_REDRIVE and source not in self._broker.queue_configs:
            raise errors.SourceQueueGone(dlq, source)
        stats = admin_pb2.GetStatsResponse.FromString(reply)
        return stats.depth, stats.head_offset - 1

    async def _run(self, run: _Run, up_to_offset: int) -> None:
        operation = run.operation
        state, why = pb.Operation.STATE_FAILED, ""
        try:
            await self._walk(run, up_to_offset)
            state = pb.Operation.STATE_DONE
        except asyncio.CancelledError:
            state = pb.Operation.STATE_CANCELLED
        except errors.Unavailable:
            state = pb.Operation.STATE_STOPPED
        except errors.FilaServerError as error:
            why = error.message
        except Exception:
            log.exception("operation.failed", id=operation.id)
            why = "the server failed on it; its log says how"
        operation.state, operation.error = state, why
        operation.ended_at.FromMilliseconds(time.time_ns() // 1_000_000)
        await self._record_the_end(run)
        run.report()
        self._emit("operation.ended", operation)

    async def _walk(self, run: _Run, up_to_offset: int) -> None:
        operation = run.operation
        rate = operation.request.rate_per_second
        began_s = self._now_s()
        most = PAGE_MESSAGES_MAX if not rate else max(1, min(PAGE_MESSAGES_MAX, int(rate / PAGES_A_SECOND)))
        while operation.last_offset < up_to_offset:
            try:
                page = await self._look(operation.request.dlq_queue, operation.last_offset, most)
                page = [message for message in page if message.metadata.offset <= up_to_offset]
                if not page:
                    return
                # A cancel leaves a page done or not, and counted.
                await _to_its_end(self._take(operation, page))
            except errors.Overloaded:
                await asyncio.sleep(OVERLOADED_RETRY_S)
                continue
            run.report()
            if operation.last_offset >= up_to_offset:
                return
            pause_s = began_s + operation.done / rate - self._now_s() if rate else 0.0
            if max(pause_s, self._now_s() - run.recorded_s) >= RECORD_EVERY_S:
                with contextlib.suppress(errors.Overloaded):  # the next page tries again
                    await self._record(run)
            await pause(pause_s, self._draining)

    async def _look(self, dlq: str, after_offset: int, most: int) -> list[Message]:
        asked = admin_pb2.PeekMessagesRequest(queue=dlq, max_messages=most, after_offset=after_offset)
        reply = await self._broker.call(commands.PEEK_MESSAGES, asked.SerializeToString())
        return list(admin_pb2.PeekMessagesResponse.FromString(reply).messages)

    async def _take(self, operation: pb.Operation, page: Sequence[Message]) -> None:
        """Move or drop those of a page that are meant, and count them as they go: what comes after may fail."""
        request, stuck = operation.request, 0
        meant = [each.metadata.offset for each in page if means(request.filter, each)]
        if meant and request.kind == pb.StartOperationRequest.KIND_REDRIVE:
            asked = admin_pb2.RedriveRequest(dlq_queue=request.dlq_queue)
            async for moved, left in Redrive(self._broker, asked, self._key_limits).move_named(meant):
                operation.done += moved
                stuck += left
        elif meant:
            async for dropped in drop(self._broker, request.dlq_queue, meant):
                operation.done += dropped
        operation.stuck += stuck
        operation.looked_at += len(page)
        operation.last_offset = page[-1].metadata.offset

    # --- records --------------------------------------------------------------------------------

    async def _load(self) -> None:
        """Once: what ran when the broker stopped has stopped with it."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._read_records())
        try:
            await asyncio.shield(self._loading)
        except errors.FilaServerError:
            self._loading = None
            raise

    async def _read_records(self) -> None:
        page = seam_frames.OperationRecordsPage(prefix=_PREFIX, most=ENDED_KEPT + RUNNING_MAX)
        reply = await self._broker.call(commands.OPERATION_RECORDS_READ, page.SerializeToString())
        for record in seam_frames.OperationRecords.FromString(reply).records:
            operation = pb.Operation.FromString(record.value)
            if operation.state == _RUNNING:
                operation.state = pb.Operation.STATE_STOPPED
            self._runs.setdefault(operation.id, _Run(operation))

    async def _record_the_end(self, run: _Run) -> None:
        for _ in range(RECORD_TRIES):
            try:
                await self._record(run)
            except errors.Overloaded:
                await asyncio.sleep(OVERLOADED_RETRY_S)
            except errors.FilaServerError:
                return  # a disk that refuses: a restart says that it stopped
            else:
                return

    async def _record(self, run: _Run) -> None:
        change = seam_frames.OperationRecordsChange()
        change.records.add(key=_PREFIX + run.operation.id.encode(), value=run.operation.SerializeToString())
        if self._broker.is_draining:
            # It takes no more calls, but it stores what is left with it.
            self._broker.post(commands.OPERATION_RECORDS_CHANGE, NOBODY, change.SerializeToString())
        else:
            await self._broker.call(commands.OPERATION_RECORDS_CHANGE, change.SerializeToString())
        run.recorded_s = self._now_s()

    async def _forget_old(self) -> None:
        ended = sorted(each for each, run in self._runs.items() if run.operation.state != _RUNNING)
        change = seam_frames.OperationRecordsChange()
        for operation_id in ended[:-ENDED_KEPT]:
            del self._runs[operation_id]
            change.records.add(key=_PREFIX + operation_id.encode())
        if change.records:
            await self._broker.call(commands.OPERATION_RECORDS_CHANGE, change.SerializeToString())

    def _check_there(self, dlq: str) -> None:
        if dlq and dlq not in self._broker.queue_configs:
            raise errors.QueueNotFound(dlq)

    async def _find(self, dlq: str, operation_id: str) -> _Run:
        self._check_there(dlq)
        await self._load()
        run = self._runs.get(operation_id)
        if run is None or run.operation.request.dlq_queue != dlq:
            raise errors.NotFound(
                f'id: there is no operation "{operation_id[:64]}" on "{dlq}"; ListOperations tells which there are',
                reason="OPERATION_NOT_FOUND",
            )
        return run

    @staticmethod
    def _emit(kind: str, operation: pb.Operation) -> None:
        emit(
            kind,
            queue=operation.request.dlq_queue,
            principal=operation.principal,
            peer=operation.peer,
            count=max(1, operation.done),
            id=operation.id,
            what=pb.StartOperationRequest.Kind.Name(operation.request.kind).removeprefix("KIND_").lower(),
            state=pb.Operation.State.Name(operation.state).removeprefix("STATE_").lower(),
        )


def means(wanted: pb.DeadLetterFilter, message: Message) -> bool:
    """Whether the filter means this dead letter."""
    if wanted == _NO_FILTER:
        return True
    letter = message.metadata.dead_letter
    # What somebody put there by hand died of nothing: it counts from when it was put there.
    by_hand = not message.metadata.HasField("dead_letter")
    at_ms = (message.timestamps.appended_at if by_hand else letter.at).ToMilliseconds()
    return (
        wanted.fairness_key in ("", message.metadata.fairness_key)
        and wanted.reason in ("", letter.reason)
        and wanted.error in letter.last_error
        and wanted.source_channel in ("", letter.source_channel)
        and (not wanted.HasField("died_from") or at_ms >= wanted.died_from.ToMilliseconds())
        and (not wanted.HasField("died_before") or at_ms < wanted.died_before.ToMilliseconds())
    )


async def _to_its_end(work: Awaitable[None]) -> None:
    """What is under way comes to its end, and only then a cancellation counts."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():  # a second cancel waits as well
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await asyncio.shield(task)
        raise
