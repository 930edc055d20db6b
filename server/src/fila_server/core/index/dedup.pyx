"""A table by text, and a list in order of arrival, which is the order in which windows of one length
end. Recovery reads in the order of keys and sorts the list once.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy, memset

from fila_server.core.formats.records cimport DEDUP_BYTES, dedup_record_delete, dedup_record_put
from fila_server.core.index.ids cimport note_offset
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.state.directory cimport directory_at
from fila_server.core.state.state cimport Frame
from fila_server.core.structures.buffer cimport must_malloc, read_u64be
from fila_server.core.structures.maps cimport map64_get, textmap_get, textmap_put, textmap_remove

cdef enum:
    EXPIRED_AT_ONCE_MAX = 10000     # a look; the next one goes on


cdef void dedup_expire(Core* core, Queue* queue) noexcept nogil:
    cdef Dedup* row
    cdef uint32_t dropped = 0
    while (
        queue.dedup_oldest != NULL and queue.dedup_oldest.due_ns <= core.mono_ns
        and dropped < EXPIRED_AT_ONCE_MAX
    ):
        row = queue.dedup_oldest
        dropped += 1
        queue.dedup_oldest = row.next
        if queue.dedup_oldest == NULL:
            queue.dedup_newest = NULL
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
    return row if row != NULL and row.due_ns > core.mono_ns else NULL


cdef void _begin_window(Core* core, Queue* queue, Dedup* row) noexcept nogil:
    row.began_ms = core.wall_ms
    row.expires_ms = core.wall_ms + <int64_t> queue.policy.dedup_window_ms
    row.due_ns = core.mono_ns + <int64_t> queue.policy.dedup_window_ms * 1000000


cdef void dedup_add(Core* core, Queue* queue, Slice text) noexcept nogil:
    """Room for a key whose message gets its id when the frame is built (see dedup_fill)."""
    cdef Dedup* row = <Dedup*> textmap_get(&queue.dedup, text.at, text.length)
    cdef char* bytes
    if row != NULL:                     # over, but not yet at the front of the list: it serves once more
        row.id_high = row.id_low = row.offset = 0
        _begin_window(core, queue, row)
        row.epoch = core.epoch
        return
    row = <Dedup*> must_malloc(sizeof(Dedup) + text.length)
    bytes = <char*> row + sizeof(Dedup)
    memset(row, 0, sizeof(Dedup))
    memcpy(bytes, text.at, text.length)
    row.text.bytes = bytes
    row.text.length = text.length
    _begin_window(core, queue, row)
    row.epoch = core.epoch
    textmap_put(&queue.dedup, &row.text)
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
    if row != NULL and row.offset == 0:
        row.id_high, row.id_low, row.offset = item.id_high, item.id_low, item.offset
        dedup_record_put(core, core.enqueues, queue, row)


cdef void dedup_forget(Core* core, Command* command) noexcept nogil:
    cdef uint32_t i
    cdef Item* item
    cdef Queue* queue
    cdef Dedup* row
    cdef Frame* frame
    for i in range(command.count):
        item = &command.items[i]
        if item.options == NULL or item.options.dedup_key.length == 0 or item.refused:
            continue
        queue = <Queue*> textmap_get(&core.queues, item.queue.at, item.queue.length)
        row = (
            <Dedup*> textmap_get(&queue.dedup, item.options.dedup_key.at, item.options.dedup_key.length)
            if queue != NULL else NULL
        )
        if row == NULL or row.epoch != core.epoch:
            continue
        # Under `os` an epoch lasts: a row whose message was stored in an earlier pass stays.
        frame = directory_at(&queue.directory, row.offset)
        visit_soon(core, queue)
        if row.offset == 0 or (frame != NULL and frame.first_offset <= row.offset and not frame.revealed):
            row.due_ns = 0              # as good as gone from now on; its record was never written


# --- recovery ---------------------------------------------------------------------------------

cdef void dedup_read(
        Core* core, const char* at, size_t length, const char* value, size_t value_length) noexcept nogil:
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, read_u64be(at))
    cdef Dedup* row
    cdef uint32_t n = <uint32_t> (length - 8)
    cdef int64_t left_ms, longest_ms
    if queue == NULL:
        return
    row = <Dedup*> must_malloc(sizeof(Dedup) + n)
    memset(row, 0, sizeof(Dedup))
    memcpy(<char*> row + sizeof(Dedup), at + 8, n)
    row.text.bytes = <char*> row + sizeof(Dedup)
    row.text.length = n
    memcpy(&row.id_high, value + 1, 8)
    memcpy(&row.id_low, value + 9, 8)
    memcpy(&row.offset, value + 17, 8)
    memcpy(&row.expires_ms, value + 25, 8)
    if value_length == DEDUP_BYTES:
        memcpy(&row.began_ms, value + 33, 8)
    # The window goes on by the wall clock over a restart; where that was set back, nothing of it counts as
    # passed, and it is not longer than it was. A record of before does not tell its beginning: the queue's
    # setting stands for it.
    longest_ms = row.expires_ms - row.began_ms if row.began_ms else <int64_t> queue.policy.dedup_window_ms
    left_ms = min(row.expires_ms - core.wall_ms, longest_ms)
    row.due_ns = core.mono_ns + left_ms * 1000000 if left_ms > 0 else 0
    note_offset(core, queue.number, row.offset)
    core.id_ms = max(core.id_ms, row.id_high >> 16)
    textmap_put(&queue.dedup, &row.text)
    # Read in the order of keys; dedup_sort puts the list in the order of expiry.
    row.next = queue.dedup_oldest
    queue.dedup_oldest = row
    if queue.dedup_newest == NULL:
        queue.dedup_newest = row
    core.dedup_rows += 1


cdef int _by_expiry(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<Dedup**> a)[0].due_ns
    cdef int64_t y = (<Dedup**> b)[0].due_ns
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
