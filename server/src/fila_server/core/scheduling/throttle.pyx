"""Keys and sets are interned by text and counted by who names them. A pattern is looked for once a key, by as
many lookups as there are lengths of patterns."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.formats.limit_records cimport bucket_record_delete
from fila_server.core.scheduling.parts cimport parts_are_full, parts_configure, parts_full_ns
from fila_server.core.state.kinds cimport TIMER_BUCKET
from fila_server.core.state.limits cimport LIMIT_NAME_BYTES_MAX, LimitTable
from fila_server.core.structures.buffer cimport must_malloc, put_bytes, put_u32be
from fila_server.core.structures.maps cimport textmap_get, textmap_put, textmap_remove
from fila_server.core.structures.timers cimport timer_cancel, timer_set

cdef int64_t LONGEST_WAIT_NS = <int64_t> 86400 * 1000000000
cdef int64_t IDLE_AT_LEAST_NS = 1000000000


# --- which limit a key has -------------------------------------------------------------------

cdef Limit* limit_nearest(Core* core, Slice name) noexcept nogil:
    cdef LimitTable* table = &core.limit_table
    cdef Limit* found = <Limit*> textmap_get(&table.by_name, name.at, name.length)
    cdef char text[LIMIT_NAME_BYTES_MAX + 1]
    cdef uint32_t length = min(name.length, table.longest)
    if found != NULL and not found.is_pattern:
        return found
    memcpy(text, name.at, length)
    while True:
        if table.patterns[length]:
            text[length] = c'*'
            found = <Limit*> textmap_get(&table.by_name, text, length + 1)
            if found != NULL and found.is_pattern:
                return found
        if length == 0:
            return &table.none
        length -= 1


cdef void throttle_key_belongs(Core* core, ThrottleKey* key, Limit* limit) noexcept nogil:
    cdef Limit* before = key.limit
    if before != limit:
        if before != NULL:
            _leave(key)
        key.limit = limit
        key.prev_of_limit = NULL
        key.next_of_limit = <ThrottleKey*> limit.instances
        if key.next_of_limit != NULL:
            key.next_of_limit.prev_of_limit = key
        limit.instances = key
        limit.instance_count += 1
        limit.waiting += key.waiting
    if limit.terms.rate_count or limit.terms.slots or limit.terms.amount > 0:
        parts_configure(core, key, &limit.terms)
        key.charged, key.limited = True, not limit.terms.shadow
    else:
        free(key.parts)
        key.parts = NULL
        key.charged = key.limited = False


cdef void _leave(ThrottleKey* key) noexcept nogil:
    cdef Limit* limit = key.limit
    if limit.walked == key:
        limit.walked = key.next_of_limit
    if key.next_of_limit != NULL:
        key.next_of_limit.prev_of_limit = key.prev_of_limit
    if key.prev_of_limit != NULL:
        key.prev_of_limit.next_of_limit = key.next_of_limit
    else:
        limit.instances = key.next_of_limit
    limit.instance_count -= 1
    limit.waiting -= key.waiting


# --- keys ------------------------------------------------------------------------------------

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
        throttle_key_belongs(core, found, limit_nearest(core, name))
    return found


cdef void _listed(Core* core, ThrottleKey* key) noexcept nogil:
    cdef LimitTable* table = &core.limit_table
    key.idle = True
    key.newer, key.older = NULL, <ThrottleKey*> table.idle_newest
    if key.older != NULL:
        key.older.newer = key
    else:
        table.idle_oldest = key
    table.idle_newest = key
    table.idle_count += 1


cdef void _unlisted(Core* core, ThrottleKey* key) noexcept nogil:
    cdef LimitTable* table = &core.limit_table
    if not key.idle:
        return
    key.idle = False
    timer_cancel(&core.timers, &key.timer)
    if key.newer != NULL:
        key.newer.older = key.older
    else:
        table.idle_newest = key.older
    if key.older != NULL:
        key.older.newer = key.newer
    else:
        table.idle_oldest = key.newer
    table.idle_count -= 1


cdef void _free(Core* core, ThrottleKey* key) noexcept nogil:
    _unlisted(core, key)
    timer_cancel(&core.timers, &key.timer)
    if key.recorded:
        bucket_record_delete(core, key)
    _leave(key)
    textmap_remove(&core.throttle_keys, &key.text)
    free(key.parts)
    free(key)


cdef inline bint _is_needed(ThrottleKey* key) noexcept nogil:
    return key.refs or key.in_flight or key.waiters != NULL or key.dirty


cdef void throttle_key_drop_if_idle(Core* core, ThrottleKey* key) noexcept nogil:
    if _is_needed(key):
        return
    if not key.charged:
        _free(core, key)
    elif key.limit.is_pattern and not key.idle:     # as many others as there are limits stay
        _listed(core, key)
        _look_later(core, key)
        while core.limit_table.idle_count > IDLE_MAX:
            _free(core, <ThrottleKey*> core.limit_table.idle_oldest)


cdef void _look_later(Core* core, ThrottleKey* key) noexcept nogil:
    cdef int64_t due_ns = max(parts_full_ns(core, key), core.mono_ns + IDLE_AT_LEAST_NS)
    timer_set(&core.timers, &key.timer, min(due_ns, core.mono_ns + LONGEST_WAIT_NS))


cdef void throttle_key_look(Core* core, ThrottleKey* key) noexcept nogil:
    if parts_are_full(core, key):
        _free(core, key)
    else:
        _look_later(core, key)


# --- sets ------------------------------------------------------------------------------------

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
            _unlisted(core, found.members[i])
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
