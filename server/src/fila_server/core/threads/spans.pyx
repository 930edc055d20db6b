from libc.stddef cimport size_t
from libc.stdlib cimport abort, calloc, free
from libc.string cimport memcpy

from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.threads.locks cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)

cdef enum:
    TAKEN_AT_ONCE_MAX = 64          # spans copied under the lock


cdef void* _zeros(size_t count, size_t size) noexcept nogil:
    """Pages that no span touches cost no memory."""
    cdef void* got = calloc(count, size)
    if got == NULL:
        abort()
    return got


cdef Traces* traces_new(uint64_t trace_low_max) noexcept nogil:
    cdef Traces* t = <Traces*> _zeros(1, sizeof(Traces))
    pthread_mutex_init(&t.lock, NULL)
    t.ring = <Span*> _zeros(SPANS_MAX, sizeof(Span))
    t.arriving = <Arriving*> _zeros(ARRIVING_MAX, sizeof(Arriving))
    t.leased = <LeasedTrace*> _zeros(LEASED_MAX, sizeof(LeasedTrace))
    t.ended = <EndedLease*> _zeros(ENDED_MAX, sizeof(EndedLease))
    t.trace_low_max = trace_low_max
    return t


cdef void traces_free(Traces* traces) noexcept nogil:
    pthread_mutex_destroy(&traces.lock)
    free(traces.ring)
    free(traces.arriving)
    free(traces.leased)
    free(traces.ended)
    free(traces)


cdef void span_text(Span* span, int which, Slice text) noexcept nogil:
    cdef uint32_t begins = 0
    cdef uint32_t length = text.length
    cdef int i
    for i in range(which):
        begins += span.lengths[i]
    if length > TEXTS_MAX - begins:
        length = TEXTS_MAX - begins
        while length and <unsigned char> text.at[length] & 0xC0 == 0x80:        # not within a character
            length -= 1
    memcpy(span.texts + begins, text.at, length)
    span.lengths[which] = <uint16_t> length


cdef void span_add(Traces* traces, const Span* span) noexcept nogil:
    pthread_mutex_lock(&traces.lock)
    if traces.added - traces.taken < SPANS_MAX:
        traces.ring[traces.added & (SPANS_MAX - 1)] = span[0]
        traces.added += 1
    else:
        traces.dropped += 1
    pthread_mutex_unlock(&traces.lock)


cdef uint32_t _take(Traces* traces, Span* to, uint32_t most) noexcept nogil:
    cdef uint32_t count = 0
    pthread_mutex_lock(&traces.lock)
    while count < most and traces.taken < traces.added:
        to[count] = traces.ring[traces.taken & (SPANS_MAX - 1)]
        traces.taken += 1
        count += 1
    pthread_mutex_unlock(&traces.lock)
    return count


cdef tuple _texts(const Span* span):
    cdef list found = []
    cdef const char* at = <const char*>span.texts
    cdef int i
    for i in range(TEXT_COUNT):
        found.append(at[:span.lengths[i]].decode("utf-8", "replace"))
        at += span.lengths[i]
    return tuple(found)


cdef tuple _row(const Span* s):
    queue, channel, key, why = _texts(s)
    return (
        s.kind, s.outcome, (<object> s.context.trace_high << 64) | s.context.trace_low, s.context.span,
        s.begins_ns, s.ends_ns, (<object> s.id_high << 64) | s.id_low, s.offset, s.lease_id, s.consumer,
        s.attempts, queue, channel, key, why,
    )


cdef class SpanTap:
    """The ring as its one reader has it; it outlives the core. Only traces whose lower half, a random number,
    is at most `trace_low_max` have spans: every broker and every program that goes by it chooses the same."""

    def __cinit__(self, uint64_t trace_low_max):
        self.traces = traces_new(trace_low_max)

    def __dealloc__(self):
        traces_free(self.traces)

    @property
    def dropped(self):
        """Spans that were not made, or not kept, for want of room."""
        return self.traces.dropped

    def take(self, uint32_t most):
        """The oldest spans, at most so many, each a tuple in the order of telemetry/spans.py's Row."""
        cdef list rows = []
        cdef uint32_t asked, count, i
        cdef Span* spans = <Span*> must_malloc(TAKEN_AT_ONCE_MAX * sizeof(Span))
        try:
            while most:
                asked = min(most, <uint32_t> TAKEN_AT_ONCE_MAX)
                with nogil:
                    count = _take(self.traces, spans, asked)
                for i in range(count):
                    rows.append(_row(&spans[i]))
                most -= count
                if count < asked:
                    break
        finally:
            free(spans)
        return rows
