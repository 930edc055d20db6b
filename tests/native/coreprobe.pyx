"""What happens to a core from outside, on a driven engine: the disk fills up, the storage engine stalls. And
a slow twin that looks at every message.

The server's watch thread and RocksDB say both; a driven engine has no such thread, and a stall can't be had
on order.
"""

from libc.stdint cimport uint32_t

from fila_server.core.state.directory cimport directory_from, directory_next
from fila_server.core.state.kinds cimport DELAYED, LEASED, READY
from fila_server.core.state.open_core cimport OpenCore
from fila_server.core.state.paths cimport frame_offset, share_find
from fila_server.core.state.state cimport Channel, Directory, Frame, Lease, Queue, Share, Slot
from fila_server.core.storage.families cimport Store
from fila_server.core.storage.status cimport STORE_OK, STORE_STALLED
from fila_server.core.structures.fifo cimport Placed, fifo_first
from fila_server.core.structures.maps cimport textmap_get, textmap_next


def disk_becomes(OpenCore engine not None, int level):
    """From the next pass on: 0 roomy, 1 low (enqueues are refused), 2 critical (nothing is written)."""
    engine.core.shared.disk_level = level


def store_stalls(OpenCore engine not None, bint stalls):
    """Refuse every write as RocksDB does while it can't flush as fast as it is written to, or no longer.

    Nothing is synced meanwhile: do not commit, it would say that something was.
    """
    cdef Store* store = engine.core.store
    cdef int call
    store.muted = stalls
    for call in range(4):
        store.reported[call] = STORE_STALLED if stalls else STORE_OK


cdef _slow_ages(Channel* channel):
    """Since when the oldest waits; the lease that began first, and since when it runs. None for nothing.

    Lease ids tell which began first: the wall clock may have been set back between two of them."""
    cdef Directory* directory = &channel.queue.directory
    cdef uint32_t cell = directory_from(directory, 0)
    cdef Frame* frame
    cdef Share* share
    cdef Slot* slot
    cdef uint32_t i
    waiting, leased = [], []
    while True:
        frame = directory_next(directory, &cell)
        if frame == NULL:
            return min(waiting, default=None), min(leased, default=None)
        share = share_find(frame, channel)
        for i in range(frame.count if share != NULL else 0):
            slot = &share.slots[i]
            if slot.state == READY or (slot.state == DELAYED and slot.attempts):
                since = frame.appended_ms + frame.entries[i].enqueued_delta_ms
                if frame.first_due_ms != NULL and frame_offset(frame, i) >= channel.log_below:
                    since = max(since, frame.first_due_ms[i])
                waiting.append(since)
            elif slot.state == LEASED:
                leased.append(((<Lease*> slot.owner).lease_id, (<Lease*> slot.owner).leased_ms))


def wrong_ages(OpenCore engine not None):
    """What the core keeps of ages, where it is not what a look at every message finds: for each such channel,
    its queue and name, what was found, and what is kept. A failed message that is being decided may keep its
    lease's moment."""
    cdef uint32_t cursor = 0
    cdef Queue* queue
    cdef Channel* channel
    cdef Placed* first
    wrong = []
    while True:
        queue = <Queue*> textmap_next(&engine.core.queues, &cursor)
        if queue == NULL:
            return wrong
        channel = queue.channels
        while channel != NULL:
            found = _slow_ages(channel)
            first = fifo_first(&channel.waiting)
            kept = (
                first.position if first != NULL else None,
                (channel.groups.first_lease_id, channel.groups.leased_ms) if channel.groups != NULL else None,
            )
            is_wrong = kept[0] != found[0] or (kept[1] is None) != (found[1] is None)
            if kept[1] is not None and found[1] is not None:
                # Its group has the leases that began with it, and those before it may have ended.
                is_wrong = is_wrong or kept[1][0] > found[1][0]
                if engine.core.decisions.count == 0:
                    is_wrong = is_wrong or kept[1][1] != found[1][1]
            elif kept[1] is not None:
                is_wrong = kept[0] != found[0] or engine.core.decisions.count == 0
            if is_wrong:
                name = queue.text.bytes[:queue.text.length], channel.text.bytes[:channel.text.length]
                wrong.append((*name, found, kept))
            channel = channel.next


def array_capacities(OpenCore engine not None, bytes name not None):
    """How many places each array has that grows with what there is, of the core and of this queue's first
    channel."""
    cdef Queue* queue = <Queue*> textmap_get(&engine.core.queues, name, <uint32_t> len(name))
    cdef Channel* channel = queue.channels
    return {
        "frames": queue.directory.capacity, "keys": queue.keys.capacity,
        "deferred turns": channel.ring.deferred_capacity, "leases": engine.core.leases.capacity,
        "timers": engine.core.timers.capacity, "weights brought": engine.core.brought_capacity,
        "messages built": engine.core.spare_capacity, "bytes moved": engine.core.moved_bytes_capacity,
    }
