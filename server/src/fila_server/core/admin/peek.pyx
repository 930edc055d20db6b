"""A page remembers the offset its search has come to and is looked on with in each pass; where bytes
are cold it waits for the next load before it looks again.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from fila_server.core.index.bodies cimport frame_want
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue, answer_status
from fila_server.core.lifecycle.redrive cimport redrive_page, redrive_wants
from fila_server.core.lifecycle.sending cimport message_bytes, message_view
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport OK, PEEK_MESSAGES, RESOURCE_EXHAUSTED
from fila_server.core.protocol.protobuf cimport Fields, View, fields_parse, put_message
from fila_server.core.scheduling.flows cimport flow_find
from fila_server.core.state.directory cimport directory_after, directory_at
from fila_server.core.state.kinds cimport DELAYED, READY
from fila_server.core.state.paths cimport (
    channel_find, entry_of, frame_last_offset, frame_of, frame_offset, queue_find, share_find,
)
from fila_server.core.state.pending cimport PAGE_MAX, Page
from fila_server.core.state.search cimport Search
from fila_server.core.state.state cimport Channel, Directory, Flow, Frame, Key, Queue, Share, Slot
from fila_server.core.structures.buffer cimport Buffer, buffer_init, must_malloc
from fila_server.core.structures.maps cimport textmap_get
from fila_server.core.threads.mailbox cimport command_free

cdef enum:
    PEEK_DEFAULT = 1
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
            b"%d peeks and redrives are under way already; try again when some are answered",
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
    cdef bint peeks = page.command.kind == PEEK_MESSAGES
    fields_parse(&fields, page.command.bytes, page.command.length)
    memset(&search, 0, sizeof(Search))
    search.slots = slots
    if not (
            _peek_wants(core, page.command, &fields, &search) if peeks
            else redrive_wants(core, page.command, &fields, &search)):
        return ANSWERED
    _look_again(page, &search)
    if not _look_on(page, &search, steps):
        return LOOKING
    if _cold(core, &search) and not _enough(page, &search):
        return WAITS_FOR_BYTES
    if peeks:
        _peek(core, page.command, &search)
    else:
        redrive_page(core, page.command, &fields, &search)
    return ANSWERED


# --- looking ---------------------------------------------------------------------------------

cdef bint _wanted(Search* search, Slot* slot) noexcept nogil:
    cdef Key* key
    if slot.state != READY and slot.state != DELAYED:
        return False
    if search.key.length == 0:
        return True
    key = entry_of(slot).key
    return (
        key.text.length == search.key.length and memcmp(key.text.bytes, search.key.at, search.key.length) == 0
    )


cdef void _take(Page* page, Search* search, Slot* slot, uint64_t offset) noexcept nogil:
    search.slots[search.count] = slot
    page.offsets[search.count] = offset
    search.count += 1
    search.bytes += message_bytes(slot)
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
            search.count and search.bytes + message_bytes(&share.slots[i]) > BYTES_MAX
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
    of them would keep it waiting for ever. As long as more of them come it goes on: whoever asked takes a
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


# --- peek ------------------------------------------------------------------------------------

cdef bint _peek_wants(Core* core, Command* command, Fields* fields, Search* search) noexcept nogil:
    """False: refused, and answered so."""
    cdef Queue* queue = queue_find(core, fields.text[v1.PEEK_MESSAGES_REQUEST_QUEUE])
    if queue == NULL:
        answer_no_queue(core, command)
        return False
    search.channel = channel_find(queue, fields.text[v1.PEEK_MESSAGES_REQUEST_CHANNEL])
    if search.channel == NULL:
        answer_no_channel(core, command)
        return False
    search.most = <uint32_t> min(
        fields.number[v1.PEEK_MESSAGES_REQUEST_MAX_MESSAGES] or PEEK_DEFAULT, <uint64_t> PAGE_MAX)
    search.after_offset = fields.number[v1.PEEK_MESSAGES_REQUEST_AFTER_OFFSET]
    search.to_offset = <uint64_t> -1
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
