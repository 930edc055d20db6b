"""What becomes of a message whose lease ended by a nack or ran out.

    attempts + 1 ──► max_attempts reached ──────────────────────► dead letter
                 ──► the queue has an on_failure hook ──► DECIDING ──► its word, or as below
                 ──► declarative or default backoff ────────────► READY or DELAYED

A decision that is asked for outside (an EVENT to the edge) comes back as a DECIDE command.
A nack is answered when all its decisions are made, and durable. Until then the record of the lease
stays: a crash in between finds the lease as it was, and the failure happens anew.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from fila_server.core.state.pending cimport OpenReply
from fila_server.core.state.state cimport Channel, Core, Frame, Lease, Slot
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

cdef enum:
    NO_DELAY = -1                   # the policy's

# `reply` may be NULL (nobody waits); where the decision is asked for, it is counted in.
cdef void lease_fail(
    Core* core, Lease* lease, Slice error, int64_t delay_ms, OpenReply* reply) noexcept nogil
# a dead letter, at once
cdef void lease_reject(Core* core, Lease* lease, Slice error, OpenReply* reply) noexcept nogil
# An operator gives it up: a dead letter, at once; its lease, if it has one, ends. The queue has a DLQ.
cdef void slot_skip(Core* core, Slot* slot, OpenReply* reply) noexcept nogil
cdef void slot_expire(Core* core, Slot* slot) noexcept nogil              # its time to live is over
# A seek takes the slot away: what was dead before is buried all the same.
cdef void slot_outlived(Core* core, Slot* slot) noexcept nogil
cdef void lease_expired(Core* core, Lease* lease) noexcept nogil
cdef void decide(Core* core, Command* command) noexcept nogil            # DECIDE
# A stage: failures whose bytes are here, in the order in which they failed. True: there are more.
cdef bint failures_turn(Core* core) noexcept nogil

# An answer that may have to wait for decisions. Its payload is filled by the caller; reply_close sends it
# when it can.
cdef OpenReply* reply_open(Core* core, uint64_t token, int32_t kind, bint durable) noexcept nogil
cdef void reply_close(Core* core, OpenReply* reply) noexcept nogil


# --- dead letters ----------------------------------------------------------------------------
# A dead letter is written into its dead-letter queue, with a note of where it came from and why.

cdef enum:
    LAST_ERROR_BYTES_MAX = 1024

# A dead letter into the queue's DLQ; its bytes are hot. Settling it here is the caller's.
cdef void dead_letter_put(
    Core* core, Channel* channel, Frame* frame, uint32_t index, uint32_t attempts, const char* reason,
    Slice error) noexcept nogil
# the longest whole text of at most so many bytes
cdef uint32_t utf8_cut(Slice text, uint32_t most) noexcept nogil
