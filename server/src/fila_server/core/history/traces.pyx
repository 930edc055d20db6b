"""What is remembered between two spans of a message lies in tables of a fixed size, where a newer one takes
an older one's place: a span that is missing costs less than a table that grows."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset, strlen

from fila_server.core.protocol.commands cimport MOVE_STAGED
from fila_server.core.protocol.protobuf cimport BY_AN_EARLIER, Item, header_find
from fila_server.core.protocol.refusals cimport refusal_reason
from fila_server.core.protocol.traceparent cimport TraceContext, traceparent_parse
from fila_server.core.state.directory cimport directory_at, frame_index
from fila_server.core.state.kinds cimport PULL
from fila_server.core.state.paths cimport (
    entry_of, frame_enqueued_ms, frame_id, frame_of, frame_offset, queue_find, share_of,
)
from fila_server.core.state.state cimport Channel, Frame, Queue
from fila_server.core.structures.maps cimport Text, map64_get
from fila_server.core.threads.spans cimport (
    ARRIVING_MAX, ENDED_MAX, LEASED_MAX, OUT_ACKED, OUT_DUPLICATE, OUT_POLICY, OUT_REFUSED, OUT_SCRIPT,
    OUT_SENT, OUT_STORED, SPAN_DELIVER, SPAN_ENQUEUE, SPAN_POLICY, SPAN_SETTLE, TEXT_CHANNEL, TEXT_KEY,
    TEXT_QUEUE, TEXT_WHY, Arriving, EndedLease, LeasedTrace, Span, Traces, span_add, span_text,
)

cdef int64_t MS = 1000000


cdef bint _context_of(
        Traces* traces, const char* body, uint32_t length, TraceContext* context) noexcept nogil:
    """Whether a message's trace is recorded, and is one of those that are to have spans of the broker."""
    cdef Slice name
    cdef Slice value
    name.at, name.length = b"traceparent", 11
    return (
        header_find(body, length, name, &value) and traceparent_parse(value.at, value.length, context)
        and context.trace_low <= traces.trace_low_max
    )


cdef inline Slice _words(const Text* text) noexcept nogil:
    cdef Slice words
    words.at, words.length = text.bytes, text.length
    return words


cdef void _of_slot(Span* span, Slot* slot, int kind, int outcome) noexcept nogil:
    """Begin a span with all that a message in a channel says of itself."""
    cdef Channel* channel = share_of(slot).channel
    cdef Frame* frame = frame_of(slot)
    memset(span, 0, sizeof(Span))
    span.kind, span.outcome = <uint8_t> kind, <uint8_t> outcome
    frame_id(frame, slot.index, &span.id_high, &span.id_low)
    span.offset = frame_offset(frame, slot.index)
    span.attempts = slot.attempts
    span_text(span, TEXT_QUEUE, _words(&channel.queue.text))
    span_text(span, TEXT_CHANNEL, _words(&channel.text))
    span_text(span, TEXT_KEY, _words(&entry_of(slot).key.text))


cdef void _end(Traces* traces, Span* span, int64_t begins_ns, int64_t ends_ns) noexcept nogil:
    """Both on the monotonic clock, so that what lies between is exact."""
    # The wall clock, by which messages say when they came, may have been set back.
    span.begins_ns = min(begins_ns, ends_ns) + traces.wall_ahead_ns
    span.ends_ns = ends_ns + traces.wall_ahead_ns
    span_add(traces, span)


# --- coming in -----------------------------------------------------------------------------------

cdef void traces_turn(Core* core) noexcept nogil:
    cdef Traces* t = core.traces
    cdef Arriving* a
    # The wall clock is told in whole milliseconds, so many passes narrow down what it is ahead by.
    cdef int64_t least_ns = core.wall_ms * MS - core.mono_ns
    t.wall_ahead_ns = min(max(t.wall_ahead_ns, least_ns), least_ns + MS - 1)
    while t.arrived < t.written:
        a = &t.arriving[t.arrived & (ARRIVING_MAX - 1)]
        if a.epoch > core.durable:
            return
        if a.span.kind:
            _end(t, &a.span, a.span.begins_ns, core.mono_ns)
        t.arrived += 1


cdef void enqueue_traced(Core* core, Command* command) noexcept nogil:
    cdef Traces* t = core.traces
    cdef TraceContext context
    cdef Arriving* a
    cdef Item* item
    cdef Queue* queue
    cdef uint32_t i
    for i in range(command.count):
        item = &command.items[i]
        if item.refused or not _context_of(t, command.bytes + item.at, item.length, &context):
            continue
        if t.answered - t.arrived == ARRIVING_MAX:
            t.dropped += 1
            continue
        a = &t.arriving[t.answered & (ARRIVING_MAX - 1)]
        t.answered += 1
        memset(a, 0, sizeof(Arriving))
        a.command, a.item = command, i
        queue = queue_find(core, item.queue)
        a.queue_number = queue.number if queue != NULL else 0
        a.span.kind = SPAN_ENQUEUE
        a.span.context = context
        a.span.begins_ns = command.shown_ns if command.shown_ns else core.mono_ns
        span_text(&a.span, TEXT_QUEUE, item.queue)


cdef void _name_arrived(Queue* queue, Item* item, Span* span) noexcept nogil:
    cdef Frame* frame = directory_at(&queue.directory, item.offset)
    cdef uint32_t i
    span.id_high, span.id_low, span.offset = item.id_high, item.id_low, item.offset
    if frame == NULL:
        return
    i = frame_index(frame, item.offset)
    if i < frame.count:
        span_text(span, TEXT_KEY, _words(&frame.entries[i].key.text))


cdef void _script_ran(
        Core* core, const Command* command, const Item* item, const Span* enqueue) noexcept nogil:
    cdef Span span = enqueue[0]
    span.kind = SPAN_POLICY
    span.outcome = OUT_SCRIPT if item.routing != NULL else OUT_POLICY
    span.lengths[<int> TEXT_WHY] = 0
    _end(core.traces, &span, command.shown_ns, command.routed_ns)


cdef void enqueue_written_traced(Core* core, Command* command, uint8_t refused) noexcept nogil:
    cdef Traces* t = core.traces
    cdef Arriving* a
    cdef Item* item
    cdef Queue* queue
    cdef Slice why
    while t.written < t.answered:
        a = &t.arriving[t.written & (ARRIVING_MAX - 1)]
        if a.command != command:
            return
        t.written += 1
        a.command = NULL
        item = &command.items[a.item]
        queue = <Queue*> map64_get(&core.queues_by_number, a.queue_number)
        a.epoch = core.epoch if command.durable else 0
        if item.refused or refused:
            a.epoch = 0
            a.span.outcome = OUT_REFUSED
            if command.kind == MOVE_STAGED:         # it is offered again
                a.span.kind = 0
            why.at = refusal_reason(item.refused if item.refused else refused)
            why.length = <uint32_t> strlen(why.at)
            span_text(&a.span, TEXT_WHY, why)
        elif queue != NULL:
            a.span.outcome = OUT_DUPLICATE if item.answered == BY_AN_EARLIER else OUT_STORED
            _name_arrived(queue, item, &a.span)
        if command.shown_ns and a.span.kind and queue != NULL and queue.policy.has_on_enqueue:
            _script_ran(core, command, item, &a.span)


# --- going out -----------------------------------------------------------------------------------

cdef inline uint64_t _message(Slot* slot) noexcept nogil:
    """Which message of which channel; two of one number make a span begin at the wrong moment, no more."""
    cdef uint64_t number = share_of(slot).channel.number * <uint64_t> 0x9E3779B97F4A7C15
    return (number ^ frame_offset(frame_of(slot), slot.index)) * <uint64_t> 0xBF58476D1CE4E5B9 | 1


cdef inline EndedLease* _ended(Traces* traces, uint64_t message) noexcept nogil:
    return &traces.ended[message >> 32 & (ENDED_MAX - 1)]


cdef void delivery_traced(Core* core, Delivery* delivery) noexcept nogil:
    cdef Traces* t = core.traces
    cdef TraceContext context
    cdef LeasedTrace* leased
    cdef EndedLease* ended
    cdef Lease* lease
    cdef Slot* slot
    cdef Span span
    cdef int64_t begins_ns
    cdef uint32_t i
    for i in range(delivery.count):
        lease = delivery.leases[i]
        if lease == NULL:
            continue
        slot = lease.slot
        if not _context_of(t, frame_of(slot).body.bytes + entry_of(slot).at, entry_of(slot).length, &context):
            continue
        leased = &t.leased[lease.lease_id & (LEASED_MAX - 1)]
        if leased.lease_id and leased.ended_ns == 0:
            t.dropped += 1              # it has been held for 65,536 deliveries
        leased.lease_id, leased.context = lease.lease_id, context
        leased.begins_ns, leased.ended_ns = core.mono_ns, 0
        begins_ns = frame_enqueued_ms(frame_of(slot), slot.index) * MS - t.wall_ahead_ns
        ended = _ended(t, _message(slot))
        if ended.message == _message(slot):
            begins_ns = ended.ended_ns
        _of_slot(&span, slot, SPAN_DELIVER, OUT_SENT)
        span.context, span.lease_id = context, lease.lease_id
        span.consumer = delivery.consumer.number if delivery.consumer.kind != PULL else 0
        _end(t, &span, begins_ns, leased.begins_ns)


cdef void lease_traced(Core* core, Lease* lease, int outcome, Slice why) noexcept nogil:
    cdef Traces* t = core.traces
    cdef LeasedTrace* leased = &t.leased[lease.lease_id & (LEASED_MAX - 1)]
    cdef EndedLease* ended
    cdef Span span
    if leased.lease_id != lease.lease_id or leased.ended_ns:
        return
    leased.ended_ns = core.mono_ns
    if outcome != OUT_ACKED:
        ended = _ended(t, _message(lease.slot))
        ended.message, ended.ended_ns = _message(lease.slot), leased.ended_ns
    _of_slot(&span, lease.slot, SPAN_SETTLE, outcome)
    span.context, span.lease_id = leased.context, lease.lease_id
    span.consumer = lease.consumer.number if lease.consumer != NULL else 0
    span_text(&span, TEXT_WHY, why)
    _end(t, &span, leased.begins_ns, leased.ended_ns)


cdef void decision_traced(Core* core, Slot* slot, uint64_t lease_id, int outcome) noexcept nogil:
    cdef Traces* traces = core.traces
    cdef LeasedTrace* leased = &traces.leased[lease_id & (LEASED_MAX - 1)]
    cdef Span span
    if leased.lease_id != lease_id or leased.ended_ns == 0:
        return
    _of_slot(&span, slot, SPAN_POLICY, outcome)
    span.context, span.lease_id = leased.context, lease_id
    _end(core.traces, &span, leased.ended_ns, core.mono_ns)
