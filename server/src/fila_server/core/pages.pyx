"""See pages.pxd."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.answers cimport answer, answer_no_channel, answer_no_queue, answer_status
from fila_server.core.buffer cimport Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, put_bytes
from fila_server.core.commands cimport INVALID_ARGUMENT, OK, PEEK_MESSAGES
from fila_server.core.sending cimport frame_want
from fila_server.core.enqueue cimport move_in, queue_find
from fila_server.core.frames cimport (
    directory_after, directory_at, frame_enqueued_ms, frame_id, frame_of, frame_offset, key_intern, share_find,
)
from fila_server.core.mailbox cimport command_free, command_new
from fila_server.core.routing cimport (
    GIVEN_COST, GIVEN_FAIRNESS_KEY, GIVEN_THROTTLE_KEYS, GIVEN_WEIGHT, ROUTING_THROTTLE_KEYS_MAX, Routing, route_as,
)
from fila_server.core.queues cimport channel_find, channel_need
from fila_server.core.ending cimport slot_done
from fila_server.core.failure cimport keep_until_written
from fila_server.core.state cimport Building, Channel, DELAYED, Entry, Frame, Queue, READY, Share, Slot
from fila_server.core.waiting cimport Page
from fila_server.core.view cimport message_bytes, message_view
from fila_server.core.wire cimport (
    Fields, Item, View, fields_parse, next_field, put_message, put_number_field,
)

cdef enum:
    PEEK_DEFAULT = 1
    PEEK_MAX = 1000
    PEEK_BYTES_MAX = 4000000
    REDRIVE_MAX = 256
    WAITED_IN_VAIN_MAX = 64         # loads, of this page's frames or others', that brought it no further
    LOOKED_AHEAD = 4096             # frames; a peek for one key of many stops here and says where


cdef bint page(Core* core, Command* command) noexcept nogil:
    if command.kind == PEEK_MESSAGES:
        return _peek(core, command)
    return _redrive(core, command)


cdef void _wait(Core* core, Command* command) noexcept nogil:
    cdef Page* waiting = <Page*> must_malloc(sizeof(Page))
    waiting.command = command
    waiting.next = core.pages
    core.pages = waiting


cdef void pages_loaded(Core* core) noexcept nogil:
    cdef Page* waiting = core.pages
    cdef Page* following
    core.pages = NULL
    while waiting != NULL:
        following = waiting.next
        if page(core, waiting.command):
            command_free(waiting.command)
        free(waiting)
        waiting = following


cdef uint32_t _collect(Core* core, Channel* channel, uint64_t from_offset, uint64_t to_offset, Slice key, uint32_t most, uint64_t bytes_most, Slot** slots, bint* cold) noexcept nogil:
    """Pending messages in offset order; asks for every cold frame among them."""
    cdef Frame* frame = directory_at(&channel.queue.directory, from_offset)
    cdef Share* share
    cdef Slot* slot
    cdef Entry* entry
    cdef uint32_t i, count = 0
    cdef uint64_t bytes = 0
    cold[0] = False
    while frame != NULL and count < most and bytes < bytes_most:
        share = share_find(frame, channel)
        if share != NULL and share.remaining:
            for i in range(frame.count):
                slot = &share.slots[i]
                entry = &frame.entries[i]
                if slot.state != READY and slot.state != DELAYED:
                    continue
                if frame_offset(frame, i) < from_offset or frame_offset(frame, i) > to_offset:
                    continue
                if key.length and not _same(key, entry.key.text.bytes, entry.key.text.length):
                    continue
                if count == most or (count and bytes + message_bytes(slot) > bytes_most):
                    return count
                if frame.body == NULL:
                    cold[0] = True
                    frame_want(core, frame)
                slots[count] = slot
                count += 1
                bytes += message_bytes(slot)
        frame = directory_after(&channel.queue.directory, frame)
    return count


cdef bint _enough(Command* command, Slot** slots, uint32_t* count) noexcept nogil:
    """A page that waits in vain is content with its first messages that are hot: a budget too small for all
    of them would keep it waiting for ever. As long as more of them come it goes on: whoever asked takes a
    short page for the last one. `sequence` counts in its halves how many were hot and how often in vain."""
    cdef uint32_t hot = 0
    while hot < count[0] and frame_of(slots[hot]).body != NULL:
        hot += 1
    if hot > command.sequence >> 32:
        command.sequence = <uint64_t> hot << 32
    else:
        command.sequence += 1
    if <uint32_t> command.sequence < WAITED_IN_VAIN_MAX or hot == 0:
        return False
    count[0] = hot
    return True


cdef bint _same(Slice a, const char* at, uint32_t length) noexcept nogil:
    cdef uint32_t i
    if a.length != length:
        return False
    for i in range(length):
        if a.at[i] != at[i]:
            return False
    return True


cdef bint _peek(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    cdef Channel* channel
    cdef Slot* slots[PEEK_MAX]
    cdef uint32_t most, count, i
    cdef bint cold
    cdef View view
    cdef Buffer payload
    fields_parse(&fields, command.bytes, command.length)
    queue = queue_find(core, fields.text[1])
    channel = channel_need(core, queue, fields.text[2]) if queue != NULL else NULL
    if channel == NULL:
        if queue == NULL:
            answer_no_queue(core, command)
        else:
            answer_no_channel(core, command)
        return True
    most = <uint32_t> fields.number[3] if fields.number[3] else PEEK_DEFAULT
    if most > PEEK_MAX:
        most = PEEK_MAX
    count = _collect(core, channel, fields.number[4] + 1, <uint64_t> -1, fields.text[5], most, PEEK_BYTES_MAX, slots, &cold)
    if cold and not _enough(command, slots, &count):
        _wait(core, command)
        return False
    buffer_init(&payload)
    for i in range(count):
        message_view(core, slots[i], &view)
        put_message(&payload, 1, &view, &core.tail)
    answer(core, command.token, OK, &payload, False)
    return True


# --- redrive ---------------------------------------------------------------------------------

cdef struct Origin:                 # of a dead letter
    Slice queue
    Slice channel
    uint32_t body_length            # without the piece of metadata it died with


cdef bint _origin(const char* body, uint32_t length, Origin* origin) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields metadata
    cdef Fields dead
    cdef const char* before
    cdef bint found = False
    c.at, c.end, c.bad = body, body + length, False
    origin.body_length = length
    while True:
        before = c.at
        if not next_field(&c, &field, &kind, &text, &number):
            break
        if field == 4:
            origin.body_length = <uint32_t> (before - body)
            if fields_parse(&metadata, text.at, text.length) and fields_parse(&dead, metadata.text[10].at, metadata.text[10].length):
                origin.queue = dead.text[1]
                origin.channel = dead.text[2]
                found = True
    return found


cdef Slice _override(Command* command, uint64_t offset) noexcept nogil:
    """What a hook decided for this dead letter: field 15, repeated (see _read_override); nothing when it is not named."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef Slice nothing
    cdef uint64_t number
    cdef Fields fields
    nothing.at, nothing.length = NULL, 0
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == 15 and fields_parse(&fields, text.at, text.length) and fields.number[1] == offset:
            return text
    return nothing


cdef void _read_override(Routing* hooked, Slice text) noexcept nogil:
    """{1 offset, 2 fairness key, 3 weight, 4 cost (double), 5 throttle key (repeated), 6 throttle keys were given}."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice piece
    cdef uint64_t number
    memset(hooked, 0, sizeof(Routing))
    c.at, c.end, c.bad = text.at, text.at + text.length, False
    while next_field(&c, &field, &kind, &piece, &number):
        if field == 2:
            hooked.given |= GIVEN_FAIRNESS_KEY
            hooked.fairness_key = piece
        elif field == 3:
            hooked.given |= GIVEN_WEIGHT
            hooked.weight = <uint32_t> number
        elif field == 4:
            hooked.given |= GIVEN_COST
            memcpy(&hooked.cost, &number, 8)
        elif field == 5 and hooked.throttle_count < ROUTING_THROTTLE_KEYS_MAX:
            hooked.given |= GIVEN_THROTTLE_KEYS
            hooked.throttle[hooked.throttle_count] = piece
            hooked.throttle_count += 1
        elif field == 6:
            hooked.given |= GIVEN_THROTTLE_KEYS


cdef bint _move_back(Core* core, Queue* dlq, Slot* slot, Slice routing) noexcept nogil:
    """One dead letter: a new entry in its source for the channel it failed in, and done here; False: no source."""
    cdef Frame* frame
    cdef Entry* entry
    cdef Origin origin
    cdef Queue* source
    cdef Channel* only
    cdef Item item
    cdef Routing hooked
    cdef Command shell
    cdef Building b
    cdef uint64_t high, low
    cdef char* bytes
    frame = frame_of(slot)
    entry = &frame.entries[slot.index]
    if not _origin(frame.body.bytes + entry.at, entry.length, &origin):
        return False
    source = queue_find(core, origin.queue)
    if source == NULL or source.dlq != dlq:
        return False
    only = channel_find(source, origin.channel)
    if only == NULL:
        return False                    # its channel was deleted, and no other may see it
    bytes = <char*> must_malloc(origin.body_length)
    memcpy(bytes, frame.body.bytes + entry.at, origin.body_length)
    memset(&item, 0, sizeof(Item))
    memset(&shell, 0, sizeof(Command))
    memset(&b, 0, sizeof(Building))
    shell.bytes = bytes
    item.length = origin.body_length
    if routing.length:
        _read_override(&hooked, routing)
    if route_as(core, source, &shell, &item, &hooked if routing.length else NULL, &b):
        free(bytes)                     # today's policy can't place it (a key too long): it stays where it is
        return False
    frame_id(frame, slot.index, &high, &low)
    move_in(
        core, source, b.key, b.set, b.cost, bytes, origin.body_length, high, low,
        frame_enqueued_ms(frame, slot.index), only)
    keep_until_written(core, bytes)
    source.counters.redriven += 1
    slot_done(core, slot)
    return True


cdef bint _redrive(Core* core, Command* command) noexcept nogil:
    """A page of a redrive.

    {1 DLQ, 2 most to look at, 4 no later than this offset, 5 after this offset, 7 only those named in 15, 15 routings};
    answers {1 moved, 2 stuck: looked at and left, 3 the last offset looked at}. The edge turns the pages.
    """
    cdef Fields fields
    cdef Queue* dlq
    cdef Channel* channel
    cdef Slot* slots[REDRIVE_MAX]
    cdef uint32_t most, count, i
    cdef uint64_t moved = 0
    cdef uint64_t stuck = 0
    cdef uint64_t last
    cdef bint cold
    cdef Slice any_key
    cdef Slice routing
    cdef Buffer payload
    any_key.at, any_key.length = NULL, 0
    fields_parse(&fields, command.bytes, command.length)
    dlq = queue_find(core, fields.text[1])
    if dlq == NULL:
        answer_no_queue(core, command)
        return True
    if not dlq.is_dlq:
        answer_status(core, command.token, INVALID_ARGUMENT, b"dlq_queue: not a dead-letter queue; those are named <queue>.dlq", b"NOT_A_DLQ")
        return True
    channel = channel_need(core, dlq, any_key)
    most = <uint32_t> fields.number[2] if 0 < fields.number[2] < REDRIVE_MAX else REDRIVE_MAX
    last = fields.number[4] if fields.number[4] else <uint64_t> -1
    count = _collect(core, channel, fields.number[5] + 1, last, any_key, most, PEEK_BYTES_MAX, slots, &cold)
    if cold and not _enough(command, slots, &count):
        _wait(core, command)
        return False
    last = fields.number[5]
    for i in range(count):
        last = frame_offset(frame_of(slots[i]), slots[i].index)
        routing = _override(command, last)
        if fields.number[7] and routing.length == 0:
            continue                    # nobody asked today's script about it: it came back between peek and move
        if _move_back(core, dlq, slots[i], routing):
            moved += 1
        else:
            stuck += 1
    buffer_init(&payload)
    put_number_field(&payload, 1, moved)
    put_number_field(&payload, 2, stuck)
    put_number_field(&payload, 3, last)
    answer(core, command.token, OK, &payload, True)
    return True
