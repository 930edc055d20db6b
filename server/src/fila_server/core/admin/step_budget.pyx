"""What may go of a flow has its first at the top of a heap; among what stands in lines it is looked for."""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.index.ages cimport slot_age
from fila_server.core.state.paths cimport slot_rank, subqueue_waits
from fila_server.core.state.state cimport Subqueue
from fila_server.core.structures.fifo cimport Fifo, fifo_first


cdef void steps_end(Core* core, const StepBudget* steps) noexcept nogil:
    cdef uint32_t walked = STEPS_MAX - steps.left
    core.counters.walked += walked
    core.counters.work += walked // STEPS_PER_WORK


cdef inline Slot* _lower(Slot* found, Fifo* fifo) noexcept nogil:
    cdef Slot* first = <Slot*> fifo_first(fifo)
    if first == NULL or (found != NULL and slot_rank(found) <= slot_rank(first)):
        return found
    return first


cdef Slot* flow_first(Flow* flow, StepBudget* steps) noexcept nogil:
    cdef Slot* found = <Slot*> fifo_first(&flow.fifo)
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
        if subqueue_waits(sub):
            found = _lower(found, &sub.fifo)
        sub = sub.sibling
    return found


cdef uint64_t flow_age(Core* core, Flow* flow, StepBudget* steps) noexcept nogil:
    cdef Slot* slot = flow_first(flow, steps)
    return slot_age(core, slot) if slot != NULL else 0
