"""A table by text, and a list in order of arrival, which is the order in which windows of one length
end. A key that is known for longer, because its message is pending or its window began anew, goes to the
list's end when it comes to the front. Recovery reads in the order of keys and sorts the list once.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy, memset

from fila_server.core.formats.records cimport (
    DEDUP_BYTES, DEDUP_BYTES_LASTING, ArrivalTimes, dedup_record_delete, dedup_record_put, times_of,
)
from fila_server.core.index.ids cimport note_offset
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.state.directory cimport directory_at, frame_index
from fila_server.core.state.kinds cimport DECIDING, DONE, LEASED
from fila_server.core.state.pending cimport Known, Renamed, Renames
from fila_server.core.state.state cimport Frame, Share
from fila_server.core.structures.buffer cimport must_malloc, must_realloc, read_u64be
from fila_server.core.structures.maps cimport map64_get, textmap_get, textmap_put, textmap_remove

cdef enum:
    EXPIRED_AT_ONCE_MAX = 10000     # a look; the next one goes on
    LOOK_AGAIN_MS = 1000            # the soonest

cdef int64_t SINCE_MS_MAX = <int64_t> 100 * 365 * 86400000      # in nanoseconds it fits 63 bits


cdef void dedup_expire(Core* core, Queue* queue) noexcept nogil:
    cdef Dedup* row
    cdef uint32_t looked = 0
    while (
        queue.dedup_oldest != NULL and queue.dedup_oldest.look_ns <= core.mono_ns
        and looked < EXPIRED_AT_ONCE_MAX
    ):
        row = queue.dedup_oldest
        looked += 1
        queue.dedup_oldest = row.next
        if queue.dedup_oldest == NULL:
            queue.dedup_newest = NULL
        if _is_known(core, queue, row):
            _append(core, queue, row)
            continue
        textmap_remove(&queue.dedup, &row.text)
        dedup_record_delete(core, queue, row)
        core.dedup_rows -= 1
        free(row)


cdef Dedup* dedup_find(Core* core, Queue* queue, Slice text) noexcept nogil:
    cdef Dedup* row
    dedup_expire(core, queue)
    row = <Dedup*> textmap_get(&queue.dedup, text.at, text.length)
    # A row may be over before it is at the front: the window was made shorter, or the disk refused its
    # message.
    return row if row != NULL and _is_known(core, queue, row) else NULL


cdef uint64_t dedup_newest(Queue* queue, Dedup* row) noexcept nogil:
    if row.known.offset == 0 or stands(queue, row.known.offset):
        return row.known.offset
    return row.known.before if stands(queue, row.known.before) else 0


cdef inline bint _is_known(Core* core, Queue* queue, Dedup* row) noexcept nogil:
    if row.known.due_ns > core.mono_ns:
        return True
    return row.known.lasts and (row.known.offset == 0 or dedup_newest(queue, row) != 0)


cdef int stands(Queue* queue, uint64_t offset) noexcept nogil:
    cdef Frame* frame = directory_at(&queue.directory, offset) if offset else NULL
    cdef uint32_t i = frame_index(frame, offset) if frame != NULL else 0
    cdef Share* share
    cdef int found = 0
    if frame == NULL or i >= frame.count or frame.dying:
        return 0
    if not frame.revealed:
        return IT_WAITS
    share = frame.shares
    while share != NULL:
        if share.slots[i].state != DONE and not share.channel.gone:
            found |= IT_IS_IN_FLIGHT if share.slots[i].state in (LEASED, DECIDING) else IT_WAITS
        share = share.next_of_frame
    return found


cdef int64_t due_ms_of(Queue* queue, uint64_t offset) noexcept nogil:
    cdef Frame* frame = directory_at(&queue.directory, offset)
    cdef uint32_t i = frame_index(frame, offset) if frame != NULL else 0
    if frame == NULL or i >= frame.count:
        return 0
    if not frame.revealed and frame.times != NULL:
        return times_of(<ArrivalTimes*> frame.times)[i].deliver_at_ms
    return frame.first_due_ms[i] if frame.first_due_ms != NULL else 0


cdef void _append(Core* core, Queue* queue, Dedup* row) noexcept nogil:
    """Looked at again when its window is over; the list keeps its order where windows were made shorter."""
    row.look_ns = core.mono_ns + max(<int64_t> queue.policy.dedup_window_ms, LOOK_AGAIN_MS) * 1000000
    row.next = NULL
    if queue.dedup_newest == NULL:
        queue.dedup_oldest = row
    else:
        row.look_ns = max(row.look_ns, queue.dedup_newest.look_ns)
        queue.dedup_newest.next = row
    queue.dedup_newest = row


cdef void _begin_window(Core* core, Queue* queue, Known* known) noexcept nogil:
    memset(known, 0, sizeof(Known))
    known.began_ms = core.wall_ms
    known.expires_ms = core.wall_ms + <int64_t> queue.policy.dedup_window_ms
    known.due_ns = core.mono_ns + <int64_t> queue.policy.dedup_window_ms * 1000000
    known.first_ms, known.first_ns = core.wall_ms, core.mono_ns
    known.batch = core.enqueued_batch


cdef void dedup_replace(Core* core, Queue* queue, Dedup* row, int stood) noexcept nogil:
    cdef Renamed* renamed
    cdef Renames* all = &core.renames
    if all.count == all.capacity:
        all.capacity = all.capacity * 2 + 16
        all.rows = <Renamed*> must_realloc(all.rows, all.capacity * sizeof(Renamed))
    renamed = &all.rows[all.count]
    all.count += 1
    renamed.row, renamed.before = row, row.known
    _begin_window(core, queue, &row.known)
    row.known.lasts = True
    row.known.before = renamed.before.before
    # The oldest that is pending, also where it only waits: it may be leased before this one is visible. Then
    # all that come later wait for that lease, whatever becomes of those between.
    if not stands(queue, row.known.before):
        row.known.before = renamed.before.offset if stands(queue, renamed.before.offset) else 0
    if stood & IT_WAITS:
        row.known.first_ms, row.known.first_ns = renamed.before.first_ms, renamed.before.first_ns


cdef void dedup_written(Core* core, bint refused) noexcept nogil:
    cdef uint32_t i = core.renames.count
    while refused and i > 0:            # the last first: a key may have been taken over more than once
        i -= 1
        core.renames.rows[i].row.known = core.renames.rows[i].before
    core.renames.count = 0


cdef void dedup_add(Core* core, Queue* queue, Slice text, bint lasts) noexcept nogil:
    """Room for a key whose message gets its id when the frame is built (see dedup_fill)."""
    cdef Dedup* row = <Dedup*> textmap_get(&queue.dedup, text.at, text.length)
    cdef char* bytes
    if row != NULL:                     # over, but not yet at the front of the list: it serves once more
        _begin_window(core, queue, &row.known)
        row.known.lasts = lasts
        return
    row = <Dedup*> must_malloc(sizeof(Dedup) + text.length)
    bytes = <char*> row + sizeof(Dedup)
    memset(row, 0, sizeof(Dedup))
    memcpy(bytes, text.at, text.length)
    row.text.bytes = bytes
    row.text.length = text.length
    _begin_window(core, queue, &row.known)
    row.known.lasts = lasts
    textmap_put(&queue.dedup, &row.text)
    row.look_ns = row.known.due_ns
    if queue.dedup_newest == NULL:
        queue.dedup_oldest = row
    else:
        queue.dedup_newest.next = row
    queue.dedup_newest = row
    core.dedup_rows += 1
    visit_soon(core, queue)


cdef void dedup_fill(Core* core, Queue* queue, Command* command, Item* item) noexcept nogil:
    cdef Dedup* row
    cdef Slice text = item.options.dedup_key
    if text.length == 0:
        return
    # Where the command's bytes moved into the frame's body the slice still points at them.
    row = <Dedup*> textmap_get(&queue.dedup, text.at, text.length)
    if row != NULL and row.known.offset == 0:
        row.known.id_high, row.known.id_low, row.known.offset = item.id_high, item.id_low, item.offset
        dedup_record_put(core, core.enqueues, queue, row)


cdef void dedup_forget(Core* core, Command* command) noexcept nogil:
    cdef uint32_t i
    cdef Item* item
    cdef Queue* queue
    cdef Dedup* row
    for i in range(command.count):
        item = &command.items[i]
        if item.options == NULL or item.options.dedup_key.length == 0 or item.refused:
            continue
        queue = <Queue*> textmap_get(&core.queues, item.queue.at, item.queue.length)
        row = (
            <Dedup*> textmap_get(&queue.dedup, item.options.dedup_key.at, item.options.dedup_key.length)
            if queue != NULL else NULL
        )
        if row == NULL or row.known.batch != core.enqueued_batch:       # an earlier message's
            continue
        visit_soon(core, queue)
        row.known.due_ns = 0            # as good as gone from now on; its record was never written
        row.known.lasts = False


# --- recovery ---------------------------------------------------------------------------------

cdef void dedup_read(
        Core* core, const char* at, size_t length, const char* value, size_t value_length) noexcept nogil:
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, read_u64be(at))
    cdef Dedup* row
    cdef Known* known
    cdef uint32_t n = <uint32_t> (length - 8)
    cdef int64_t left_ms, longest_ms, since_ms
    if queue == NULL:
        return
    row = <Dedup*> must_malloc(sizeof(Dedup) + n)
    memset(row, 0, sizeof(Dedup))
    memcpy(<char*> row + sizeof(Dedup), at + 8, n)
    row.text.bytes = <char*> row + sizeof(Dedup)
    row.text.length = n
    known = &row.known
    memcpy(&known.id_high, value + 1, 8)
    memcpy(&known.id_low, value + 9, 8)
    memcpy(&known.offset, value + 17, 8)
    memcpy(&known.expires_ms, value + 25, 8)
    if value_length >= DEDUP_BYTES:
        memcpy(&known.began_ms, value + 33, 8)
    known.first_ms = known.began_ms
    if value_length == DEDUP_BYTES_LASTING:
        known.lasts = True
        memcpy(&known.first_ms, value + DEDUP_BYTES, 8)
        memcpy(&known.before, value + DEDUP_BYTES + 8, 8)
    # By the clock that the first one's delay began on; one that was set back since counts as none passed.
    since_ms = max(<int64_t> 0, min(core.wall_ms - known.first_ms, SINCE_MS_MAX))
    known.first_ns = core.mono_ns - since_ms * 1000000
    # The window goes on by the wall clock over a restart; where that was set back, nothing of it counts as
    # passed, and it is not longer than it was. A record of before does not tell its beginning: the queue's
    # setting stands for it.
    longest_ms = known.expires_ms - known.began_ms
    if not known.began_ms:
        longest_ms = <int64_t> queue.policy.dedup_window_ms
    left_ms = min(known.expires_ms - core.wall_ms, longest_ms)
    known.due_ns = core.mono_ns + left_ms * 1000000 if left_ms > 0 else 0
    row.look_ns = known.due_ns
    note_offset(core, queue.number, known.offset)
    core.id_ms = max(core.id_ms, known.id_high >> 16)
    textmap_put(&queue.dedup, &row.text)
    # Read in the order of keys; dedup_sort puts the list in the order of expiry.
    row.next = queue.dedup_oldest
    queue.dedup_oldest = row
    if queue.dedup_newest == NULL:
        queue.dedup_newest = row
    core.dedup_rows += 1


cdef int _by_expiry(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<Dedup**> a)[0].look_ns
    cdef int64_t y = (<Dedup**> b)[0].look_ns
    return -1 if x < y else (1 if x > y else 0)


cdef void dedup_sort(Queue* queue) noexcept nogil:
    cdef uint32_t n = queue.dedup.count
    cdef Dedup** rows
    cdef Dedup* row = queue.dedup_oldest
    cdef uint32_t i = 0
    if n < 2:
        return
    rows = <Dedup**> must_malloc(n * sizeof(void*))
    while row != NULL and i < n:
        rows[i] = row
        i += 1
        row = row.next
    qsort(rows, i, sizeof(void*), _by_expiry)
    queue.dedup_oldest = rows[0]
    queue.dedup_newest = rows[i - 1]
    rows[i - 1].next = NULL
    while i > 1:
        i -= 1
        rows[i - 1].next = rows[i]
    free(rows)
