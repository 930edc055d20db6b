"""How much a pass may do before it writes and answers: one number for every loop that a client can make long.

A pass is made of stages (what leaves, commands, timers, failures, channels that take frames in,
administration, deliveries). Each may touch WORK_PER_STAGE messages; what is left over has its turn in the
next pass, which follows at once. So a stage that is flooded delays the others by milliseconds, and none is
ever left out.

A piece of work that was begun is finished: a batch of messages, a pull's reply, one
frame in one channel. Those are bounded by the limits of a request.

`counters.work` counts what was touched; it grows where the work is done: a message stored, a message
that changes its state in a channel, a timer that fires, a frame that is freed.
"""

from fila_server.core.state.state cimport Core

cdef enum:
    WORK_PER_STAGE = 2048

cdef inline void stage_begins(Core* core) noexcept nogil:
    core.stage_end = core.counters.work + WORK_PER_STAGE

cdef inline bint stage_goes_on(Core* core) noexcept nogil:
    return core.counters.work < core.stage_end
