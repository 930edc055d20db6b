"""Dedup keys: the first message's id answers a second enqueue with its key, for a window of time; or the
latest one takes the key over, and then it is known as long as that one is pending, too."""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.protocol.protobuf cimport Item
from fila_server.core.state.pending cimport Dedup
from fila_server.core.state.state cimport Core, Queue
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

cdef enum Standing:                 # of a message; bits, 0 = it is done
    IT_WAITS = 1
    IT_IS_IN_FLIGHT = 2

cdef void dedup_expire(Core* core, Queue* queue) noexcept nogil                  # rows whose window is over
# NULL: no message has this key now
cdef Dedup* dedup_find(Core* core, Queue* queue, Slice text) noexcept nogil
# A row without an id yet. `lasts`: it is known while its message is pending, too.
cdef void dedup_add(Core* core, Queue* queue, Slice text, bint lasts) noexcept nogil
# Another message takes its key over from one that `stood` so; the time of the first of them goes on if that
# waits.
cdef void dedup_replace(Core* core, Queue* queue, Dedup* row, int stood) noexcept nogil
# The offset of its newest message that some channel has not done; 0 = there is none
cdef uint64_t dedup_newest(Queue* queue, Dedup* row) noexcept nogil
cdef int stands(Queue* queue, uint64_t offset) noexcept nogil            # in all channels: Standing
# when its first delay ends; 0 = it has none
cdef int64_t due_ms_of(Queue* queue, uint64_t offset) noexcept nogil
cdef void dedup_fill(Core* core, Queue* queue, Command* command, Item* item) noexcept nogil
# This pass's messages are on disk, or refused: then keys stand again for what they stood for.
cdef void dedup_written(Core* core, bint refused) noexcept nogil
# behind it, where the disk refused them: rows that were new
cdef void dedup_forget(Core* core, Command* command) noexcept nogil

# one record
cdef void dedup_read(
    Core* core, const char* at, size_t length, const char* value, size_t value_length) noexcept nogil
cdef void dedup_sort(Queue* queue) noexcept nogil                               # once all are read
