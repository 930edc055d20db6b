"""Marks are two bits a lease, made when the first is set; groups whose marks changed stand on one list
until the pass is written.
"""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.formats.records cimport lease_marks_delete, lease_marks_put, lease_record_delete
from fila_server.core.structures.buffer cimport must_malloc


cdef LeaseGroup* group_new(
        uint64_t queue_number, uint64_t channel_number, uint64_t first_lease_id,
        uint64_t consumer) noexcept nogil:
    cdef LeaseGroup* group = <LeaseGroup*> must_malloc(sizeof(LeaseGroup))
    memset(group, 0, sizeof(LeaseGroup))
    group.queue_number = queue_number
    group.channel_number = channel_number
    group.first_lease_id = first_lease_id
    group.consumer = consumer
    return group


cdef void group_mark(Core* core, LeaseGroup* group, uint64_t lease_id, uint8_t mark) noexcept nogil:
    cdef uint64_t index = lease_id - group.first_lease_id
    cdef size_t size = (group.count + 3) >> 2
    if index >= group.count:            # it is picked just now, and not even recorded
        return
    if group.marks == NULL:
        group.marks = <uint8_t*> must_malloc(size)
        memset(group.marks, 0, size)
    group.marks[index >> 2] |= <uint8_t> (mark << (2 * (index & 3)))
    if not group.is_marked:
        group.is_marked = True
        group.next_marked = core.marked
        core.marked = group


cdef void _forget(Core* core, LeaseGroup* group) noexcept nogil:
    lease_record_delete(core, group.queue_number, group.channel_number, group.first_lease_id)
    if group.recorded:
        lease_marks_delete(core, group.queue_number, group.channel_number, group.first_lease_id)
    free(group.marks)
    free(group)


cdef void group_leave(Core* core, LeaseGroup* group) noexcept nogil:
    group.live -= 1
    if group.live == 0 and not group.is_marked:     # else with the flush, which has it on its list
        _forget(core, group)


cdef void groups_flush(Core* core) noexcept nogil:
    cdef LeaseGroup* group = core.marked
    cdef LeaseGroup* following
    core.marked = NULL
    while group != NULL:
        following = group.next_marked
        group.is_marked = False
        if group.live == 0:
            _forget(core, group)
        else:
            lease_marks_put(core, group)
            group.recorded = True
        group = following
