"""The head of a key, where its queue's keys are in order: the message that goes before all others of its key.

It is leased, or it failed and waits for its retry, or else it is the first that is ready. Explain names it,
and an operator may skip it, so that what stands behind it goes on.
"""

from libc.stdint cimport int64_t, uint32_t

from fila_server.core.admin.step_budget cimport StepBudget
from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.state cimport Core, Delay, Flow, Queue, Slot
from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.threads.mailbox cimport Command

# Of the flow's delayed messages the one due first, or NULL; `retries`: of those that keep their place.
cdef Delay* first_delay(Core* core, Flow* flow, bint retries, StepBudget* steps) noexcept nogil
cdef int64_t delay_due_ms(Core* core, Delay* delay) noexcept nogil       # on the wall clock
# A KeyHead as `field` of `b`, if a message of the flow is leased, or waits for its retry.
cdef void put_head(Core* core, Buffer* b, uint32_t field, Flow* flow, StepBudget* steps) noexcept nogil
cdef void put_head_of(Core* core, Buffer* b, uint32_t field, Slot* slot) noexcept nogil  # NULL = none
# The leased message, of any key, that one of the flow's replaces, where this waits for nothing else; or NULL.
cdef Slot* slot_to_follow(Core* core, Flow* flow, StepBudget* steps) noexcept nogil
cdef void skip_message(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil
