"""Faults of what is on disk: what an answer promises, what a start finds, what was lost and is told."""

from __future__ import annotations

from tests.faults.fault import SIMULATED, Fault

EVERY_FILE = "store/test_every_file.py"


DURABILITY = (
    Fault(
        "answered-before-it-is-on-disk",
        "runtime/commit.pyx",
        "        atomic_store(&core.shared.wanted, core.epoch)\n        core.epoch += 1\n",
        "        atomic_store(&core.shared.wanted, core.epoch)\n"
        "        atomic_store(&core.shared.durable, core.epoch)\n        core.epoch += 1\n",
        ("core/test_engine_durable_log.py", "core/test_engine_places.py"),
    ),
    Fault(
        "an-ack-record-is-dropped",
        "lifecycle/ending.pyx",
        "        elif not frame.dying:\n            settled_record_put(core, share)\n",
        "        elif not frame.dying and frame.live > 1:\n            settled_record_put(core, share)\n",
        ("core/test_taken_apart.py::test_what_is_left_in_memory_is_what_a_restart_would_find", SIMULATED),
    ),
    Fault(
        "a-finished-frame-stays-on-disk",
        "lifecycle/ending.pyx",
        "    frame_record_delete(core, frame)\n",
        "",
        ("core/test_taken_apart.py::test_what_is_left_in_memory_is_what_a_restart_would_find", SIMULATED),
    ),
    Fault(
        "a-retry-is-forgotten-over-a-restart",
        "lifecycle/failure.pyx",
        "        state_record_ready(core, slot, channel.placed_to, channel.requeue_seq, last_lease)\n",
        "        pass\n",
        (SIMULATED,),
    ),
    Fault(
        "a-refused-batch-is-half-stored",
        "lifecycle/enqueue.pyx",
        "    queue.building.count = before\n",
        "    queue.building.count = before + (1 if queue.building.count > before else 0)\n",
        ("core/test_bounded_work.py", "core/test_engine_corners.py"),
    ),
    Fault(
        "a-refused-message-gives-its-weight",
        "lifecycle/enqueue.pyx",
        "    if refused == 0:\n        b = builder_add(core, &queue.building)\n",
        "    b = builder_add(core, &queue.building)\n"
        "    if refused == REFUSED_DEPTH and route(core, queue, command, item, b) == 0:\n"
        "        weight_brought(core, b.key, b.weight)\n"
        "        key_release(core, b.key)\n"
        "    if refused == 0:\n        b = builder_add(core, &queue.building)\n",
        ("core/test_weights.py::test_a_refused_message_gives_its_key_no_weight",),
    ),
    Fault(
        "a-refused-batch-gives-its-weights",
        "lifecycle/enqueue.pyx",
        "    if command.kind != ENQUEUE_ATOMIC:      # else once none of its neighbours was refused\n",
        "    if True:\n",
        ("core/test_weights.py::test_a_batch_that_is_refused_for_one_of_its_messages_gives_no_key_a_weight",),
    ),
    Fault(
        "a-weight-stays-though-the-disk-refused-it",
        "lifecycle/routing.pyx",
        "    while refused and i > 0:\n",
        "    while not refused and i > count:\n",
        ("core/test_weights.py::test_a_message_that_a_stall_refuses_gives_its_key_no_weight",),
    ),
    Fault(
        "a-refused-weight-takes-a-moved-ones-place",
        "lifecycle/routing.pyx",
        "    for i in range(count if refused else 0):\n        if core.brought[i].is_moved:\n",
        "    for i in range(0):\n        if core.brought[i].is_moved:\n",
        (
            "core/test_weights.py::test_a_message_that_is_moved_keeps_its_weight_where_others_are_refused_beside_it",
        ),
    ),
    Fault(
        "what-settles-is-written-behind-the-frames",
        "runtime/commit.pyx",
        "    if batch_count(core.settles):\n",
        "    if batch_count(core.enqueues):\n"
        "        status = store_write(&core.store, core.enqueues, &core.error)\n"
        "        if status == STORE_OK:\n            batch_clear(core.enqueues)\n"
        "    if status == STORE_OK and batch_count(core.settles):\n",
        ("core/test_refused_writes.py",),
    ),
    Fault(
        "a-frame-of-another-version-is-cut-up",
        "lifecycle/sending.pyx",
        "load.length == frame.body_bytes",
        "load.length >= frame.body_bytes",
        ("store/test_lost_files.py::test_an_older_version_of_a_frame_that_comes_to_light_is_never_cut_up",),
    ),
    Fault(
        "what-was-done-of-another-version-is-believed",
        "recovery/frames.pyx",
        "if bits != NULL and bits.count and bits.count != frame.count:",
        "if False:",
        ("store/test_lost_files.py::test_what_was_done_of_another_version_of_a_frame_is_not_believed",),
    ),
    Fault(
        "an-index-record-may-point-anywhere",
        "formats/index_record.pyx",
        "    if gap > record.body_bytes - record.at or length > record.body_bytes - record.at - gap:\n",
        "    if record.at > record.body_bytes:\n",
        ("store/test_lost_files.py",),
    ),
    Fault(
        "a-hole-between-two-logs-is-no-loss",
        "storage/walscan.pyx",
        "    cdef uint64_t unsynced = max(scan.next_sequence, min(sequence, scan.synced + 1))\n",
        "    cdef uint64_t unsynced = scan.next_sequence\n",
        (
            f"{EVERY_FILE}::test_a_log_in_the_middle_is_told_with_what_it_held",
            f"{EVERY_FILE}::test_what_was_answered_and_is_lost_is_counted_and_a_start_that_shall_stop_for_it_stops",
        ),
    ),
    Fault(
        "an-end-of-the-log-that-is-missing-is-no-loss",
        "storage/walscan.pyx",
        "    if 0 < scan.next_sequence <= synced:\n"
        "        _lost(&scan, scan.next_sequence, synced + 1, scan.file_name)\n",
        "",
        (
            "store/test_lost_files.py::test_a_synced_end_of_the_log_that_is_cut_off_is_damage",
            "store/test_lost_files.py::test_a_log_that_was_deleted_is_told_with_what_it_held",
        ),
    ),
    Fault(
        "a-note-that-is-gone-is-no-damage",
        "storage/log_note.pyx",
        "        store.wal.notes_missing = manifest_copy_exists(store.directory)\n",
        "",
        (
            f"{EVERY_FILE}::test_a_note_of_the_log_that_is_gone_is_damage",
            "store/test_lost_files.py::test_a_note_of_the_log_that_cannot_be_read_is_damage_and_no_loss",
        ),
    ),
    Fault(
        "every-log-is-needed",
        "storage/manifest.pyx",
        "    return max(oldest, contents.oldest_log_kept)\n",
        "    return 0\n",
        (
            "store/test_lost_files.py::test_a_log_that_went_because_its_records_are_in_tables_is_no_damage",
            "store/test_damage.py::test_a_torn_end_of_the_log_is_no_damage",
        ),
    ),
    Fault(
        "a-start-that-shall-stop-reads-no-payloads",
        "storage/opening.pyx",
        "    if status == STORE_OK and options.stop_on_damage:\n        status = _check_payloads",
        "    if status == STORE_OK and store.db == NULL:\n        status = _check_payloads",
        (
            f"{EVERY_FILE}::test_what_was_answered_and_is_lost_is_counted_and_a_start_that_shall_stop_for_it_stops",
            "store/test_lost_files.py::test_a_start_that_shall_stop_stops_for_a_payload_file_that_is_gone",
        ),
    ),
)
