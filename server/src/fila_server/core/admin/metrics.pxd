"""Everything telemetry reads, in one answer: METRICS -> a snapshot.

MessagePack, arrays only. Python has the names of a queue's counters and of the totals from here
(QUEUE_COUNTERS, TOTALS); the other places telemetry/snapshot.py names, and the two are one contract
(SNAPSHOT_VERSION). It is built between two passes' work by the one thread that may look, so it is bounded:
every queue and every row of clocks.pxd is looked at once, but only the busiest QUEUES_MAX, KEYS_MAX and
BUCKETS_MAX are written down.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void metrics_command(Core* core, Command* command) noexcept nogil
