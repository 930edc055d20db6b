"""A message that was redriven while its first copy is still leased has two leases under
one id, and a dead letter of two channels as well, so leases of one cell of the map are chained."""

from fila_server.core.state.directory cimport directory_ordinary
from fila_server.core.state.kinds cimport LEASED
from fila_server.core.state.paths cimport frame_id, frame_of, share_find, share_of
from fila_server.core.state.state cimport Frame, Share
from fila_server.core.structures.maps cimport map64_get, map64_put, map64_remove


cdef inline uint64_t _cell(uint64_t high, uint64_t low) noexcept nogil:
    return low ^ (high * <uint64_t> 0x9E3779B97F4A7C15)


cdef uint64_t _cell_of(Lease* lease) noexcept nogil:
    cdef uint64_t high, low
    frame_id(frame_of(lease.slot), lease.slot.index, &high, &low)
    return _cell(high, low)


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
    lease = <Lease*> map64_get(&core.leased_ids, _cell(high, low))
    while lease != NULL:
        frame_id(frame_of(lease.slot), lease.slot.index, &h, &l)
        if h == high and l == low and share_of(lease.slot).channel == channel:
            return lease
        lease = lease.same_id
    return NULL
