"""Frames, shares and bodies: what is stored, who still wants it, and which bytes are in memory."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.state cimport (
    Body, Channel, Core, Directory, Entry, Frame, Key, Queue, Share, Slot,
)
from fila_server.core.buffer cimport Slice
from fila_server.core.waiting cimport Decision

# --- bodies (hot payload bytes)
cdef Body* body_new(Core* core, Frame* frame, char* bytes, uint32_t length) noexcept nogil   # owns `bytes`
cdef void body_release(Core* core, Body* body) noexcept nogil
cdef void body_touch(Core* core, Body* body) noexcept nogil
cdef void bodies_evict(Core* core) noexcept nogil

# --- frames
cdef void failure_waits(Frame* frame, Decision* decision) noexcept nogil         # for the frame's bytes
cdef Frame* frame_new(Core* core, Queue* queue, uint32_t count) noexcept nogil
cdef void frame_free(Core* core, Frame* frame) noexcept nogil
cdef Share* share_new(Core* core, Frame* frame, Channel* channel) noexcept nogil
cdef void frame_tally(Frame* frame) noexcept nogil            # anew, after slots were copied into it
cdef void share_free(Core* core, Share* share) noexcept nogil
cdef Share* share_find(Frame* frame, Channel* channel) noexcept nogil

# Counts anew who is wanted by some channel; for the rare moves (seek, a channel gone). Acks count by themselves.
cdef bint frame_awaited(Core* core, Frame* frame) noexcept nogil        # a channel is still to take it in
cdef void frame_recount(Core* core, Frame* frame) noexcept nogil
cdef bint frame_retained(Core* core, Frame* frame) noexcept nogil            # soft retention keeps it
cdef void frame_finish(Core* core, Frame* frame) noexcept nogil              # nobody wants it: goes with this pass
cdef uint64_t frame_unwanted(Frame* frame) noexcept nogil

cdef inline Share* share_of(Slot* slot) noexcept nogil:
    """The slot's array stands behind its share, so the way back is arithmetic."""
    return <Share*> (<char*> (slot - slot.index) - <size_t> &(<Share*> NULL).slots)

cdef inline Frame* frame_of(Slot* slot) noexcept nogil:
    return share_of(slot).frame

cdef inline Entry* entry_of(Slot* slot) noexcept nogil:
    return &share_of(slot).frame.entries[slot.index]

cdef inline uint64_t frame_offset(Frame* frame, uint32_t index) noexcept nogil:
    if frame.explicit != NULL:
        return frame.explicit[index].offset
    return frame.first_offset + index

cdef inline void frame_id(Frame* frame, uint32_t index, uint64_t* high, uint64_t* low) noexcept nogil:
    if frame.explicit != NULL:
        high[0] = frame.explicit[index].id_high
        low[0] = frame.explicit[index].id_low
    else:
        high[0] = frame.id_high
        low[0] = frame.id_low + index

cdef inline int64_t frame_enqueued_ms(Frame* frame, uint32_t index) noexcept nogil:
    if frame.explicit != NULL:
        return frame.explicit[index].enqueued_ms
    return frame.appended_ms + frame.entries[index].enqueued_delta_ms

cdef inline int64_t frame_appended_ms(Frame* frame, uint32_t index) noexcept nogil:
    if frame.explicit != NULL:
        return frame.explicit[index].appended_ms
    return frame.appended_ms

cdef inline uint64_t frame_last_offset(Frame* frame) noexcept nogil:
    return frame_offset(frame, frame.count - 1)

# --- the directory: frames of a queue by offset, and by id
cdef void directory_add(Directory* directory, Frame* frame) noexcept nogil
# A rewritten frame takes its original's place; its first offset is not below that one's.
cdef void directory_replace(Directory* directory, Frame* old, Frame* frame) noexcept nogil
cdef void directory_remove(Directory* directory, Frame* frame) noexcept nogil
cdef void directory_free(Directory* directory) noexcept nogil
# The frame that holds `offset`, or the first one after it; NULL behind the last.
cdef Frame* directory_at(Directory* directory, uint64_t offset) noexcept nogil
cdef Frame* directory_first(Directory* directory) noexcept nogil
cdef Frame* directory_after(Directory* directory, Frame* frame) noexcept nogil
# The frame whose own ids begin with these 64 bits, or NULL; entries moved from elsewhere are in leased_ids.
cdef Frame* directory_ordinary(Directory* directory, uint64_t id_high) noexcept nogil

# --- interned texts
cdef Key* key_intern(Core* core, Queue* queue, Slice text) noexcept nogil
cdef void key_release(Core* core, Key* key) noexcept nogil
cdef void key_drop_if_idle(Core* core, Key* key) noexcept nogil

cdef inline uint32_t key_weight(Key* key) noexcept nogil:
    """What it is served by: an operator's word, else the weight table's, else the newest enqueue's."""
    if key.admin_weight:
        return key.admin_weight
    return key.table_weight if key.table_weight else key.weight

cdef inline bint key_has_policy(Key* key) noexcept nogil:
    """An operator set something: the key outlives its messages."""
    return key.admin_weight != 0 or key.paused or key.cap != 0
