"""See frames.pxd."""

from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.buffer cimport must_malloc, must_realloc
from fila_server.core.counters cimport Tally
from fila_server.core.flows cimport flow_free
from fila_server.core.maps cimport text_hash, textmap_get_hashed, textmap_put, textmap_remove
from fila_server.core.records cimport key_record_delete
from fila_server.core.settings cimport Policy, WeightRow
from fila_server.core.state cimport DECIDING, DELAYED, DONE, DirectoryCell, Flow, LEASED, READY
from fila_server.core.throttle cimport set_release


# --- bodies --------------------------------------------------------------------------------

cdef void _unlink(Core* core, Body* body) noexcept nogil:
    if body.newer != NULL:
        body.newer.older = body.older
    elif core.newest == body:
        core.newest = body.older
    if body.older != NULL:
        body.older.newer = body.newer
    elif core.oldest == body:
        core.oldest = body.newer
    body.newer = body.older = NULL


cdef void _link_newest(Core* core, Body* body) noexcept nogil:
    body.older = core.newest
    if core.newest != NULL:
        core.newest.newer = body
    core.newest = body
    if core.oldest == NULL:
        core.oldest = body


cdef Body* body_new(Core* core, Frame* frame, char* bytes, uint32_t length) noexcept nogil:
    cdef Body* body = <Body*> must_malloc(sizeof(Body))
    memset(body, 0, sizeof(Body))
    body.refs = 1
    body.bytes = bytes
    body.length = length
    body.frame = frame
    frame.body = body
    core.hot_bytes += length + sizeof(Body)
    _link_newest(core, body)
    _failures_go_on(core, frame)
    return body


cdef void _failures_go_on(Core* core, Frame* frame) noexcept nogil:
    """What failed and waited for the frame's bytes has its turn, in the order in which it failed."""
    cdef Decision* newest = frame.failures
    if newest == NULL:
        return
    frame.failures = NULL
    if core.unasked_last == NULL:
        core.unasked = newest.next
    else:
        core.unasked_last.next = newest.next
    core.unasked_last = newest
    newest.next = NULL


cdef void failure_waits(Frame* frame, Decision* decision) noexcept nogil:
    if frame.failures == NULL:
        decision.next = decision
    else:
        decision.next = frame.failures.next
        frame.failures.next = decision
    frame.failures = decision


cdef void body_release(Core* core, Body* body) noexcept nogil:
    body.refs -= 1
    if body.refs == 0:
        _unlink(core, body)
        core.hot_bytes -= body.length + sizeof(Body)
        free(body.bytes)
        free(body)


cdef void body_touch(Core* core, Body* body) noexcept nogil:
    if core.newest != body:
        _unlink(core, body)
        _link_newest(core, body)


cdef void bodies_evict(Core* core) noexcept nogil:
    """Give bytes up until the budget holds.

    Newest first: what arrived last is delivered last, so the oldest backlog stays hot. What was
    read back once is about to be delivered, and what a delivery holds can't go.
    """
    cdef Body* body = core.newest
    cdef Body* older
    cdef uint32_t looked = 0
    while core.hot_bytes > core.hot_bytes_max and body != NULL and looked < 4096:
        older = body.older
        looked += 1
        if body.refs == 1 and body.frame != NULL and (not body.frame.loaded_seen or looked > 64):
            body.frame.body = NULL
            body.frame.loaded_seen = False
            core.counters.evictions += 1
            body_release(core, body)
        body = older


# --- frames --------------------------------------------------------------------------------

cdef Frame* frame_new(Core* core, Queue* queue, uint32_t count) noexcept nogil:
    cdef size_t size = sizeof(Frame) + (count - 1) * sizeof(Entry)
    cdef Frame* frame = <Frame*> must_malloc(size)
    memset(frame, 0, size)
    frame.queue = queue
    frame.count = count
    frame.live = count
    core.index_bytes += size
    return frame


cdef void frame_free(Core* core, Frame* frame) noexcept nogil:
    """Forget a frame: its keys' references, its shares, its bytes. The directory and the disk are the caller's."""
    cdef uint32_t i
    cdef Share* share = frame.shares
    cdef Share* following
    core.counters.work += frame.count
    _failures_go_on(core, frame)        # they find nothing, and whoever waits for them is answered
    while share != NULL:
        following = share.next_of_frame
        share_free(core, share)
        share = following
    for i in range(frame.count):
        if frame.entries[i].key != NULL:
            key_release(core, frame.entries[i].key)
        if frame.entries[i].set != NULL:
            set_release(core, frame.entries[i].set)
    if frame.body != NULL:
        frame.body.frame = NULL
        body_release(core, frame.body)
    core.index_bytes -= sizeof(Frame) + (frame.count - 1) * sizeof(Entry)
    if frame.tallies != NULL:
        core.index_bytes -= frame.count * sizeof(Tally)
        free(frame.tallies)
    free(frame.explicit)
    free(frame)


cdef Share* share_new(Core* core, Frame* frame, Channel* channel) noexcept nogil:
    cdef size_t size = sizeof(Share) + (frame.count - 1) * sizeof(Slot)
    cdef Share* share = <Share*> must_malloc(size)
    cdef uint32_t i
    if frame.shares != NULL and frame.tallies == NULL:
        frame.tallies = <Tally*> must_malloc(frame.count * sizeof(Tally))
        core.index_bytes += frame.count * sizeof(Tally)
        frame_tally(frame)
    memset(share, 0, size)
    share.channel = channel
    share.frame = frame
    share.next_of_frame = frame.shares
    frame.shares = share
    for i in range(frame.count):
        share.slots[i].index = i
    core.index_bytes += size
    return share


cdef void frame_tally(Frame* frame) noexcept nogil:
    cdef Share* share = frame.shares
    cdef uint32_t i
    if frame.tallies == NULL:
        return
    memset(frame.tallies, 0, frame.count * sizeof(Tally))
    while share != NULL:
        for i in range(frame.count):
            frame.tallies[i].pending += share.slots[i].state == READY or share.slots[i].state == DELAYED
            frame.tallies[i].in_flight += share.slots[i].state == LEASED or share.slots[i].state == DECIDING
            frame.tallies[i].undone += share.slots[i].state != DONE
        share = share.next_of_frame


cdef void share_free(Core* core, Share* share) noexcept nogil:
    """The caller unlinks it from its frame, or frees the frame; it must not be on the dirty list."""
    core.index_bytes -= sizeof(Share) + (share.frame.count - 1) * sizeof(Slot)
    free(share)


cdef Share* share_find(Frame* frame, Channel* channel) noexcept nogil:
    cdef Share* share = frame.shares
    while share != NULL and share.channel != channel:
        share = share.next_of_frame
    return share


cdef uint64_t frame_unwanted(Frame* frame) noexcept nogil:
    """Bytes of its messages that no channel wants."""
    cdef uint64_t total = 0
    cdef uint32_t i
    for i in range(frame.count):
        total += frame.entries[i].length
    return total - frame.live_bytes


cdef bint frame_awaited(Core* core, Frame* frame) noexcept nogil:
    """A channel that is still being rebuilt will want this frame, though it has no share of it yet."""
    cdef Channel* channel = frame.queue.channels if core.rebuilding else NULL
    if not frame.revealed:
        return True
    while channel != NULL:
        if (
            channel.rebuild_at and frame.first_offset < channel.log_below
            and frame_last_offset(frame) >= channel.rebuild_at
            and (frame.only == 0 or frame.only == channel.birth) and share_find(frame, channel) == NULL
        ):
            return True
        channel = channel.next
    return False


cdef void frame_recount(Core* core, Frame* frame) noexcept nogil:
    cdef Share* share
    cdef uint32_t i
    cdef bint wanted
    cdef bint awaited = frame_awaited(core, frame)
    if frame.dying:
        return
    frame.queue.unwanted_bytes -= frame_unwanted(frame)
    frame.live = 0
    frame.live_bytes = 0
    for i in range(frame.count):
        wanted = awaited
        share = frame.shares
        while share != NULL and not wanted:
            wanted = share.slots[i].state != DONE
            share = share.next_of_frame
        if wanted:
            frame.live += 1
            frame.live_bytes += frame.entries[i].length
    frame.queue.unwanted_bytes += frame_unwanted(frame)


cdef bint frame_retained(Core* core, Frame* frame) noexcept nogil:
    cdef Policy* policy = &frame.queue.policy
    if frame.burials:
        return True
    if policy.soft_period_ms and core.wall_ms - frame.appended_ms < <int64_t> policy.soft_period_ms:
        return True
    return policy.soft_bytes > 0 and frame.queue.stored_bytes <= policy.soft_bytes


cdef void frame_finish(Core* core, Frame* frame) noexcept nogil:
    if not frame.dying:
        frame.dying = True
        frame.next_dying = core.dying
        core.dying = frame
        # Now, not when it is deleted: whoever looks at the next frame must see that there is room again.
        frame.queue.stored_bytes -= frame.body_bytes
        frame.queue.unwanted_bytes -= frame_unwanted(frame)


# --- the directory -------------------------------------------------------------------------

cdef void directory_add(Directory* directory, Frame* frame) noexcept nogil:
    """Offsets only grow, so a new frame goes to the end; a rewritten one takes a dead cell's place."""
    cdef DirectoryCell* cell
    cdef uint32_t i, kept
    if directory.count == directory.capacity:
        if directory.live * 2 < directory.count:
            kept = 0
            for i in range(directory.start, directory.count):
                if directory.cells[i].frame != NULL:
                    directory.cells[kept] = directory.cells[i]
                    kept += 1
            directory.start = 0
            directory.count = kept
        else:
            directory.capacity = directory.capacity * 2 + 16
            directory.cells = <DirectoryCell*> must_realloc(directory.cells, directory.capacity * sizeof(DirectoryCell))
    cell = &directory.cells[directory.count]
    cell.first_offset = frame.first_offset
    cell.id_high = frame.id_high
    cell.frame = frame
    directory.count += 1
    directory.live += 1
    # A frame rewritten from an older one keeps its offsets: sift it down to where they belong.
    i = directory.count - 1
    while i > directory.start and directory.cells[i - 1].first_offset > directory.cells[i].first_offset:
        directory.cells[i], directory.cells[i - 1] = directory.cells[i - 1], directory.cells[i]
        i -= 1
    if frame.explicit != NULL:          # its ids say nothing of its place; keep the search by id in order
        directory.cells[i].id_high = directory.cells[i - 1].id_high if i > directory.start else 0


cdef uint32_t _cell_after(Directory* directory, uint64_t offset) noexcept nogil:
    """The first cell whose first offset is above `offset`."""
    cdef uint32_t low = directory.start
    cdef uint32_t high = directory.count
    cdef uint32_t middle
    while low < high:
        middle = (low + high) // 2
        if directory.cells[middle].first_offset <= offset:
            low = middle + 1
        else:
            high = middle
    return low


cdef void directory_replace(Directory* directory, Frame* old, Frame* frame) noexcept nogil:
    cdef uint32_t i = _cell_after(directory, old.first_offset)
    while i > directory.start:
        i -= 1
        if directory.cells[i].frame == old:
            directory.cells[i].frame = frame
            directory.cells[i].first_offset = frame.first_offset
            return


cdef void directory_remove(Directory* directory, Frame* frame) noexcept nogil:
    cdef uint32_t i = _cell_after(directory, frame.first_offset)
    while i > directory.start:
        i -= 1
        if directory.cells[i].frame == frame:
            directory.cells[i].frame = NULL
            directory.live -= 1
            break
        if directory.cells[i].first_offset < frame.first_offset:
            break
    while directory.start < directory.count and directory.cells[directory.start].frame == NULL:
        directory.start += 1
    if directory.start == directory.count:
        directory.start = directory.count = 0


cdef void directory_free(Directory* directory) noexcept nogil:
    free(directory.cells)
    memset(directory, 0, sizeof(Directory))


cdef Frame* directory_first(Directory* directory) noexcept nogil:
    if directory.start == directory.count:
        return NULL
    return directory.cells[directory.start].frame      # never a deleted one: remove moves `start`


cdef Frame* directory_at(Directory* directory, uint64_t offset) noexcept nogil:
    cdef uint32_t i = _cell_after(directory, offset)
    cdef uint32_t j = i
    while j > directory.start:                          # the last living frame that starts at or below
        j -= 1
        if directory.cells[j].frame != NULL:
            if frame_last_offset(directory.cells[j].frame) >= offset:
                return directory.cells[j].frame
            break
    while i < directory.count:
        if directory.cells[i].frame != NULL:
            return directory.cells[i].frame
        i += 1
    return NULL


cdef Frame* directory_after(Directory* directory, Frame* frame) noexcept nogil:
    cdef uint32_t i = _cell_after(directory, frame.first_offset)
    while i < directory.count:
        if directory.cells[i].frame != NULL:
            return directory.cells[i].frame
        i += 1
    return NULL


cdef Frame* directory_ordinary(Directory* directory, uint64_t id_high) noexcept nogil:
    """The first cell of this id: entries from elsewhere have that of the frame before them, and no id of their own."""
    cdef uint32_t low = directory.start
    cdef uint32_t high = directory.count
    cdef uint32_t middle
    cdef Frame* frame
    while low < high:
        middle = (low + high) // 2
        if directory.cells[middle].id_high < id_high:
            low = middle + 1
        else:
            high = middle
    frame = directory.cells[low].frame if low < directory.count else NULL
    return frame if frame != NULL and frame.explicit == NULL and frame.id_high == id_high else NULL


# --- interned texts ------------------------------------------------------------------------

cdef Key* key_intern(Core* core, Queue* queue, Slice text) noexcept nogil:
    """The queue's Key of this text, made when new, with one more reference."""
    cdef uint64_t hash = text_hash(text.at, text.length)
    cdef Key* key = <Key*> textmap_get_hashed(&queue.keys, text.at, text.length, hash)
    cdef WeightRow* row
    cdef char* bytes
    if key == NULL:
        key = <Key*> must_malloc(sizeof(Key) + text.length)
        memset(key, 0, sizeof(Key))
        bytes = <char*> key + sizeof(Key)
        memcpy(bytes, text.at, text.length)
        key.text.bytes = bytes
        key.text.length = text.length
        key.queue = queue
        key.weight = 1
        if queue.policy.weights.count:
            row = <WeightRow*> textmap_get_hashed(&queue.policy.weights, text.at, text.length, hash)
            key.table_weight = <unsigned short> row.weight if row != NULL else 0
        textmap_put(&queue.keys, &key.text)
        core.index_bytes += sizeof(Key) + text.length + 8
        core.keys_count += 1
    key.refs += 1
    return key


cdef void key_release(Core* core, Key* key) noexcept nogil:
    key.refs -= 1
    if key.refs == 0:
        key_drop_if_idle(core, key)


cdef void key_drop_if_idle(Core* core, Key* key) noexcept nogil:
    cdef Flow* flow
    if key.refs or key_has_policy(key):
        return
    while key.flows != NULL:
        flow = key.flows
        key.flows = flow.next_of_key
        flow_free(core, flow)
    if key.recorded:
        key_record_delete(core, key)
    textmap_remove(&key.queue.keys, &key.text)
    core.index_bytes -= sizeof(Key) + key.text.length + 8
    core.keys_count -= 1
    free(key)
