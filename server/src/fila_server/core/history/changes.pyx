from libc.stdint cimport int32_t, uint32_t
from libc.stdio cimport snprintf

from fila_server.core.history.decisions cimport decisions_reported, records
from fila_server.core.state.paths cimport key_cap, key_committed, key_rate_limit
from fila_server.core.state.limits cimport LimitTerms
from fila_server.core.structures.maps cimport Text, text_hash
from fila_server.core.threads.blocks cimport (
    CHANGES_MAX, TEXT_BYTES_MAX, TEXT_BYTES_PER_ROW, Block, History, block_end, block_has_texts, block_text,
)

cdef enum:
    VALUE_BYTES_MAX = TEXT_BYTES_MAX // 2       # of settings: more is left out


cdef inline int32_t _named(Core* core, const Text* text) noexcept nogil:
    return block_text(core.history, text.bytes, text.length, text.hash)


cdef inline int32_t _words(Core* core, const char* at, size_t length) noexcept nogil:
    return block_text(core.history, at, <uint32_t> length, text_hash(at, length)) if length else 0


cdef uint32_t _row(Core* core, int kind, size_t value_bytes) noexcept nogil:
    """A new row that says nothing yet, with room for its texts."""
    cdef History* history = core.history
    cdef Block* b = history.current
    cdef uint32_t row
    if (
        b.changes >= CHANGES_MAX or not block_has_texts(b)
        or b.text_bytes + TEXT_BYTES_PER_ROW + value_bytes > TEXT_BYTES_MAX
    ):
        decisions_reported(core)
        block_end(history)
        b = history.current
    if b.first_ms == 0:
        b.first_ms = core.wall_ms
    b.last_ms = core.wall_ms
    row = b.changes
    b.change_at_us[row] = core.wall_ms * 1000
    b.change_pass[row] = <long long> core.counters.passes
    b.change_kind[row] = <unsigned char> kind
    b.change_queue[row] = b.change_channel[row] = b.change_name[row] = b.change_value[row] = 0
    b.change_rate[row] = b.change_burst[row] = -1
    b.changes += 1
    return row


cdef void _of_channel(Core* core, uint32_t row, Channel* channel) noexcept nogil:
    cdef History* history = core.history
    cdef Block* b = history.current
    b.change_queue[row] = _named(core, &channel.queue.text)
    b.change_channel[row] = _named(core, &channel.text)


cdef void limit_changed(Core* core, const Limit* limit) noexcept nogil:
    cdef History* history = core.history
    cdef const LimitTerms* terms = &limit.terms
    cdef Block* b
    cdef char value[512]
    cdef uint32_t row, i
    cdef int length
    if not records(core):
        return
    row = _row(core, CHANGED_LIMIT, sizeof(value))
    b = history.current
    b.change_name[row] = _named(core, &limit.text)
    if terms.rate_count == 1 and not terms.rates[0].in_cost:
        b.change_rate[row], b.change_burst[row] = terms.rates[0].per_second, terms.rates[0].burst
    if terms.slots == 0 and terms.amount == 0 and not terms.shadow and terms.most == 0 and (
        terms.rate_count == 0 or (terms.rate_count == 1 and not terms.rates[0].in_cost)
    ):
        return
    length = snprintf(
        value, sizeof(value), b"{\"learn\": [%g, %g], \"rates\": [", terms.least, terms.most)
    for i in range(terms.rate_count):
        length += snprintf(
            value + length, sizeof(value) - length, b"%s[%g, %g, \"%s\"]", b", " if i else b"",
            terms.rates[i].per_second, terms.rates[i].burst,
            b"cost" if terms.rates[i].in_cost else b"messages")
    length += snprintf(
        value + length, sizeof(value) - length,
        b"], \"slots\": %u, \"budget\": %g, \"budget_unit\": \"%s\", \"period_ms\": %lld, \"shadow\": %s}",
        <unsigned int> terms.slots, terms.amount, b"cost" if terms.budget_in_cost else b"messages",
        <long long> terms.period_ms, b"true" if terms.shadow else b"false")
    b.change_value[row] = _words(core, value, <size_t> length)


cdef void queue_changed(Core* core, int kind, Queue* queue) noexcept nogil:
    cdef History* history = core.history
    cdef size_t length = queue.config.length if queue.config.length <= VALUE_BYTES_MAX else 0
    cdef Block* b
    cdef uint32_t row
    if not records(core):
        return
    if kind == CHANGED_QUEUE_DELETED:
        length = 0
    row = _row(core, kind, length)
    b = history.current
    b.change_queue[row] = _named(core, &queue.text)
    b.change_value[row] = _words(core, queue.config.data, length)


cdef void channel_changed(Core* core, int kind, Channel* channel) noexcept nogil:
    cdef History* history = core.history
    cdef char value[32]
    cdef uint32_t row
    if not records(core):
        return
    row = _row(core, kind, 0)
    _of_channel(core, row, channel)
    if kind != CHANGED_CHANNEL_DELETED:
        history.current.change_value[row] = _words(core, value, <size_t> snprintf(
            value, sizeof(value), b"%llu", <unsigned long long> channel.start_offset))


cdef void key_changed(Core* core, Key* key) noexcept nogil:
    cdef History* history = core.history
    cdef Block* b
    cdef char value[160]
    cdef uint32_t row
    cdef int length
    if not records(core):
        return
    row = _row(core, CHANGED_KEY, 0)
    b = history.current
    b.change_queue[row] = _named(core, &key.queue.text)
    b.change_name[row] = _named(core, &key.text)
    length = snprintf(
        value, sizeof(value), b"{\"weight\": %u, \"paused\": %s, \"cap\": %u}", <unsigned int>
        key.admin_weight, b"true" if key.paused else b"false", <unsigned int> key_cap(key))
    if key_committed(key) != NULL:              # in place of the brace that ends it
        length += snprintf(
            value + length - 1, sizeof(value) - length + 1, b", \"committed\": %.9g}",
            key_committed(key).limit.bucket.rate) - 1
    b.change_value[row] = _words(core, value, <size_t> length)
    if key_rate_limit(key) != NULL:
        b.change_rate[row] = key_rate_limit(key).bucket.rate
        b.change_burst[row] = key_rate_limit(key).bucket.burst


cdef void consumer_changed(Core* core, int kind, Consumer* consumer) noexcept nogil:
    cdef History* history = core.history
    cdef Block* b
    cdef char value[128]
    cdef uint32_t row
    if consumer.number == 0 or not records(core):
        return
    row = _row(core, kind, consumer.name.length)
    b = history.current
    _of_channel(core, row, consumer.channel)
    b.change_name[row] = _words(core, consumer.name.data, consumer.name.length)
    b.change_value[row] = _words(core, value, <size_t> snprintf(
        value, sizeof(value), b"{\"consumer\": %llu, \"room\": %u}", <unsigned long long> consumer.number,
        <unsigned int> consumer.limit))
