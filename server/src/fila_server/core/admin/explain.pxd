"""Why is this key late? EXPLAIN_KEY, answered from what stands in memory, whatever the number of keys.
"""

from libc.stdint cimport int64_t

from fila_server.core.admin.step_budget cimport StepBudget
from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.state cimport Core, Flow, Key, Queue, Subqueue, ThrottleKey
from fila_server.core.threads.mailbox cimport Command

cdef struct Holding:                    # what holds the key's next message
    int state                           # ExplainKeyResponse.State
    ThrottleKey* bucket
    Subqueue* sub                       # of its messages, the first that waits in the bucket's line
    int64_t until_ms                    # on the wall clock, 0 = nobody knows
    bint by_default                     # the cap or the rate that holds it is the queue's

cdef Holding flow_holding(
    Core* core, Key* key, Flow* flow, bint queue_is_paused, StepBudget* steps) noexcept nogil
cdef void explain_key(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil
