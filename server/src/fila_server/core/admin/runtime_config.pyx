"""Values are kept as text beside what they mean, since a list shows them as they were set."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, qsort, strtod
from libc.string cimport memchr, memcmp, memcpy, memset

from fila_server.core.formats.limit_records cimport (
    config_record_put, limit_record_delete, limit_record_put,
)
from fila_server.core.lifecycle.answers cimport answer, answer_status
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport INVALID_ARGUMENT, NOT_FOUND, OK
from fila_server.core.protocol.protobuf cimport put_nested, put_number_field, put_text_field
from fila_server.core.scheduling.limits cimport limit_find, limit_of, limit_says_something, limit_set
from fila_server.core.scheduling.parts cimport terms_are_plain
from fila_server.core.state.limits cimport LimitTerms
from fila_server.core.state.pending cimport ConfigRow
from fila_server.core.structures.buffer cimport (
    Buffer, buffer_free, buffer_init, must_malloc, put_bytes, put_slice,
)
from fila_server.core.structures.maps cimport Text, textmap_get, textmap_next, textmap_put, textmap_remove

cdef enum:
    PATTERN_SHOWN_MAX = 200         # bytes of a throttle's name in a sentence


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


cdef inline bint _has_star(Slice bucket) noexcept nogil:
    """It would limit the one throttle key of that very name, and look like a pattern."""
    return memchr(bucket.at, c'*', bucket.length) != NULL


cdef void _row_put(Core* core, Slice name, Slice value) noexcept nogil:
    """In memory; an empty value takes it away."""
    cdef ConfigRow* row = _row(core, name)
    cdef char* bytes
    if row != NULL:
        textmap_remove(&core.config, &row.text)
        free(row.value)
        free(row)
    if value.length == 0:
        return
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


cdef void _row_store(Core* core, Slice name, Slice value) noexcept nogil:
    config_record_put(core, name, value)
    _row_put(core, name, value)


cdef void config_apply(Core* core, Slice name, Slice value) noexcept nogil:
    cdef Slice bucket
    cdef double rate = 0
    cdef double burst = 0
    cdef int form
    _row_put(core, name, value)
    if _throttle_parse(name, value, &bucket, &rate, &burst, &form) and form and not _has_star(bucket):
        _throttle_apply(core, bucket, form, value.length > 0, rate, burst)


cdef void _throttle_apply(
        Core* core, Slice bucket, int form, bint is_set, double rate, double burst) noexcept nogil:
    """A short form is a limit's rates: its other parts stay."""
    cdef Limit* limit
    cdef LimitTerms terms
    if not is_set and limit_find(core, bucket) == NULL:
        return
    limit = limit_of(core, bucket)
    if form == 1 or form == 2:
        limit.has_rate, limit.half_rate = is_set, rate
    if form == 1 or form == 3:
        limit.has_burst, limit.half_burst = is_set, burst
    if not is_set:                      # an empty value of any of the forms takes the rate away
        limit.has_rate = limit.has_burst = False
    terms = limit.terms
    throttle_terms(limit, &terms)
    limit_set(core, limit, &terms)


cdef void throttle_terms(const Limit* limit, LimitTerms* terms) noexcept nogil:
    terms.rate_count = 1 if limit.has_rate and limit.has_burst else 0
    if terms.rate_count:
        terms.rates[0].per_second = limit.half_rate if limit.half_burst > 0 else 0
        terms.rates[0].burst = limit.half_burst
        terms.rates[0].in_cost = False


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


cdef void _forms_store(Core* core, Slice bucket, Slice rate, Slice burst) noexcept nogil:
    """All forms of a throttle, so that each reads back what another one set; what is empty goes."""
    cdef Buffer b
    cdef Buffer both
    buffer_init(&b)
    buffer_init(&both)
    if rate.length and burst.length:
        put_bytes(&both, rate.at, rate.length)
        put_bytes(&both, b",", 1)
        put_bytes(&both, burst.at, burst.length)
    _row_store(core, _join(&b, b"throttle.", bucket, b""), _text(both.data, <uint32_t> both.length))
    _row_store(core, _join(&b, b"throttle:", bucket, b":rate"), rate)
    _row_store(core, _join(&b, b"throttle:", bucket, b":burst"), burst)
    buffer_free(&b)
    buffer_free(&both)


cdef Slice _decimal(char* to, size_t size, double number) noexcept nogil:
    """As short as it reads back the same."""
    cdef int length = snprintf(to, size, b"%.15g", number)
    if strtod(to, NULL) != number:
        length = snprintf(to, size, b"%.17g", number)
    return _text(to, <uint32_t> length)


cdef void throttle_forms_put(Core* core, Limit* limit) noexcept nogil:
    cdef const LimitTerms* terms = &limit.terms
    cdef Slice name = _text(limit.text.bytes, limit.text.length)
    cdef bint is_short = terms.rate_count == 1 and not terms.rates[0].in_cost
    cdef LimitTerms said
    cdef char rate[64]
    cdef char burst[64]
    throttle_terms(limit, &said)
    if is_short and said.rate_count and (
        said.rates[0].per_second == terms.rates[0].per_second and said.rates[0].burst == terms.rates[0].burst
    ):
        return                          # in whatever words
    limit.has_rate = limit.has_burst = is_short
    if is_short:
        limit.half_rate, limit.half_burst = terms.rates[0].per_second, terms.rates[0].burst
        _forms_store(
            core, name, _decimal(rate, sizeof(rate), limit.half_rate),
            _decimal(burst, sizeof(burst), limit.half_burst))
    else:
        _forms_store(core, name, _text(b"", 0), _text(b"", 0))


cdef void throttle_forms_delete(Core* core, Limit* limit) noexcept nogil:
    limit.has_rate = limit.has_burst = False
    _forms_store(core, _text(limit.text.bytes, limit.text.length), _text(b"", 0), _text(b"", 0))


cdef void limit_keep(Core* core, Limit* limit) noexcept nogil:
    if limit.is_pattern or (limit_says_something(&limit.terms) and not terms_are_plain(&limit.terms)):
        limit_record_put(core, limit)
    else:
        limit_record_delete(core, limit)


cdef Slice _half_row(Core* core, Slice bucket, const char* suffix) noexcept nogil:
    cdef Buffer b
    cdef ConfigRow* row
    buffer_init(&b)
    row = _row(core, _join(&b, b"throttle:", bucket, suffix))
    buffer_free(&b)
    return _text(row.value, row.length) if row != NULL else _text(b"", 0)


cdef void _throttle_set(
        Core* core, Slice value, Slice bucket, int form, double rate, double burst) noexcept nogil:
    cdef uint32_t comma = 0
    cdef Buffer b
    cdef Limit* limit
    buffer_init(&b)                     # the other half, which goes with its row
    if value.length == 0:
        _forms_store(core, bucket, value, value)
    elif form == 1:
        while value.at[comma] != c',':
            comma += 1
        _forms_store(
            core, bucket, _text(value.at, comma), _text(value.at + comma + 1, value.length - comma - 1))
    else:
        put_slice(&b, _half_row(core, bucket, b":burst" if form == 2 else b":rate"))
        if form == 2:
            _forms_store(core, bucket, value, _text(b.data, <uint32_t> b.length))
        else:
            _forms_store(core, bucket, _text(b.data, <uint32_t> b.length), value)
    buffer_free(&b)
    _throttle_apply(core, bucket, form, value.length > 0, rate, burst)
    limit = limit_find(core, bucket)
    if limit != NULL:
        limit_keep(core, limit)


cdef void _refuse_pattern(Core* core, Command* command, Slice bucket) noexcept nogil:
    cdef char text[PATTERN_SHOWN_MAX + 256]
    snprintf(
        text, sizeof(text),
        b"key: a throttle limits one throttle key, and a * in it is no pattern; fila limit set '%.*s' "
        b"--rate 5/s (SetLimit) limits every key that begins so, each for itself",
        <int> min(bucket.length, <uint32_t> PATTERN_SHOWN_MAX), bucket.at)
    answer_status(core, command.token, INVALID_ARGUMENT, text, b"INVALID_FIELD")


cdef void config_set(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef Slice name = fields.text[v1.SET_CONFIG_REQUEST_KEY]
    cdef Slice value = fields.text[v1.SET_CONFIG_REQUEST_VALUE]
    cdef Slice bucket
    cdef double rate = 0
    cdef double burst = 0
    cdef int form
    cdef bint good
    cdef Buffer b
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
        _refuse_pattern(core, command, bucket)
        return
    if not good:
        answer_status(
            core, command.token, INVALID_ARGUMENT,
            b"value: a throttle is \"rate,burst\" with rate >= 0 and burst >= 1 (or burst 0 to stop), "
            b"finite numbers", b"INVALID_FIELD")
        return
    if form:
        _throttle_set(core, value, bucket, form, rate, burst)
    else:
        _row_store(core, name, value)
    buffer_init(&b)
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
