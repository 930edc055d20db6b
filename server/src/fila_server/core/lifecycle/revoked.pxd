"""Sessions are told of each lease that ended without their doing: one Revoked a session, reason and pass."""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Channel, Consumer, Core, Lease, Queue
from fila_server.core.structures.buffer cimport Slice

# it ends now, for `core.revoking`
cdef void lease_revoke(Core* core, Lease* lease) noexcept nogil
cdef void revoked_note(
    Core* core, Consumer* consumer, unsigned long long lease_id, const char* why) noexcept nogil
cdef void revoked_report(Core* core, Consumer* consumer) noexcept nogil          # what is noted, now
# to everybody, with this pass
cdef void revoked_flush(Core* core) noexcept nogil
cdef void revoked_forget(Core* core, Consumer* consumer) noexcept nogil


# --- what happened by itself -----------------------------------------------------------------
# What happened by itself and somebody should hear of: a NOTICE to the edge, which logs it and acts on it.
#
# Hooks and telemetry do not see these, people do.

cdef enum Notice:
    QUEUE_EXPIRED = 1               # number: messages that went with it
    CHANNEL_EXPIRED = 2             # number: messages it had not finished
    DEAD_LETTERS_DROPPED = 3        # number: how many since the last notice
    KEEPS_RETURNING = 4             # number: the offset of a message that came
                                    # back ten times without counting
    SINK_LOST = 5                   # number: messages of a published batch that came into no
                                    # queue; the sink's name stands for the queue's
    LIMIT_CLOSED = 6                # number: milliseconds; the throttle key's name stands for the queue's
    LIMIT_LEARNED = 7               # number: the rate, in thousandths a second; the same
    LIMIT_BUDGET = 8                # number: 80 or 100, the percents of a budget that are spent; the throttle
                                    # key's name stands for the queue's, and its limit's for the channel's

cdef void notice_of(Core* core, int what, Slice name, uint64_t number) noexcept nogil
cdef void notice(Core* core, int what, Queue* queue, Channel* channel, uint64_t number) noexcept nogil
