"""The edge has validated names, numbers and how many there are; what is checked here is state."""

from libc.stdint cimport uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memmove, memset

from fila_server.core.admin.runtime_config cimport (
    limit_keep, throttle_forms_delete, throttle_forms_put, throttle_terms,
)
from fila_server.core.formats.limit_records cimport limit_put, limit_read
from fila_server.core.lifecycle.answers cimport answer, answer_status
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport (
    DELETE_LIMIT, FAILED_PRECONDITION, LIST_LIMITS, NOT_FOUND, OK, SET_LIMIT,
)
from fila_server.core.protocol.protobuf cimport (
    FIXED64, put_double_field, put_nested, put_number_field, put_tag, put_text_field,
    put_timestamp_field,
)
from fila_server.core.scheduling.following cimport following_open_ms, key_follows, terms_follow
from fila_server.core.scheduling.limits cimport limit_find, limit_of, limit_says_something, limit_set
from fila_server.core.scheduling.parts cimport parts_refill
from fila_server.core.scheduling.throttle cimport (
    limit_nearest, throttle_key_drop_if_idle, throttle_key_intern,
)
from fila_server.core.scheduling.tokens cimport bucket_set, bucket_used, bucket_wake
from fila_server.core.state.limits cimport Limit, LimitTerms
from fila_server.core.state.paths cimport budget_clock_ms
from fila_server.core.state.state cimport ThrottleKey
from fila_server.core.structures.bucket cimport bucket_refill
from fila_server.core.structures.buffer cimport Buffer, buffer_free, buffer_init, must_malloc, put_bytes
from fila_server.core.structures.ledger cimport Ledger, ledger_ends_ms, ledger_init, ledger_reset
from fila_server.core.structures.maps cimport textmap_get, textmap_next

cdef enum:
    LISTED_DEFAULT = 100


cdef inline Slice _text(const char* at, uint32_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, length
    return s


cdef void limit_command(Core* core, Command* command, Fields* fields) noexcept nogil:
    if command.kind == SET_LIMIT:
        _set(core, command, fields)
    elif command.kind == DELETE_LIMIT:
        _delete(core, command, fields)
    elif command.kind == LIST_LIMITS:
        _list(core, command, fields)
    else:
        _reset(core, command, fields)


# --- set and deleted ---------------------------------------------------------------------------

cdef void _set(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef LimitTerms terms
    cdef Slice name
    cdef Limit* limit
    cdef Buffer b
    cdef Buffer inner
    limit_read(fields.text[v1.SET_LIMIT_REQUEST_LIMIT], &name, &terms)
    limit = limit_of(core, name)
    limit_set(core, limit, &terms)
    if not limit.is_pattern:
        throttle_forms_put(core, limit)
    limit_keep(core, limit)
    buffer_init(&b)
    buffer_init(&inner)
    limit_put(&inner, limit)
    put_nested(&b, v1.SET_LIMIT_RESPONSE_LIMIT, &inner)
    buffer_free(&inner)
    answer(core, command.token, OK, &b, True)


cdef void _no_limit(Core* core, Command* command, const char* form, Slice name) noexcept nogil:
    cdef char text[640]
    snprintf(text, sizeof(text), form, <int> name.length, name.at)
    answer_status(core, command.token, NOT_FOUND, text, b"LIMIT_NOT_FOUND")


cdef void _delete(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef Slice name = fields.text[v1.DELETE_LIMIT_REQUEST_LIMIT_NAME]
    cdef Limit* limit = limit_find(core, name)
    cdef LimitTerms nothing
    cdef Buffer b
    if limit == NULL:
        _no_limit(
            core, command, b"limit_name: there is no limit \"%.*s\"; ListLimits tells those there are", name)
        return
    memset(&nothing, 0, sizeof(LimitTerms))
    if not limit.is_pattern:
        throttle_forms_delete(core, limit)
    limit_set(core, limit, &nothing)
    buffer_init(&b)
    answer(core, command.token, OK, &b, True)


cdef void limit_recover(Core* core, Slice name, Slice record) noexcept nogil:
    """A Fila that knew no limits may have changed the short form since, and then that counts."""
    cdef LimitTerms terms
    cdef Slice named
    cdef Limit* limit
    if record.length == 0 or name.length == 0:
        return
    limit_read(_text(record.at + 1, record.length - 1), &named, &terms)
    limit = limit_of(core, name)
    limit.recorded = True
    if not limit.is_pattern and (limit.has_rate or limit.has_burst or (
        terms.rate_count == 1 and not terms.rates[0].in_cost
    )):
        throttle_terms(limit, &terms)
    limit_set(core, limit, &terms)


# --- how they are ------------------------------------------------------------------------------

cdef void _put_key(Core* core, Buffer* b, const LimitTerms* terms, ThrottleKey* key) noexcept nogil:
    """What it has now; where there is no such key, what a new one would have. A key that a change of its
    pattern has not reached yet says what it counts by."""
    cdef Ledger ledger
    cdef uint32_t i
    if key != NULL and key.charged and key.parts == NULL:
        bucket_refill(&key.bucket, core.mono_ns, key.waiters != NULL)
        _put_tokens(b, key.bucket.level)
    elif key != NULL and key.charged:
        parts_refill(core, key)
        terms = &key.parts.terms
        for i in range(terms.rate_count):
            _put_tokens(b, key.bucket.level if i == 0 else key.parts.more[i - 1].level)
    else:
        for i in range(terms.rate_count):
            _put_tokens(b, terms.rates[i].burst)
    if key != NULL:
        put_number_field(b, v1.LIMIT_STATE_IN_FLIGHT, key.in_flight)
    if terms.amount > 0:
        if key != NULL and key.parts != NULL:
            ledger = key.parts.ledger
        else:
            ledger_init(&ledger, terms.amount, terms.period_ms, terms.anchor_ms, budget_clock_ms(core))
        put_double_field(b, v1.LIMIT_STATE_SPENT, ledger.spent)
        put_timestamp_field(b, v1.LIMIT_STATE_PERIOD_ENDS_AT, ledger_ends_ms(&ledger))
    if key != NULL and key_follows(key):
        _put_learned(core, b, key)
    elif terms_follow(terms):
        put_double_field(
            b, v1.LIMIT_STATE_LEARNED_PER_SECOND,
            max(terms.least, min(terms.most, terms.rates[0].per_second)))


cdef void _put_learned(Core* core, Buffer* b, ThrottleKey* key) noexcept nogil:
    put_double_field(b, v1.LIMIT_STATE_LEARNED_PER_SECOND, key.parts.learned.rate)
    if key.parts.learned.open_ns > core.mono_ns:
        put_timestamp_field(b, v1.LIMIT_STATE_CLOSED_UNTIL, following_open_ms(core, key))
    if key.parts.refused_ms:
        put_timestamp_field(b, v1.LIMIT_STATE_REFUSED_AT, key.parts.refused_ms)


cdef void _put_tokens(Buffer* b, double level) noexcept nogil:
    """Of a list 0 is told, too. It stands unpacked, which every parser takes."""
    put_tag(b, v1.LIMIT_STATE_TOKENS, FIXED64)
    put_bytes(b, &level, 8)


cdef void _put_state(Core* core, Buffer* b, uint32_t field, Limit* limit, Slice key_name) noexcept nogil:
    cdef Buffer inner
    cdef Buffer state
    buffer_init(&inner)
    buffer_init(&state)
    limit_put(&inner, limit)
    put_nested(&state, v1.LIMIT_STATE_LIMIT, &inner)
    buffer_free(&inner)
    if key_name.length:
        put_text_field(&state, v1.LIMIT_STATE_THROTTLE_KEY, key_name)
        _put_key(core, &state, &limit.terms, <ThrottleKey*> textmap_get(
            &core.throttle_keys, key_name.at, key_name.length))
    put_number_field(&state, v1.LIMIT_STATE_WAITING, limit.waiting)
    put_number_field(&state, v1.LIMIT_STATE_PASSED_TOTAL, limit.passed)
    put_number_field(&state, v1.LIMIT_STATE_HELD_TOTAL, limit.stopped)
    put_number_field(&state, v1.LIMIT_STATE_WOULD_HOLD_TOTAL, limit.would_hold)
    put_number_field(&state, v1.LIMIT_STATE_THROTTLE_KEYS, limit.instance_count)
    put_nested(b, field, &state)
    buffer_free(&state)


cdef int _order(const Limit* a, Slice b) noexcept nogil:
    cdef int order = memcmp(a.text.bytes, b.at, min(a.text.length, b.length))
    if order:
        return order
    return -1 if a.text.length < b.length else a.text.length > b.length


cdef uint32_t _place_of(Limit** rows, uint32_t count, Limit* limit) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = count
    cdef uint32_t middle
    while low < high:
        middle = (low + high) // 2
        if _order(rows[middle], _text(limit.text.bytes, limit.text.length)) < 0:
            low = middle + 1
        else:
            high = middle
    return low


cdef uint32_t _page(Core* core, Slice prefix, Slice after, Limit** rows, uint32_t most) noexcept nogil:
    """The first of those behind `after`, in order."""
    cdef uint32_t cursor = 0
    cdef uint32_t count = 0
    cdef uint32_t at
    cdef Limit* limit
    while True:
        limit = <Limit*> textmap_next(&core.limit_table.by_name, &cursor)
        if limit == NULL:
            return count
        if (
            not limit_says_something(&limit.terms) or limit.text.length < prefix.length
            or memcmp(limit.text.bytes, prefix.at, prefix.length) != 0
            or (after.length and _order(limit, after) <= 0)
        ):
            continue
        at = _place_of(rows, count, limit)
        if at == most:
            continue
        count = min(count + 1, most)
        memmove(&rows[at + 1], &rows[at], (count - 1 - at) * sizeof(void*))
        rows[at] = limit


cdef void _list(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef Slice key_name = fields.text[v1.LIST_LIMITS_REQUEST_THROTTLE_KEY]
    cdef uint32_t most = <uint32_t> fields.number[v1.LIST_LIMITS_REQUEST_MAX_LIMITS]
    cdef Limit** rows
    cdef Limit* limit
    cdef uint32_t count, i
    cdef Buffer b
    buffer_init(&b)
    if key_name.length:
        limit = limit_nearest(core, key_name)
        if limit_says_something(&limit.terms):
            _put_state(core, &b, v1.LIST_LIMITS_RESPONSE_LIMITS, limit, key_name)
        answer(core, command.token, OK, &b, False)
        return
    most = most if most else LISTED_DEFAULT
    rows = <Limit**> must_malloc((most + 1) * sizeof(void*))
    count = _page(
        core, fields.text[v1.LIST_LIMITS_REQUEST_PREFIX], fields.text[v1.LIST_LIMITS_REQUEST_AFTER], rows,
        most + 1)
    for i in range(min(count, most)):
        limit = rows[i]
        _put_state(
            core, &b, v1.LIST_LIMITS_RESPONSE_LIMITS, limit,
            _text(limit.text.bytes, 0 if limit.is_pattern else limit.text.length))
    put_number_field(&b, v1.LIST_LIMITS_RESPONSE_MORE, count > most)
    free(rows)
    answer(core, command.token, OK, &b, False)


# --- what counts as used -----------------------------------------------------------------------

cdef void _reset(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef Slice name = fields.text[v1.RESET_LIMIT_REQUEST_THROTTLE_KEY]
    cdef Limit* limit = limit_nearest(core, name)
    cdef ThrottleKey* key
    cdef double spent
    cdef Buffer b
    if not limit_says_something(&limit.terms):
        _no_limit(
            core, command, b"throttle_key: no limit is set for \"%.*s\"; ListLimits tells those there are",
            name)
        return
    if limit.terms.amount == 0:
        answer_status(
            core, command.token, FAILED_PRECONDITION,
            b"throttle_key: its limit has no budget, so nothing is counted that could be reset; set one with "
            b"SetLimit",
            b"LIMIT_WITHOUT_BUDGET")
        return
    memcpy(&spent, &fields.number[v1.RESET_LIMIT_REQUEST_SPENT], 8)
    key = throttle_key_intern(core, name)
    bucket_set(core, key, limit)                # a change of the pattern may not have reached it yet
    parts_refill(core, key)
    ledger_reset(&key.parts.ledger, spent)
    bucket_used(core, key)
    bucket_wake(core, key)
    buffer_init(&b)
    _put_state(core, &b, v1.RESET_LIMIT_RESPONSE_LIMIT, limit, name)
    throttle_key_drop_if_idle(core, key)
    answer(core, command.token, OK, &b, True)
