"""Levels are written with the pass that changed them, so a crash gives nothing a second time."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fila_server.core.formats.records cimport (
    BUCKET_BYTES, LIMIT_NAMES, VERSION, VERSION_LIMIT, VERSION_PARTS,
)
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.feedback cimport FEEDBACK_MS_MAX
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, next_field, put_double_field, put_nested, put_number_field, put_text_field,
)
from fila_server.core.state.limits cimport RATES_MAX, LimitRate
from fila_server.core.state.paths cimport budget_clock_ms
from fila_server.core.storage.families cimport BUCKETS, CONFIG
from fila_server.core.storage.store cimport batch_delete, batch_put
from fila_server.core.structures.bucket cimport Bucket, bucket_refill
from fila_server.core.structures.buffer cimport (
    Cursor, buffer_free, buffer_init, put_bytes, put_u8, put_zigzag, take_slice, take_u8, take_zigzag,
)
from fila_server.core.structures.ledger cimport Ledger, ledger_recover, ledger_starts_ms

cdef int64_t AWAY_MAX_MS = 366 * 86400000LL


# --- as a message ------------------------------------------------------------------------------

cdef void _unit_put(Buffer* b, uint32_t field, bint in_cost) noexcept nogil:
    put_number_field(b, field, v1.LIMIT_UNIT_COST if in_cost else v1.LIMIT_UNIT_MESSAGES)


cdef void limit_put(Buffer* b, const Limit* limit) noexcept nogil:
    cdef const LimitTerms* terms = &limit.terms
    cdef Slice name
    cdef Buffer inner
    cdef uint32_t i
    buffer_init(&inner)
    name.at, name.length = limit.text.bytes, limit.text.length
    put_text_field(b, v1.LIMIT_NAME, name)
    for i in range(terms.rate_count):
        inner.length = 0
        put_double_field(&inner, v1.RATE_PER_SECOND, terms.rates[i].per_second)
        put_double_field(&inner, v1.RATE_BURST, terms.rates[i].burst)
        _unit_put(&inner, v1.RATE_UNIT, terms.rates[i].in_cost)
        put_nested(b, v1.LIMIT_RATES, &inner)
    put_number_field(b, v1.LIMIT_MAX_IN_FLIGHT, terms.slots)
    if terms.amount > 0:
        inner.length = 0
        put_double_field(&inner, v1.BUDGET_AMOUNT, terms.amount)
        put_number_field(&inner, v1.BUDGET_PERIOD_MS, <uint64_t> terms.period_ms)
        put_number_field(&inner, v1.BUDGET_ANCHOR_MS, <uint64_t> terms.anchor_ms)
        _unit_put(&inner, v1.BUDGET_UNIT, terms.budget_in_cost)
        put_nested(b, v1.LIMIT_BUDGET, &inner)
    if terms.most > 0:
        inner.length = 0
        put_double_field(&inner, v1.LEARN_MIN, terms.least)
        put_double_field(&inner, v1.LEARN_MAX, terms.most)
        put_nested(b, v1.LIMIT_LEARN, &inner)
    put_number_field(b, v1.LIMIT_SHADOW, terms.shadow)
    buffer_free(&inner)


cdef inline double _double(Fields* fields, uint32_t field) noexcept nogil:
    cdef double value
    memcpy(&value, &fields.number[field], 8)
    return value


cdef void _rate_read(Slice text, LimitRate* rate) noexcept nogil:
    cdef Fields fields
    fields_parse(&fields, text.at, text.length)
    rate.per_second = _double(&fields, v1.RATE_PER_SECOND)
    rate.burst = _double(&fields, v1.RATE_BURST)
    rate.in_cost = fields.number[v1.RATE_UNIT] == v1.LIMIT_UNIT_COST


cdef void _budget_read(Slice text, LimitTerms* terms) noexcept nogil:
    cdef Fields fields
    fields_parse(&fields, text.at, text.length)
    terms.amount = _double(&fields, v1.BUDGET_AMOUNT)
    terms.period_ms = max(<int64_t> fields.number[v1.BUDGET_PERIOD_MS], <int64_t> 1)
    terms.anchor_ms = <int64_t> fields.number[v1.BUDGET_ANCHOR_MS]
    terms.budget_in_cost = fields.number[v1.BUDGET_UNIT] == v1.LIMIT_UNIT_COST


cdef void _learn_read(Slice text, LimitTerms* terms) noexcept nogil:
    cdef Fields fields
    fields_parse(&fields, text.at, text.length)
    terms.least = _double(&fields, v1.LEARN_MIN)
    terms.most = _double(&fields, v1.LEARN_MAX)


cdef void limit_read(Slice message, Slice* name, LimitTerms* terms) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    memset(terms, 0, sizeof(LimitTerms))
    name.at, name.length = message.at, 0
    c.at, c.end, c.bad = message.at, message.at + message.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.LIMIT_NAME:
            name[0] = text
        elif field == v1.LIMIT_RATES and terms.rate_count < RATES_MAX:
            _rate_read(text, &terms.rates[terms.rate_count])
            terms.rate_count += 1
        elif field == v1.LIMIT_MAX_IN_FLIGHT:
            terms.slots = <uint32_t> number
        elif field == v1.LIMIT_BUDGET:
            _budget_read(text, terms)
        elif field == v1.LIMIT_LEARN:
            _learn_read(text, terms)
        elif field == v1.LIMIT_SHADOW:
            terms.shadow = number != 0


# --- limits ------------------------------------------------------------------------------------

cdef void _limit_key(Buffer* b, const Limit* limit) noexcept nogil:
    b.length = 0
    put_u8(b, LIMIT_NAMES)
    put_bytes(b, limit.text.bytes, limit.text.length)


cdef void limit_record_put(Core* core, Limit* limit) noexcept nogil:
    cdef Buffer value
    buffer_init(&value)
    put_u8(&value, VERSION_LIMIT)
    limit_put(&value, limit)
    _limit_key(&core.tail, limit)
    batch_put(core.store, core.settles, BUCKETS, core.tail.data, core.tail.length, value.data, value.length)
    buffer_free(&value)
    limit.recorded = True


cdef void limit_record_delete(Core* core, Limit* limit) noexcept nogil:
    if limit.recorded:
        _limit_key(&core.tail, limit)
        batch_delete(core.store, core.settles, BUCKETS, core.tail.data, core.tail.length)
        limit.recorded = False


# --- the clock of budgets ----------------------------------------------------------------------
# Under LIMIT_NAMES and no name, which a Fila that knows no such record passes over.

cdef void _clock_record_put(Core* core, const Ledger* ledger) noexcept nogil:
    """What says that its period has begun is deleted. Otherwise a clock set back and a restart together would
    begin the one before again."""
    cdef Limit nameless
    cdef Buffer value
    if core.limit_table.recorded_ms >= ledger_starts_ms(ledger):
        return
    core.limit_table.recorded_ms = budget_clock_ms(core)
    buffer_init(&value)
    put_u8(&value, VERSION_LIMIT)
    put_zigzag(&value, core.limit_table.recorded_ms)
    nameless.text.length = 0
    _limit_key(&core.tail, &nameless)
    batch_put(core.store, core.settles, BUCKETS, core.tail.data, core.tail.length, value.data, value.length)
    buffer_free(&value)


cdef void clock_record_read(Core* core, Slice record) noexcept nogil:
    cdef Cursor c
    c.at, c.end, c.bad = record.at, record.at + record.length, False
    take_u8(&c)
    core.limit_table.recorded_ms = take_zigzag(&c)
    if not c.bad:
        core.limit_table.newest_ms = max(core.limit_table.newest_ms, core.limit_table.recorded_ms)


# --- what is used of them ----------------------------------------------------------------------

cdef inline Bucket* _rate(ThrottleKey* key, uint32_t i) noexcept nogil:
    return &key.bucket if i == 0 else &key.parts.more[i - 1]


cdef inline int64_t _refilled_ms(Core* core, Bucket* bucket) noexcept nogil:
    return core.wall_ms - (core.mono_ns - bucket.refilled_ns) // 1000000


cdef void bucket_record_put(Core* core, ThrottleKey* key) noexcept nogil:
    cdef char plain[BUCKET_BYTES]
    cdef Buffer* b = &core.tail
    cdef int64_t wall_ms
    cdef uint32_t i
    if not key.charged:
        if key.recorded:
            bucket_record_delete(core, key)
        return
    key.recorded = True
    if key.parts == NULL:
        wall_ms = _refilled_ms(core, &key.bucket)
        plain[0] = VERSION
        memcpy(plain + 1, &key.bucket.level, 8)
        memcpy(plain + 9, &wall_ms, 8)
        batch_put(core.store, core.settles, BUCKETS, key.text.bytes, key.text.length, plain, BUCKET_BYTES)
        return
    b.length = 0
    put_u8(b, VERSION_PARTS)
    put_u8(b, <unsigned char> key.parts.terms.rate_count)
    for i in range(key.parts.terms.rate_count):
        wall_ms = _refilled_ms(core, _rate(key, i))
        put_bytes(b, &_rate(key, i).level, 8)
        put_bytes(b, &wall_ms, 8)
    put_u8(b, key.parts.terms.amount > 0)
    if key.parts.terms.amount > 0:
        put_bytes(b, &key.parts.ledger.spent, 8)
        put_zigzag(b, key.parts.ledger.period)
    if key.parts.terms.most > 0:
        put_bytes(b, &key.parts.learned.rate, 8)
        put_bytes(b, &key.parts.learned.near, 8)
        put_zigzag(b, core.wall_ms + (key.parts.learned.open_ns - core.mono_ns) // 1000000)
    batch_put(core.store, core.settles, BUCKETS, key.text.bytes, key.text.length, b.data, b.length)


cdef void config_record_put(Core* core, Slice name, Slice value) noexcept nogil:
    if value.length:
        batch_put(core.store, core.settles, CONFIG, name.at, name.length, value.at, value.length)
    else:
        batch_delete(core.store, core.settles, CONFIG, name.at, name.length)


cdef void bucket_record_delete(Core* core, ThrottleKey* key) noexcept nogil:
    if key.parts != NULL and key.parts.terms.amount > 0:
        _clock_record_put(core, &key.parts.ledger)
    batch_delete(core.store, core.settles, BUCKETS, key.text.bytes, key.text.length)
    key.recorded = False


cdef void _level_read(Core* core, Bucket* bucket, const char* at) noexcept nogil:
    cdef double level
    cdef int64_t wall_ms, away_ms
    memcpy(&level, at, 8)
    memcpy(&wall_ms, at + 8, 8)
    away_ms = min(max(core.wall_ms - wall_ms, <int64_t> 0), AWAY_MAX_MS)
    bucket.level = min(level, bucket.burst)
    bucket.refilled_ns = core.mono_ns - away_ms * 1000000
    bucket_refill(bucket, core.mono_ns, False)


cdef void bucket_record_read(Core* core, ThrottleKey* key, const char* value, size_t length) noexcept nogil:
    cdef Cursor c
    cdef uint32_t count, i
    cdef Slice level
    cdef double spent
    cdef int64_t period
    key.recorded = True
    if not key.charged or length == 0:
        return
    c.at, c.end, c.bad = value, value + length, False
    if take_u8(&c) == VERSION:
        level = take_slice(&c, 16)
        if not c.bad and (key.parts == NULL or key.parts.terms.rate_count):
            _level_read(core, &key.bucket, level.at)
        return
    count = take_u8(&c)
    for i in range(count):
        level = take_slice(&c, 16)
        if not c.bad and i < (1 if key.parts == NULL else key.parts.terms.rate_count):
            _level_read(core, _rate(key, i), level.at)
    if take_u8(&c):
        level = take_slice(&c, 8)
        period = take_zigzag(&c)
        if not c.bad and key.parts != NULL and key.parts.terms.amount > 0:
            memcpy(&spent, level.at, 8)
            ledger_recover(&key.parts.ledger, period, spent, budget_clock_ms(core))
    if key.parts != NULL and key.parts.terms.most > 0 and c.at < c.end:
        _learned_read(core, key, &c)


cdef void _learned_read(Core* core, ThrottleKey* key, Cursor* c) noexcept nogil:
    """Recovery puts it in force. A clock that was set back closes nothing for longer than a provider may."""
    cdef Slice learned = take_slice(c, 16)
    cdef int64_t closed_ms = take_zigzag(c) - core.wall_ms
    if not c.bad:
        memcpy(&key.parts.learned.rate, learned.at, 8)
        memcpy(&key.parts.learned.near, learned.at + 8, 8)
        key.parts.learned.open_ns = core.mono_ns + min(closed_ms, <int64_t> FEEDBACK_MS_MAX) * 1000000
