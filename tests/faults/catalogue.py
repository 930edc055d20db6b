"""Faults that can be planted in the compiled core, one at a time: each breaks one promise in one place.

`plant.py` builds a core with one of them and asks the tests. A fault that fewer than two tests find says that a promise
is watched too little.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One change of a module of the core: `text`, which stands there once, becomes `planted`."""

    name: str
    module: str
    text: str
    planted: str


FAULTS = (
    # --- fairness
    Fault(
        "a-turn-forgets-its-deficit",
        "structures/ring.pyx",
        "    turn.carried = False\n    _to_tail(ring, turn)\n",
        "    turn.carried = False\n    turn.deficit = 0\n    _to_tail(ring, turn)\n",
    ),
    Fault(
        "a-parked-key-keeps-every-grant",
        "structures/ring.pyx",
        "    turn.deficit = min(turn.deficit, _grant(ring, turn))\n\n\ncdef void ring_rejoin",
        "\n\ncdef void ring_rejoin",
    ),
    Fault(
        "a-refund-above-one-grant",
        "structures/ring.pyx",
        "    turn.deficit = max(before, min(before + cost, grant))",
        "    turn.deficit = before + cost",
    ),
    Fault(
        "a-message-costs-nothing",
        "life/deliver.pyx",
        "        ring_charge(&channel.ring, turn, entry.cost)\n",
        "        ring_charge(&channel.ring, turn, 0)\n",
    ),
    # --- limits
    Fault(
        "a-bucket-takes-no-token",
        "structures/bucket.pyx",
        "cdef void bucket_take(Bucket* bucket) noexcept nogil:\n    bucket.level -= 1\n",
        "cdef void bucket_take(Bucket* bucket) noexcept nogil:\n    bucket.level -= 0.5\n",
    ),
    Fault(
        "a-token-comes-back-above-the-burst",
        "structures/bucket.pyx",
        "        bucket.level = min(bucket.level + 1, bucket.burst)\n",
        "        bucket.level = bucket.level + 2\n",
    ),
    Fault(
        "the-last-throttle-key-is-skipped",
        "turns/throttle.pyx",
        "        found.count = kept\n",
        "        found.count = kept - 1 if kept > 1 else kept\n",
    ),
    # --- attempts, retries, dead letters
    Fault(
        "a-failure-counts-no-attempt",
        "life/failure.pyx",
        "    if slot.attempts < ATTEMPTS_MAX:\n        slot.attempts += 1\n    if policy.max_attempts",
        "    if slot.attempts < 1:\n        slot.attempts += 1\n    if policy.max_attempts",
    ),
    Fault(
        "one-attempt-too-many",
        "life/failure.pyx",
        "slot.attempts >= policy.max_attempts and not queue.is_dlq",
        "slot.attempts > policy.max_attempts and not queue.is_dlq",
    ),
    Fault(
        "a-backoff-that-does-not-grow",
        "life/failure.pyx",
        "        wait *= power(2.0, <double> (attempts - 1 if attempts < 64 else 63))\n",
        "        wait *= 1.0\n",
    ),
    Fault(
        "a-dead-letter-stays-in-its-queue",
        "life/failure.pyx",
        "    ending_is(core, DEAD_LETTERED, reason, 0, 0)\n    slot_done(core, slot)\n",
        "    ending_is(core, DEAD_LETTERED, reason, 0, 0)\n    slot_ready(core, slot, False)\n",
    ),
    Fault(
        "what-was-returned-comes-back-last",
        "life/giveback.pyx",
        "        slot_ready(core, slot, True)\n",
        "        slot_ready(core, slot, False)\n",
    ),
    Fault(
        "what-was-returned-unseen-costs-its-tokens",
        "life/giveback.pyx",
        "    if how != MAY_BE_SEEN:\n        slot_refund(core, slot)\n",
        "",
    ),
    # --- leases
    Fault(
        "an-ack-settles-whatever-the-lease-names",
        "life/settle.pyx",
        "            if not has_id or (h == high and l == low):\n                return lease\n",
        "            return lease\n",
    ),
    Fault(
        "an-ack-of-another-channel-counts",
        "life/settle.pyx",
        "lease != NULL and share_of(lease.slot).channel == channel and not channel.gone",
        "lease != NULL and not channel.gone",
    ),
    Fault(
        "an-extension-is-not-recorded",
        "life/settle.pyx",
        "    lease.extended = True\n    lease_extension_put(core, lease)\n",
        "",
    ),
    Fault(
        "a-lease-of-a-lost-holder-ends-late",
        "life/deliver.pyx",
        "    timer_set(&core.timers, &lease.timer, lease.due_ns)\n    if consumer.kind != PULL:",
        "    timer_set(&core.timers, &lease.timer, lease.due_ns + 20000000)\n    if consumer.kind != PULL:",
    ),
    Fault(
        "lease-ids-start-again-after-a-restart",
        "life/deliver.pyx",
        '        reservation_record_put(core, b"leases", core.lease_id_reserved)\n',
        '        reservation_record_put(core, b"leases", core.next_lease_id)\n',
    ),
    Fault(
        "begun-is-not-written-down",
        "life/settle.pyx",
        "    group_mark(core, lease.group, lease.lease_id, MARK_BEGUN)\n",
        "",
    ),
    # --- durability
    Fault(
        "answered-before-it-is-on-disk",
        "drive/commit.pyx",
        "        shared_store(&core.shared.wanted, core.epoch)\n        core.epoch += 1\n",
        "        shared_store(&core.shared.wanted, core.epoch)\n"
        "        shared_store(&core.shared.durable, core.epoch)\n        core.epoch += 1\n",
    ),
    Fault(
        "an-ack-record-is-dropped",
        "life/ending.pyx",
        "        elif not frame.dying:\n            settled_record_put(core, share)\n",
        "        elif not frame.dying and frame.live > 1:\n            settled_record_put(core, share)\n",
    ),
    Fault(
        "a-finished-frame-stays-on-disk",
        "life/ending.pyx",
        "    frame_record_delete(core, frame)\n",
        "",
    ),
    Fault(
        "a-retry-is-forgotten-over-a-restart",
        "life/failure.pyx",
        "        state_record_ready(core, slot, channel.placed_to, channel.requeue_seq, last_lease)\n",
        "        pass\n",
    ),
    Fault(
        "a-refused-batch-is-half-stored",
        "life/enqueue.pyx",
        "    queue.building.count = before\n",
        "    queue.building.count = before + (1 if queue.building.count > before else 0)\n",
    ),
    # --- dedup, time to live, delays, seek, retention
    Fault(
        "a-dedup-window-never-ends",
        "holdings/dedup.pyx",
        "    return row if row != NULL and row.due_ns > core.mono_ns else NULL\n",
        "    return row\n",
    ),
    Fault(
        "a-dedup-key-is-not-written-down",
        "holdings/dedup.pyx",
        "        dedup_record_put(core, core.enqueues, queue, row)\n",
        "        pass\n",
    ),
    Fault(
        "a-delayed-message-outlives-its-time",
        "care/retention.pyx",
        "slot.state in (READY, DELAYED, UNPLACED):",
        "slot.state == READY:",
    ),
    Fault(
        "a-seek-skips-its-first-message",
        "life/seek.pyx",
        "        if offset < channel.start_offset:\n            continue\n        expiry",
        "        if offset <= channel.start_offset:\n            continue\n        expiry",
    ),
    Fault(
        "retention-takes-what-is-young",
        "care/retention.pyx",
        "core.wall_ms - frame.appended_ms > <int64_t> policy.hard_period_ms",
        "core.wall_ms - frame.appended_ms > <int64_t> policy.hard_period_ms // 2",
    ),
    # --- what is counted
    Fault(
        "a-deleted-frame-stays-counted",
        "holdings/frames.pyx",
        "            frame.entries[i].key.stored_bytes -= frame.entries[i].length\n",
        "",
    ),
    Fault(
        "a-start-counts-no-stored-bytes",
        "care/frame_record.pyx",
        "            entry.key.stored_bytes += entry.length\n",
        "            entry.key.stored_bytes += 0\n",
    ),
    # --- bounded work, liveness
    Fault(
        "a-rewind-in-one-pass",
        "life/seek.pyx",
        "    while channel.rebuild_at and stage_goes_on(core):\n",
        "    while channel.rebuild_at:\n",
    ),
    Fault(
        "a-channel-with-room-sleeps",
        "life/ending.pyx",
        "        if consumer.channel.ready:\n            channel_activate(core, consumer.channel)\n",
        "",
    ),
    Fault(
        "a-capped-key-is-not-looked-at-again",
        "life/ending.pyx",
        "    flow.in_flight -= 1\n    if flow.key.cap:\n        flow_reconsider(core, flow)\n    free(lease)\n",
        "    flow.in_flight -= 1\n    free(lease)\n",
    ),
)
