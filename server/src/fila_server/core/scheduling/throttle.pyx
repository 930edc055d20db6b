"""Keys and sets are interned by text and counted by who names them."""

from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.state.kinds cimport TIMER_BUCKET
from fila_server.core.structures.buffer cimport must_malloc, put_bytes, put_u32be
from fila_server.core.structures.maps cimport textmap_get, textmap_put, textmap_remove
from fila_server.core.structures.timers cimport timer_cancel


cdef ThrottleKey* throttle_key_intern(Core* core, Slice name) noexcept nogil:
    cdef ThrottleKey* found = <ThrottleKey*> textmap_get(&core.throttle_keys, name.at, name.length)
    cdef char* bytes
    if found == NULL:
        found = <ThrottleKey*> must_malloc(sizeof(ThrottleKey) + name.length)
        memset(found, 0, sizeof(ThrottleKey))
        bytes = <char*> found + sizeof(ThrottleKey)
        memcpy(bytes, name.at, name.length)
        found.text.bytes = bytes
        found.text.length = name.length
        found.timer.kind = TIMER_BUCKET
        textmap_put(&core.throttle_keys, &found.text)
    return found


cdef void throttle_key_drop_if_idle(Core* core, ThrottleKey* bucket) noexcept nogil:
    if bucket.refs or bucket.has_rate or bucket.has_burst or bucket.waiters != NULL or bucket.dirty:
        return
    timer_cancel(&core.timers, &bucket.timer)
    textmap_remove(&core.throttle_keys, &bucket.text)
    free(bucket)


cdef bint _below(Slice a, Slice b) noexcept nogil:
    cdef uint32_t n = a.length if a.length < b.length else b.length
    cdef int order = memcmp(a.at, b.at, n)
    return order < 0 or (order == 0 and a.length < b.length)


cdef ThrottleSet* set_intern(Core* core, const Slice* names, uint32_t count) noexcept nogil:
    """The set of these keys (at most 16, repeated ones count once),
    with one more reference; NULL for none."""
    cdef Slice sorted_[16]
    cdef uint32_t i, j, kept = 0
    cdef Slice name
    cdef ThrottleSet* found
    cdef char* bytes
    cdef bint repeated
    for i in range(count):
        name = names[i]
        repeated = False
        for j in range(kept):
            if sorted_[j].length == name.length and memcmp(sorted_[j].at, name.at, name.length) == 0:
                repeated = True
                break
        if repeated:
            continue
        j = kept
        while j > 0 and _below(name, sorted_[j - 1]):
            sorted_[j] = sorted_[j - 1]
            j -= 1
        sorted_[j] = name
        kept += 1
    if kept == 0:
        return NULL
    core.scratch.length = 0
    for i in range(kept):
        put_u32be(&core.scratch, sorted_[i].length)
        put_bytes(&core.scratch, sorted_[i].at, sorted_[i].length)
    found = <ThrottleSet*> textmap_get(&core.throttle_sets, core.scratch.data, <uint32_t> core.scratch.length)
    if found == NULL:
        found = <ThrottleSet*> must_malloc(sizeof(ThrottleSet) + core.scratch.length)
        memset(found, 0, sizeof(ThrottleSet))
        bytes = <char*> found + sizeof(ThrottleSet)
        memcpy(bytes, core.scratch.data, core.scratch.length)
        found.text.bytes = bytes
        found.text.length = <uint32_t> core.scratch.length
        found.count = kept
        for i in range(kept):
            found.members[i] = throttle_key_intern(core, sorted_[i])
            found.members[i].refs += 1
        textmap_put(&core.throttle_sets, &found.text)
    found.refs += 1
    return found


cdef void set_release(Core* core, ThrottleSet* set) noexcept nogil:
    cdef uint32_t i
    set.refs -= 1
    if set.refs:
        return
    for i in range(set.count):
        set.members[i].refs -= 1
        throttle_key_drop_if_idle(core, set.members[i])
    textmap_remove(&core.throttle_sets, &set.text)
    free(set)
