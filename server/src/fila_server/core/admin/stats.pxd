"""What the broker tells of itself: statistics, lists, explanations."""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

# GET_STATS, STATS_PAGE, LIST_QUEUES, LIST_CHANNELS, LIST_CONSUMERS, EXPLAIN_KEY
cdef void stats_command(Core* core, Command* command) noexcept nogil
