"""A line keeps its place among its bucket's lines while somebody stands in it or a token of it is
spoken for.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.scheduling.clocks cimport clock_note
from fila_server.core.scheduling.throttle cimport throttle_key_drop_if_idle
from fila_server.core.scheduling.waits cimport sub_is_held
from fila_server.core.state.state cimport Channel, Flow
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.fifo cimport fifo_first
from fila_server.core.structures.heap cimport heap_insert, heap_remove


cdef void waiters_join(Core* core, Subqueue* sub, ThrottleKey* bucket, bint front) noexcept nogil:
    cdef Channel* channel = sub.flow.channel
    cdef Waiters* waiters = bucket.waiters
    cdef Waiters* last = NULL
    while waiters != NULL and waiters.channel != channel:
        last = waiters
        waiters = waiters.next
    if waiters == NULL:
        waiters = <Waiters*> must_malloc(sizeof(Waiters))
        memset(waiters, 0, sizeof(Waiters))
        waiters.bucket = bucket
        waiters.channel = channel
        if last == NULL:
            bucket.waiters = waiters
        else:
            last.next = waiters
    if sub.node.in_heap:
        sub.flow.subqueues.eligible = heap_remove(sub.flow.subqueues.eligible, &sub.node)
    sub.waiters = waiters
    if front:
        sub.prev = NULL
        sub.next = waiters.head
        if waiters.head != NULL:
            waiters.head.prev = sub
        else:
            waiters.tail = sub
        waiters.head = sub
    else:
        sub.next = NULL
        sub.prev = waiters.tail
        if waiters.tail != NULL:
            waiters.tail.next = sub
        else:
            waiters.head = sub
        waiters.tail = sub
    clock_note(core, sub.flow)
    sub.waiting_since_ms = core.mono_ms
    sub_is_held(core, sub)
    sub.flow.subqueues.waiting += sub.count
    waiters.count += 1
    waiters.messages += sub.count
    bucket.waiting += 1
    bucket.stopped += 1


cdef void waiters_drop_if_empty(Core* core, Waiters* waiters) noexcept nogil:
    cdef ThrottleKey* bucket = waiters.bucket
    cdef Waiters* before = bucket.waiters
    if waiters.count or waiters.woken:
        return
    if before == waiters:
        bucket.waiters = waiters.next
    else:
        while before.next != waiters:
            before = before.next
        before.next = waiters.next
    free(waiters)
    throttle_key_drop_if_idle(core, bucket)


cdef void waiters_leave(Core* core, Subqueue* sub) noexcept nogil:
    cdef Waiters* waiters = sub.waiters
    if sub.prev != NULL:
        sub.prev.next = sub.next
    else:
        waiters.head = sub.next
    if sub.next != NULL:
        sub.next.prev = sub.prev
    else:
        waiters.tail = sub.prev
    sub.next = sub.prev = NULL
    sub.waiters = NULL
    sub.waiting_ms += core.mono_ms - sub.waiting_since_ms
    clock_note(core, sub.flow)
    sub.flow.subqueues.waiting -= sub.count
    waiters.count -= 1
    waiters.messages -= sub.count
    waiters.bucket.waiting -= 1
    waiters_drop_if_empty(core, waiters)


cdef void claim_begins(Waiters* waiters) noexcept nogil:
    cdef Channel* channel = waiters.channel
    waiters.woken += 1
    if waiters.woken > 1:
        return
    waiters.next_woken = channel.woken_waiters
    waiters.prev_woken = NULL
    if channel.woken_waiters != NULL:
        channel.woken_waiters.prev_woken = waiters
    channel.woken_waiters = waiters


cdef void claim_ends(Waiters* waiters) noexcept nogil:
    waiters.woken -= 1
    if waiters.woken:
        return
    if waiters.next_woken != NULL:
        waiters.next_woken.prev_woken = waiters.prev_woken
    if waiters.prev_woken != NULL:
        waiters.prev_woken.next_woken = waiters.next_woken
    else:
        waiters.channel.woken_waiters = waiters.next_woken


cdef void subqueue_rank(Subqueue* sub) noexcept nogil:
    cdef Flow* flow = sub.flow
    cdef int64_t position
    if sub.waiters != NULL:
        return
    position = fifo_first(&sub.fifo).position
    if sub.node.in_heap:
        if sub.node.rank == position:
            return
        flow.subqueues.eligible = heap_remove(flow.subqueues.eligible, &sub.node)
    sub.node.rank = position
    flow.subqueues.eligible = heap_insert(flow.subqueues.eligible, &sub.node)
