"""Why is this key late? EXPLAIN_KEY, answered from what stands in memory, whatever the number of keys.
"""

from libc.stdint cimport int64_t, uint32_t

from fila_server.core.admin.step_budget cimport StepBudget
from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.state cimport Channel, Core, Flow, Key, Queue, Subqueue, ThrottleKey
from fila_server.core.structures.buffer cimport Buffer, Slice
from fila_server.core.threads.mailbox cimport Command

cdef struct Holding:                    # what holds the key's next message
    int state                           # ExplainKeyResponse.State
    ThrottleKey* bucket
    Subqueue* sub                       # of its messages, the first that waits in the bucket's line
    int64_t until_ms                    # on the wall clock, 0 = nobody knows
    bint by_default                     # the cap or the rate that holds it is the queue's
    bint nobody_consumes                # of NO_CONSUMER: at all

# Neither a consumer nor a pull that waits.
cdef inline bint nobody_consumes(Channel* channel) noexcept nogil:
    return not channel.consumers and not channel.waiting_pulls

cdef Holding flow_holding(
    Core* core, Key* key, Flow* flow, bint channel_is_paused, StepBudget* steps) noexcept nogil
# What holds its first message at the limit in whose line it stands: a LimitPart, and which of
# several rates, from 1.
cdef void put_blocking_part(
    Core* core, Buffer* b, Subqueue* sub, uint32_t part_field, uint32_t rate_field) noexcept nogil
# The highest priority of the flow's messages that stand in no limit's line, whatever else holds the key;
# 0 where there is none.
cdef uint32_t highest_that_may_go(Flow* flow) noexcept nogil
# The weight of a key; of one that has nothing (NULL), what the queue's table will give its next message.
cdef uint32_t weight_now(Queue* queue, Key* key, Slice text) noexcept nogil
cdef void explain_key(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil
