"""Offsets, ids and times of the messages stay what they were; they are written out one by one in
the new record instead of running on from the first. Leases, delays and STATES records name
messages by offset, so none of them changes on disk; in memory each pointer to a slot is
set to its copy. Old record out and new one in are one batch.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.formats.records cimport (
    Times, frame_record_delete, frame_record_put, settled_record_delete, settled_record_put,
)
from fila_server.core.index.ages cimport frame_delayed, share_age_moved
from fila_server.core.index.bodies cimport body_new, frame_want
from fila_server.core.index.delays cimport expiry_drop
from fila_server.core.index.frames cimport frame_free, frame_new, frame_tally, frame_unwanted, share_new
from fila_server.core.index.leases cimport leased_id_add
from fila_server.core.lifecycle.answers cimport body_stays
from fila_server.core.lifecycle.ending cimport settled_flush
from fila_server.core.scheduling.flows cimport flow_find
from fila_server.core.state.directory cimport directory_at, directory_replace
from fila_server.core.state.kinds cimport DELAYED, DONE, LEASED, READY
from fila_server.core.state.paths cimport (
    frame_appended_ms, frame_enqueued_ms, frame_id, frame_offset, share_of,
)
from fila_server.core.state.pending cimport Expiry, OwnIds
from fila_server.core.state.state cimport Channel, Delay, Entry, Lease, Share, Slot, Subqueue
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.fifo cimport Fifo, fifo_moved
from fila_server.core.structures.maps cimport map64_get

cdef enum:
    FRAMES_PER_ROUND_MAX = 64
    FRAMES_LOOKED_AT_MAX = 1024
    UNWANTED_BYTES_MIN = 262144


cdef bint _wanted(Frame* frame, uint32_t index) noexcept nogil:
    cdef Share* share = frame.shares
    while share != NULL:
        if share.slots[index].state != DONE:
            return True
        share = share.next_of_frame
    return False


cdef void _slot_move(Slot* from_, Slot* to, Frame* frame, Share* share) noexcept nogil:
    """Copy a slot and turn every pointer at it."""
    cdef uint32_t index = to.index
    cdef Fifo* fifo
    to[0] = from_[0]
    to.index = index
    if share.waits != NULL:
        share.waits[index] = share_of(from_).waits[from_.index]
    if to.state == READY:
        if to.owner != NULL:
            fifo = &(<Subqueue*> to.owner).fifo
        else:
            fifo = &flow_find(frame.entries[index].key, share.channel).fifo
        fifo_moved(fifo, &from_.place, &to.place)
    elif to.state == LEASED:
        (<Lease*> to.owner).slot = to
    elif to.state == DELAYED:
        (<Delay*> to.owner).slot = to


cdef Times* _times(Core* core, Frame* old, Frame* frame, const uint32_t* kept) noexcept nogil:
    """What the record has to say of first delays, over or not, and of times to live; NULL for nothing."""
    cdef Times* times = <Times*> must_malloc(frame.count * sizeof(Times))
    cdef Expiry* expiry
    cdef uint32_t i
    cdef bint any_ = False
    memset(times, 0, frame.count * sizeof(Times))
    for i in range(frame.count):
        if old.first_due_ms != NULL and old.first_due_ms[kept[i]]:
            times[i].deliver_at_ms = old.first_due_ms[kept[i]]
            frame_delayed(core, frame, i, times[i].deliver_at_ms)
            any_ = True
        if old.has_expiries:
            expiry = <Expiry*> map64_get(&old.queue.expiries, frame_offset(old, kept[i]))
            if expiry != NULL:
                times[i].expires_ms = expiry.expires_ms
                any_ = True
    if not any_:
        free(times)
        return NULL
    return times


cdef Frame* _copy(Core* core, Frame* old, const uint32_t* kept, uint32_t count, char** bytes) noexcept nogil:
    """The new frame's entries and bytes. References to keys and sets move along with the entries."""
    cdef Frame* frame = frame_new(core, old.queue, count)
    cdef Entry* entry
    cdef uint32_t i, at = 0
    frame.own_ids = <OwnIds*> must_malloc(count * sizeof(OwnIds))
    frame.first_offset = frame_offset(old, kept[0])
    frame.appended_ms = old.appended_ms
    frame.only = old.only
    frame.revealed = True
    frame.has_expiries = old.has_expiries
    for i in range(count):
        frame.live_bytes += old.entries[kept[i]].length
    frame.body_bytes = frame.live_bytes
    bytes[0] = <char*> must_malloc(frame.body_bytes)
    for i in range(count):
        entry = &frame.entries[i]
        entry[0] = old.entries[kept[i]]
        memcpy(bytes[0] + at, old.body.bytes + entry.at, entry.length)
        entry.at = at
        at += entry.length
        frame_id(old, kept[i], &frame.own_ids[i].id_high, &frame.own_ids[i].id_low)
        frame.own_ids[i].offset = frame_offset(old, kept[i])
        frame.own_ids[i].enqueued_ms = frame_enqueued_ms(old, kept[i])
        frame.own_ids[i].appended_ms = frame_appended_ms(old, kept[i])
    return frame


cdef bint frame_rewrite(Core* core, Frame* old) noexcept nogil:
    cdef Queue* queue = old.queue
    cdef Frame* frame
    cdef Share* share
    cdef Share* fresh
    cdef Times* times
    cdef uint32_t* kept
    cdef char* bytes
    cdef uint32_t i, count = 0
    if not old.revealed or old.dying or old.burials or old.live == 0:
        return False
    if old.body == NULL:
        frame_want(core, old)
        return False
    kept = <uint32_t*> must_malloc(old.count * sizeof(uint32_t))
    for i in range(old.count):
        if _wanted(old, i):
            kept[count] = i
            count += 1
    if count == 0 or count == old.count:
        free(kept)
        return False
    frame = _copy(core, old, kept, count, &bytes)
    times = _times(core, old, frame, kept)
    frame_record_delete(core, old)
    frame_record_put(core, core.settles, frame, bytes, frame.body_bytes, times)
    free(times)
    share = old.shares
    while share != NULL:
        fresh = share_new(core, frame, share.channel)
        share_age_moved(share, fresh)
        if share.recorded:
            settled_record_delete(core, queue.number, share.channel.number, old.first_offset)
        for i in range(count):
            _slot_move(&share.slots[kept[i]], &fresh.slots[i], frame, fresh)
            if fresh.slots[i].state != DONE:
                fresh.remaining += 1
            if fresh.slots[i].state == LEASED and old.own_ids == NULL:
                leased_id_add(core, <Lease*> fresh.slots[i].owner)
        if fresh.remaining < count:
            settled_record_put(core, fresh)
        share = share.next_of_frame
    frame_tally(frame)
    if old.has_expiries:
        for i in range(old.count):
            if not _wanted(old, i):
                expiry_drop(core, queue, frame_offset(old, i))
    for i in range(count):
        old.entries[kept[i]].key = NULL
        old.entries[kept[i]].set = NULL
    free(kept)
    body_stays(core, body_new(core, frame, bytes, frame.body_bytes))
    frame.loaded_seen = old.loaded_seen
    queue.unwanted_bytes -= frame_unwanted(old)
    queue.stored_bytes -= old.body_bytes
    queue.stored_bytes += frame.body_bytes
    directory_replace(&queue.directory, old, frame)
    core.counters.rewrites += 1
    frame_free(core, old)
    return True


cdef bint queue_rewrite(Core* core, Queue* queue) noexcept nogil:
    """A bounded look along the queue, from where the last one stopped. False: there is nothing to do before a
    change."""
    cdef Frame* frame
    cdef Channel* channel
    cdef uint32_t looked = 0
    cdef uint32_t done = 0
    cdef uint64_t offset
    cdef bint more = queue.rewrite_at != 0      # only a whole walk without work says that there is none
    if queue.unwanted_bytes < UNWANTED_BYTES_MIN or queue.unwanted_bytes * 3 < queue.stored_bytes:
        return False
    if queue.gone != NULL:
        return True                     # what is taken apart is not copied
    if queue.policy.soft_period_ms or queue.policy.soft_bytes:
        return False                    # what nobody wants now is kept to be seeked back to
    channel = queue.channels
    while channel != NULL:
        if channel.rebuild_at:          # it is about to ask for what this would leave out
            return True
        channel = channel.next
    settled_flush(core)                 # a share that moves must not stand on the dirty list
    frame = directory_at(&queue.directory, queue.rewrite_at)
    while frame != NULL and looked < FRAMES_LOOKED_AT_MAX and done < FRAMES_PER_ROUND_MAX:
        looked += 1
        offset = frame_offset(frame, frame.count - 1)
        if (
            frame.live and (frame.live * 2 <= frame.count or frame.live_bytes * 2 <= frame.body_bytes)
            and frame.count > 1
        ):
            more = True
            if frame_rewrite(core, frame):
                done += 1
        queue.rewrite_at = offset + 1
        frame = directory_at(&queue.directory, queue.rewrite_at)
    if frame == NULL:
        queue.rewrite_at = 0
        return more
    return True
