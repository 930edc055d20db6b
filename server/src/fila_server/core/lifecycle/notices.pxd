"""What happened by itself and somebody should hear of: a NOTICE to the edge, which logs it and acts on it.

Hooks and telemetry do not see these, people do.
"""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Channel, Core, Queue
from fila_server.core.structures.buffer cimport Slice

cdef enum Notice:
    QUEUE_EXPIRED = 1               # number: messages that went with it
    CHANNEL_EXPIRED = 2             # number: messages it had not finished
    DEAD_LETTERS_DROPPED = 3        # number: how many since the last notice
    KEEPS_RETURNING = 4             # number: the offset of a message that came
                                    # back ten times without counting
    SINK_LOST = 5                   # number: messages of a published batch that came into no
                                    # queue; the sink's name stands for the queue's

cdef void notice_of(Core* core, int what, Slice name, uint64_t number) noexcept nogil
cdef void notice(Core* core, int what, Queue* queue, Channel* channel, uint64_t number) noexcept nogil
