"""What may go of a flow has its first at the top of a heap; among what stands in lines it is looked for."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.scheduling.fifo cimport fifo_first
from fila_server.core.state.paths cimport frame_enqueued_ms, frame_of
from fila_server.core.state.state cimport Fifo, Subqueue


cdef void steps_end(Core* core, const StepBudget* steps) noexcept nogil:
    cdef uint32_t walked = STEPS_MAX - steps.left
    core.counters.walked += walked
    core.counters.work += walked // STEPS_PER_WORK


cdef inline Slot* _lower(Slot* found, Fifo* fifo) noexcept nogil:
    cdef Slot* first = fifo_first(fifo)
    return first if first != NULL and (found == NULL or first.position < found.position) else found


cdef Slot* flow_first(Flow* flow, StepBudget* steps) noexcept nogil:
    cdef Slot* found = fifo_first(&flow.fifo)
    cdef Subqueue* sub
    cdef uint32_t looked = 0
    if flow.subqueues == NULL:
        return found
    sub = <Subqueue*> flow.subqueues.eligible
    if sub != NULL:
        found = _lower(found, &sub.fifo)
    sub = flow.subqueues.first if flow.subqueues.waiting else NULL
    while sub != NULL and looked < SUBQUEUES_MAX and may_step(steps):
        looked += 1
        if sub.waiters != NULL:
            found = _lower(found, &sub.fifo)
        sub = sub.sibling
    return found


cdef uint64_t flow_age(Core* core, Flow* flow, StepBudget* steps) noexcept nogil:
    cdef Slot* slot = flow_first(flow, steps)
    cdef int64_t age
    if slot == NULL:
        return 0
    age = core.wall_ms - frame_enqueued_ms(frame_of(slot), slot.index)
    return <uint64_t> age if age > 0 else 0
