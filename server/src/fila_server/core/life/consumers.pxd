"""Consumers come and go: streams, sessions and pulls, and what becomes of the leases of one that left.

    open ──► here ── Close ─────────────────────────────► leaves, its leases return (begun ones later)
              │  └─ silent for a visibility timeout ────► leaves, begun leases fail
              │
              └─ its stream breaks ──► away ─ resume ──► here again, with what it still holds
                                         └─ the grace is over ──► leaves, begun leases fail

Silence and grace are measured on Core.heard_ms, which goes on only while the edge says that it has read its
sockets (LISTENED). A pause of the broker, a full mailbox or a disk that takes no writes are nobody's silence.
What leaves many leases behind is worked off over several passes.
"""

from libc.stdint cimport uint64_t

from fila_server.core.doors.mailbox cimport Command
from fila_server.core.state.state cimport Channel, Consumer, Core, Lease

# CONSUME_OPEN, SESSION_OPEN, LEASE
cdef void consumer_open(Core* core, Command* command) noexcept nogil
cdef void consumer_command(Core* core, Command* command) noexcept nogil      # WRITTEN, CONSUMER_CLOSE, CANCEL
cdef void consumer_close(Core* core, Consumer* consumer, bint release) noexcept nogil    # it said so
# forgets it once it holds nothing
cdef void consumer_leave(Core* core, Consumer* consumer, int fate) noexcept nogil
# some more of what they leave behind
cdef void consumers_leave(Core* core) noexcept nogil
cdef void consumer_due(Core* core, Consumer* consumer) noexcept nogil        # TIMER_SESSION
cdef void listened(Core* core) noexcept nogil                                # LISTENED
cdef void lease_due(Core* core, Lease* lease) noexcept nogil                 # TIMER_LEASE
# Recovery: the session that holds a lease, away until it resumes.
cdef Consumer* consumer_recovered(Core* core, Channel* channel, uint64_t number) noexcept nogil
cdef void lease_link(Consumer* consumer, Lease* lease) noexcept nogil
# Everybody's, and those away, some a pass; each is told why. True: nobody is left.
cdef bint channel_consumers_end(
    Core* core, Channel* channel, const char* message, const char* reason, const char* revoked) noexcept nogil
