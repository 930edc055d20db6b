"""A message is dealt with when it is found, so what a lookup remembers between two passes is an offset, never
a pointer. A channel that starts anew gets all its messages first.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from fila_server.core.search.whereabouts cimport whereabouts_put
from fila_server.core.index.dedup cimport dedup_find
from fila_server.core.index.last_errors cimport last_errors_forget
from fila_server.core.index.leases cimport id_cell, lease_by_message_id
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue, answer_status
from fila_server.core.lifecycle.ending cimport slot_cancel
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport CANCEL_MESSAGES, OK, RESOURCE_EXHAUSTED
from fila_server.core.protocol.protobuf cimport (
    LEN, QUEUE_FIELD, Fields, channel_field, fields_parse, next_field, put_number_field, put_tag, uuid_parse,
)
from fila_server.core.requests.tenant cimport tenant_dedup_key
from fila_server.core.state.directory cimport directory_from, directory_next, directory_ordinary
from fila_server.core.state.kinds cimport DONE
from fila_server.core.state.paths cimport channel_find, entry_of, frame_last_offset, queue_find, share_find
from fila_server.core.state.pending cimport Dedup, Lookup, Sought
from fila_server.core.state.state cimport Channel, Frame, Lease, Queue, Share, Slot
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, put_u8, put_varint,
)
from fila_server.core.structures.maps cimport map64_free, map64_get, map64_init, map64_put
from fila_server.core.threads.mailbox cimport command_free

cdef enum:
    LOOKUPS_MAX = 64                # under way at a time, of up to 400 KiB each
    STEPS_PER_PASS = 65536          # messages that the lookups of a pass look at together, and
    FRAME_STEPS = 4                 # what a frame costs beside its messages

cdef enum:                          # Sought.outcome; of GET_MESSAGE the first says that it was found
    CANCELLED = v1.CANCEL_MESSAGES_RESPONSE_OUTCOME_CANCELLED
    REVOKED = v1.CANCEL_MESSAGES_RESPONSE_OUTCOME_REVOKED
    NOT_FOUND = v1.CANCEL_MESSAGES_RESPONSE_OUTCOME_NOT_FOUND


# --- which messages --------------------------------------------------------------------------

cdef uint32_t _named(const Command* command) noexcept nogil:
    """How many ids and keys it has at most."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef uint32_t count = 0
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        count += field > v1.CANCEL_MESSAGES_REQUEST_CHANNEL and kind == LEN
    return count


cdef void _seek_by_key(Core* core, Queue* queue, Slice tenant, Slice key, Sought* sought) noexcept nogil:
    cdef Dedup* row
    cdef Buffer own
    buffer_init(&own)
    if tenant.length:
        tenant_dedup_key(&own, tenant, key)
        key.at, key.length = own.data, <uint32_t> own.length
    row = dedup_find(core, queue, key)
    buffer_free(&own)
    if row == NULL or row.known.offset == 0:    # or it is being stored with this pass
        sought.outcome = NOT_FOUND
        return
    sought.id_high, sought.id_low = row.known.id_high, row.known.id_low


cdef void _name(Core* core, Queue* queue, Lookup* lookup) noexcept nogil:
    """What the request names: all ids, then all keys; the numbers of both calls' fields are the same."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef uint32_t wanted
    for wanted in range(v1.CANCEL_MESSAGES_REQUEST_MESSAGE_IDS, v1.CANCEL_MESSAGES_REQUEST_DEDUP_KEYS + 1):
        c.at, c.bad = lookup.command.bytes, False
        c.end = lookup.command.bytes + lookup.command.length
        while next_field(&c, &field, &kind, &text, &number):
            if field != wanted or kind != LEN or text.length == 0:
                continue
            if wanted == v1.CANCEL_MESSAGES_REQUEST_DEDUP_KEYS:
                _seek_by_key(core, queue, lookup.tenant, text, &lookup.sought[lookup.count])
            else:
                uuid_parse(
                    text, &lookup.sought[lookup.count].id_high, &lookup.sought[lookup.count].id_low)
            lookup.open += lookup.sought[lookup.count].outcome == 0
            lookup.count += 1


cdef Lookup* _new(Core* core, Queue* queue, Command* command, Fields* fields) noexcept nogil:
    cdef Lookup* lookup = <Lookup*> must_malloc(sizeof(Lookup))
    cdef size_t size = max(_named(command), <uint32_t> 1) * sizeof(Sought)
    memset(lookup, 0, sizeof(Lookup))
    lookup.command = command
    lookup.queue, lookup.channel = fields.text[QUEUE_FIELD], fields.text[channel_field(command.kind)]
    lookup.tenant = fields.text[seam.CANCELLER_TENANT]
    lookup.sought = <Sought*> must_malloc(size)
    memset(lookup.sought, 0, size)
    map64_init(&lookup.by_cell)
    _name(core, queue, lookup)
    return lookup


cdef void _free(Lookup* lookup) noexcept nogil:
    map64_free(&lookup.by_cell)
    free(lookup.sought)
    free(lookup)


# --- what becomes of them --------------------------------------------------------------------

cdef bint _is_of(Slot* slot, Slice tenant) noexcept nogil:
    """A key that is bound to a tenant reaches that tenant's messages."""
    cdef Slice key
    key.at, key.length = entry_of(slot).key.text.bytes, entry_of(slot).key.text.length
    return tenant.length == 0 or (
        key.length == tenant.length and memcmp(key.at, tenant.at, key.length) == 0)


cdef void _met(Core* core, Lookup* lookup, Sought* sought, Slot* slot) noexcept nogil:
    cdef Buffer payload
    lookup.open -= 1
    if lookup.command.kind != CANCEL_MESSAGES:
        sought.outcome = CANCELLED
        buffer_init(&payload)
        whereabouts_put(core, &payload, slot)
        answer(core, lookup.command.token, OK, &payload, False)
    elif not _is_of(slot, lookup.tenant):
        sought.outcome = NOT_FOUND
    else:
        sought.outcome = REVOKED if slot_cancel(core, slot) else CANCELLED
        lookup.changed = True


cdef void _answer(Core* core, Lookup* lookup, bint durable) noexcept nogil:
    """Once nothing more can be found."""
    cdef Buffer payload
    cdef uint32_t i
    buffer_init(&payload)
    if lookup.command.kind == CANCEL_MESSAGES:
        put_tag(&payload, v1.CANCEL_MESSAGES_RESPONSE_OUTCOMES, LEN)        # packed, a byte each
        put_varint(&payload, lookup.count)
        for i in range(lookup.count):
            put_u8(&payload, lookup.sought[i].outcome or <unsigned char> NOT_FOUND)
    elif lookup.sought[0].outcome == CANCELLED:
        return                          # answered when it was found
    else:
        put_number_field(&payload, v1.GET_MESSAGE_RESPONSE_STATE, v1.GET_MESSAGE_RESPONSE_STATE_NOT_KNOWN)
    answer(core, lookup.command.token, OK, &payload, lookup.changed and durable)


# --- looking ---------------------------------------------------------------------------------

cdef Slot* _by_arithmetic(Core* core, Channel* channel, const Sought* sought) noexcept nogil:
    """Or by the list of leases."""
    cdef Frame* frame = directory_ordinary(&channel.queue.directory, sought.id_high)
    cdef Share* share
    cdef Slot* slot
    cdef Lease* lease
    if frame != NULL and sought.id_low >= frame.id_low and sought.id_low - frame.id_low < frame.count:
        share = share_find(frame, channel)
        slot = &share.slots[sought.id_low - frame.id_low] if share != NULL else NULL
        if slot != NULL and slot.state != DONE:
            return slot
    lease = lease_by_message_id(core, channel, sought.id_high, sought.id_low)
    return lease.slot if lease != NULL else NULL


cdef bint _look_first(Core* core, Lookup* lookup, Channel* channel) noexcept nogil:
    """True: the rest can't be found. False: it may stand in frames that are to be walked over."""
    cdef Sought* sought
    cdef Slot* slot
    cdef uint32_t i
    cdef uint64_t cell
    for i in range(lookup.count):
        sought = &lookup.sought[i]
        slot = _by_arithmetic(core, channel, sought) if sought.outcome == 0 else NULL
        if slot != NULL:
            _met(core, lookup, sought, slot)
    if lookup.open == 0 or channel.queue.directory.own == 0:
        return True
    for i in range(lookup.count):
        sought = &lookup.sought[i]
        if sought.outcome == 0:
            cell = id_cell(sought.id_high, sought.id_low)
            sought.same_cell = <Sought*> map64_get(&lookup.by_cell, cell)
            map64_put(&lookup.by_cell, cell, sought)
    lookup.walks = True
    return False


cdef void _look_into(Core* core, Lookup* lookup, Share* share) noexcept nogil:
    cdef Frame* frame = share.frame
    cdef Sought* sought
    cdef uint32_t i
    cdef uint64_t high, low
    for i in range(frame.count):
        if share.slots[i].state == DONE:
            continue
        high, low = frame.own_ids[i].id_high, frame.own_ids[i].id_low
        sought = <Sought*> map64_get(&lookup.by_cell, id_cell(high, low))
        while sought != NULL and (sought.outcome or sought.id_high != high or sought.id_low != low):
            sought = sought.same_cell
        if sought != NULL:
            _met(core, lookup, sought, &share.slots[i])


cdef bint _walk(Core* core, Lookup* lookup, Channel* channel, uint32_t steps) noexcept nogil:
    """True: all is found, or all was looked at."""
    cdef uint32_t cell = directory_from(&channel.queue.directory, lookup.next_offset)
    cdef uint32_t looked = 0
    cdef Frame* frame
    cdef Share* share
    while lookup.open and looked < steps:
        frame = directory_next(&channel.queue.directory, &cell)
        if frame == NULL:
            core.counters.walked += looked
            return True
        looked += FRAME_STEPS
        lookup.next_offset = frame_last_offset(frame) + 1
        share = share_find(frame, channel) if frame.own_ids != NULL else NULL
        if share != NULL and share.remaining:
            looked += frame.count
            _look_into(core, lookup, share)
    core.counters.walked += looked
    return lookup.open == 0


cdef bint _turn(Core* core, Lookup* lookup, uint32_t steps) noexcept nogil:
    """True: it is answered."""
    cdef Queue* queue = queue_find(core, lookup.queue)
    cdef Channel* channel = channel_find(queue, lookup.channel) if queue != NULL else NULL
    if queue == NULL:
        answer_no_queue(core, lookup.command)
        return True
    if channel == NULL:
        answer_no_channel(core, lookup.command)
        return True
    if channel.rebuild_at:              # it starts anew, and has not got all that is its own
        return False
    if not (_walk(core, lookup, channel, steps) if lookup.walks else _look_first(core, lookup, channel)):
        return False
    _answer(core, lookup, queue.policy.durable)
    return True


# --- in turn ---------------------------------------------------------------------------------

cdef void _append(Core* core, Lookup* lookup) noexcept nogil:
    lookup.next = NULL
    if core.lookups.last == NULL:
        core.lookups.first = lookup
    else:
        core.lookups.last.next = lookup
    core.lookups.last = lookup


cdef bint lookup_begin(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Lookup* lookup
    cdef Queue* queue
    cdef char text[160]
    fields_parse(&fields, command.bytes, command.length)
    queue = queue_find(core, fields.text[QUEUE_FIELD])
    if queue == NULL:
        answer_no_queue(core, command)
        return True
    if core.lookups.count == LOOKUPS_MAX:
        snprintf(
            text, sizeof(text), b"%d calls look for their messages already; try again when some are answered",
            <int> LOOKUPS_MAX)
        answer_status(core, command.token, RESOURCE_EXHAUSTED, text, b"OVERLOADED")
        return True
    lookup = _new(core, queue, command, &fields)
    if _turn(core, lookup, 0):
        _free(lookup)
        return True
    core.lookups.count += 1
    _append(core, lookup)
    return False


cdef bint lookups_turn(Core* core) noexcept nogil:
    cdef Lookup* lookup = core.lookups.first
    cdef Lookup* following
    cdef uint32_t steps = STEPS_PER_PASS // core.lookups.count
    core.lookups.first = core.lookups.last = NULL
    while lookup != NULL:
        following = lookup.next
        if _turn(core, lookup, steps):
            core.lookups.count -= 1
            command_free(lookup.command)
            _free(lookup)
        else:
            _append(core, lookup)
        lookup = following
    return core.lookups.first != NULL


cdef void lookups_forget(Core* core) noexcept nogil:
    cdef Lookup* lookup
    while core.lookups.first != NULL:
        lookup = core.lookups.first
        core.lookups.first = lookup.next
        command_free(lookup.command)
        _free(lookup)
    core.lookups.last = NULL
    last_errors_forget(core)
