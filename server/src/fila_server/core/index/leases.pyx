"""Marks are two bits a lease, made when the first is set; groups whose marks changed stand on one list
until the pass is written.
"""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.formats.records cimport lease_marks_delete, lease_marks_put, lease_record_delete
from fila_server.core.state.directory cimport directory_ordinary
from fila_server.core.state.kinds cimport LEASED
from fila_server.core.state.paths cimport frame_id, frame_of, share_find, share_of
from fila_server.core.state.state cimport Frame, Share
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport map64_get, map64_put, map64_remove


cdef LeaseGroup* group_new(
        Channel* channel, uint64_t first_lease_id, uint64_t consumer, int64_t leased_ms) noexcept nogil:
    cdef LeaseGroup* group = <LeaseGroup*> must_malloc(sizeof(LeaseGroup))
    memset(group, 0, sizeof(LeaseGroup))
    group.queue_number = channel.queue.number
    group.channel_number = channel.number
    group.first_lease_id = first_lease_id
    group.consumer = consumer
    group.leased_ms = leased_ms
    group.channel = channel
    group.prev = channel.groups_last
    if group.prev != NULL:
        group.prev.next = group
    else:
        channel.groups = group
    channel.groups_last = group
    return group


cdef void _unlink(LeaseGroup* group) noexcept nogil:
    cdef Channel* channel = <Channel*> group.channel
    if channel == NULL:
        return
    group.channel = NULL
    if group.prev != NULL:
        group.prev.next = group.next
    else:
        channel.groups = group.next
    if group.next != NULL:
        group.next.prev = group.prev
    else:
        channel.groups_last = group.prev


cdef void groups_unlink(Channel* channel) noexcept nogil:
    """A dead letter that outlives a seek keeps its group until it is moved."""
    while channel.groups != NULL:
        _unlink(channel.groups)


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
    if group.live == 0:
        _unlink(group)
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


# --- leases by message id --------------------------------------------------------------------
# A message that was redriven while its first copy is still leased has two leases under
# one id, and a dead letter of two channels as well, so leases of one cell of the map are chained.

cdef uint64_t _cell_of(Lease* lease) noexcept nogil:
    cdef uint64_t high, low
    frame_id(frame_of(lease.slot), lease.slot.index, &high, &low)
    return id_cell(high, low)


cdef void leased_id_add(Core* core, Lease* lease) noexcept nogil:
    cdef uint64_t cell = _cell_of(lease)
    lease.same_id = <Lease*> map64_get(&core.leased_ids, cell)
    map64_put(&core.leased_ids, cell, lease)


cdef void leased_id_remove(Core* core, Lease* lease) noexcept nogil:
    cdef uint64_t cell = _cell_of(lease)
    cdef Lease* at = <Lease*> map64_get(&core.leased_ids, cell)
    if at == lease:
        if lease.same_id == NULL:
            map64_remove(&core.leased_ids, cell)
        else:
            map64_put(&core.leased_ids, cell, lease.same_id)
        return
    while at != NULL and at.same_id != lease:
        at = at.same_id
    if at != NULL:
        at.same_id = lease.same_id


cdef Lease* lease_by_message_id(Core* core, Channel* channel, uint64_t high, uint64_t low) noexcept nogil:
    cdef Frame* frame = directory_ordinary(&channel.queue.directory, high)
    cdef Share* share
    cdef Lease* lease
    cdef uint64_t h, l
    if frame != NULL and low >= frame.id_low and low - frame.id_low < frame.count:
        share = share_find(frame, channel)
        if share != NULL and share.slots[low - frame.id_low].state == LEASED:
            return <Lease*> share.slots[low - frame.id_low].owner
    lease = <Lease*> map64_get(&core.leased_ids, id_cell(high, low))
    while lease != NULL:
        frame_id(frame_of(lease.slot), lease.slot.index, &h, &l)
        if h == high and l == low and share_of(lease.slot).channel == channel:
            return lease
        lease = lease.same_id
    return NULL
