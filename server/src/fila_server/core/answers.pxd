"""What leaves the core, and when: once the pass is written, or once its epoch is durable."""

from libc.stdint cimport int32_t, uint64_t

from fila_server.core.buffer cimport Buffer
from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Core, Frame

# Each takes the payload's bytes over. `durable`: not before this pass's epoch is synced.
cdef void answer(Core* core, uint64_t token, int32_t status, Buffer* payload, bint durable) noexcept nogil
cdef void answer_status(Core* core, uint64_t token, int32_t status, const char* message, const char* reason) noexcept nogil
cdef void answer_no_queue(Core* core, Command* command) noexcept nogil         # NOT_FOUND, by name
cdef void answer_no_channel(Core* core, Command* command) noexcept nogil       # and names those there are
cdef void emit(Core* core, uint64_t token, int32_t kind, int32_t status, Buffer* payload, bint durable) noexcept nogil
cdef void reveal_later(Core* core, Frame* frame, bint durable) noexcept nogil
# The pass is written: what waits for that leaves, what waits for the disk lines up behind its epoch.
cdef void answers_written(Core* core) noexcept nogil
# Sends what epochs up to `durable` allow.
cdef void answers_durable(Core* core, uint64_t durable) noexcept nogil
