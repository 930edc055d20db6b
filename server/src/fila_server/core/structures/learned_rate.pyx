"""A call of learned_grow between two steps costs a comparison, and an answer costs a multiplication.

The growth near the last refusal is a cubic curve: from the part of it that was left up to it in BACK_S, and
flat at its end. A slow provider is bound by messages and not by time, since a probe is a message that is
refused, and one that asks for long pauses is bound by these. So the way back takes no less than BACK_MESSAGES
messages, and BACK_PAUSES times the pause.
"""

from libc.stdint cimport int64_t, uint64_t

cdef double NS_PER_S = 1e9

cdef int64_t STEP_NS = 100_000_000
cdef double LONGEST_STEP_S = 1                      # or a message's time: less often asked, nobody waited
cdef double QUIET_S = 2                             # or 1.5 messages' time: behind a refusal it does not grow

cdef double OF_ACCEPTED = 0.97
cdef double LOWEST_PART = 0.45                      # of what was in force is left by one decrease
cdef double WEIGHT_OF_ONE = 0.05                    # of an answer in `share`
cdef double MOVED_SHARE = 0.4                       # refusals of more than this: the limit is elsewhere now

cdef double BACK_S = 15
cdef double BACK_S_MAX = 40
cdef double BACK_MESSAGES = 250
cdef double BACK_PAUSES = 20
cdef double BACK_PART_MIN = 0.05                    # of `near`, how steep the curve is at least
cdef double BEYOND = 1.02
cdef double BEYOND_GROWTH = 0.1                     # a second, at most;
cdef double BEYOND_RAMP = 0.006                     # more of it each second beyond


cdef inline double _within(LearnedRate* learned, double rate) noexcept nogil:
    return max(learned.least, min(learned.most, rate))


cdef void learned_init(
        LearnedRate* learned, double least, double most, double rate, int64_t now_ns) noexcept nogil:
    learned.least, learned.most = least, most
    learned.rate = learned.before = _within(learned, rate)
    learned.near = learned.share = 0
    learned.back_from = 1
    learned.waited_s = learned.beyond_s = learned.pause_s = 0
    learned.decreased_at = learned.latest = 0
    learned.grown_ns = learned.open_ns = learned.reset_ns = now_ns
    learned.refused_ns = now_ns - <int64_t> (QUIET_S * NS_PER_S)
    learned.allowed = 0


cdef void learned_bound(LearnedRate* learned, double least, double most) noexcept nogil:
    learned.least, learned.most = least, most
    learned.rate = _within(learned, learned.rate)


cdef void learned_refused(
        LearnedRate* learned, uint64_t left, uint64_t newest, int64_t retry_ns,
        int64_t now_ns) noexcept nogil:
    cdef double part
    if left > learned.decreased_at:
        learned.decreased_at = newest
        learned.before = learned.rate
        learned.share = learned.pause_s = 0
    learned.open_ns = max(learned.open_ns, now_ns + retry_ns)
    learned.pause_s = max(learned.pause_s, <double> retry_ns / NS_PER_S)
    learned.refused_ns = now_ns
    learned.waited_s = learned.beyond_s = 0
    learned.share += WEIGHT_OF_ONE * (1 - learned.share)
    part = max(LOWEST_PART, 1 - learned.share)
    learned.rate = _within(learned, min(learned.rate, learned.before * OF_ACCEPTED * part))
    learned.near = learned.before
    if learned.share > MOVED_SHARE:
        learned.near = learned.before * part
    if learned.rate <= learned.least:
        learned.near = 0                            # it stands at its bound, wherever the limit is
    learned.back_from = min(1, learned.rate / learned.near) if learned.near > 0 else 1


cdef void learned_accepted(LearnedRate* learned) noexcept nogil:
    learned.share -= WEIGHT_OF_ONE * learned.share


cdef void learned_remains(
        LearnedRate* learned, uint64_t left, int64_t remaining, int64_t in_flight, int64_t reset_ns,
        int64_t now_ns) noexcept nogil:
    """What left later knows better: answers come in any order."""
    if left < learned.latest and now_ns < learned.reset_ns:
        return
    learned.latest = left
    learned.allowed = max(0, remaining - in_flight)
    learned.reset_ns = now_ns + reset_ns
    if learned.allowed == 0:
        learned.open_ns = max(learned.open_ns, learned.reset_ns)


cdef void learned_take(LearnedRate* learned, int64_t now_ns) noexcept nogil:
    if now_ns >= learned.reset_ns:
        return
    learned.allowed -= 1
    if learned.allowed <= 0:
        learned.open_ns = max(learned.open_ns, learned.reset_ns)


cdef inline double _back_s(LearnedRate* learned) noexcept nogil:
    """How long the way back to `near` takes."""
    return min(BACK_S_MAX, max(BACK_S, max(BACK_MESSAGES / learned.near, BACK_PAUSES * learned.pause_s)))


cdef bint learned_grow(LearnedRate* learned, int64_t now_ns) noexcept nogil:
    cdef double rate = learned.rate
    cdef double step_s, left
    if now_ns - learned.grown_ns < STEP_NS:
        return False
    step_s = min(<double> (now_ns - learned.grown_ns) / NS_PER_S, max(LONGEST_STEP_S, 1 / rate))
    learned.grown_ns = now_ns
    if (
        now_ns < learned.open_ns
        or <double> (now_ns - learned.refused_ns) / NS_PER_S < max(QUIET_S, 1.5 / rate)
    ):
        return False
    learned.waited_s += step_s
    if learned.near == 0 or rate >= BEYOND * learned.near:
        learned.beyond_s += step_s
        rate *= 1 + min(BEYOND_GROWTH, BEYOND_RAMP * learned.beyond_s) * step_s
    else:
        left = 1 - learned.waited_s / _back_s(learned)
        rate = learned.near * (1 - max(BACK_PART_MIN, 1 - learned.back_from) * left * left * left)
    rate = _within(learned, max(rate, learned.rate))
    step_s, learned.rate = learned.rate, rate
    return rate > step_s


cdef class FollowingRate:
    """One learned rate, for tests and benchmarks."""

    cdef LearnedRate learned

    def __init__(self, double least, double most, double rate, int64_t now_ns=0):
        learned_init(&self.learned, least, most, rate, now_ns)

    def bound(self, double least, double most):
        learned_bound(&self.learned, least, most)

    def refused(self, uint64_t left, uint64_t newest, int64_t retry_ns, int64_t now_ns):
        learned_refused(&self.learned, left, newest, retry_ns, now_ns)

    def accepted(self):
        learned_accepted(&self.learned)

    def remains(self, uint64_t left, int64_t remaining, int64_t in_flight, int64_t reset_ns, int64_t now_ns):
        learned_remains(&self.learned, left, remaining, in_flight, reset_ns, now_ns)

    def take(self, int64_t now_ns):
        learned_take(&self.learned, now_ns)

    def grow(self, int64_t now_ns):
        return learned_grow(&self.learned, now_ns)

    @property
    def rate(self):
        return self.learned.rate

    @property
    def open_ns(self):
        return self.learned.open_ns

    def spin(self, int64_t passes):
        """An answer, a message that goes, and growth; `passes` times in one call."""
        cdef int64_t now_ns = self.learned.grown_ns
        with nogil:
            for _ in range(passes):
                now_ns += 1_000_000
                learned_accepted(&self.learned)
                learned_take(&self.learned, now_ns)
                learned_grow(&self.learned, now_ns)
        return now_ns
