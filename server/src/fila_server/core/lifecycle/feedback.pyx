"""A limit that does not learn hears nothing, and one that the message does not name is a mistake."""

from libc.math cimport fabs
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp

from fila_server.core.lifecycle.revoked cimport LIMIT_CLOSED, LIMIT_LEARNED, notice_of
from fila_server.core.protocol.feedback cimport Feedback, feedback_cursor, next_feedback
from fila_server.core.scheduling.following cimport following_refused, following_remains, key_follows
from fila_server.core.scheduling.tokens cimport bucket_used, bucket_wake
from fila_server.core.state.paths cimport entry_of
from fila_server.core.state.state cimport ThrottleKey, ThrottleSet
from fila_server.core.structures.buffer cimport Cursor, Slice
from fila_server.core.structures.learned_rate cimport learned_accepted


cdef inline bint _is_named(const ThrottleKey* key, Slice name) noexcept nogil:
    return key.text.length == name.length and memcmp(key.text.bytes, name.at, name.length) == 0


cdef bint feedback_fits(Lease* lease, const Feedbacks* said) noexcept nogil:
    cdef ThrottleSet* set = entry_of(lease.slot).set
    cdef Cursor c = feedback_cursor(said)
    cdef Feedback feedback
    cdef uint32_t i
    cdef bint found
    while next_feedback(&c, said, &feedback):
        found = feedback.limit.length == 0
        if set != NULL:
            for i in range(set.count):
                found |= _is_named(set.members[i], feedback.limit)
        if not found:
            return False
    return True


cdef bint feedback_heard(Core* core, Lease* lease, const Feedbacks* said) noexcept nogil:
    cdef ThrottleSet* set = entry_of(lease.slot).set
    cdef ThrottleKey* key
    cdef Cursor c = feedback_cursor(said)
    cdef Feedback feedback
    cdef uint32_t i
    cdef bint refused = False
    if not lease.is_limited:
        return False
    while next_feedback(&c, said, &feedback):
        for i in range(set.count):
            key = set.members[i]
            if not key_follows(key) or not (feedback.limit.length == 0 or _is_named(key, feedback.limit)):
                continue
            if feedback.limited:
                _refused(core, key, lease, &feedback)
                refused = True
            else:
                following_remains(core, key, lease.lease_id, feedback.remaining, feedback.reset_ms)
            bucket_used(core, key)
            bucket_wake(core, key)
    return refused


cdef void _refused(Core* core, ThrottleKey* key, Lease* lease, const Feedback* feedback) noexcept nogil:
    """Told once for all that left before the same decrease."""
    cdef bint is_news = lease.lease_id > key.parts.learned.decreased_at
    following_refused(core, key, lease.lease_id, feedback.retry_ms)
    if is_news:
        notice_of(core, LIMIT_CLOSED, _name(key), <uint64_t> feedback.retry_ms)
    _learned(core, key)


cdef inline Slice _name(const ThrottleKey* key) noexcept nogil:
    cdef Slice name
    name.at, name.length = key.text.bytes, key.text.length
    return name


cdef void _learned(Core* core, ThrottleKey* key) noexcept nogil:
    """Told where it has changed by half since it was told last."""
    cdef double rate = key.parts.learned.rate
    if fabs(rate - key.parts.reported_rate) * 2 >= key.parts.reported_rate:
        key.parts.reported_rate = rate
        notice_of(core, LIMIT_LEARNED, _name(key), <uint64_t> (rate * 1000))


cdef void feedback_acked(Core* core, Lease* lease) noexcept nogil:
    cdef ThrottleSet* set
    cdef uint32_t i
    if not lease.is_limited:
        return
    set = entry_of(lease.slot).set
    for i in range(set.count):
        if key_follows(set.members[i]):
            learned_accepted(&set.members[i].parts.learned)
            _learned(core, set.members[i])
