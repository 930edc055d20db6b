"""Stage 3: consumers' answers. Before: deliver.pyx. What a failure leads to: failure.pyx; what a
session says besides: sessions.pyx; what becomes of a stream that ended: leaving.pyx.

    ack                        -> DONE
    nack, expired lease        -> attempts + 1, then the policy: READY, DELAYED, or a dead letter
    nack with dead_letter      -> attempts + 1, and a dead letter whatever the policy says
    nack with release          -> READY at the old place, with the attempts it had
    nack, and its provider refused -> the same, where a limit learns of it
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from fila_server.core.protocol.feedback cimport Feedbacks
from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.pending cimport OpenReply
from fila_server.core.state.state cimport Channel, Core, Lease
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

cdef struct Verdict:                # of one settle: 0, or why not
    int32_t code
    const char* reason
    const char* text

cdef struct Wishes:                 # what a nack says besides its leases
    Slice    error
    int64_t  delay_ms               # NO_DELAY: as the policy has it
    bint     dead_letter
    bint     release
    bint     was_limited            # a limit that learns refused it: it goes back as one that is released
    Feedbacks said                  # of an ack too

# ACK, NACK, their batches, EXTEND_LEASE
cdef void settle_command(Core* core, Command* command) noexcept nogil

# For sessions, where a lease id alone names the message.
cdef Verdict verdict(int32_t code, const char* reason, const char* text) noexcept nogil
cdef Lease* lease_find(
    Core* core, Channel* channel, bint has_id, uint64_t high, uint64_t low, uint64_t lease_id,
    Verdict* v) noexcept nogil
cdef Wishes wishes_of(
    const Fields* fields, uint32_t error, uint32_t delay, uint32_t dead_letter,
    uint32_t release) noexcept nogil
cdef Feedbacks feedback_of(const Fields* fields, uint32_t field, Slice message) noexcept nogil
# What is said of providers, before the lease ends. False: it fits the message not, and `v` says why.
cdef bint lease_tells(Core* core, Lease* lease, Wishes* wishes, Verdict* v) noexcept nogil
# Its holder left and returned all. Many come back over several passes; none is settled meanwhile, and a
# purge takes them as it takes what waits.
cdef bint lease_given_back(Lease* lease) noexcept nogil
cdef void lease_ack(Core* core, Lease* lease) noexcept nogil
cdef void lease_nack(Core* core, Lease* lease, Wishes* wishes, OpenReply* reply) noexcept nogil
cdef void lease_begin(Core* core, Lease* lease) noexcept nogil           # its consumer works on it
cdef void lease_extend(Core* core, Lease* lease, int64_t extend_ms) noexcept nogil
