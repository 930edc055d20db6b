"""Values are kept as text beside what they mean, since a list shows them as they were set."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, qsort, strtod
from libc.string cimport memchr, memcmp, memcpy, memset

from fila_server.core.lifecycle.answers cimport answer, answer_status
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport INVALID_ARGUMENT, NOT_FOUND, OK
from fila_server.core.protocol.protobuf cimport put_nested, put_number_field, put_text_field
from fila_server.core.scheduling.throttle cimport throttle_key_intern
from fila_server.core.scheduling.tokens cimport bucket_set
from fila_server.core.state.pending cimport ConfigRow
from fila_server.core.state.state cimport ThrottleKey
from fila_server.core.storage.families cimport CONFIG
from fila_server.core.storage.store cimport batch_delete, batch_put
from fila_server.core.structures.buffer cimport Buffer, buffer_free, buffer_init, must_malloc, put_bytes
from fila_server.core.structures.maps cimport Text, textmap_get, textmap_next, textmap_put, textmap_remove


cdef inline Slice _text(const char* at, uint32_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, length
    return s


cdef bint _starts(Slice text, const char* prefix, uint32_t length) noexcept nogil:
    return text.length >= length and memcmp(text.at, prefix, length) == 0


cdef ConfigRow* _row(Core* core, Slice name) noexcept nogil:
    return <ConfigRow*> textmap_get(&core.config, name.at, name.length)


cdef bint _number(const char* at, uint32_t length, double* value) noexcept nogil:
    cdef char digits[64]
    cdef char* end
    cdef uint32_t i
    if length == 0 or length >= 64:
        return False
    for i in range(length):
        # strtod would also take spaces, hexadecimal, inf and nan.
        if not (
                c'0' <= at[i] <= c'9' or at[i] == c'.' or at[i] == c'e' or at[i] == c'E' or at[i] == c'+'
                or at[i] == c'-'):
            return False
    memcpy(digits, at, length)
    digits[length] = 0
    value[0] = strtod(digits, &end)
    return end == digits + length and value[0] == value[0] and value[0] <= 1e300 and value[0] >= 0


cdef bint _burst_good(double burst) noexcept nogil:
    return burst == 0 or burst >= 1


cdef bint _throttle_parse(
        Slice name, Slice value, Slice* bucket, double* rate, double* burst, int* form) noexcept nogil:
    """`throttle.<key>` = "rate,burst", or `throttle:<key>:rate` and `throttle:<key>:burst`.

    form: 0 no throttle key at all, 1 both, 2 rate, 3 burst. False: a bad value.
    """
    cdef uint32_t i, comma = 0
    form[0] = 0
    if _starts(name, b"throttle.", 9) and name.length > 9:
        form[0] = 1
        bucket[0] = _text(name.at + 9, name.length - 9)
    elif (
        _starts(name, b"throttle:", 9) and name.length > 14
        and memcmp(name.at + name.length - 5, b":rate", 5) == 0
    ):
        form[0] = 2
        bucket[0] = _text(name.at + 9, name.length - 14)
    elif (
        _starts(name, b"throttle:", 9) and name.length > 15
        and memcmp(name.at + name.length - 6, b":burst", 6) == 0
    ):
        form[0] = 3
        bucket[0] = _text(name.at + 9, name.length - 15)
    if form[0] == 0 or value.length == 0:
        return True
    if form[0] == 2:
        return _number(value.at, value.length, rate)
    if form[0] == 3:
        return _number(value.at, value.length, burst) and _burst_good(burst[0])
    for i in range(value.length):
        if value.at[i] == c',':
            comma = i
            break
    if comma == 0:
        return False
    return (
        _number(value.at, comma, rate) and _number(value.at + comma + 1, value.length - comma - 1, burst)
        and _burst_good(burst[0])
    )


cdef void config_apply(Core* core, Slice name, Slice value) noexcept nogil:
    """Keep a row of the runtime config in memory, and turn what is a throttle into its bucket."""
    cdef ConfigRow* row = _row(core, name)
    cdef Slice bucket_name
    cdef ThrottleKey* bucket
    cdef double rate = 0
    cdef double burst = 0
    cdef int form
    cdef char* bytes
    if row != NULL:
        textmap_remove(&core.config, &row.text)
        free(row.value)
        free(row)
    if value.length:
        row = <ConfigRow*> must_malloc(sizeof(ConfigRow) + name.length)
        memset(row, 0, sizeof(ConfigRow))
        bytes = <char*> row + sizeof(ConfigRow)
        memcpy(bytes, name.at, name.length)
        row.text.bytes = bytes
        row.text.length = name.length
        row.value = <char*> must_malloc(value.length)
        memcpy(row.value, value.at, value.length)
        row.length = value.length
        textmap_put(&core.config, &row.text)
    if not _throttle_parse(name, value, &bucket_name, &rate, &burst, &form) or form == 0:
        return
    bucket = throttle_key_intern(core, bucket_name)
    if form == 1 or form == 2:
        bucket.has_rate = value.length > 0
        bucket.rate = rate
    if form == 1 or form == 3:
        bucket.has_burst = value.length > 0
        bucket.burst = burst
    if value.length == 0:               # an empty value on any of the forms removes the limit
        bucket.has_rate = bucket.has_burst = False
    bucket_set(core, bucket)


cdef void _config_store(Core* core, Slice name, Slice value) noexcept nogil:
    if value.length:
        batch_put(core.store, core.settles, CONFIG, name.at, name.length, value.at, value.length)
    else:
        batch_delete(core.store, core.settles, CONFIG, name.at, name.length)
    config_apply(core, name, value)


cdef Slice _join(Buffer* b, const char* prefix, Slice middle, const char* suffix) noexcept nogil:
    cdef size_t n = 0
    b.length = 0
    while prefix[n]:
        n += 1
    put_bytes(b, prefix, n)
    put_bytes(b, middle.at, middle.length)
    n = 0
    while suffix[n]:
        n += 1
    put_bytes(b, suffix, n)
    return _text(b.data, <uint32_t> b.length)


cdef void _store_parts(Core* core, Buffer* b, Slice bucket, Slice value) noexcept nogil:
    """Rate and burst of "rate,burst", each under its own key."""
    cdef Slice burst
    cdef uint32_t comma = 0
    while comma < value.length and value.at[comma] != c',':
        comma += 1
    burst = _text(value.at + comma + 1, value.length - comma - 1)
    _config_store(core, _join(b, b"throttle:", bucket, b":rate"), _text(value.at, comma))
    _config_store(core, _join(b, b"throttle:", bucket, b":burst"), burst)


cdef inline bint _has_star(Slice bucket) noexcept nogil:
    """It would limit the one throttle key of that very name, and look like a pattern."""
    return memchr(bucket.at, c'*', bucket.length) != NULL


cdef void config_set(Core* core, Command* command, Fields* fields) noexcept nogil:
    """Both forms of a throttle are kept in step, so that each reads back what the other set."""
    cdef Slice name = fields.text[v1.SET_CONFIG_REQUEST_KEY]
    cdef Slice value = fields.text[v1.SET_CONFIG_REQUEST_VALUE]
    cdef Slice bucket
    cdef Slice rate_text
    cdef Slice burst_text
    cdef double rate = 0
    cdef double burst = 0
    cdef int form
    cdef bint good
    cdef ConfigRow* other
    cdef Buffer b
    cdef Buffer both
    good = _throttle_parse(name, value, &bucket, &rate, &burst, &form)
    if form == 0 and value.length and (_starts(name, b"throttle.", 9) or _starts(name, b"throttle:", 9)):
        # Stored, it would limit nothing and look as if it did. An empty value still takes away one from
        # before.
        answer_status(
            core, command.token, INVALID_ARGUMENT,
            b"key: a throttle is throttle.<key>, or throttle:<key>:rate and throttle:<key>:burst; "
            b"other keys must not start with \"throttle.\" or \"throttle:\"", b"INVALID_FIELD")
        return
    if form and value.length and _has_star(bucket):
        answer_status(
            core, command.token, INVALID_ARGUMENT,
            b"key: a throttle limits one throttle key, and a * in it is no pattern: set throttle.<key> once "
            b"for each key that messages name", b"INVALID_FIELD")
        return
    if not good:
        answer_status(
            core, command.token, INVALID_ARGUMENT,
            b"value: a throttle is \"rate,burst\" with rate >= 0 and burst >= 1 (or burst 0 to stop), "
            b"finite numbers", b"INVALID_FIELD")
        return
    buffer_init(&b)
    buffer_init(&both)
    if form and value.length == 0:
        _config_store(core, _join(&b, b"throttle.", bucket, b""), value)
        _config_store(core, _join(&b, b"throttle:", bucket, b":rate"), value)
        _config_store(core, _join(&b, b"throttle:", bucket, b":burst"), value)
    elif form == 1:
        _config_store(core, name, value)
        _store_parts(core, &b, bucket, value)
    elif form:
        _config_store(core, name, value)
        other = _row(core, _join(&b, b"throttle:", bucket, b":burst" if form == 2 else b":rate"))
        if other != NULL:
            rate_text = value if form == 2 else _text(other.value, other.length)
            burst_text = _text(other.value, other.length) if form == 2 else value
            put_bytes(&both, rate_text.at, rate_text.length)
            put_bytes(&both, b",", 1)
            put_bytes(&both, burst_text.at, burst_text.length)
            _config_store(
                core, _join(&b, b"throttle.", bucket, b""), _text(both.data, <uint32_t> both.length))
    else:
        _config_store(core, name, value)
    buffer_free(&b)
    buffer_free(&both)
    answer(core, command.token, OK, &b, True)


cdef void config_get(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef ConfigRow* row = _row(core, fields.text[v1.GET_CONFIG_REQUEST_KEY])
    cdef Buffer buffer
    cdef char text[384]
    if row == NULL:
        snprintf(
            text, sizeof(text), b"config key \"%.*s\" is not set; ListConfig shows those that are",
            <int> fields.text[v1.GET_CONFIG_REQUEST_KEY].length, fields.text[v1.GET_CONFIG_REQUEST_KEY].at)
        answer_status(core, command.token, NOT_FOUND, text, b"CONFIG_KEY_NOT_FOUND")
        return
    buffer_init(&buffer)
    put_text_field(&buffer, v1.GET_CONFIG_RESPONSE_VALUE, _text(row.value, row.length))
    answer(core, command.token, OK, &buffer, False)


cdef int _by_text(const void* a, const void* b) noexcept nogil:
    cdef Text* x = &(<ConfigRow**> a)[0].text
    cdef Text* y = &(<ConfigRow**> b)[0].text
    cdef int order = memcmp(x.bytes, y.bytes, min(x.length, y.length))
    if order:
        return order
    return -1 if x.length < y.length else x.length > y.length


cdef void config_list(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef Slice prefix = fields.text[v1.LIST_CONFIG_REQUEST_PREFIX]
    cdef ConfigRow** rows = <ConfigRow**> must_malloc((core.config.count + 1) * sizeof(void*))
    cdef ConfigRow* row
    cdef uint32_t cursor = 0
    cdef int64_t count = 0
    cdef int64_t i
    cdef Buffer buffer
    cdef Buffer entry
    while True:
        row = <ConfigRow*> textmap_next(&core.config, &cursor)
        if row == NULL:
            break
        if _starts(_text(row.text.bytes, row.text.length), prefix.at, prefix.length):
            rows[count] = row
            count += 1
    qsort(rows, count, sizeof(void*), _by_text)
    buffer_init(&buffer)
    buffer_init(&entry)
    for i in range(count):
        entry.length = 0
        put_text_field(&entry, v1.CONFIG_ENTRY_KEY, _text(rows[i].text.bytes, rows[i].text.length))
        put_text_field(&entry, v1.CONFIG_ENTRY_VALUE, _text(rows[i].value, rows[i].length))
        put_nested(&buffer, v1.LIST_CONFIG_RESPONSE_ENTRIES, &entry)
    put_number_field(&buffer, v1.LIST_CONFIG_RESPONSE_TOTAL_COUNT, <uint64_t> count)
    buffer_free(&entry)
    free(rows)
    answer(core, command.token, OK, &buffer, False)
