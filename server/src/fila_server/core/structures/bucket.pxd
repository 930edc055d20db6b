"""A token bucket that refills from elapsed time, so a million idle buckets cost nothing.

A waiter for a token sleeps until bucket_due_ns. Clocks wake late; on a bucket with burst 1 every late
microsecond would be lost for good, so a refill that somebody
waited for may fill LATENESS_NS beyond the burst.
"""

from libc.stdint cimport int64_t

cdef enum:
    LATENESS_NS = 10_000_000   # the latest wake that costs a waiter nothing


cdef struct Bucket:
    double  rate               # tokens per second
    double  burst              # most tokens it holds; 0 stops everything
    double  level              # tokens at refilled_ns; above burst only by the lateness credit
    int64_t refilled_ns


# starts full
cdef void bucket_init(Bucket* bucket, double rate, double burst, int64_t now_ns) noexcept nogil
# level kept, clamped
cdef void bucket_configure(Bucket* bucket, double rate, double burst, int64_t now_ns) noexcept nogil

# `demanded`: somebody waits for a token, or was woken for one and has not taken it yet. A refill that is not
# demanded earns nothing above the burst; it does not cut a credit that is there.
cdef void bucket_refill(Bucket* bucket, int64_t now_ns, bint demanded) noexcept nogil

# It has nothing, and earns nothing until then.
cdef void bucket_close(Bucket* bucket, int64_t until_ns) noexcept nogil
# What it would have now if it earned all the time; while it is closed that much below 0.
cdef double bucket_level_at(const Bucket* bucket, int64_t now_ns) noexcept nogil

# The rest speak of the level as of the last refill.
cdef bint bucket_has(Bucket* bucket) noexcept nogil
cdef void bucket_take(Bucket* bucket) noexcept nogil                # only after bucket_has
cdef void bucket_give_back(Bucket* bucket) noexcept nogil           # up to burst
cdef int64_t bucket_due_ns(Bucket* bucket) noexcept nogil           # when it holds a token; INT64_MAX = never
cdef int64_t bucket_tokens(Bucket* bucket) noexcept nogil           # whole tokens

# The same for a message that takes more than one, or a part of one, behind `before`, which is counted on.
# What takes more than the burst goes when the bucket is full; then the level is below 0.
cdef bint bucket_has_amount(Bucket* bucket, double amount, double before) noexcept nogil
cdef void bucket_take_amount(Bucket* bucket, double amount) noexcept nogil
cdef void bucket_give_back_amount(Bucket* bucket, double amount) noexcept nogil
# INT64_MAX also where what is counted on has to be taken first.
cdef int64_t bucket_amount_due_ns(Bucket* bucket, double amount, double before) noexcept nogil
