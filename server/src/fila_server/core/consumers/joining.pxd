"""A consumer comes: a stream, a session that may resume what a broken one held, or a pull.

    open ──► here ── Close ─────────────────────────────► leaves, its leases return (begun ones later)
              │  └─ silent for a visibility timeout ────► leaves, begun leases fail
              │
              └─ its stream breaks ──► away ─ resume ──► here again, with what it still holds
                                         └─ the grace is over ──► leaves, begun leases fail
"""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Channel, Consumer, Core
from fila_server.core.threads.mailbox cimport Command

# CONSUME_OPEN, SESSION_OPEN, LEASE
cdef void consumer_open(Core* core, Command* command) noexcept nogil
# Recovery: the session that holds a lease, away until it resumes.
cdef Consumer* consumer_recovered(Core* core, Channel* channel, uint64_t number) noexcept nogil
