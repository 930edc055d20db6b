"""A line keeps its place among its bucket's lines while somebody stands in it or a token of it is
spoken for.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.scheduling.clocks cimport clock_note, sub_is_held
from fila_server.core.scheduling.fifo cimport fifo_first
from fila_server.core.scheduling.throttle cimport throttle_key_drop_if_idle
from fila_server.core.state.state cimport Channel, Flow
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.heap cimport heap_insert, heap_remove


cdef void line_join(Core* core, Subqueue* sub, ThrottleKey* bucket, bint front) noexcept nogil:
    cdef Channel* channel = sub.flow.channel
    cdef Line* line = bucket.lines
    cdef Line* last = NULL
    while line != NULL and line.channel != channel:
        last = line
        line = line.next
    if line == NULL:
        line = <Line*> must_malloc(sizeof(Line))
        memset(line, 0, sizeof(Line))
        line.bucket = bucket
        line.channel = channel
        if last == NULL:
            bucket.lines = line
        else:
            last.next = line
    if sub.node.in_heap:
        sub.flow.subqueues.eligible = heap_remove(sub.flow.subqueues.eligible, &sub.node)
    sub.line = line
    if front:
        sub.prev = NULL
        sub.next = line.head
        if line.head != NULL:
            line.head.prev = sub
        else:
            line.tail = sub
        line.head = sub
    else:
        sub.next = NULL
        sub.prev = line.tail
        if line.tail != NULL:
            line.tail.next = sub
        else:
            line.head = sub
        line.tail = sub
    clock_note(core, sub.flow)
    sub.line_since_ms = core.mono_ms
    sub_is_held(core, sub)
    sub.flow.subqueues.in_lines += sub.count
    line.count += 1
    bucket.in_lines += 1
    bucket.stopped += 1


cdef void line_drop_if_empty(Core* core, Line* line) noexcept nogil:
    cdef ThrottleKey* bucket = line.bucket
    cdef Line* before = bucket.lines
    if line.count or line.woken:
        return
    if before == line:
        bucket.lines = line.next
    else:
        while before.next != line:
            before = before.next
        before.next = line.next
    free(line)
    throttle_key_drop_if_idle(core, bucket)


cdef void line_leave(Core* core, Subqueue* sub) noexcept nogil:
    cdef Line* line = sub.line
    if sub.prev != NULL:
        sub.prev.next = sub.next
    else:
        line.head = sub.next
    if sub.next != NULL:
        sub.next.prev = sub.prev
    else:
        line.tail = sub.prev
    sub.next = sub.prev = NULL
    sub.line = NULL
    sub.line_ms += core.mono_ms - sub.line_since_ms
    clock_note(core, sub.flow)
    sub.flow.subqueues.in_lines -= sub.count
    line.count -= 1
    line.bucket.in_lines -= 1
    line_drop_if_empty(core, line)


cdef void claim_begins(Line* line) noexcept nogil:
    cdef Channel* channel = line.channel
    line.woken += 1
    if line.woken > 1:
        return
    line.next_woken = channel.woken_lines
    line.prev_woken = NULL
    if channel.woken_lines != NULL:
        channel.woken_lines.prev_woken = line
    channel.woken_lines = line


cdef void claim_ends(Line* line) noexcept nogil:
    line.woken -= 1
    if line.woken:
        return
    if line.next_woken != NULL:
        line.next_woken.prev_woken = line.prev_woken
    if line.prev_woken != NULL:
        line.prev_woken.next_woken = line.next_woken
    else:
        line.channel.woken_lines = line.next_woken


cdef void subqueue_rank(Subqueue* sub) noexcept nogil:
    cdef Flow* flow = sub.flow
    cdef int64_t position
    if sub.line != NULL:
        return
    position = fifo_first(&sub.fifo).position
    if sub.node.in_heap:
        if sub.node.rank == position:
            return
        flow.subqueues.eligible = heap_remove(flow.subqueues.eligible, &sub.node)
    sub.node.rank = position
    flow.subqueues.eligible = heap_insert(flow.subqueues.eligible, &sub.node)
