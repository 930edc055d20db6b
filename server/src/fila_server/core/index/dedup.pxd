"""Dedup keys: the first message's id answers a second enqueue with its key, for a window of time."""

from fila_server.core.protocol.protobuf cimport Item
from fila_server.core.state.pending cimport Dedup
from fila_server.core.state.state cimport Core, Queue
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

cdef void dedup_expire(Core* core, Queue* queue) noexcept nogil                  # rows whose window is over
# NULL: no message has this key now
cdef Dedup* dedup_find(Core* core, Queue* queue, Slice text) noexcept nogil
cdef void dedup_add(Core* core, Queue* queue, Slice text) noexcept nogil         # a row without an id yet
cdef void dedup_fill(Core* core, Queue* queue, Command* command, Item* item) noexcept nogil
# the disk refused this pass's messages
cdef void dedup_forget(Core* core, Command* command) noexcept nogil

# one record
cdef void dedup_read(
    Core* core, const char* at, size_t length, const char* value, size_t value_length) noexcept nogil
cdef void dedup_sort(Queue* queue) noexcept nogil                               # once all are read
