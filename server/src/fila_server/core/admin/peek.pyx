"""A page remembers the offset its search has come to and is looked on with in each pass; where bytes
are cold it waits for the next load before it looks again.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from fila_server.core.index.ages cimport slot_age
from fila_server.core.index.bodies cimport frame_want
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue, answer_status
from fila_server.core.lifecycle.redrive cimport redrive_page, redrive_wants
from fila_server.core.lifecycle.sending cimport message_bytes, message_view
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport LIST_PENDING, OK, REDRIVE_MOVE, RESOURCE_EXHAUSTED
from fila_server.core.protocol.protobuf cimport (
    Fields, View, fields_parse, put_double_field, put_message, put_nested, put_number_field,
    put_priority_field, put_text_field, put_timestamp_field, put_uuid,
)
from fila_server.core.scheduling.flows cimport flow_find
from fila_server.core.state.directory cimport directory_after, directory_at
from fila_server.core.state.kinds cimport DECIDING, DELAYED, DONE, LEASED, READY
from fila_server.core.state.paths cimport (
    channel_find, entry_cost, entry_of, entry_priority, frame_enqueued_ms, frame_id, frame_last_offset,
    frame_of, frame_offset, queue_find, share_find, share_of,
)
from fila_server.core.state.pending cimport PAGE_MAX, Page
from fila_server.core.state.search cimport Search
from fila_server.core.state.state cimport (
    Channel, Delay, Directory, Entry, Flow, Frame, Key, Lease, Queue, Share, Slot,
)
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_free, buffer_init, must_malloc
from fila_server.core.structures.maps cimport textmap_get
from fila_server.core.threads.mailbox cimport command_free

cdef enum:
    PEEK_DEFAULT = 1
    LIST_DEFAULT = 100
    BYTES_MAX = 4000000
    WAITED_IN_VAIN_MAX = 64         # loads, of this page's frames or others', that brought it no further
    STEPS_PER_PASS = 65536          # messages that the pages of a pass look at together, a millisecond
                                    # or two where each is of another key and far from the last,
    PAGES_MAX = 256                 # under way at a time, of 8 KiB each
    FRAME_STEPS = 16                # and what a frame costs beside its messages

cdef enum Outcome:                  # what became of a page in this pass
    ANSWERED = 0
    LOOKING = 1
    WAITS_FOR_BYTES = 2


cdef bint page_begin(Core* core, Command* command) noexcept nogil:
    cdef Page* page
    cdef char text[160]
    if core.pages_count == PAGES_MAX:
        snprintf(
            text, sizeof(text),
            b"%d peeks, lists and redrives are under way already; try again when some are answered",
            <int> PAGES_MAX)
        answer_status(core, command.token, RESOURCE_EXHAUSTED, text, b"OVERLOADED")
        return False
    page = <Page*> must_malloc(sizeof(Page))
    memset(page, 0, sizeof(Page) - sizeof(page.offsets))
    page.command = command
    _append(core, page)
    core.pages_count += 1
    return True


cdef void _append(Core* core, Page* page) noexcept nogil:
    page.next = NULL
    if core.pages_last == NULL:
        core.pages = page
    else:
        core.pages_last.next = page
    core.pages_last = page


cdef bint pages_turn(Core* core) noexcept nogil:
    """A page that waits for bytes is looked at again only once the reader thread has brought some."""
    cdef Page* page = core.pages
    cdef Page* following
    cdef uint32_t steps = STEPS_PER_PASS // core.pages_count
    cdef int outcome
    cdef bint more = False
    core.pages = core.pages_last = NULL
    while page != NULL:
        following = page.next
        if page.waits_for_bytes and page.loads_seen == core.loads_taken:
            _append(core, page)
            page = following
            continue
        core.counters.walked += page.count
        outcome = _turn(core, page, steps)
        if outcome == ANSWERED:
            core.pages_count -= 1
            command_free(page.command)
            free(page)
        else:
            more = more or outcome == LOOKING
            page.waits_for_bytes = outcome == WAITS_FOR_BYTES
            page.loads_seen = core.loads_taken
            _append(core, page)
        page = following
    return more


cdef int _turn(Core* core, Page* page, uint32_t steps) noexcept nogil:
    cdef Fields fields
    cdef Search search
    cdef Slot* slots[PAGE_MAX]
    cdef bint moves = page.command.kind == REDRIVE_MOVE
    fields_parse(&fields, page.command.bytes, page.command.length)
    memset(&search, 0, sizeof(Search))
    search.slots = slots
    if not (
            redrive_wants(core, page.command, &fields, &search) if moves
            else _peek_wants(core, page.command, &fields, &search)):
        return ANSWERED
    _look_again(page, &search)
    if not _look_on(page, &search, steps):
        return LOOKING
    if search.lists:
        _list(core, page.command, &search)
        return ANSWERED
    if _cold(core, &search) and not _enough(page, &search):
        return WAITS_FOR_BYTES
    if moves:
        redrive_page(core, page.command, &fields, &search)
    else:
        _peek(core, page.command, &search)
    return ANSWERED


# --- looking ---------------------------------------------------------------------------------

cdef bint _wanted(Search* search, Slot* slot) noexcept nogil:
    cdef Key* key
    if slot.state == DONE or (slot.state != READY and slot.state != DELAYED and not search.lists):
        return False
    if search.key.length == 0:
        return True
    key = entry_of(slot).key
    return (
        key.text.length == search.key.length and memcmp(key.text.bytes, search.key.at, search.key.length) == 0
    )


cdef inline uint64_t _bytes(Search* search, Slot* slot) noexcept nogil:
    """Of the page; what is listed is small."""
    return 0 if search.lists else message_bytes(slot)


cdef void _take(Page* page, Search* search, Slot* slot, uint64_t offset) noexcept nogil:
    search.slots[search.count] = slot
    page.offsets[search.count] = offset
    search.count += 1
    search.bytes += _bytes(search, slot)
    page.count = search.count


cdef void _look_again(Page* page, Search* search) noexcept nogil:
    """What was found in earlier passes, as far as it is still pending."""
    cdef Directory* directory = &search.channel.queue.directory
    cdef Frame* frame = NULL
    cdef Share* share
    cdef uint32_t found = page.count
    cdef uint32_t i, index = 0
    cdef uint64_t offset
    page.count = 0
    for i in range(found):
        offset = page.offsets[i]
        if frame == NULL or frame_last_offset(frame) < offset:
            frame = directory_at(directory, offset)
            index = 0
            if frame == NULL:
                return
        while frame_offset(frame, index) < offset:
            index += 1
        share = share_find(frame, search.channel)
        if frame_offset(frame, index) == offset and share != NULL and _wanted(search, &share.slots[index]):
            _take(page, search, &share.slots[index], offset)


cdef uint64_t _pending(Search* search) noexcept nogil:
    cdef Channel* channel = search.channel
    cdef Key* key
    cdef Flow* flow
    if search.lists:                    # more than these
        return <uint64_t> -1
    if search.key.length == 0:
        return channel.ready + channel.delayed
    key = <Key*> textmap_get(&channel.queue.keys, search.key.at, search.key.length)
    flow = flow_find(key, channel) if key != NULL else NULL
    return flow.backlog + flow.delayed if flow != NULL else 0


cdef bint _look_on(Page* page, Search* search, uint32_t steps) noexcept nogil:
    """Find more of them, in offset order. False: this pass has looked enough, and there may be more."""
    cdef Directory* directory = &search.channel.queue.directory
    cdef Frame* frame
    cdef Share* share
    cdef uint32_t looked = 0
    cdef uint64_t pending = _pending(search)
    if page.next_offset == 0:
        page.next_offset = search.after_offset + 1
    if page.next_offset == 0:           # nothing comes after the highest offset there is
        return True
    frame = directory_at(directory, page.next_offset)
    while frame != NULL:
        if (
            search.count == search.most or search.bytes >= BYTES_MAX
            or frame_offset(frame, 0) > search.to_offset
        ):
            return True
        if pending == 0 or (search.after_offset == 0 and search.count >= pending):
            return True                 # all there are
        if looked >= steps:
            return False
        looked += FRAME_STEPS
        share = share_find(frame, search.channel)
        if share != NULL and share.remaining:
            looked += frame.count
            if not _look_into(page, search, share):
                return True
        page.next_offset = frame_last_offset(frame) + 1
        frame = directory_after(directory, frame)
    return True


cdef bint _look_into(Page* page, Search* search, Share* share) noexcept nogil:
    """One frame. False: the page is full, or the rest is beyond what it is to show."""
    cdef Frame* frame = share.frame
    cdef uint64_t offset
    cdef uint32_t i
    for i in range(frame.count):
        offset = frame_offset(frame, i)
        if offset < page.next_offset or not _wanted(search, &share.slots[i]):
            continue
        if offset > search.to_offset or search.count == search.most or (
            search.count and search.bytes + _bytes(search, &share.slots[i]) > BYTES_MAX
        ):
            page.next_offset = offset
            return False
        _take(page, search, &share.slots[i], offset)
    return True


cdef bint _cold(Core* core, Search* search) noexcept nogil:
    cdef uint32_t i
    cdef bint cold = False
    for i in range(search.count):
        if frame_of(search.slots[i]).body == NULL:
            cold = True
            frame_want(core, frame_of(search.slots[i]))
    return cold


cdef bint _enough(Page* page, Search* search) noexcept nogil:
    """A page that waits in vain is content with its first messages that are hot: a budget too small for all
    of them would keep it waiting for ever. It goes on as long as more of them come: the caller takes a
    short page for the last one."""
    cdef uint32_t hot = 0
    while hot < search.count and frame_of(search.slots[hot]).body != NULL:
        hot += 1
    if hot > page.hot:
        page.hot, page.in_vain = hot, 0
    else:
        page.in_vain += 1
    if page.in_vain < WAITED_IN_VAIN_MAX or hot == 0:
        return False
    search.count = hot
    return True


# --- peek and list ---------------------------------------------------------------------------

cdef bint _peek_wants(Core* core, Command* command, Fields* fields, Search* search) noexcept nogil:
    """Of both calls, whose fields have the same numbers. False: refused, and answered so."""
    cdef uint64_t before
    cdef Queue* queue = queue_find(core, fields.text[v1.PEEK_MESSAGES_REQUEST_QUEUE])
    if queue == NULL:
        answer_no_queue(core, command)
        return False
    search.channel = channel_find(queue, fields.text[v1.PEEK_MESSAGES_REQUEST_CHANNEL])
    if search.channel == NULL:
        answer_no_channel(core, command)
        return False
    search.lists = command.kind == LIST_PENDING
    search.most = <uint32_t> min(
        fields.number[v1.PEEK_MESSAGES_REQUEST_MAX_MESSAGES]
        or (LIST_DEFAULT if search.lists else PEEK_DEFAULT),
        <uint64_t> PAGE_MAX)
    search.after_offset = fields.number[v1.PEEK_MESSAGES_REQUEST_AFTER_OFFSET]
    before = fields.number[v1.LIST_PENDING_REQUEST_BEFORE_OFFSET] if search.lists else 0
    search.to_offset = before - 1       # 0 = all
    search.key = fields.text[v1.PEEK_MESSAGES_REQUEST_FAIRNESS_KEY]
    return True


cdef void _peek(Core* core, Command* command, Search* search) noexcept nogil:
    cdef uint32_t i
    cdef View view
    cdef Buffer payload
    buffer_init(&payload)
    for i in range(search.count):
        message_view(core, search.slots[i], &view)
        put_message(&payload, v1.PEEK_MESSAGES_RESPONSE_MESSAGES, &view, &core.tail)
    answer(core, command.token, OK, &payload, False)


cdef int reported_state(Slot* slot) noexcept nogil:
    if slot.state == DELAYED:
        return v1.GET_MESSAGE_RESPONSE_STATE_DELAYED
    if slot.state == LEASED:
        return v1.GET_MESSAGE_RESPONSE_STATE_LEASED
    if slot.state == DECIDING:
        return v1.GET_MESSAGE_RESPONSE_STATE_DECIDING
    return v1.GET_MESSAGE_RESPONSE_STATE_WAITING


cdef void _put_listed(Core* core, Buffer* b, Slot* slot) noexcept nogil:
    cdef Frame* frame = frame_of(slot)
    cdef Entry* entry = entry_of(slot)
    cdef int state = reported_state(slot)
    cdef Slice text
    cdef Buffer id
    cdef uint64_t high, low
    frame_id(frame, slot.index, &high, &low)
    buffer_init(&id)
    put_uuid(&id, high, low)
    text.at, text.length = id.data, <uint32_t> id.length
    put_text_field(b, v1.PENDING_MESSAGE_MESSAGE_ID, text)
    buffer_free(&id)
    put_number_field(b, v1.PENDING_MESSAGE_OFFSET, frame_offset(frame, slot.index))
    text.at, text.length = entry.key.text.bytes, entry.key.text.length
    put_text_field(b, v1.PENDING_MESSAGE_FAIRNESS_KEY, text)
    if state == v1.GET_MESSAGE_RESPONSE_STATE_WAITING and share_of(slot).channel.queue.is_dlq:
        state = v1.GET_MESSAGE_RESPONSE_STATE_DEAD
    put_number_field(b, v1.PENDING_MESSAGE_STATE, state)
    put_timestamp_field(b, v1.PENDING_MESSAGE_ENQUEUED_AT, frame_enqueued_ms(frame, slot.index))
    if slot.state == DELAYED:
        put_timestamp_field(b, v1.PENDING_MESSAGE_DUE_AT, (<Delay*> slot.owner).due_ms)
    elif slot.state == LEASED and slot.owner != NULL:
        put_timestamp_field(b, v1.PENDING_MESSAGE_DUE_AT, (<Lease*> slot.owner).expires_ms)
    put_number_field(b, v1.PENDING_MESSAGE_ATTEMPTS, slot.attempts)
    put_number_field(b, v1.PENDING_MESSAGE_AGE_MS, slot_age(core, slot))
    put_double_field(b, v1.PENDING_MESSAGE_COST, entry_cost(entry) / 1000.0)
    put_priority_field(b, v1.PENDING_MESSAGE_PRIORITY, entry_priority(entry))


cdef void _list(Core* core, Command* command, Search* search) noexcept nogil:
    cdef uint32_t i
    cdef Buffer payload, one
    buffer_init(&payload)
    buffer_init(&one)
    for i in range(search.count):
        one.length = 0
        _put_listed(core, &one, search.slots[i])
        put_nested(&payload, v1.LIST_PENDING_RESPONSE_MESSAGES, &one)
    buffer_free(&one)
    answer(core, command.token, OK, &payload, False)
