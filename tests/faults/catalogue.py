"""Faults that can be planted in the compiled core, one at a time: each breaks one promise in one place.

`plant.py` builds a core with one of them and asks the tests. A fault that fewer than two tests find says that a promise
is watched too little.
"""

from __future__ import annotations

from tests.faults.durability import DURABILITY
from tests.faults.fault import LYING, SIMULATED, Fault
from tests.faults.group import GROUP
from tests.faults.limits import LIMITS
from tests.faults.log import LOG
from tests.faults.order import ORDER

FAULTS = (
    *DURABILITY,
    *ORDER,
    # --- fairness
    Fault(
        "a-turn-forgets-its-deficit",
        "structures/ring.pyx",
        "    turn.carried = False\n    _to_tail(ring, turn)\n",
        "    turn.carried = False\n    turn.deficit = 0\n    _to_tail(ring, turn)\n",
        (
            "core/test_drr.py::test_the_compiled_ring_agrees_with_one_that_walks_every_round",
            "core/test_drr.py::test_a_message_of_a_million_million_rounds_is_reached_in_one_step",
        ),
    ),
    Fault(
        "what-a-message-leaves-of-a-grant-is-forgotten",
        "structures/ring.pyx",
        "    turn.deficit = max(<int64_t>0, turn.deficit - cost)\n",
        "    turn.deficit = 0\n",
        ("core/test_drr.py::test_the_compiled_ring_agrees_with_one_that_walks_every_round",),
    ),
    Fault(
        "a-parked-key-keeps-every-grant",
        "structures/ring.pyx",
        "    turn.deficit = min(turn.deficit, _grant(ring, turn))\n\n\ncdef void ring_rejoin",
        "\n\ncdef void ring_rejoin",
        (
            "core/test_drr.py::test_the_compiled_ring_agrees_with_one_that_walks_every_round",
            "core/test_drr.py::test_a_throttled_flow_keeps_at_most_one_grant",
        ),
    ),
    Fault(
        "a-refund-above-one-grant",
        "structures/ring.pyx",
        "    turn.deficit = max(before, min(before + cost, grant))",
        "    turn.deficit = before + cost",
        (
            "core/test_drr.py::test_the_compiled_ring_agrees_with_one_that_walks_every_round",
            "core/test_drr.py::test_what_comes_back_is_paid_back_up_to_one_grant",
        ),
    ),
    Fault(
        "a-message-costs-nothing",
        "lifecycle/deliver.pyx",
        "        ring_charge(ring, turn, cost)\n",
        "        ring_charge(ring, turn, 0)\n",
        ("core/test_engine_fairness.py",),
    ),
    Fault(
        "a-cap-lets-one-more-go",
        "scheduling/eligibility.pyx",
        "    if cap and flow.in_flight >= cap:\n",
        "    if cap and flow.in_flight > cap:\n",
        ("core/test_engine_places.py", "core/test_given_back.py"),
    ),
    Fault(
        "who-stopped-is-served-before-it-is-woken",
        "lifecycle/deliver.pyx",
        "        if consumer_room(consumer) and consumer.next_stopped == NULL:",
        "        if consumer_room(consumer):",
        ("core/test_holders.py::test_consumers_of_one_name_at_its_bound_are_served_in_turn",),
    ),
    Fault(
        "what-is-given-back-at-a-bound-goes-to-who-gave-it",
        "lifecycle/ending.pyx",
        "        if consumer.holder != NULL and consumer.holder.stopped != NULL and not consumer.away:\n",
        "        if False:\n",
        ("core/test_holders.py",),
    ),
    Fault(
        "who-asks-as-a-place-is-freed-comes-before-who-waits",
        "index/holders.pyx",
        "    if holder.stopped != NULL and holder.most:\n",
        "    if False:\n",
        ("core/test_holders.py",),
    ),
    *LIMITS,
    *LOG,
    *GROUP,
    # --- attempts, retries, dead letters
    Fault(
        "a-failure-counts-no-attempt",
        "lifecycle/failure.pyx",
        "    if slot.attempts < ATTEMPTS_MAX:\n        slot.attempts += 1\n    if policy.max_attempts",
        "    if slot.attempts < 1:\n        slot.attempts += 1\n    if policy.max_attempts",
        ("core/test_engine_places.py", LYING),
    ),
    Fault(
        "one-attempt-too-many",
        "lifecycle/failure.pyx",
        "slot.attempts >= policy.max_attempts and not queue.is_dlq",
        "slot.attempts > policy.max_attempts and not queue.is_dlq",
        ("core/test_bounded_work.py",),
    ),
    Fault(
        "a-backoff-that-does-not-grow",
        "lifecycle/failure.pyx",
        "        wait *= power(2.0, <double> (attempts - 1 if attempts < 64 else 63))\n",
        "        wait *= 1.0\n",
        (LYING,),
    ),
    Fault(
        "a-dead-letter-stays-in-its-queue",
        "lifecycle/failure.pyx",
        "    ending_is(core, DEAD_LETTERED, reason, 0, 0)\n    slot_done(core, slot)\n",
        "    ending_is(core, DEAD_LETTERED, reason, 0, 0)\n    slot_ready(core, slot, False)\n",
        ("core/test_engine_clocks.py", "core/test_engine_places.py"),
    ),
    Fault(
        "what-was-returned-comes-back-last",
        "lifecycle/giveback.pyx",
        "        slot_ready(core, slot, True)\n",
        "        slot_ready(core, slot, False)\n",
        ("core/test_abandoned_pulls.py", "core/test_given_back.py"),
    ),
    Fault(
        "what-was-returned-unseen-costs-its-tokens",
        "lifecycle/giveback.pyx",
        "    if how != MAY_BE_SEEN:\n        slot_refund(core, slot, flow)\n",
        "",
        ("core/test_given_back.py", "core/test_key_rates.py"),
    ),
    Fault(
        "what-came-back-unbegun-is-called-redelivered",
        "lifecycle/giveback.pyx",
        "        _mark(slot, lease.begun)\n",
        "        _mark(slot, True)\n",
        ("core/test_sessions.py", "core/test_sessions_in_time.py"),
    ),
    Fault(
        "that-it-was-begun-is-recorded-the-first-time-alone",
        "lifecycle/giveback.pyx",
        "        not slot.marks & RECORDED or begun_first and slot.marks & RECORDED_RETURN\n",
        "        not slot.marks & RECORDED\n",
        ("core/test_sessions_in_time.py",),
    ),
    # --- leases
    Fault(
        "an-ack-settles-whatever-the-lease-names",
        "lifecycle/settle.pyx",
        "            if not has_id or (h == high and l == low):\n                return lease\n",
        "            return lease\n",
        (SIMULATED,),
    ),
    Fault(
        "an-ack-of-another-channel-counts",
        "lifecycle/settle.pyx",
        "lease != NULL and share_of(lease.slot).channel == channel and not channel.gone",
        "lease != NULL and not channel.gone",
        ("core/test_leases.py",),
    ),
    Fault(
        "an-extension-is-not-recorded",
        "lifecycle/settle.pyx",
        "    lease.extended = True\n    lease_extension_put(core, lease)\n",
        "",
        ("core/test_engine_decisions.py", "core/test_sessions_in_time.py"),
    ),
    Fault(
        "a-lease-of-a-lost-holder-ends-late",
        "lifecycle/deliver.pyx",
        "    timer_set(&core.timers, &lease.timer, lease.due_ns)\n    if consumer.kind != PULL:",
        "    timer_set(&core.timers, &lease.timer, lease.due_ns + 20000000)\n    if consumer.kind != PULL:",
        ("core/test_engine_decisions.py", "core/test_leases.py"),
    ),
    Fault(
        "lease-ids-start-again-after-a-restart",
        "lifecycle/deliver.pyx",
        '        reservation_record_put(core, b"leases", core.lease_id_reserved)\n',
        '        reservation_record_put(core, b"leases", core.next_lease_id)\n',
        ("core/test_leases.py",),
    ),
    Fault(
        "what-is-settled-unbegun-was-never-delivered",
        "lifecycle/settle.pyx",
        "    cdef Slice nothing\n    _begins(lease)\n",
        "    cdef Slice nothing\n",
        ("core/test_given_back.py", "simulation/test_session_simulation.py"),
    ),
    Fault(
        "what-is-sent-counts-as-delivered",
        "lifecycle/deliver.pyx",
        "    if not consumer.tracks_begun:\n        consumer.channel.delivered += count\n",
        "    if True:\n        consumer.channel.delivered += count\n",
        ("core/test_given_back.py", "simulation/test_session_simulation.py"),
    ),
    Fault(
        "begun-is-not-written-down",
        "lifecycle/settle.pyx",
        "    group_mark(core, lease.group, lease.lease_id, MARK_BEGUN)\n",
        "",
        ("core/test_sessions_in_time.py",),
    ),
    # --- dedup, time to live, delays, seek, retention
    Fault(
        "a-dedup-window-never-ends",
        "index/dedup.pyx",
        "    return row if row != NULL and _is_known(core, queue, row) else NULL\n",
        "    return row\n",
        ("core/test_engine_corners.py", "core/test_refused_writes.py"),
    ),
    Fault(
        "a-dedup-key-is-not-written-down",
        "index/dedup.pyx",
        "        dedup_record_put(core, core.enqueues, queue, row)\n",
        "        pass\n",
        ("core/test_engine_clocks.py",),
    ),
    Fault(
        "a-delayed-message-outlives-its-time",
        "maintenance/retention.pyx",
        "slot.state in (READY, DELAYED, UNPLACED):",
        "slot.state == READY:",
        ("core/test_engine_places.py", SIMULATED),
    ),
    Fault(
        "a-seek-skips-its-first-message",
        "lifecycle/seek.pyx",
        "        if offset < channel.start_offset:\n            continue\n        expiry",
        "        if offset <= channel.start_offset:\n            continue\n        expiry",
        ("core/test_engine_places.py", "core/test_taken_apart.py"),
    ),
    Fault(
        "a-preview-goes-by-the-frame-in-which-a-rebuild-begins",
        "admin/seek_preview.pyx",
        "channel.rebuild_at and channel.rebuild_at <= last\n",
        "channel.rebuild_at and channel.rebuild_at <= first\n",
        ("core/test_tables.py",),
    ),
    Fault(
        "retention-takes-what-is-young",
        "maintenance/retention.pyx",
        "core.wall_ms - frame.appended_ms > <int64_t> policy.hard_period_ms",
        "core.wall_ms - frame.appended_ms > <int64_t> policy.hard_period_ms // 2",
        ("core/test_engine_corners.py", "core/test_retention.py"),
    ),
    # --- what is counted
    Fault(
        "a-deleted-frame-stays-counted",
        "index/frames.pyx",
        "            frame.entries[i].key.stored_bytes -= frame.entries[i].length\n",
        "",
        ("core/test_stored_bytes.py",),
    ),
    Fault(
        "a-start-counts-no-stored-bytes",
        "recovery/frames.pyx",
        "            entry.key.stored_bytes += entry.length\n",
        "            entry.key.stored_bytes += 0\n",
        ("core/test_stored_bytes.py",),
    ),
    Fault(
        "a-cohort-that-comes-back-stands-last",
        "index/ages.pyx",
        "    if fifo.tail == NULL or fifo.tail.position <= cohort.place.position:\n",
        "    if fifo.tail == NULL or fifo.tail.position <= cohort.place.position or True:\n",
        (
            "core/test_ages.py::test_ages_agree_with_a_twin_that_looks_at_every_message",
            SIMULATED,
        ),
    ),
    Fault(
        "a-delay-ages-a-message",
        "index/ages.pyx",
        "        return frame.first_due_ms[slot.index]\n    return share.cohort",
        "        return share.cohort.place.position\n    return share.cohort",
        (
            "core/test_ages.py::test_a_delay_does_not_age_and_a_message_counts_from_its_end_whatever_fails_later",
            "core/test_ages.py::test_ages_agree_with_a_twin_that_looks_at_every_message",
        ),
    ),
    # --- threads
    Fault(
        "a-reveal-holds-the-outbox",
        "lifecycle/reveal.pyx",
        "cdef bint frame_reveal(Core* core, Frame* frame, uint64_t until) noexcept nogil:\n",
        "from fila_server.core.threads.locks cimport pthread_mutex_lock, pthread_mutex_unlock\n\n\n"
        "cdef bint frame_reveal(Core* core, Frame* frame, uint64_t until) noexcept nogil:\n"
        "    cdef bint whole\n"
        "    pthread_mutex_lock(&core.outboxes.boxes[0].lock)\n"
        "    whole = _reveal(core, frame, until)\n"
        "    pthread_mutex_unlock(&core.outboxes.boxes[0].lock)\n"
        "    return whole\n\n\n"
        "cdef bint _reveal(Core* core, Frame* frame, uint64_t until) noexcept nogil:\n",
        ("core/test_outboxes.py::test_frames_are_revealed_before_a_pass_asks_for_an_outbox",),
    ),
    Fault(
        "an-outbox-without-an-eventfd",
        "threads/outbox.pyx",
        "    if wake_fd < 0:\n        return -1\n    box",
        "    box",
        ("core/test_outboxes.py",),
    ),
    # --- bounded work, liveness
    Fault(
        "a-rewind-in-one-pass",
        "lifecycle/seek.pyx",
        "    while channel.rebuild_at and stage_goes_on(core):\n",
        "    while channel.rebuild_at:\n",
        ("core/test_taken_apart.py",),
    ),
    Fault(
        "a-channel-with-room-sleeps",
        "lifecycle/ending.pyx",
        "            if consumer.channel.ready:\n                channel_activate(core, consumer.channel)\n",
        "",
        ("core/test_given_back.py", SIMULATED),
    ),
    Fault(
        "a-capped-key-is-not-looked-at-again",
        "lifecycle/ending.pyx",
        "    flow_holds(core, flow, -1)\n    if lease.is_limited:\n",
        "    flow.in_flight -= 1\n    if lease.is_limited:\n",
        ("core/test_key_rates.py", SIMULATED),
    ),
    # --- what may trouble somebody
    Fault(
        "a-resumed-key-stays-listed",
        "scheduling/allowances.pyx",
        "        queue.paused_keys = heap_remove(queue.paused_keys, place)\n",
        "",
        (
            "core/test_troubles_page.py::test_keys_leave_the_list_in_any_order_and_with_their_queue",
            "core/test_troubles_page.py::test_paused_keys_are_told_with_what_waits_and_after_a_restart",
        ),
    ),
    Fault(
        "a-paused-channel-delivers",
        "lifecycle/deliver.pyx",
        "    if wanted == 0 or channel_paused(channel) or not leases_reserve(core, wanted):\n",
        "    if wanted == 0 or not leases_reserve(core, wanted):\n",
        (
            "core/test_paused_channels.py::test_a_paused_channel_delivers_nothing_and_the_others_go_on",
            "core/test_paused_channels.py::test_it_stays_paused_over_a_restart_and_when_it_is_made_anew",
        ),
    ),
    Fault(
        "a-sub-queue-that-waits-is-not-counted",
        "scheduling/waiters.pyx",
        "    sub.waiter.waiters.messages += sub.count\n",
        "",
        (
            "core/test_troubles_page.py::test_a_bucket_is_told_with_all_messages_that_wait_for_it_and_where",
            "core/test_troubles_page.py::test_a_sub_queue_that_a_token_woke_is_counted_until_it_is_served",
        ),
    ),
    Fault(
        "dead-letters-need-a-consumer",
        "admin/troubles.pyx",
        "    if queue.is_dlq:\n        return count\n",
        "",
        (
            "core/test_troubles_page.py::test_dead_letters_need_no_consumer",
            "core/test_troubles_page.py::test_a_dead_letter_that_fails_again_is_no_trouble_of_its_queue",
        ),
    ),
    Fault(
        "what-ever-failed-is-told-as-failing",
        "admin/troubles.pyx",
        "    return last_ns != 0 and core.mono_ns - last_ns <= <int64_t> FAILURES_QUIET_S * 1000000000\n",
        "    return last_ns != 0\n",
        (
            "core/test_troubles_page.py::test_failures_of_late_are_told_apart_from_what_ever_failed",
            "core/test_troubles_page.py::test_a_lease_that_runs_out_is_a_failure",
        ),
    ),
)
