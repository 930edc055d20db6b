"""Faults of what limits are shared by: tokens, lines and their turns, slots, what is kept, and what is learned."""

from __future__ import annotations

from tests.faults.fault import LYING, SIMULATED, Fault

SHARED = "simulation/test_shared_limits.py"
COMMITTED = "simulation/test_committed_rates.py"

LIMITS = (
    Fault(
        "a-bucket-takes-no-token",
        "structures/bucket.pyx",
        "cdef void bucket_take(Bucket* bucket) noexcept nogil:\n    bucket.level -= 1\n",
        "cdef void bucket_take(Bucket* bucket) noexcept nogil:\n    bucket.level -= 0.5\n",
        ("core/test_bucket.py",),
    ),
    Fault(
        "a-token-comes-back-above-the-burst",
        "structures/bucket.pyx",
        "        bucket.level = min(bucket.level + 1, bucket.burst)\n",
        "        bucket.level = bucket.level + 2\n",
        ("core/test_bucket.py",),
    ),
    Fault(
        "what-left-before-a-decrease-brings-another",
        "structures/learned_rate.pyx",
        "    if left > learned.decreased_at:\n",
        "    if True:\n",
        ("core/test_learned_rate.py",),
    ),
    Fault(
        "a-learned-rate-probes-no-slower-near-its-limit",
        "structures/learned_rate.pyx",
        "    if learned.near == 0 or rate >= BEYOND * learned.near:\n",
        "    if True:\n",
        ("core/test_learned_rate.py", "simulation/test_providers.py"),
    ),
    Fault(
        "what-goes-first-takes-nothing-of-the-committed-rate",
        "lifecycle/deliver.pyx",
        "            rate_limit_take(core, &key_committed(flow.key).limit)\n",
        "",
        (COMMITTED, "core/test_committed_rates.py"),
    ),
    Fault(
        "what-goes-first-is-charged-among-all",
        "lifecycle/deliver.pyx",
        "        ring_charge(ring, turn, cost)\n",
        "        ring_charge(&channel.ring, &flow.turn, cost)\n",
        (COMMITTED, "core/test_committed_rates.py"),
    ),
    Fault(
        "a-key-stands-first-without-a-token",
        "scheduling/eligibility.pyx",
        "        ring_park(flow.channel.committed, &first.turn)\n\n\ncdef void flow_again(",
        "        pass\n\n\ncdef void flow_again(",
        (COMMITTED, "core/test_committed_rates.py"),
    ),
    Fault(
        "the-last-throttle-key-is-skipped",
        "scheduling/throttle.pyx",
        "        found.count = kept\n",
        "        found.count = kept - 1 if kept > 1 else kept\n",
        ("core/test_parsed_frame.py", LYING),
    ),
    Fault(
        "a-line-knows-no-weights",
        "scheduling/waiters.pyx",
        "    waiter.turn.weight = flow.turn.weight\n",
        "    waiter.turn.weight = 1\n",
        (SHARED,),
    ),
    Fault(
        "a-new-weight-stays-outside-the-line",
        "scheduling/flows.pyx",
        "        ring_reweigh(&waiter.waiters.ring, &waiter.turn, weight)\n",
        "        pass\n",
        (SHARED,),
    ),
    Fault(
        "a-token-is-charged-once-too-few",
        "scheduling/waiters.pyx",
        "    ring_charge(&waiters.ring, &waiter.turn, charged)\n",
        "    ring_charge(&waiters.ring, &waiter.turn, charged if waiter.messages & 15 else 0)\n",
        (SHARED,),
    ),
    Fault(
        "who-got-a-token-forgets-its-turn",
        "scheduling/waiters.pyx",
        "    ring_charge(&waiters.ring, &waiter.turn, charged)\n",
        "    ring_leave(&waiters.ring, &waiter.turn)\n    ring_join(&waiters.ring, &waiter.turn)\n",
        (SHARED,),
    ),
    Fault(
        "what-was-thought-too-cheap-is-never-paid",
        "scheduling/waiters.pyx",
        "    waiter.owed += <int64_t> cost - _tokens_end(waiter, 1)\n",
        "    _tokens_end(waiter, 1)\n",
        (SHARED,),
    ),
    Fault(
        "a-token-that-others-took-stays-charged",
        "scheduling/waiters.pyx",
        "    waiter.owed -= _tokens_end(waiter, waiter.tokens)\n",
        "    _tokens_end(waiter, waiter.tokens)\n",
        (SHARED,),
    ),
    Fault(
        "tokens-that-came-late-wait-for-nobody",
        "lifecycle/deliver.pyx",
        "            set_wake(core, entry.set)\n",
        "            pass\n",
        (SHARED,),
    ),
    Fault(
        "a-queue-keeps-its-turn-at-a-bucket",
        "scheduling/tokens.pyx",
        "turn, TOKEN_COST):\n            ring_charge(bucket.turns, turn, TOKEN_COST)\n",
        "turn, TOKEN_COST):\n            ring_charge(bucket.turns, turn, 0)\n",
        (SHARED,),
    ),
    Fault(
        "who-had-to-wait-gets-no-ticket",
        "scheduling/tokens.pyx",
        "    ticket_take(core, sub)\n",
        "    pass\n",
        ("core/test_limits.py",),
    ),
    Fault(
        "who-gives-way-to-an-older-one-wakes-nobody",
        "scheduling/tokens.pyx",
        "    if kept != NULL:\n        set_wake(core, kept.set)\n",
        "",
        ("core/test_limits.py", SIMULATED),
    ),
    Fault(
        "a-slot-is-kept-for-a-limit-that-stands-still",
        "scheduling/keeping.pyx",
        "    return _has_slots(key) and not parts_stand_still(core, key, cost)\n",
        "    return _has_slots(key)\n",
        ("core/test_limits.py",),
    ),
    Fault(
        "who-keeps-a-slot-in-vain-goes-on-keeping-it",
        "scheduling/tokens.pyx",
        "        subqueue_keeps_nothing(core, keeper)    # it wakes this one, too\n        return\n",
        "        pass\n",
        ("core/test_limits.py",),
    ),
    Fault(
        "a-delivery-that-was-never-written-gives-back-twice",
        "scheduling/tokens.pyx",
        "            parts_give_back(bucket, slot_cost(slot))\n",
        "            parts_give_back(bucket, 2 * slot_cost(slot))\n"
        "            parts_give_back(bucket, slot_cost(slot))\n",
        ("core/test_limits.py", SIMULATED),
    ),
    Fault(
        "a-restart-forgets-who-holds-slots",
        "recovery/frames.pyx",
        "        set_held(entry_of(slot).set)\n",
        "        pass\n",
        ("core/test_limits.py", SIMULATED),
    ),
)
