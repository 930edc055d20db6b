"""Hot bodies stand on one list in order of last use."""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.storage.families cimport FRAMES
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.threads.reader cimport loader_ask


cdef void _unlink(Core* core, Body* body) noexcept nogil:
    if body.newer != NULL:
        body.newer.older = body.older
    elif core.newest == body:
        core.newest = body.older
    if body.older != NULL:
        body.older.newer = body.newer
    elif core.oldest == body:
        core.oldest = body.newer
    body.newer = body.older = NULL


cdef void _link_newest(Core* core, Body* body) noexcept nogil:
    body.older = core.newest
    if core.newest != NULL:
        core.newest.newer = body
    core.newest = body
    if core.oldest == NULL:
        core.oldest = body


cdef Body* body_new(Core* core, Frame* frame, char* bytes, uint32_t length) noexcept nogil:
    cdef Body* body = <Body*> must_malloc(sizeof(Body))
    memset(body, 0, sizeof(Body))
    body.refs = 1
    body.bytes = bytes
    body.length = length
    body.frame = frame
    frame.body = body
    core.hot_bytes += length + sizeof(Body)
    _link_newest(core, body)
    failures_go_on(core, frame)
    return body


cdef void failures_go_on(Core* core, Frame* frame) noexcept nogil:
    """What failed and waited for the frame's bytes has its turn, in the order in which it failed."""
    cdef Decision* newest = frame.failures
    if newest == NULL:
        return
    frame.failures = NULL
    if core.unasked_last == NULL:
        core.unasked = newest.next
    else:
        core.unasked_last.next = newest.next
    core.unasked_last = newest
    newest.next = NULL


cdef void failure_waits(Frame* frame, Decision* decision) noexcept nogil:
    if frame.failures == NULL:
        decision.next = decision
    else:
        decision.next = frame.failures.next
        frame.failures.next = decision
    frame.failures = decision


cdef void body_release(Core* core, Body* body) noexcept nogil:
    body.refs -= 1
    if body.refs == 0:
        _unlink(core, body)
        core.hot_bytes -= body.length + sizeof(Body)
        free(body.bytes)
        free(body)


cdef void body_touch(Core* core, Body* body) noexcept nogil:
    if core.newest != body:
        _unlink(core, body)
        _link_newest(core, body)


cdef void bodies_evict(Core* core) noexcept nogil:
    """Give bytes up until the budget holds.

    Newest first: what arrived last is delivered last, so the oldest backlog stays hot. What was
    read back once is about to be delivered, and what a delivery holds can't go.
    """
    cdef Body* body = core.newest
    cdef Body* older
    cdef uint32_t looked = 0
    while core.hot_bytes > core.hot_bytes_max and body != NULL and looked < 4096:
        older = body.older
        looked += 1
        if (
            body.refs == 1 and body.frame != NULL and (not body.frame.loaded_seen or looked > 64)
            and (body.frame.revealed or not core.shared.in_group)       # else the store does not have it yet
        ):
            body.frame.body = NULL
            body.frame.loaded_seen = False
            core.counters.evictions += 1
            body_release(core, body)
        body = older


cdef void frame_want(Core* core, Frame* frame) noexcept nogil:
    if frame.body == NULL and not frame.loading:
        frame.loading = True
        core.counters.loads += 1
        loader_ask(core.loader, FRAMES, frame.queue.number, frame.first_offset)
