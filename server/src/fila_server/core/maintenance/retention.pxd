"""Now and then: retention, frames that few messages pin, the disk's floor, expired messages, idle queues."""

from fila_server.core.state.pending cimport Expiry
from fila_server.core.state.state cimport Core

cdef void housekeeping(Core* core) noexcept nogil
cdef void message_expired(Core* core, Expiry* expiry) noexcept nogil


# --- queues and channels that nobody uses ----------------------------------------------------
# Queues and channels that expire when nobody uses them.
#
# Idle is a queue without a stream, pull, lease or enqueue, and a channel without a stream, pull or lease.
# Time counts on Core.heard_ms, so neither a pause of the broker nor the time it was down makes anything idle.

cdef void idle_expire(Core* core) noexcept nogil     # before anything of the pass is half built
