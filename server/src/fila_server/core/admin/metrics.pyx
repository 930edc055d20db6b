"""One walk over what is counted already; nothing is summed up over messages."""

from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.admin.step_budget cimport StepBudget, flow_age, steps_begin, steps_end
from fila_server.core.index.ages cimport (
    age_since, channel_age, channel_lease_age, queue_age, queue_lease_age,
)
from fila_server.core.index.policy cimport QUEUE_PAUSED, channel_paused
from fila_server.core.lifecycle.answers cimport answer_at_once
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.protobuf cimport Fields, fields_parse
from fila_server.core.protocol.refusals cimport refusal_reason
from fila_server.core.scheduling.clocks cimport (
    HOUR_DUE, HOUR_SERVED, WAITED_HELD, clock_account, hour_sum, hour_total,
)
from fila_server.core.scheduling.following cimport key_follows, terms_follow
from fila_server.core.scheduling.limits cimport limit_says_something
from fila_server.core.scheduling.parts cimport parts_refill
from fila_server.core.state.limits cimport Limit
from fila_server.core.state.paths cimport flow_delivered
from fila_server.core.state.state cimport Channel, Flow, KeyClock, Queue, ThrottleKey
from fila_server.core.storage.reclaim cimport Upkeep
from fila_server.core.structures.bucket cimport bucket_refill
from fila_server.core.structures.buffer cimport (
    Buffer, buffer_init, buffer_reserve, must_malloc, put_bytes, put_u32be, put_u64be, put_u8,
)
from fila_server.core.structures.counters cimport Hour, QueueCounters
from fila_server.core.structures.maps cimport Text, textmap_next
from fila_server.core.structures.ranking cimport Ranked, keep_largest, largest_first

cdef enum:
    SNAPSHOT_VERSION = 1
    QUEUES_MAX = 2000
    CHANNELS_MAX = 64               # of one queue
    KEYS_MAX = 1000
    LIMITS_MAX = 1000
    INSTANCES_LOOKED_AT = 1000

cdef struct Totals:                  # of the whole broker
    uint64_t passes, commands, epochs, syncs, frames_in, messages_in, refused_mailbox, malformed
    uint64_t loads, loads_bytes, evictions, rewrites, stalls, lost_ranges, lost_messages, lost_acks, hot_bytes
    uint64_t hot_bytes_max, index_bytes, memtable_bytes, disk_level, disk_free_bytes, keys, leases
    uint64_t consumers, timers, mailbox, mailbox_capacity, decisions, remembered_keys, sinks
    uint64_t staged_bytes, staged_bytes_max, sink_batches, sink_messages, sink_lost, sink_swept
    uint64_t dedup_keys, dedup_keys_max

cdef struct Sums:                    # over all queues, the dead-letter queues apart
    uint64_t queues, waiting, in_flight, oldest_ms, enqueued, acked, failed, returned, dead_letters

cdef uint32_t REASONS = 32
cdef Totals _no_totals
cdef QueueCounters _no_counters
cdef Sums _no_sums
memset(&_no_totals, 0, sizeof(Totals))
memset(&_no_counters, 0, sizeof(QueueCounters))
memset(&_no_sums, 0, sizeof(Sums))
# The names of numbers in the order in which the snapshot has them: as Python, each struct is a dict.
TOTALS = tuple(_no_totals)
QUEUE_COUNTERS = tuple(_no_counters)
SUMS = tuple(_no_sums)


# --- MessagePack -----------------------------------------------------------------------------

cdef void _array(Buffer* b, uint32_t count) noexcept nogil:
    put_u8(b, 0xDD)
    put_u32be(b, count)


cdef void _number(Buffer* b, uint64_t number) noexcept nogil:
    if number < 128:
        put_u8(b, <uint8_t> number)
    else:
        put_u8(b, 0xCF)
        put_u64be(b, number)


cdef void _real(Buffer* b, double number) noexcept nogil:
    cdef uint64_t bits
    memcpy(&bits, &number, 8)
    put_u8(b, 0xCB)
    put_u64be(b, bits)


cdef void _text(Buffer* b, Text* text) noexcept nogil:
    """As bytes: a hook's key need not be UTF-8."""
    put_u8(b, 0xC6)
    put_u32be(b, text.length)
    put_bytes(b, text.bytes, text.length)


cdef void _numbers(Buffer* b, const uint64_t* numbers, uint32_t count) noexcept nogil:
    cdef uint32_t i
    _array(b, count)
    for i in range(count):
        _number(b, numbers[i])


cdef void _hour_totals(Buffer* b, Hour* hour, int columns) noexcept nogil:
    cdef int i
    _array(b, columns)
    for i in range(columns):
        _real(b, hour_total(hour, i))


# --- the broker ------------------------------------------------------------------------------

cdef void _totals(Core* core, Buffer* b) noexcept nogil:
    cdef Totals t
    cdef Upkeep* upkeep = core.shared.upkeep
    t.passes = core.counters.passes
    t.commands = core.counters.commands
    t.epochs = core.counters.epochs
    t.syncs = core.shared.syncs
    t.frames_in = core.counters.frames_in
    t.messages_in = core.counters.messages_in
    t.refused_mailbox = core.mailbox.refused
    t.malformed = core.shared.malformed
    t.loads = core.counters.loads
    t.loads_bytes = core.counters.loads_bytes
    t.evictions = core.counters.evictions
    t.rewrites = core.counters.rewrites
    t.stalls = core.counters.stalls
    t.lost_ranges = core.counters.lost_ranges
    t.lost_messages = core.counters.lost_messages
    t.lost_acks = core.counters.lost_acks
    t.hot_bytes = core.hot_bytes
    t.hot_bytes_max = core.hot_bytes_max
    t.index_bytes = <uint64_t> core.index_bytes
    t.memtable_bytes = upkeep.memtable_bytes
    t.disk_level = <uint64_t> core.disk_level
    t.disk_free_bytes = core.shared.disk_free_bytes
    t.keys = core.keys_count
    t.leases = core.leases.count
    t.consumers = core.consumers.count
    t.timers = core.timers.count
    t.mailbox = core.mailbox.count
    t.mailbox_capacity = core.mailbox.capacity
    t.decisions = core.decisions.count
    t.remembered_keys = core.clocks_count
    t.sinks = core.sinks.by_name.count
    t.staged_bytes = core.sinks.staged_bytes
    t.staged_bytes_max = core.sinks.staged_bytes_max
    t.sink_batches = core.sinks.counters.published
    t.sink_messages = core.sinks.counters.moved
    t.sink_lost = core.sinks.counters.lost
    t.sink_swept = core.sinks.counters.swept
    t.dedup_keys = core.dedup_rows
    t.dedup_keys_max = core.dedup_rows_max
    _numbers(b, <uint64_t*> &t, sizeof(Totals) // sizeof(uint64_t))


cdef void _refused(Core* core, Buffer* b) noexcept nogil:
    """By reason, as clients are told it; several refusals may share one."""
    cdef Text text
    cdef uint32_t i
    cdef uint32_t count = 0
    for i in range(REASONS):
        count += core.counters.refused_by[i] != 0
    _array(b, count)
    for i in range(REASONS):
        if core.counters.refused_by[i] == 0:
            continue
        text.bytes = refusal_reason(<uint8_t> i)
        text.length = 0
        while text.bytes[text.length]:
            text.length += 1
        _array(b, 2)
        _text(b, &text)
        _number(b, core.counters.refused_by[i])


# --- queues ----------------------------------------------------------------------------------

cdef void _channel(Core* core, Buffer* b, Channel* channel) noexcept nogil:
    _array(b, 21)
    _text(b, &channel.text)
    _number(b, channel.ready)
    _number(b, channel.delayed)
    _number(b, channel.in_flight)
    _number(b, channel.consumers)
    _number(b, channel.waiting_pulls)
    _number(b, channel.has_room)
    _number(b, channel.active_keys)
    _number(b, channel.ring.walked)
    _number(b, channel.leased)
    _number(b, channel.delivered)
    _number(b, channel.acked)
    _number(b, channel.served)
    _real(b, hour_sum(core, &channel.hour, HOUR_SERVED))
    _hour_totals(b, &channel.hour, WAITED_HELD + 1)
    _number(b, channel.unbegun)
    _number(b, channel_age(core, channel))
    _number(b, channel_lease_age(core, channel))
    _number(b, channel.failed)
    _number(b, channel.returned)
    _number(b, channel_paused(channel))


cdef void _queue(Core* core, Buffer* b, Queue* queue) noexcept nogil:
    cdef Channel* channel = queue.channels
    _array(b, 15)
    _text(b, &queue.text)
    _number(b, queue.depth)
    _number(b, queue.in_flight)
    _number(b, queue.stored_bytes)
    _number(b, queue.keys.count)
    _number(b, queue_age(core, queue))
    _number(b, queue_lease_age(core, queue))
    _number(b, queue.next_offset)
    _number(b, queue.policy.paused & QUEUE_PAUSED)
    _number(b, queue.paused_count)
    _number(b, age_since(core, queue.paused_keys.rank) if queue.paused_keys != NULL else 0)
    _numbers(b, <uint64_t*> &queue.counters, sizeof(QueueCounters) // sizeof(uint64_t))
    _numbers(b, queue.latency.by_bits, 32)
    _number(b, queue.latency.sum_ms)
    _array(b, min(queue.channel_count, <uint32_t> CHANNELS_MAX))
    for _ in range(min(queue.channel_count, <uint32_t> CHANNELS_MAX)):
        _channel(core, b, channel)
        channel = channel.next


cdef void _add_up(Core* core, Sums* sums, Queue* queue) noexcept nogil:
    """A message is stored once and waits in each channel: the fullest channel says how many wait."""
    cdef Channel* channel = queue.channels
    cdef uint64_t waiting = 0
    while channel != NULL:
        waiting = max(waiting, <uint64_t> channel.ready + channel.delayed)
        if not queue.is_dlq:
            sums.in_flight += channel.in_flight
            sums.acked += channel.acked
            sums.failed += channel.failed
            sums.returned += channel.returned
            if channel.ready or channel.delayed:
                sums.oldest_ms = max(sums.oldest_ms, channel_age(core, channel))
        channel = channel.next
    if queue.is_dlq:
        sums.dead_letters += waiting
    else:
        sums.queues += 1
        sums.waiting += waiting
        sums.enqueued += queue.counters.enqueued


cdef void _queues(Core* core, Buffer* b, Sums* sums) noexcept nogil:
    cdef Ranked* rows = <Ranked*> must_malloc(QUEUES_MAX * sizeof(Ranked))
    cdef uint32_t cursor = 0
    cdef uint32_t count = 0
    cdef uint32_t wanted = 0
    cdef uint32_t i
    cdef Queue* queue
    while True:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            break
        _add_up(core, sums, queue)
        if queue.is_dlq and queue.next_offset == 1:     # most never hold a letter, and would be half of all
            continue
        wanted += 1
        keep_largest(
            rows, &count, QUEUES_MAX, queue, queue.counters.enqueued + queue.counters.delivered + queue.depth)
    largest_first(rows, count)
    _number(b, core.queues.count)
    _number(b, wanted - count)
    _array(b, count)
    for i in range(count):
        _queue(core, b, <Queue*> rows[i].what)
    free(rows)


# --- the busiest keys and limits -------------------------------------------------------------

cdef void _key(Core* core, Buffer* b, KeyClock* row, StepBudget* steps) noexcept nogil:
    cdef Flow* flow = row.flow
    cdef double served, due
    if flow != NULL:
        clock_account(core, flow)
    served = hour_sum(core, &row.hour, HOUR_SERVED)
    due = hour_sum(core, &row.hour, HOUR_DUE)
    _array(b, 13)
    _text(b, &row.channel.queue.text)
    _text(b, &row.channel.text)
    _text(b, &row.text)
    _number(b, row.delivered + (flow_delivered(flow) if flow != NULL else 0))
    _real(b, served)
    _real(b, due)
    _number(b, flow.backlog + flow.delayed if flow != NULL else 0)
    _number(b, flow.in_flight if flow != NULL else 0)
    _number(b, flow.turn.weight if flow != NULL else 0)
    _number(b, flow_age(core, flow, steps) if flow != NULL and flow.backlog else 0)
    _hour_totals(b, &row.hour, HOUR_DUE + 1)
    _number(b, row.arrived + (flow.arrived if flow != NULL else 0))
    _number(b, flow.key.paused if flow != NULL else 0)


cdef void _keys(Core* core, Buffer* b) noexcept nogil:
    """The keys that were served and that waited most, by what this and the last five minutes say."""
    cdef Ranked* rows = <Ranked*> must_malloc(KEYS_MAX * sizeof(Ranked))
    cdef StepBudget steps = steps_begin()
    cdef uint32_t cursor = 0
    cdef uint32_t count = 0
    cdef uint32_t i
    cdef Queue* queue
    cdef Channel* channel
    cdef KeyClock* row
    while True:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            break
        channel = queue.channels
        while channel != NULL:
            row = channel.clocks_newest
            while row != NULL:
                keep_largest(
                    rows, &count, KEYS_MAX, row,
                    row.delivered + (flow_delivered(row.flow) + row.flow.backlog if row.flow != NULL else 0))
                row = row.older
            channel = channel.next
    largest_first(rows, count)
    _array(b, count)
    for i in range(count):
        _key(core, b, <KeyClock*> rows[i].what, &steps)
    steps_end(core, &steps)
    free(rows)


cdef double _learned(Limit* limit) noexcept nogil:
    """What it lets go a second, if it follows a provider; of a pattern, the least that one of its newest keys
    may have."""
    cdef ThrottleKey* key = <ThrottleKey*> limit.instances
    cdef double rate = limit.terms.rates[0].per_second if key == NULL else limit.terms.most
    cdef uint32_t looked = 0
    if not terms_follow(&limit.terms):
        return 0
    while key != NULL and looked < INSTANCES_LOOKED_AT:
        if key_follows(key):
            rate = min(rate, key.parts.learned.rate)
        looked += 1
        key = key.next_of_limit
    return rate


cdef void _limits(Core* core, Buffer* b) noexcept nogil:
    """By limit as it was set; what a pattern's keys have now would be a row for each of them."""
    cdef Ranked* rows = <Ranked*> must_malloc(LIMITS_MAX * sizeof(Ranked))
    cdef uint32_t cursor = 0
    cdef uint32_t count = 0
    cdef uint32_t i
    cdef Limit* limit
    cdef ThrottleKey* key
    while True:
        limit = <Limit*> textmap_next(&core.limit_table.by_name, &cursor)
        if limit == NULL:
            break
        if limit_says_something(&limit.terms):
            keep_largest(rows, &count, LIMITS_MAX, limit, limit.passed + limit.stopped)
    largest_first(rows, count)
    _array(b, count)
    for i in range(count):
        limit = <Limit*> rows[i].what
        key = NULL if limit.is_pattern else <ThrottleKey*> limit.instances
        if key != NULL and key.parts == NULL and key.charged:
            bucket_refill(&key.bucket, core.mono_ns, key.waiters != NULL)
        elif key != NULL and key.charged:
            parts_refill(core, key)
        _array(b, 10)
        _text(b, &limit.text)
        _real(b, key.bucket.level if key != NULL else limit.terms.rates[0].burst)
        _real(b, limit.terms.rates[0].per_second)
        _real(b, limit.terms.rates[0].burst)
        _number(b, limit.passed)
        _number(b, limit.stopped)
        _number(b, limit.waiting)
        _number(b, limit.would_hold)
        _number(b, limit.is_pattern or limit.terms.rate_count == 0)
        _real(b, _learned(limit))
    free(rows)


cdef void metrics_command(Core* core, Command* command) noexcept nogil:
    """The one that asks each second asks without keys and limits."""
    cdef Fields fields
    cdef Buffer b
    cdef Sums sums
    memset(&sums, 0, sizeof(Sums))
    fields_parse(&fields, command.bytes, command.length)
    buffer_init(&b)
    buffer_reserve(&b, 65536)
    _array(&b, 14)
    _number(&b, SNAPSHOT_VERSION)
    _totals(core, &b)
    _refused(core, &b)
    _numbers(&b, core.shared.sync_us, 32)
    _number(&b, core.shared.sync_us_sum)
    _numbers(&b, core.counters.batch, 32)
    _number(&b, core.counters.batch_messages)
    if fields.number[seam.METRICS_ASKED_WITHOUT_QUEUES]:
        _number(&b, core.queues.count)
        _number(&b, 0)
        _array(&b, 0)
    else:
        _queues(core, &b, &sums)        # how many there are, how many are left out, those told
    if fields.number[seam.METRICS_ASKED_WITHOUT_KEYS]:
        _array(&b, 0)
        _array(&b, 0)
    else:
        _keys(core, &b)
        _limits(core, &b)
    _number(&b, <uint64_t> core.quantum)
    _numbers(&b, <uint64_t*> &sums, sizeof(Sums) // sizeof(uint64_t))
    answer_at_once(core, command.token, &b)
