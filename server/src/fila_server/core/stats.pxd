"""What the broker tells of itself: statistics, lists, explanations."""

from libc.stdint cimport uint64_t

from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Core, Flow

cdef void stats(Core* core, Command* command) noexcept nogil     # GET_STATS, LIST_QUEUES, LIST_CHANNELS, EXPLAIN_KEY
cdef uint64_t flow_age(Core* core, Flow* flow) noexcept nogil    # of its next ready message, in ms
