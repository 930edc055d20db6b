"""Faults of a group's owner: what leaves before the log has it, what the store gets too soon, what a stall takes."""

from __future__ import annotations

from tests.faults.fault import Fault

TESTS = "core/test_group.py"
STALLS = "core/test_group_stalls.py"
WORLD = "simulation/test_group_world.py"
COPIES = "core/test_group_copies.py"

GROUP = (
    Fault(
        "a-delivery-and-an-emptiness-leave-with-the-pass",
        "lifecycle/answers.pyx",
        "        if effect.epoch == 0 and core.shared.in_group:\n            effect.epoch = core.epoch\n",
        "",
        (TESTS, WORLD),
    ),
    Fault(
        "an-append-is-a-confirmation",
        "runtime/confirming.pyx",
        "        record.part += 1\n    _give(group)\n",
        "        record.part += 1\n    _give(group)\n    atomic_store(&core.shared.durable, core.epoch)\n",
        (TESTS, WORLD),
    ),
    Fault(
        "the-store-gets-what-is-appended",
        "runtime/commit.pyx",
        "    batch_clear(core.settles)\n    batch_clear(core.apart)\n    batch_clear(core.enqueues)\n"
        "    core.sync_wanted = True\n",
        "    store_write(core.store, core.enqueues, core.error)\n"
        "    batch_clear(core.settles)\n    batch_clear(core.apart)\n    batch_clear(core.enqueues)\n"
        "    core.sync_wanted = True\n",
        (TESTS, WORLD),
    ),
    Fault(
        "an-outage-counts-against-leases",
        "runtime/confirming.pyx",
        "        end_ns = _oldest(group).core_ns + AHEAD_NS\n",
        "        pass\n",
        (STALLS,),
    ),
    Fault(
        "what-was-appended-is-refused",
        "runtime/commit.pyx",
        "    elif not group_append(core):\n",
        "    elif not group_append(core) or core.counters.passes % 16 == 0:\n",
        (WORLD,),
    ),
    Fault(
        "a-pass-counts-with-its-first-part-at-its-owner",
        "runtime/confirming.pyx",
        "        _send(core, &record, core.epoch if at == length else 0)\n",
        "        _send(core, &record, core.epoch)\n",
        (TESTS, WORLD),
    ),
    Fault(
        "a-log-that-stands-is-given-more",
        "runtime/confirming.pyx",
        "    stands = stands or (group.count > 0 and group.host_ns - _oldest(group).host_ns > STANDS_NS)\n",
        "",
        (STALLS,),
    ),
    Fault(
        "a-store-says-that-it-is-further-than-it-is",
        "formats/applying.pyx",
        "    applied.seq, applied.chain, applied.wall_ms = reading.seq, reading.chain, reading.wall_ms\n",
        "    applied.seq, applied.chain, applied.wall_ms = reading.seq + 1, reading.chain, reading.wall_ms\n",
        (TESTS, WORLD),
    ),
    Fault(
        "a-copy-forgets-the-terms-that-ended-too-soon",
        "log/reading.pyx",
        "    return reading.short_terms + 1\n",
        "    return 1\n",
        (TESTS, "log/test_reading.py"),
    ),
    Fault(
        "an-owner-whose-log-confirms-nothing-stays",
        "runtime/confirming.pyx",
        "    if not is_late or host_ns - group.tried_ns < TRY_NS:\n",
        "    if True:\n",
        (STALLS,),
    ),
    Fault(
        "an-owner-resigns-though-nobody-can-read",
        "runtime/confirming.pyx",
        "    return read.count > 0 or read.end >= 0\n",
        "    return True\n",
        (STALLS,),
    ),
    Fault(
        "a-queues-log-is-shown-without-a-record",
        "runtime/confirming.pyx",
        "    if atomic_load(&group.looked) >= look:\n",
        "    if True:\n",
        (STALLS, WORLD),
    ),
    Fault(
        "an-owner-that-was-deposed-goes-on",
        "runtime/confirming.pyx",
        "    if step == OWNER_RESIGNS:\n        _ends(group, GROUP_RESIGNS)\n",
        "    if step == OWNER_RESIGNS:\n        pass\n",
        (TESTS, WORLD),
    ),
    Fault(
        "a-sync-tells-of-what-is-not-applied",
        "runtime/confirming.pyx",
        "    cdef uint64_t end = atomic_load(&group.applying.end)\n",
        "    cdef uint64_t end = <uint64_t> (group.reading.position + 2)\n",
        (COPIES, "simulation/test_truncating_world.py"),
    ),
    Fault(
        "a-copy-of-barriers-alone-never-says-how-far-it-is",
        "formats/applying.pyx",
        "    if applying.reading.position < <int64_t> applying.end + BARRIERS_UNSAID_MAX:\n",
        "    if True:\n",
        (COPIES,),
    ),
    Fault(
        "a-copy-looks-for-a-record-that-is-truncated",
        "runtime/confirming.pyx",
        "    if read.end >= 0 and read.start == reading.position + 1:\n",
        "    if False:\n",
        (COPIES,),
    ),
)
