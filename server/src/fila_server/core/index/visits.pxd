"""When housekeeping visits a queue next, for what time brings: retention, dedup windows, unused queues,
frames to write anew.

A queue has a timer on Core.visits. What changes a queue sets it to now (visit_soon); a visit sets it to the
moment when something of the queue is due, if anything will be. So a queue where nothing happens and nothing
is due costs nothing, however many there are. Housekeeping takes from the heap what is due, and runs when
something is.
"""

from libc.stdint cimport int64_t

from fila_server.core.state.state cimport Channel, Core, Queue
from fila_server.core.structures.timers cimport timer_set

cdef enum:
    VISIT_EVERY_MS = 100            # at most so often, a queue or all

cdef inline void housekeeping_by(Core* core, int64_t due_ns) noexcept nogil:
    """Housekeeping runs then, or before."""
    due_ns = max(due_ns, core.housekeeping_ns + <int64_t> VISIT_EVERY_MS * 1000000)
    if core.housekeeping.at == 0 or due_ns < core.housekeeping.due_ns:
        timer_set(&core.timers, &core.housekeeping, due_ns)


cdef inline void visit_soon(Core* core, Queue* queue) noexcept nogil:
    """Once a change, however small: it costs a comparison where a visit is due already."""
    if (queue.visit.at == 0 or queue.visit.due_ns > core.mono_ns) and not queue.is_gone:
        timer_set(&core.visits, &queue.visit, core.mono_ns)
        housekeeping_by(core, core.mono_ns)


cdef inline void channel_is_used(Core* core, Channel* channel) noexcept nogil:
    """Something was done with it; where it is to go unless it is used, a visit begins to follow its use."""
    channel.used_ms = core.heard_ms
    if channel.idle_after_ms or channel.queue.policy.idle_ms:
        visit_soon(core, channel.queue)
