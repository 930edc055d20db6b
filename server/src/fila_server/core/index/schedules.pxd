"""A queue's schedules: what the core has to know of them, which is when each fires next.

Python plans (operations/firing.py): it asks a cron library, and sends a FIRE, the message together with the
moment it stands for and the one that follows. The core takes it only if that moment is the schedule's, and
writes message and next moment in one batch. So a firing that is sent twice, or is late, stores nothing.

    KEPT    "schedule/" queue "/" name      what operators set; Python's
            "due/" queue "/" name           seam_frames.ScheduleDue
"""

from libc.stdint cimport uint64_t

from fila_server.core.state.pending cimport Schedule
from fila_server.core.state.state cimport Core, Queue
from fila_server.core.structures.buffer cimport Slice

cdef Schedule* schedule_find(Queue* queue, Slice name) noexcept nogil
cdef void schedule_put(Queue* queue, Slice name, uint64_t due_ms) noexcept nogil
cdef void schedule_remove(Queue* queue, Slice name) noexcept nogil
# The message is on the disk, or it was refused.
cdef void schedule_written(Schedule* schedule, bint refused) noexcept nogil
# All of a queue that goes, with their records.
cdef void schedules_drop(Core* core, Queue* queue) noexcept nogil
# One record "due/", when the store opens: what stands behind that word. False: its queue is gone.
cdef bint schedule_recover(
    Core* core, const char* text, size_t length, const char* value, size_t value_length) noexcept nogil
