"""What is due when: an intrusive 4-ary heap. Leases, delays and token refills are Timers inside their owners.

A timer knows its place in the heap, so moving or cancelling one is a sift and not a search.
"""

from libc.stdint cimport int64_t, uint32_t, uint8_t

cdef struct Timer:
    int64_t  due_ns
    uint32_t at                # place in the heap + 1; 0 = not set, so a zeroed struct is a timer
    uint8_t  kind              # what its owner does when it fires; never looked at here


cdef struct Timers:
    Timer**  heap
    uint32_t count
    uint32_t capacity


cdef void timers_init(Timers* timers) noexcept nogil
# forgets its timers; they belong to their owners
cdef void timers_free(Timers* timers) noexcept nogil
cdef void timer_set(Timers* timers, Timer* timer, int64_t due_ns) noexcept nogil # sets or moves
cdef void timer_cancel(Timers* timers, Timer* timer) noexcept nogil # does nothing when it is not set
# the earliest that is due, removed; or NULL
cdef Timer* timers_pop_due(Timers* timers, int64_t now_ns) noexcept nogil
# when the earliest is due; INT64_MAX when none
cdef int64_t timers_next(Timers* timers) noexcept nogil
