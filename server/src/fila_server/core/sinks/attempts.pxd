"""Attempts: what one try at one part of a batch staged, frame by frame; and how it is given up.

An attempt that is given up leaves its sink at once and its records in pieces: one of a gibibyte must not
hold up a pass.
"""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.sinks cimport Attempt, Sink, StagedFrame
from fila_server.core.state.state cimport Core

cdef Attempt* attempt_find(
    Sink* sink, uint64_t epoch, uint64_t batch, uint32_t partition, uint64_t attempt) noexcept nogil
# NULL-safe for an attempt that is new: it is made, without frames.
cdef Attempt* attempt_new(
    Sink* sink, uint64_t epoch, uint64_t batch, uint32_t partition, uint64_t attempt) noexcept nogil
# Room for one more frame, zeroed; the caller fills it in and counts it.
cdef StagedFrame* attempt_add(Attempt* attempt) noexcept nogil
# Counts a frame that has been filled in; or takes back the last one, which the disk refused.
cdef void frame_counted(Core* core, Sink* sink, Attempt* attempt, StagedFrame* frame) noexcept nogil
cdef void frame_taken_back(Core* core, Sink* sink, Attempt* attempt) noexcept nogil
# The first frame that is left counts no more: it was moved into its queue, or is lost.
cdef void frame_moved(Core* core, Sink* sink, Attempt* attempt) noexcept nogil
# Out of its sink; its records go in pieces.
cdef void attempt_drop(Core* core, Sink* sink, Attempt* attempt) noexcept nogil
# All but those that an intent names; of batches below `below`, and of epochs below `epoch`. Returns how many.
cdef uint32_t attempts_drop(Core* core, Sink* sink, uint64_t below, uint64_t epoch) noexcept nogil
# Out of its sink, without a record left.
cdef void attempt_free(Sink* sink, Attempt* attempt) noexcept nogil
# A stage's share of the records of what was given up. True: there is more.
cdef bint attempts_turn(Core* core) noexcept nogil
cdef void attempts_forget(Core* core) noexcept nogil
