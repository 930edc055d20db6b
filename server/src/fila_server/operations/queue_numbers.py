"""A queue's channels in numbers, and many queues together, as a snapshot of the core has them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence

from fila.v1 import watch_pb2 as pb
from fila_server.broker.mirror import DLQ_SUFFIX
from fila_server.telemetry.snapshot import Channel, Queue, Snapshot, text_of

Place = tuple[str, str]
"""Queue and channel."""
Totals = tuple[int, int, int, int, int]
"""Enqueued, delivered, acked, failed and returned."""
NOTHING: Totals = (0, 0, 0, 0, 0)
QUEUES_REPORTED_MAX = 2_000
"""Of all queues, one by one; the core tells of no more."""

_DLQ = DLQ_SUFFIX.encode()


def leading(queues: Sequence[Queue], most: int) -> list[list[Queue]]:
    """The queues in which most waits, and of equal ones those with letters and the busiest; each with its dead-letter
    queue behind it, if that is added."""
    by_name = {queue.name: queue for queue in queues}

    def letters(queue: Queue) -> int:
        dlq = by_name.get(queue.name + _DLQ)
        return dlq.depth if dlq is not None else 0

    own = (
        each for each in queues if each.name.removesuffix(_DLQ) not in by_name or not each.name.endswith(_DLQ)
    )
    led = heapq.nlargest(
        most, own, lambda each: (each.depth, letters(each), each.counts.enqueued + each.counts.delivered)
    )
    return [[each, by_name[each.name + _DLQ]] if each.name + _DLQ in by_name else [each] for each in led]


def state_of(place: Place, queue: Queue, channel: Channel) -> pb.QueueState:
    """One channel as its watchers are told it, without rates."""
    return pb.QueueState(
        queue=place[0],
        channel=place[1],
        ready=channel.ready,
        delayed=channel.delayed,
        in_flight=channel.in_flight,
        consumers=channel.consumers,
        active_keys=channel.active_keys,
        oldest_age_ms=channel.oldest_ms,
        oldest_lease_age_ms=channel.oldest_lease_ms,
        enqueued_total=queue.counts.enqueued,
        leased_total=channel.leased,
        delivered_total=channel.delivered,
        acked_total=channel.acked,
        failed_total=channel.failed,
        returned_total=channel.returned,
        dead_lettered_total=queue.counts.dead_lettered,
        stored_bytes=queue.stored_bytes,
        served_total=channel.served / 1000,
        paused=bool(channel.is_paused),
    )


def totals_of(state: pb.QueueState) -> Totals:
    """What rates are taken from."""
    return (
        state.enqueued_total, state.delivered_total, state.acked_total, state.failed_total, state.returned_total,
    )  # fmt: skip


def tell_rates(state: pb.QueueState, before: Totals, passed_s: float) -> None:
    """Put what happened a second since `before`."""
    (
        state.arriving_per_second, state.delivered_per_second, state.acked_per_second, state.failed_per_second,
        state.returned_per_second,
    ) = _rates(before, totals_of(state), passed_s)  # fmt: skip


def tell_rates_of_sums(sums: pb.QueueSums, before: Totals, now: Totals, passed_s: float) -> None:
    """Put what happened a second since `before`, in all of the queues."""
    (
        sums.arriving_per_second, _, sums.acked_per_second, sums.failed_per_second, sums.returned_per_second,
    ) = _rates(before, now, passed_s)  # fmt: skip


def _rates(before: Totals, now: Totals, passed_s: float) -> list[float]:
    # What is less than before is of queues that were deleted meanwhile.
    return [max(0, new - old) / passed_s for new, old in zip(now, before, strict=True)]


def sums_of_all(snapshot: Snapshot) -> tuple[pb.QueueSums, Totals]:
    """All queues there are, as the core added them up."""
    added = snapshot.sums
    assert added is not None
    sums = pb.QueueSums(
        queues=added.queues,
        waiting=added.waiting,
        in_flight=added.in_flight,
        oldest_age_ms=added.oldest_ms,
        dead_letters=added.dead_letters,
    )
    return sums, (added.enqueued, 0, added.acked, added.failed, added.returned)


def sums_of_some(snapshot: Snapshot, sees: Callable[[str, str], bool]) -> tuple[pb.QueueSums, Totals]:
    """Those channels that `sees` lets through, added up as core/admin/metrics.pyx does; of the busiest queues, where
    the core had no room for all."""
    sums = pb.QueueSums(partial=bool(snapshot.left_out))
    enqueued = acked = failed = returned = 0
    for queue, channels in _seen(snapshot, sees):
        waiting = max(channel.ready + channel.delayed for channel in channels)
        if queue.name.endswith(_DLQ):
            sums.dead_letters += waiting
            continue
        sums.queues += 1
        sums.waiting += waiting
        enqueued += queue.counts.enqueued
        for channel in channels:
            sums.in_flight += channel.in_flight
            acked, failed = acked + channel.acked, failed + channel.failed
            returned += channel.returned
            if channel.ready or channel.delayed:
                sums.oldest_age_ms = max(sums.oldest_age_ms, channel.oldest_ms)
    return sums, (enqueued, 0, acked, failed, returned)


def _seen(snapshot: Snapshot, sees: Callable[[str, str], bool]) -> Iterator[tuple[Queue, list[Channel]]]:
    for queue in snapshot.queues:
        name = text_of(queue.name)
        if channels := [channel for channel in queue.channels if sees(name, text_of(channel.name))]:
            yield queue, channels
