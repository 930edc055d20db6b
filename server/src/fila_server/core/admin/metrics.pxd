"""Everything telemetry reads, in one answer: METRICS -> a snapshot.

MessagePack, arrays only, whose places telemetry/snapshot.py names; the two are one contract
(SNAPSHOT_VERSION). It is built between two passes' work by the one thread that may look, so it is bounded:
every queue and every row of clocks.pxd is looked at once, but only the busiest QUEUES_MAX, KEYS_MAX and
BUCKETS_MAX are written down.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void metrics_command(Core* core, Command* command) noexcept nogil
