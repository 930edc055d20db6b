"""Few and small: a table for each queue, which is empty for most."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcpy, memset

from fila_server.core.formats.records cimport schedule_records_delete
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.protobuf cimport Fields, fields_parse
from fila_server.core.state.paths cimport queue_find
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport (
    textmap_free, textmap_get, textmap_next, textmap_put, textmap_remove,
)


cdef Schedule* schedule_find(Queue* queue, Slice name) noexcept nogil:
    return <Schedule*> textmap_get(&queue.schedules, name.at, name.length)


cdef void schedule_put(Queue* queue, Slice name, uint64_t due_ms) noexcept nogil:
    cdef Schedule* schedule = schedule_find(queue, name)
    cdef char* bytes
    if schedule == NULL:
        schedule = <Schedule*> must_malloc(sizeof(Schedule) + name.length)
        memset(schedule, 0, sizeof(Schedule))
        bytes = <char*> schedule + sizeof(Schedule)
        memcpy(bytes, name.at, name.length)
        schedule.text.bytes = bytes
        schedule.text.length = name.length
        textmap_put(&queue.schedules, &schedule.text)
    schedule.due_ms = due_ms


cdef void schedule_remove(Queue* queue, Slice name) noexcept nogil:
    cdef Schedule* schedule = schedule_find(queue, name)
    if schedule != NULL:
        textmap_remove(&queue.schedules, &schedule.text)
        free(schedule)


cdef void schedule_written(Schedule* schedule, bint refused) noexcept nogil:
    schedule.is_firing = False
    if not refused:
        schedule.due_ms = schedule.next_ms


cdef void schedules_drop(Core* core, Queue* queue) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Schedule* schedule
    if queue.schedules.count:           # most queues have none
        schedule_records_delete(core, queue)
    while True:
        schedule = <Schedule*> textmap_next(&queue.schedules, &cursor)
        if schedule == NULL:
            break
        free(schedule)
    textmap_free(&queue.schedules)


cdef bint schedule_recover(
        Core* core, const char* text, size_t length, const char* value, size_t value_length) noexcept nogil:
    cdef Slice name
    cdef Slice queue_name
    cdef Fields fields
    cdef Queue* queue
    cdef bint is_whole
    cdef const char* slash = <const char*> memchr(text, 0x2F, length)
    if slash == NULL:
        return False
    queue_name.at, queue_name.length = text, <uint32_t> (slash - text)
    name.at, name.length = slash + 1, <uint32_t> (text + length - slash - 1)
    queue = queue_find(core, queue_name)
    if queue == NULL:
        return False
    is_whole = fields_parse(&fields, value, value_length)
    schedule_put(queue, name, fields.number[seam.SCHEDULE_DUE_DUE_MS] if is_whole else 0)
    return True
