"""Nothing is copied: a view points into the frame's bytes and its entry."""

from libc.stdint cimport uint32_t

from fila_server.core.index.bodies cimport body_touch
from fila_server.core.state.kinds cimport LEASED, RETURNED_ONCE
from fila_server.core.state.paths cimport (
    entry_of, frame_appended_ms, frame_enqueued_ms, frame_id, frame_of, frame_offset, key_weight, share_of,
)
from fila_server.core.state.state cimport Channel, Entry, Frame, Lease, ThrottleSet

cdef enum:
    FIXED_BYTES = 192       # id, numbers, moments, and what stands before each text


cdef void message_view(Core* core, Slot* slot, View* view) noexcept nogil:
    """What a message says in its channel; its body must be hot."""
    cdef Frame* frame = frame_of(slot)
    cdef Channel* channel = share_of(slot).channel
    cdef Entry* entry = &frame.entries[slot.index]
    cdef ThrottleSet* set = entry.set
    cdef Lease* lease
    cdef uint32_t i
    frame_id(frame, slot.index, &view.id_high, &view.id_low)
    view.body = frame.body.bytes + entry.at
    view.body_length = entry.length
    view.fairness_key.at = entry.key.text.bytes
    view.fairness_key.length = entry.key.text.length
    view.weight = key_weight(entry.key)
    view.attempts = slot.attempts
    view.redelivered = slot.attempts or slot.marks >= RETURNED_ONCE
    view.queue.at = channel.queue.text.bytes
    view.queue.length = channel.queue.text.length
    view.channel.at = channel.text.bytes
    view.channel.length = channel.text.length
    view.offset = frame_offset(frame, slot.index)
    view.cost = entry.cost
    view.enqueued_ms = frame_enqueued_ms(frame, slot.index)
    view.appended_ms = frame_appended_ms(frame, slot.index)
    view.lease_id = 0
    view.leased_ms = view.expires_ms = 0
    if slot.state == LEASED:
        lease = <Lease*> slot.owner
        view.lease_id = lease.lease_id
        view.leased_ms = lease.leased_ms
        view.expires_ms = lease.expires_ms
    view.throttle_count = 0
    if set != NULL:
        for i in range(set.count):
            view.throttle[i].at = set.members[i].text.bytes
            view.throttle[i].length = set.members[i].text.length
        view.throttle_count = set.count
    if frame.loaded_seen:
        body_touch(core, frame.body)


cdef uint64_t message_bytes(Slot* slot) noexcept nogil:
    cdef Entry* entry = entry_of(slot)
    cdef Channel* channel = share_of(slot).channel
    cdef uint64_t keys = entry.set.text.length if entry.set != NULL else 0
    keys += entry.key.text.length
    return entry.length + FIXED_BYTES + keys + channel.queue.text.length + channel.text.length
