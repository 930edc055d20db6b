"""The 4-ary heap of timers: half the depth of a binary one, and four children share a cache line."""

from libc.stdint cimport INT64_MAX
from libc.stdlib cimport abort, calloc, free, realloc

cdef enum:
    ARITY = 4
    CAPACITY_MIN = 64


cdef void timers_init(Timers* timers) noexcept nogil:
    timers.heap = NULL
    timers.count = 0
    timers.capacity = 0


cdef void timers_free(Timers* timers) noexcept nogil:
    cdef uint32_t at
    for at in range(timers.count):
        timers.heap[at].at = 0
    free(timers.heap)
    timers_init(timers)


cdef inline void _place(Timers* timers, uint32_t at, Timer* timer) noexcept nogil:
    timers.heap[at] = timer
    timer.at = at + 1


cdef void _sift_up(Timers* timers, uint32_t at) noexcept nogil:
    cdef Timer* timer = timers.heap[at]
    cdef uint32_t parent
    while at > 0:
        parent = (at - 1) / ARITY
        if timer.due_ns >= timers.heap[parent].due_ns:
            break
        _place(timers, at, timers.heap[parent])
        at = parent
    _place(timers, at, timer)


cdef void _sift_down(Timers* timers, uint32_t at) noexcept nogil:
    cdef Timer* timer = timers.heap[at]
    cdef uint32_t child, first, last
    while True:
        first = ARITY * at + 1
        if first >= timers.count:
            break
        last = min(first + <uint32_t>ARITY, timers.count)
        child = first
        first += 1
        while first < last:
            if timers.heap[first].due_ns < timers.heap[child].due_ns:
                child = first
            first += 1
        if timers.heap[child].due_ns >= timer.due_ns:
            break
        _place(timers, at, timers.heap[child])
        at = child
    _place(timers, at, timer)


cdef bint _resize(Timers* timers, uint32_t capacity) noexcept nogil:
    cdef Timer** heap = <Timer**>realloc(timers.heap, capacity * sizeof(Timer*))
    if heap == NULL:
        return False
    timers.heap = heap
    timers.capacity = capacity
    return True


cdef void timer_set(Timers* timers, Timer* timer, int64_t due_ns) noexcept nogil:
    if timer.at == 0:
        if timers.count == timers.capacity:
            if not _resize(timers, max(<uint32_t>CAPACITY_MIN, 2 * timers.capacity)):
                abort()         # a lease without a timer would never end
        timers.count += 1
        timer.due_ns = due_ns
        _place(timers, timers.count - 1, timer)
        _sift_up(timers, timers.count - 1)
        return
    timer.due_ns = due_ns
    _sift_up(timers, timer.at - 1)
    _sift_down(timers, timer.at - 1)


cdef void timer_cancel(Timers* timers, Timer* timer) noexcept nogil:
    cdef uint32_t at = timer.at - 1
    if timer.at == 0:
        return
    timer.at = 0
    timers.count -= 1
    if at < timers.count:
        _place(timers, at, timers.heap[timers.count])
        _sift_up(timers, at)                     # the one that fills the gap may belong either way
        _sift_down(timers, at)
    if timers.capacity > CAPACITY_MIN and 4 * timers.count < timers.capacity:
        _resize(timers, timers.capacity >> 1)    # when even that fails, the large one stays


cdef Timer* timers_pop_due(Timers* timers, int64_t now_ns) noexcept nogil:
    cdef Timer* timer
    if timers.count == 0 or timers.heap[0].due_ns > now_ns:
        return NULL
    timer = timers.heap[0]
    timer_cancel(timers, timer)
    return timer


cdef int64_t timers_next(Timers* timers) noexcept nogil:
    return timers.heap[0].due_ns if timers.count > 0 else INT64_MAX


cdef class TimerHeap:
    """Timers numbered from 0, for tests and benchmarks."""

    cdef Timers timers
    cdef Timer* all
    cdef uint32_t timer_count

    def __cinit__(self, uint32_t timer_count):
        timers_init(&self.timers)
        self.timer_count = timer_count
        self.all = <Timer*>calloc(max(timer_count, 1), sizeof(Timer))
        if self.all == NULL:
            raise MemoryError()

    def __dealloc__(self):
        timers_free(&self.timers)
        free(self.all)

    cdef Timer* _timer(self, uint32_t number) except NULL:
        if number >= self.timer_count:
            raise IndexError(f"timer {number} of {self.timer_count}")
        return &self.all[number]

    def set(self, uint32_t number, int64_t due_ns):
        timer_set(&self.timers, self._timer(number), due_ns)

    def cancel(self, uint32_t number):
        timer_cancel(&self.timers, self._timer(number))

    def is_set(self, uint32_t number):
        return self._timer(number).at != 0

    def pop_due(self, int64_t now_ns):
        cdef Timer* timer = timers_pop_due(&self.timers, now_ns)
        return None if timer == NULL else <int64_t>(timer - self.all)

    def next(self):
        return timers_next(&self.timers)

    @property
    def capacity(self):
        return self.timers.capacity

    def __len__(self):
        return self.timers.count

    def spin(self, int64_t passes, int64_t step_ns):
        """Fire the earliest and set it again `step_ns` times its number later; `passes` times in one call."""
        cdef Timer* timer
        with nogil:
            for _ in range(passes):
                timer = timers_pop_due(&self.timers, INT64_MAX)
                if timer == NULL:
                    break
                timer_set(&self.timers, timer, timer.due_ns + step_ns * (1 + (timer - self.all)))
