"""Token buckets: levels in doubles, time in nanoseconds that are told. Judged by reference.ReferenceBucket.

What was taken is subtracted without rounding down to 0, so that the tolerance below shifts a token by a
thousandth of a millionth of itself and never adds one.
"""

from libc.math cimport ceil, floor
from libc.stdint cimport INT64_MAX

# Doubles may say 0.9999999999 where arithmetic says 1. A waiter that sleeps until its token is there must
# find it.
cdef double WHOLE = 1.0 - 1e-9
cdef double NS_PER_S = 1e9
cdef double REPRESENTABLE_NS = 9.2e18


cdef void bucket_init(Bucket* bucket, double rate, double burst, int64_t now_ns) noexcept nogil:
    bucket.rate = rate
    bucket.burst = burst
    bucket.level = burst
    bucket.refilled_ns = now_ns


cdef void bucket_configure(Bucket* bucket, double rate, double burst, int64_t now_ns) noexcept nogil:
    """Change the limit. The time until now earned at the old rate; only what fits the new burst stays."""
    bucket_refill(bucket, now_ns, False)
    bucket.rate = rate
    bucket.burst = burst
    bucket.level = min(bucket.level, burst)


cdef void bucket_refill(Bucket* bucket, int64_t now_ns, bint demanded) noexcept nogil:
    cdef double cap = bucket.burst
    cdef double earned
    if now_ns <= bucket.refilled_ns:
        return
    if demanded and cap > 0:
        # While somebody waits the level is below 1 when its timer is due. What comes in between due and a
        # late wake is not saved-up idleness, so the burst is no reason to throw it away.
        cap += bucket.rate * (LATENESS_NS / NS_PER_S)
    earned = bucket.rate * (<double>(now_ns - bucket.refilled_ns) / NS_PER_S)
    bucket.refilled_ns = now_ns
    # A level above the cap is a credit that the woken are about to take: it earns nothing, and is not cut.
    bucket.level = max(bucket.level, min(cap, bucket.level + earned))


cdef void bucket_close(Bucket* bucket, int64_t until_ns) noexcept nogil:
    bucket.level = min(bucket.level, 0)
    bucket.refilled_ns = max(bucket.refilled_ns, until_ns)


cdef double bucket_level_at(const Bucket* bucket, int64_t now_ns) noexcept nogil:
    return bucket.level - bucket.rate * (<double> max(bucket.refilled_ns - now_ns, <int64_t> 0) / NS_PER_S)


cdef bint bucket_has(Bucket* bucket) noexcept nogil:
    return bucket.level >= WHOLE


cdef void bucket_take(Bucket* bucket) noexcept nogil:
    bucket.level -= 1


cdef void bucket_give_back(Bucket* bucket) noexcept nogil:
    if bucket.level < bucket.burst:
        bucket.level = min(bucket.level + 1, bucket.burst)


cdef int64_t bucket_due_ns(Bucket* bucket) noexcept nogil:
    """When the level reaches 1: the moment of the last refill when it has already, whatever the rate."""
    return bucket_amount_due_ns(bucket, 1, 0)


cdef int64_t bucket_tokens(Bucket* bucket) noexcept nogil:
    cdef double whole = floor(bucket.level + (1 - WHOLE))
    if whole <= 0:
        return 0
    return INT64_MAX if whole >= REPRESENTABLE_NS else <int64_t>whole


cdef bint bucket_has_amount(Bucket* bucket, double amount, double before) noexcept nogil:
    return bucket.burst > 0 and bucket.level - before >= min(amount, bucket.burst) * WHOLE


cdef void bucket_take_amount(Bucket* bucket, double amount) noexcept nogil:
    bucket.level -= amount


cdef void bucket_give_back_amount(Bucket* bucket, double amount) noexcept nogil:
    if bucket.level < bucket.burst:
        bucket.level = min(bucket.level + amount, bucket.burst)


cdef int64_t bucket_amount_due_ns(Bucket* bucket, double amount, double before) noexcept nogil:
    cdef double target = min(amount, bucket.burst) + before
    cdef double wait_ns
    if bucket_has_amount(bucket, amount, before):
        return bucket.refilled_ns
    if bucket.rate <= 0 or bucket.burst <= 0 or target > bucket.burst:
        return INT64_MAX
    wait_ns = ceil((target - bucket.level) / bucket.rate * NS_PER_S)
    if wait_ns >= REPRESENTABLE_NS or <int64_t>wait_ns > INT64_MAX - bucket.refilled_ns:
        return INT64_MAX
    return bucket.refilled_ns + <int64_t>wait_ns


cdef class TokenBucket:
    """One bucket, for tests and benchmarks."""

    cdef Bucket bucket

    def __init__(self, double rate, double burst, int64_t now_ns=0):
        bucket_init(&self.bucket, rate, burst, now_ns)

    def configure(self, double rate, double burst, int64_t now_ns):
        bucket_configure(&self.bucket, rate, burst, now_ns)

    def refill(self, int64_t now_ns, bint demanded=False):
        bucket_refill(&self.bucket, now_ns, demanded)

    def has(self):
        return bucket_has(&self.bucket)

    def take(self):
        """Take a token if there is one, and say whether there was."""
        if not bucket_has(&self.bucket):
            return False
        bucket_take(&self.bucket)
        return True

    def give_back(self):
        bucket_give_back(&self.bucket)

    def has_amount(self, double amount, double before=0.0):
        return bucket_has_amount(&self.bucket, amount, before)

    def take_amount(self, double amount):
        bucket_take_amount(&self.bucket, amount)

    def give_back_amount(self, double amount):
        bucket_give_back_amount(&self.bucket, amount)

    def amount_due_ns(self, double amount, double before=0.0):
        return bucket_amount_due_ns(&self.bucket, amount, before)

    def due_ns(self):
        return bucket_due_ns(&self.bucket)

    def tokens(self):
        return bucket_tokens(&self.bucket)

    @property
    def level(self):
        return self.bucket.level

    def spin(self, int64_t passes):
        """Refill, take when there is a token, ask when the next one comes; `passes` times in one call."""
        cdef int64_t taken = 0
        cdef int64_t now_ns = self.bucket.refilled_ns
        with nogil:
            for _ in range(passes):
                bucket_refill(&self.bucket, now_ns, True)
                if bucket_has(&self.bucket):
                    bucket_take(&self.bucket)
                    taken += 1
                now_ns = bucket_due_ns(&self.bucket)
        return taken
