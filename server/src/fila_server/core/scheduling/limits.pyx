"""A walk goes through a limit's own list of keys: who leaves the list moves the walk on, and who joins has
the newest terms already."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.formats.limit_records cimport limit_record_delete
from fila_server.core.history.changes cimport limit_changed
from fila_server.core.scheduling.throttle cimport limit_nearest
from fila_server.core.scheduling.tokens cimport bucket_set
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.limits cimport LIMIT_NAME_BYTES_MAX, LimitTable
from fila_server.core.state.state cimport ThrottleKey
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport (
    textmap_get, textmap_init, textmap_next, textmap_put, textmap_remove,
)


cdef void limits_init(Core* core) noexcept nogil:
    memset(&core.limit_table, 0, sizeof(LimitTable))
    textmap_init(&core.limit_table.by_name)


cdef void limits_reported(Core* core) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Limit* limit = <Limit*> textmap_next(&core.limit_table.by_name, &cursor)
    while limit != NULL:
        limit_changed(core, limit)
        limit = <Limit*> textmap_next(&core.limit_table.by_name, &cursor)


cdef Limit* limit_find(Core* core, Slice name) noexcept nogil:
    return <Limit*> textmap_get(&core.limit_table.by_name, name.at, name.length)


cdef Limit* limit_of(Core* core, Slice name) noexcept nogil:
    cdef Limit* limit = limit_find(core, name)
    cdef char* bytes
    if limit != NULL:
        return limit
    limit = <Limit*> must_malloc(sizeof(Limit) + name.length)
    memset(limit, 0, sizeof(Limit))
    bytes = <char*> limit + sizeof(Limit)
    memcpy(bytes, name.at, name.length)
    limit.text.bytes, limit.text.length = bytes, name.length
    limit.is_pattern = name.length > 0 and name.at[name.length - 1] == c'*'
    textmap_put(&core.limit_table.by_name, &limit.text)
    return limit


cdef bint limit_says_something(const LimitTerms* terms) noexcept nogil:
    return terms.rate_count > 0 or terms.slots > 0 or terms.amount > 0


cdef inline Slice _text(const char* at, uint32_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, length
    return s


# --- walks -------------------------------------------------------------------------------------

cdef void _walk(Core* core, Limit* limit) noexcept nogil:
    """Each of its keys is looked at anew, from the first."""
    cdef LimitTable* table = &core.limit_table
    limit.walked = limit.instances
    if limit.is_changing:
        return
    limit.is_changing = True
    limit.next_changing = NULL
    if table.changing_last != NULL:
        table.changing_last.next_changing = limit
    else:
        table.changing = limit
    table.changing_last = limit


cdef void _look(Core* core, ThrottleKey* key) noexcept nogil:
    cdef Limit* nearest = limit_nearest(core, _text(key.text.bytes, key.text.length))
    if nearest != &core.limit_table.none or key.limit != nearest:
        bucket_set(core, key, nearest)


cdef bint limits_turn(Core* core) noexcept nogil:
    cdef LimitTable* table = &core.limit_table
    cdef Limit* limit = table.changing
    cdef ThrottleKey* key
    while limit != NULL and stage_goes_on(core):
        key = <ThrottleKey*> limit.walked
        if key != NULL:
            limit.walked = key.next_of_limit
            core.counters.work += 1 + key.waiting
            _look(core, key)
            continue
        table.changing = limit.next_changing
        if table.changing == NULL:
            table.changing_last = NULL
        limit.is_changing = False
        if limit.is_going:
            free(limit)
        limit = table.changing
    return limit != NULL


# --- changes -----------------------------------------------------------------------------------

cdef Limit* _shorter(Core* core, Limit* limit) noexcept nogil:
    """The next shorter pattern that its beginning has, or none: what a throttle key would have that begins
    like it but for its last byte, and goes on with one that no UTF-8 has, so that no limit has its name."""
    cdef char text[LIMIT_NAME_BYTES_MAX + 1]
    cdef uint32_t length = limit.text.length - 1
    if length == 0:
        return &core.limit_table.none
    memcpy(text, limit.text.bytes, length - 1)
    text[length - 1] = <char> 0xFF
    return limit_nearest(core, _text(text, length))


cdef void _pattern_appears(Core* core, Limit* limit) noexcept nogil:
    cdef LimitTable* table = &core.limit_table
    cdef uint32_t length = limit.text.length - 1
    _walk(core, _shorter(core, limit))      # its keys may have this one now
    table.patterns[length] += 1
    table.longest = max(table.longest, length)


cdef void _pattern_goes(Core* core, Limit* limit) noexcept nogil:
    cdef LimitTable* table = &core.limit_table
    table.patterns[limit.text.length - 1] -= 1
    while table.longest and table.patterns[table.longest] == 0:
        table.longest -= 1
    textmap_remove(&table.by_name, &limit.text)
    limit_record_delete(core, limit)
    limit.is_going = True
    _walk(core, limit)


cdef void _exact_changes(Core* core, Limit* limit) noexcept nogil:
    cdef ThrottleKey* key = <ThrottleKey*> textmap_get(
        &core.throttle_keys, limit.text.bytes, limit.text.length)
    if key != NULL:
        _look(core, key)


cdef void limit_set(Core* core, Limit* limit, const LimitTerms* terms) noexcept nogil:
    cdef bint said = limit_says_something(&limit.terms)
    cdef bint says = limit_says_something(terms)
    limit.terms = terms[0]
    limit_changed(core, limit)
    if limit.is_pattern:
        if says and said:
            _walk(core, limit)
        elif says:
            _pattern_appears(core, limit)
        elif said:
            _pattern_goes(core, limit)
        return
    if not (says or limit.has_rate or limit.has_burst):
        textmap_remove(&core.limit_table.by_name, &limit.text)
        limit_record_delete(core, limit)
    _exact_changes(core, limit)
    if not (says or limit.has_rate or limit.has_burst):
        free(limit)
