"""Why is this key late? EXPLAIN_KEY, answered from what stands in memory, whatever the number of keys.

Walks that could be long are cut: the sub-queues of one key, the places before it in a bucket's line, the
consumers of a channel, and the timers among which the key's next delay is looked for. A command that tells
of many keys has so many steps for all of them: once they are used up, the rest is told without buckets and
times.
"""

from libc.stdint cimport int64_t, uint32_t

from fila_server.core.doors.mailbox cimport Command
from fila_server.core.state.state cimport Channel, Core, Flow, Key, Queue, Subqueue, ThrottleKey
from fila_server.core.wire.protobuf cimport Fields

cdef struct Holding:                    # what holds the key's next message
    int state                           # ExplainKeyResponse.State
    ThrottleKey* bucket
    Subqueue* sub                       # of its messages, the first that waits in the bucket's line
    int64_t until_ms                    # on the wall clock, 0 = nobody knows

cdef enum:
    LOOKS_MAX = 100000                  # more than one key's walks ever take

cdef struct Looks:                      # what is left of the steps of a command
    uint32_t left
    Channel* channel                    # whose consumers were looked at last,
    bint     has_room                   # and whether one had room

cdef inline Looks looks_begin() noexcept nogil:
    cdef Looks looks
    looks.left, looks.channel, looks.has_room = LOOKS_MAX, NULL, False
    return looks

cdef Holding flow_holding(
    Core* core, Key* key, Flow* flow, bint queue_is_paused, Looks* looks) noexcept nogil
# They are counted among what was walked.
cdef void looks_end(Core* core, const Looks* looks) noexcept nogil
cdef void explain_key(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil
