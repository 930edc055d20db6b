"""What the broker tells of itself: statistics, lists, explanations."""

from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.state cimport Core, Queue
from fila_server.core.threads.mailbox cimport Command

# GET_STATS, STATS_PAGE, LIST_QUEUES, LIST_CHANNELS, LIST_CONSUMERS, EXPLAIN_KEY
cdef void stats_command(Core* core, Command* command) noexcept nogil


# --- messages in flight by principal ---------------------------------------------------------
# What principals hold in flight, and how much they may: the rights' table hears the one, says the other.
#
#     HOLDERS Holders: the number of each principal, and the leases that it may have (0 = no bound)
#             -> Held, in this order: the leases it has, and the pulls refused for its bound since last told

cdef void in_flight_command(Core* core, Command* command) noexcept nogil


# --- bytes by fairness key -------------------------------------------------------------------
# How many bytes the broker stores under some fairness keys, over all queues: what a tenant's quota goes by.
#
#     STORED_BYTES StoredPage: at most 64 fairness keys, and where in the table of queues this part begins
#                   -> StoredBytes: the bytes of each in this part, where the next part begins (0: that was
#                   all), and the table's size: where it is another one the parts before mean nothing
#
# A message counts until its frame is deleted or written anew without it. Counted anew by each start.

cdef void stored_command(Core* core, Command* command) noexcept nogil


# --- who consumes a queue --------------------------------------------------------------------
# LIST_CONSUMERS: who consumes a queue, and what each holds.

cdef void roster_command(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil
