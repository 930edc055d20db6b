"""What is settled tells of providers: the limits that a message names, and that learn, follow it."""

from fila_server.core.protocol.feedback cimport Feedbacks
from fila_server.core.state.state cimport Core, Lease

# Its message names each limit that the feedback names.
cdef bint feedback_fits(Lease* lease, const Feedbacks* said) noexcept nogil
# Before the lease ends. True: a limit that learns refused it, so it did not fail.
cdef bint feedback_heard(Core* core, Lease* lease, const Feedbacks* said) noexcept nogil
# Its work is done, so its providers let it pass.
cdef void feedback_acked(Core* core, Lease* lease) noexcept nogil
