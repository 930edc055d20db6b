"""A page names offsets. What of it is still pending here moves in the pass's batch, and the rest is
told.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.history.decisions cimport DROPPED, ending_is
from fila_server.core.index.ids cimport id_next
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue, answer_status
from fila_server.core.lifecycle.building cimport keep_until_written, move_in
from fila_server.core.lifecycle.ending cimport slot_done
from fila_server.core.lifecycle.routing cimport route_as, weight_moved
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport INVALID_ARGUMENT, OK
from fila_server.core.protocol.packed_routing cimport (
    GIVEN_COST, GIVEN_FAIRNESS_KEY, GIVEN_THROTTLE_KEYS, GIVEN_WEIGHT, ROUTING_THROTTLE_KEYS_MAX, Routing,
)
from fila_server.core.protocol.protobuf cimport (
    Item, fields_parse, next_field, put_nested, put_number_field, put_uuid,
)
from fila_server.core.state.paths cimport (
    bits_cost, channel_find, cost_bits_of, entry_cost, entry_priority, frame_enqueued_ms,
    frame_id, frame_of, frame_offset, queue_find,
)
from fila_server.core.state.state cimport Building, Channel, Entry, Frame, Key, Queue, Slot
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc
from fila_server.core.structures.maps cimport textmap_get

cdef enum:
    REDRIVE_MAX = 256


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
        if field == v1.MESSAGE_METADATA:
            origin.body_length = <uint32_t> (before - body)
            if (
                fields_parse(&metadata, text.at, text.length)
                and fields_parse(
                    &dead, metadata.text[v1.MESSAGE_METADATA_DEAD_LETTER].at,
                    metadata.text[v1.MESSAGE_METADATA_DEAD_LETTER].length)
            ):
                origin.queue = dead.text[v1.DEAD_LETTER_SOURCE_QUEUE]
                origin.channel = dead.text[v1.DEAD_LETTER_SOURCE_CHANNEL]
                found = True
    return found


cdef Slice _override(Command* command, uint64_t offset) noexcept nogil:
    """What a hook decided for this dead letter (see _read_override); nothing when it is not named."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef Slice nothing
    cdef uint64_t number
    cdef Fields fields
    nothing.at, nothing.length = NULL, 0
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field != seam.REDRIVE_PAGE_ROUTINGS or not fields_parse(&fields, text.at, text.length):
            continue
        if fields.number[seam.ROUTING_OFFSET] == offset:
            return text
    return nothing


cdef void _read_override(Routing* hooked, Slice text) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice piece
    cdef uint64_t number
    memset(hooked, 0, sizeof(Routing))
    c.at, c.end, c.bad = text.at, text.at + text.length, False
    while next_field(&c, &field, &kind, &piece, &number):
        if field == seam.ROUTING_FAIRNESS_KEY:
            hooked.given |= GIVEN_FAIRNESS_KEY
            hooked.fairness_key = piece
        elif field == seam.ROUTING_WEIGHT:
            hooked.given |= GIVEN_WEIGHT
            hooked.weight = <uint32_t> number
        elif field == seam.ROUTING_COST:
            hooked.given |= GIVEN_COST
            memcpy(&hooked.cost, &number, 8)
        elif field == seam.ROUTING_THROTTLE_KEYS and hooked.throttle_count < ROUTING_THROTTLE_KEYS_MAX:
            hooked.given |= GIVEN_THROTTLE_KEYS
            hooked.throttle[hooked.throttle_count] = piece
            hooked.throttle_count += 1
        elif field == seam.ROUTING_HAS_THROTTLE_KEYS:
            hooked.given |= GIVEN_THROTTLE_KEYS


cdef void _as_it_was(Queue* source, const Entry* entry, Routing* hooked, bint is_hooked) noexcept nogil:
    """Its producer may have said key and cost, and no header says them again; a hook's word counts more."""
    cdef Key* key
    if not hooked.given & GIVEN_FAIRNESS_KEY:
        hooked.given |= GIVEN_FAIRNESS_KEY
        hooked.fairness_key.at, hooked.fairness_key.length = entry.key.text.bytes, entry.key.text.length
    if is_hooked:
        return
    hooked.given |= GIVEN_COST | GIVEN_WEIGHT
    hooked.cost = entry_cost(entry) / 1000.0
    key = <Key*> textmap_get(&source.keys, entry.key.text.bytes, entry.key.text.length)
    hooked.weight = key.weight if key != NULL else 1


cdef Slice _edited(Slice routing) noexcept nogil:
    """The body that takes the dead letter's place; nothing when it stays."""
    cdef Slice nothing
    cdef Fields fields
    nothing.at, nothing.length = NULL, 0
    if routing.length and fields_parse(&fields, routing.at, routing.length):
        return fields.text[seam.ROUTING_BODY]
    return nothing


cdef bint _move_back(
        Core* core, Queue* dlq, Slot* slot, Slice routing, uint64_t* high, uint64_t* low) noexcept nogil:
    """One dead letter: a new entry in its source for the channel it failed in, and done here; False: no
    source. One that is edited on the way is a new message, enqueued now."""
    cdef Frame* frame
    cdef Entry* entry
    cdef Origin origin
    cdef Queue* source
    cdef Channel* only
    cdef Item item
    cdef Routing hooked
    cdef Command shell
    cdef Building b
    cdef char* bytes
    cdef Slice body
    cdef Slice edited = _edited(routing)
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
    body.at, body.length = frame.body.bytes + entry.at, origin.body_length
    if edited.length:
        body = edited
    bytes = <char*> must_malloc(body.length)
    memcpy(bytes, body.at, body.length)
    memset(&item, 0, sizeof(Item))
    memset(&shell, 0, sizeof(Command))
    memset(&b, 0, sizeof(Building))
    memset(&hooked, 0, sizeof(Routing))
    shell.bytes = bytes
    item.length = body.length
    if routing.length:
        _read_override(&hooked, routing)
    if source.policy.producers_route and not edited.length:
        _as_it_was(source, entry, &hooked, routing.length != 0)
    if route_as(
        core, source, &shell, &item, &hooked if routing.length or hooked.given else NULL, &b
    ):
        free(bytes)                     # today's policy can't place it (a key too long): it stays where it is
        return False
    if not edited.length:
        b.cost_bits = cost_bits_of(bits_cost(b.cost_bits), entry_priority(entry))
    weight_moved(core, b.key, b.weight)
    frame_id(frame, slot.index, high, low)
    if edited.length:
        id_next(core, high, low)
    move_in(
        core, source, b.key, b.set, b.cost_bits, bytes, body.length, high[0], low[0],
        core.wall_ms if edited.length else frame_enqueued_ms(frame, slot.index), only)
    keep_until_written(core, bytes)
    source.counters.redriven += 1
    ending_is(core, DROPPED, b"redriven", 0, 0)
    slot_done(core, slot)
    return True


cdef bint redrive_wants(Core* core, Command* command, Fields* fields, Search* search) noexcept nogil:
    """False: refused, and answered so."""
    cdef Queue* dlq = queue_find(core, fields.text[seam.REDRIVE_PAGE_DLQ_QUEUE])
    cdef Slice nameless
    nameless.at, nameless.length = NULL, 0
    if dlq == NULL:
        answer_no_queue(core, command)
        return False
    if not dlq.is_dlq:
        answer_status(
            core, command.token, INVALID_ARGUMENT,
            b"dlq_queue: not a dead-letter queue; those are named <queue>.dlq", b"NOT_A_DLQ")
        return False
    search.channel = channel_find(dlq, nameless)
    if search.channel == NULL:          # made by hand, with other channels: its first one will do
        search.channel = dlq.channels
    if search.channel == NULL:
        answer_no_channel(core, command)
        return False
    search.most = <uint32_t> min(
        fields.number[seam.REDRIVE_PAGE_COUNT] or REDRIVE_MAX, <uint64_t> REDRIVE_MAX)
    search.after_offset = fields.number[seam.REDRIVE_PAGE_AFTER_OFFSET]
    search.to_offset = fields.number[seam.REDRIVE_PAGE_UP_TO_OFFSET] or <uint64_t> -1
    return True


cdef void redrive_page(Core* core, Command* command, Fields* fields, Search* search) noexcept nogil:
    """A page of a redrive: those found are moved back, or dropped where that is asked; what the source's
    policy refuses is left, and counted as stuck. The edge turns the pages."""
    cdef uint32_t i
    cdef uint64_t moved = 0
    cdef uint64_t stuck = 0
    cdef uint64_t last = search.after_offset
    cdef Slice routing
    cdef Buffer payload
    cdef Buffer id
    cdef uint64_t high = 0
    cdef uint64_t low = 0
    for i in range(search.count):
        last = frame_offset(frame_of(search.slots[i]), search.slots[i].index)
        routing = _override(command, last)
        if fields.number[seam.REDRIVE_PAGE_ONLY_ROUTED] and routing.length == 0:
            continue                    # nobody asked today's script about it: it came
                                        # back between peek and move
        if fields.number[seam.REDRIVE_PAGE_DROP]:
            slot_done(core, search.slots[i])
            moved += 1
        elif _move_back(core, search.channel.queue, search.slots[i], routing, &high, &low):
            moved += 1
        else:
            stuck += 1
    buffer_init(&payload)
    put_number_field(&payload, seam.REDRIVEN_PAGE_MOVED, moved)
    put_number_field(&payload, seam.REDRIVEN_PAGE_STUCK, stuck)
    put_number_field(&payload, seam.REDRIVEN_PAGE_LAST_OFFSET, last)
    if moved and not fields.number[seam.REDRIVE_PAGE_DROP]:
        buffer_init(&id)
        put_uuid(&id, high, low)
        put_nested(&payload, seam.REDRIVEN_PAGE_MESSAGE_ID, &id)
        buffer_free(&id)
    answer(core, command.token, OK, &payload, True)
