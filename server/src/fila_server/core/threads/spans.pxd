"""Spans of messages whose producers' traces are recorded, from the scheduler to the thread that sends them.

    scheduler ── span_add ──► ring, bounded ──► SpanTap.take ──► telemetry/spans.py

What does not fit is dropped and counted: nobody waits for a collector. All of it is there only while spans
are wanted; `Core.traces` is NULL otherwise, and then a message costs no more than looking at that.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from fila_server.core.protocol.traceparent cimport TraceContext
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.locks cimport pthread_mutex_t
from fila_server.core.threads.mailbox cimport Command

cdef enum:
    SPANS_MAX = 4096                # in the ring
    ARRIVING_MAX = 1024             # on their way to the disk; both are powers of two, as are these:
    LEASED_MAX = 65536
    ENDED_MAX = 4096
    TEXTS_MAX = 768                 # bytes of a span's texts together

cdef enum SpanKind:                 # the numbers are those of telemetry/spans.py
    SPAN_ENQUEUE = 1
    SPAN_POLICY
    SPAN_DELIVER
    SPAN_SETTLE

cdef enum SpanOutcome:              # and these
    OUT_STORED = 1
    OUT_DUPLICATE                   # an earlier message has its dedup key, and stands for it
    OUT_REFUSED
    OUT_SCRIPT                      # its script's routing
    OUT_POLICY                      # the script failed or was not called: the queue's plain settings
    OUT_RETRY
    OUT_DEAD_LETTER
    OUT_SENT
    OUT_ACKED
    OUT_NACKED
    OUT_EXPIRED
    OUT_RETURNED

cdef enum SpanText:                 # which of a span's texts is which
    TEXT_QUEUE = 0
    TEXT_CHANNEL
    TEXT_KEY
    TEXT_WHY
    TEXT_COUNT

cdef struct Span:
    TraceContext context
    int64_t  begins_ns, ends_ns     # on the wall clock
    uint64_t id_high, id_low, offset
    uint64_t lease_id, consumer     # 0 = none
    uint32_t attempts
    uint8_t  kind, outcome
    uint16_t lengths[4]             # of its texts, which stand one behind the other; see SpanText
    char     texts[TEXTS_MAX]

cdef struct Arriving:               # an enqueue that is to be answered once it is on disk
    Command* command                # until its pass is written
    uint32_t item
    uint64_t queue_number           # 0 = there is no such queue
    uint64_t epoch                  # then: it waits for this one; 0 = for none
    Span     span

cdef struct LeasedTrace:            # of a message that was sent; found by lease id, the older one gives way
    uint64_t lease_id
    TraceContext context
    int64_t  begins_ns
    int64_t  ended_ns               # 0 = it is still leased

cdef struct EndedLease:             # when a message was last given back; found by what it is, and likewise
    uint64_t message
    int64_t  ended_ns

cdef struct Traces "fila_traces":
    pthread_mutex_t lock            # of the ring
    Span*    ring
    uint64_t added, taken           # ever
    uint64_t dropped                # for want of room, anywhere
    uint64_t trace_low_max          # traces whose lower half is above it are left out
    # --- the scheduler's own
    int64_t  wall_ahead_ns          # wall clock less monotonic clock, as closely as milliseconds tell
    Arriving* arriving              # a ring: from `answered` to `written`, then to `arrived`
    uint64_t answered, written, arrived
    LeasedTrace* leased
    EndedLease* ended

cdef Traces* traces_new(uint64_t trace_low_max) noexcept nogil
cdef void traces_free(Traces* traces) noexcept nogil
# In their order; cut where it is too long.
cdef void span_text(Span* span, int which, Slice text) noexcept nogil
cdef void span_add(Traces* traces, const Span* span) noexcept nogil

cdef class SpanTap:
    cdef Traces* traces
