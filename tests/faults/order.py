"""Faults of what users ask to be kept in order: a key's messages, what was taken back, the moments of schedules; and of
what producers say of how a message is shared."""

from __future__ import annotations

from tests.faults.fault import SIMULATED, Fault

REPLACED, REPLACED_SIMULATED = "core/test_replaced.py", "simulation/test_replacing.py"
REPLACED_LEASES = "core/test_replaced_leases.py"
IN_ORDER, IN_ORDER_SIMULATED = "core/test_key_order.py", "simulation/test_key_order.py"
ROUTED = "core/test_producer_routing.py"
PRIORITIES, PRIORITIES_SIMULATED = "core/test_priorities.py", IN_ORDER_SIMULATED

ORDER = (
    # --- order of a key
    Fault(
        "a-failed-message-loses-its-place-in-its-key",
        "lifecycle/failure.pyx",
        "    if channel.queue.policy.in_order:\n        channel.queue.counters.retried_in_place += 1\n",
        "    if False:\n",
        (IN_ORDER, IN_ORDER_SIMULATED),
    ),
    Fault(
        "a-retry-that-is-due-holds-its-key-for-ever",
        "index/delays.pyx",
        "    (<Delay*> slot.owner).keeps_place = True\n",
        "    (<Delay*> slot.owner).keeps_place = False\n",
        (IN_ORDER, IN_ORDER_SIMULATED),
    ),
    Fault(
        "a-retry-goes-to-the-back-over-a-restart",
        "formats/state_records.pyx",
        "    _state_later(core, slot, STATE_RETRY, delay_ms, last_lease)\n",
        "    _state_later(core, slot, STATE_DELAYED, delay_ms, last_lease)\n",
        (IN_ORDER, IN_ORDER_SIMULATED),
    ),
    Fault(
        "a-message-overtakes-the-first-of-its-key-that-waits-for-a-token",
        "scheduling/flows.pyx",
        "            and (plain == NULL or waiter.held.rank < plain.position)\n",
        "            and plain == NULL\n",
        (IN_ORDER,),
    ),
    # --- priorities inside a key
    Fault(
        "a-priority-counts-only-among-its-own-messages",
        "scheduling/waiters.pyx",
        "    cdef int64_t rank = rank_of(fifo_first(&sub.fifo).position, sub.priority)\n",
        "    cdef int64_t rank = fifo_first(&sub.fifo).position\n",
        (PRIORITIES, PRIORITIES_SIMULATED),
    ),
    Fault(
        "a-priority-is-forgotten-over-a-restart",
        "recovery/frames.pyx",
        "    entry.cost_bits = <uint32_t> found.cost_bits\n",
        "    entry.cost_bits = cost\n",
        (PRIORITIES, PRIORITIES_SIMULATED),
    ),
    Fault(
        "a-key-that-saves-does-not-look-at-what-comes-before",
        "index/slots.pyx",
        "        if old_place or _is_first(flow, slot):\n",
        "        if old_place:\n",
        (PRIORITIES,),
    ),
    Fault(
        "a-key-does-not-count-what-waits-behind-its-higher-messages",
        "admin/explain.pyx",
        "    return behind + plain if highest > PRIORITY_USUAL else behind\n",
        "    return behind\n",
        (PRIORITIES,),
    ),
    # --- what was taken back
    Fault(
        "a-cancel-is-not-recorded",
        "lifecycle/ending.pyx",
        '    core.revoking = b"CANCELLED"\n    slot_done(core, slot)\n',
        '    core.revoking = b"CANCELLED"\n    slot_stop(core, slot)\n',
        ("core/test_cancelled.py", "crash/test_kills.py"),
    ),
    Fault(
        "a-cancel-tells-no-session",
        "lifecycle/revoked.pyx",
        "    if core.revoking != NULL:\n        why = core.revoking\n",
        "    if core.revoking != NULL and core.revoking[0] == c'C':\n        return\n",
        ("core/test_cancelled.py",),
    ),
    # --- the latest wins
    Fault(
        "a-message-that-is-replaced-goes-on-waiting",
        "lifecycle/replacing.pyx",
        "    place = place_taken(old) if is_placed else 0\n    slot_replaced(core, old)\n",
        "    place = place_taken(old) if is_placed else 0\n",
        (REPLACED, REPLACED_SIMULATED),
    ),
    Fault(
        "a-successor-does-not-wait-for-the-lease",
        "lifecycle/replacing.pyx",
        "    if old.state == LEASED:\n        lease = <Lease*> old.owner\n",
        "    if old.state == LEASED:\n        return\n",
        (REPLACED, REPLACED_SIMULATED),
    ),
    Fault(
        "a-successor-is-forgotten-over-a-restart",
        "lifecycle/replacing.pyx",
        "    slot_hold_behind(slot, lease)\n    state_record_held(core, slot, before)\n",
        "    slot_hold_behind(slot, lease)\n",
        (REPLACED, REPLACED_SIMULATED),
    ),
    Fault(
        "a-place-that-was-taken-over-is-not-recorded",
        "lifecycle/replacing.pyx",
        "    slot_ready(core, slot, True)\n    state_record_in_place(core, slot)\n",
        "    slot_ready(core, slot, True)\n",
        (REPLACED,),
    ),
    Fault(
        "a-frame-does-not-name-what-it-replaces",
        "formats/records.pyx",
        "        if times[i].replaces:\n            flags |= WITH_REPLACES\n",
        "        pass\n",
        (REPLACED, REPLACED_SIMULATED),
    ),
    Fault(
        "a-message-forgets-the-lease-behind-the-one-that-it-replaces",
        "lifecycle/reveal.pyx",
        "    if times.behind:  ",
        "    if False:  ",
        (REPLACED_LEASES,),
    ),
    Fault(
        "a-start-forgets-the-lease-behind-the-one-that-was-replaced",
        "recovery/recover.pyx",
        "    dedup_take(core, queue)\n",
        "",
        (REPLACED_LEASES,),
    ),
    Fault(
        "a-dedup-key-forgets-a-message-that-is-leased-meanwhile",
        "index/dedup.pyx",
        "        row.known.before = renamed.before.offset if stands(queue, renamed.before.offset) else 0\n",
        "        row.known.before = 0\n",
        (REPLACED_LEASES,),
    ),
    Fault(
        "a-failed-message-is-tried-again-beside-its-successor",
        "lifecycle/failure.pyx",
        "    elif is_replaced:                   # the one that waits for this moment is tried instead\n",
        "    elif False:\n",
        (REPLACED, REPLACED_SIMULATED),
    ),
    Fault(
        "a-key-ends-with-its-window-though-its-message-is-pending",
        "index/dedup.pyx",
        "    row.known.lasts = True\n    row.known.before",
        "    row.known.lasts = False\n    row.known.before",
        (REPLACED, REPLACED_SIMULATED),
    ),
    # --- what producers say
    Fault(
        "a-cost-that-its-producer-said-counts-for-nothing",
        "lifecycle/routing.pyx",
        "        chosen.cost = <uint32_t> (o.cost * 1000 + 0.5)\n",
        "        pass\n",
        (ROUTED, SIMULATED),
    ),
    Fault(
        "a-queue-takes-what-its-producers-may-not-say",
        "lifecycle/routing.pyx",
        "    return policy.producers_route\n",
        "    return True\n",
        (ROUTED, SIMULATED),
    ),
    Fault(
        "a-redriven-message-forgets-what-its-producer-said",
        "lifecycle/redrive.pyx",
        "    if source.policy.producers_route and not edited.length:\n",
        "    if False:\n",
        (ROUTED, SIMULATED),
    ),
    # --- schedules
    Fault(
        "a-moment-that-is-over-fires-again",
        "lifecycle/enqueue.pyx",
        "    if schedule == NULL or schedule.is_firing or due_ms == 0 or schedule.due_ms != due_ms:\n",
        "    if schedule == NULL or due_ms == 0:\n",
        ("core/test_schedules.py",),
    ),
    Fault(
        "a-firing-leaves-its-next-moment-unwritten",
        "lifecycle/enqueue.pyx",
        "        schedule_due_put(core, queue, fields.text[seam.FIRING_SCHEDULE], fields.text[seam.FIRING_RECORD])\n",
        "        pass\n",
        ("core/test_schedules.py",),
    ),
)
