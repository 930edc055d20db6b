"""Messages that meet in one pass for one queue become one frame, with its records in the pass's batches.

    builder_add, move_in ──► Builder ──► builder_finish ──► Frame: ids, offsets, records, bytes in memory

Messages of producers go into one batch, which a full disk may refuse; messages the broker moves itself
(dead letters, redrives) go with the settles that take them out of where they were.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.state.state cimport Builder, Building, Channel, Core, Key, Queue, ThrottleSet

cdef enum:
    MERGED_MESSAGES_MAX = 1024      # of small commands, in one frame
    MERGED_BYTES_MAX = 1048576

# room for one more; the caller counts it
cdef Building* builder_add(Core* core, Builder* builder) noexcept nogil
# what is in it, as one frame, into the batch
cdef void builder_finish(Core* core, Builder* builder) noexcept nogil
cdef void frames_build(Core* core) noexcept nogil                    # what met in this pass, into the batches
# A message moved by the broker itself (dead letter, redrive): same pass, written with the settles.
cdef void move_in(
    Core* core, Queue* queue, Key* key, ThrottleSet* set, uint32_t cost_bits, char* bytes, uint32_t length,
    uint64_t id_high, uint64_t id_low, int64_t enqueued_ms, Channel* only) noexcept nogil

cdef void keep_until_written(Core* core, char* bytes) noexcept nogil

cdef void moved_bytes_free(Core* core) noexcept nogil     # what keep_until_written kept
