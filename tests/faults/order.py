"""Faults of what users ask to be kept in order: a key's messages, what was taken back, the moments of schedules."""

from __future__ import annotations

from tests.faults.fault import Fault

IN_ORDER, IN_ORDER_SIMULATED = "core/test_key_order.py", "simulation/test_key_order.py"

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
        "formats/records.pyx",
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
