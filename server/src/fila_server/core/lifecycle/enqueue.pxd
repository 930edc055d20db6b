"""Messages are admitted: found a queue for, looked up in the dedup
window, held against the queue's capacity, routed.

building.pyx makes frames of what was admitted, reveal.pyx makes those visible, deliver.pyx hands them out.
"""

from libc.stdint cimport uint8_t

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void enqueue_command(Core* core, Command* command) noexcept nogil
# The message of a schedule, if that is due. Returns False: it is owned by the pass until it is answered.
cdef bint fire_command(Core* core, Command* command) noexcept nogil
cdef void enqueue_written(Core* core, uint8_t refused) noexcept nogil  # 0, or why the batch was not written
