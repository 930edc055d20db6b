"""A consumer goes, or its stream does, and what becomes of its leases; the picture is in joining.pxd.

Silence and grace are measured on Core.heard_ms, which goes on only while the edge says that it has read its
sockets (LISTENED). A pause of the broker, a full mailbox or a disk that takes no writes are nobody's silence.
What leaves many leases behind is worked off over several passes.
"""

from fila_server.core.state.state cimport Channel, Consumer, Core, Lease
from fila_server.core.threads.mailbox cimport Command

cdef void consumer_command(Core* core, Command* command) noexcept nogil      # WRITTEN, CONSUMER_CLOSE, CANCEL
cdef void consumer_close(Core* core, Consumer* consumer, bint release) noexcept nogil    # it said so
# forgets it once it holds nothing
cdef void consumer_leave(Core* core, Consumer* consumer, int fate) noexcept nogil
# some more of what they leave behind
cdef void consumers_leave(Core* core) noexcept nogil
cdef void consumer_due(Core* core, Consumer* consumer) noexcept nogil        # TIMER_SESSION
cdef void listened(Core* core) noexcept nogil                                # LISTENED
cdef void lease_due(Core* core, Lease* lease) noexcept nogil                 # TIMER_LEASE
# Everybody's, and those away, some a pass; each is told why. True: nobody is left.
cdef bint channel_consumers_end(
    Core* core, Channel* channel, const char* message, const char* reason, const char* revoked) noexcept nogil

# --- for joining.pyx and recovery
cdef void consumer_link(Consumer** list, Consumer* consumer) noexcept nogil
# Its stream is told that it is over, and why unless `code` is OK.
cdef void stream_end(
    Core* core, Consumer* consumer, int code, const char* reason, const char* message) noexcept nogil
