"""Faults of the log that copies share: its records, the rule by which it is read, and the owner's."""

from __future__ import annotations

from tests.faults.fault import Fault

INTERLEAVED = (
    "simulation/test_log_interleavings.py::"
    "test_every_answer_is_true_over_stopped_owners_lost_reports_and_failed_records"
)
FORGED = (
    "log/test_reading.py::"
    "test_records_late_forged_and_damaged_are_skipped_or_halt_the_reader_as_the_twin_says"
)

LOG = (
    Fault(
        "an-altered-record-is-taken",
        "log/record.pyx",
        "    if crc32c(content, length) != checksum:\n        return RECORD_ALTERED\n",
        "",
        ("log/test_record.py::test_a_record_that_is_altered_or_cut_is_not_taken", FORGED),
    ),
    Fault(
        "a-bid-counts-whatever-it-deposes",
        "log/reading.pyx",
        "record.incarnation == reading.incarnation and not deposes",
        "record.incarnation == reading.incarnation and record.nonce == reading.term.nonce",
        ("log/test_reading.py::test_of_two_bids_for_one_term_the_first_in_the_log_wins", INTERLEAVED),
    ),
    Fault(
        "a-newer-incarnation-begins-with-any-copy",
        "log/reading.pyx",
        "        deposes and record.seq == reading.seq and "
        "(record.incarnation <= 1 or record.chain == reading.chain)\n",
        "        True\n",
        ("simulation/test_reseeding_world.py", "core/test_group_reseed.py", "log/test_reading.py"),
    ),
    Fault(
        "a-term-that-was-handed-over-counts-among-the-short-ones",
        "log/reading.pyx",
        "    if not record.flags & MOVED or log_short_terms(reading) == 0:\n",
        "    if True:\n",
        (
            "log/test_reading.py::test_a_term_that_was_handed_over_does_not_count_among_the_short_ones",
            FORGED,
        ),
    ),
    Fault(
        "a-record-of-any-term-counts",
        "log/reading.pyx",
        "not same_term(&record.term, &reading.term) or record.seq != reading.seq\n",
        "record.seq != reading.seq\n",
        ("log/test_reading.py::test_a_term_whose_offset_the_log_gave_out_again_is_another_term", FORGED),
    ),
    Fault(
        "a-record-behind-a-hole-counts",
        "log/reading.pyx",
        "not same_term(&record.term, &reading.term) or record.seq != reading.seq\n",
        "not same_term(&record.term, &reading.term)\n",
        ("log/test_reading.py::test_behind_a_hole_all_is_stale", FORGED),
    ),
    Fault(
        "a-pass-counts-with-its-first-part",
        "log/reading.pyx",
        "        return TAKEN_LAST_PART if record.part + 1 == record.parts else TAKEN_PART\n",
        "        return TAKEN_LAST_PART if record.part == 0 else TAKEN_PART\n",
        ("log/test_reading.py::test_a_pass_in_parts_counts_with_the_last", FORGED),
    ),
    Fault(
        "a-report-is-a-confirmation",
        "log/owning.pyx",
        "    if oldest.offset == reading.position + 1 and oldest.broker == owner.broker and oldest.broker >= 0:\n",
        "    if oldest.offset >= 0:\n",
        ("log/test_owning.py::test_another_broker_a_gap_and_no_offset_are_read_back", INTERLEAVED),
    ),
    Fault(
        "a-failed-record-ends-no-term",
        "log/owning.pyx",
        "    if error != 0:\n        owner.is_over = True\n",
        "",
        ("log/test_owning.py::test_an_error_on_any_record_ends_the_term", INTERLEAVED),
    ),
)
