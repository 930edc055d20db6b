"""One pass of the core: everything that is due, in a fixed order, then one write.

    drain   commands from the mailbox          settle, consumers, admin, enqueue
    fire    timers that are due                expired leases, delays, time to live, tokens
    deliver ready messages to consumers        bounded, channels in turn
    write   one batch of everything else, one of the frames (commit.pxd)
    answer  what is written leaves; what must be durable waits for its epoch

`run_pass` returns the moment it wants to run again: now when work is left, INT64_MAX when only a
command can bring any. It reads no clock: both clocks are arguments.
"""

from libc.stdint cimport int64_t

from fila_server.core.state.state cimport Core

cdef int64_t run_pass(Core* core, int64_t mono_ns, int64_t wall_ms) noexcept nogil
