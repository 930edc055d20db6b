"""Stage 1: messages become frames on disk. Next: reveal.py makes them visible, deliver.pyx hands them out."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fila_server.core.buffer cimport Slice
from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Builder, Building, Channel, Core, Frame, Key, Queue, ThrottleSet
from fila_server.core.wire cimport Item

cdef void enqueue(Core* core, Command* command) noexcept nogil
cdef void frames_build(Core* core) noexcept nogil                    # what met in this pass, into the batches
cdef void enqueue_written(Core* core, uint8_t refused) noexcept nogil  # 0, or why the batch was not written
# A message moved by the broker itself (dead letter, redrive): same pass, written with the settles.
cdef void move_in(Core* core, Queue* queue, Key* key, ThrottleSet* set, uint32_t cost, char* bytes, uint32_t length, uint64_t id_high, uint64_t id_low, int64_t enqueued_ms, Channel* only) noexcept nogil
cdef Queue* queue_find(Core* core, Slice name) noexcept nogil
