"""What the last row is about is kept apart (RunKey), so that a message like it costs one comparison and no
new row. A key's address counts only together with its hash."""

from libc.stdint cimport uint8_t, uint16_t
from libc.string cimport memset, strlen

from fila_server.core.history.traces cimport lease_traced
from fila_server.core.state.paths cimport entry_cost, entry_priority, frame_offset, key_weight, share_of
from fila_server.core.state.state cimport Entry
from fila_server.core.structures.maps cimport text_hash
from fila_server.core.threads.blocks cimport (
    GROUP_MAX, MESSAGES_MAX, RUNS_MAX, Block, Group, History, Reported, Run, RunKey, block_end,
    block_has_texts, block_text,
)
from fila_server.core.threads.spans cimport OUT_EXPIRED, OUT_NACKED, OUT_RETURNED

cdef enum:
    REASON_BYTES_MAX = 256

cdef int64_t HELD_MS_MAX = 0x7FFFFFFF


cdef inline Group* _group(Core* core) noexcept nogil:
    cdef History* history = core.history
    return &history.group


cdef inline bint _is_sampled(Core* core, uint64_t queue, uint64_t offset) noexcept nogil:
    """All that is decided about a message, or nothing."""
    cdef History* history = core.history
    cdef uint64_t mixed
    if history.sample <= 1:
        return True
    mixed = (offset ^ (queue << 40)) * <uint64_t> 0x9E3779B97F4A7C15
    return (mixed >> 32) % history.sample == 0


cdef inline int32_t _text(History* history, const Text* text) noexcept nogil:
    return block_text(history, text.bytes, text.length, text.hash) if text != NULL else 0


cdef inline int32_t _words(History* history, Slice words) noexcept nogil:
    cdef uint32_t length = words.length
    if length > REASON_BYTES_MAX:
        length = REASON_BYTES_MAX
        while length and <unsigned char> words.at[length] & 0xC0 == 0x80:       # not within a character
            length -= 1
    return block_text(history, words.at, length, text_hash(words.at, length)) if length else 0


# --- groups ------------------------------------------------------------------------------------

cdef Block* _room(Core* core) noexcept nogil:
    """The current block, with room for a group of any keys; a new one where this one has none. Not within a
    group."""
    cdef History* history = core.history
    cdef Block* b = history.current
    if b.runs + GROUP_MAX > RUNS_MAX or b.messages + GROUP_MAX > MESSAGES_MAX or not block_has_texts(b):
        block_end(history)
        b = history.current
    if b.first_ms == 0:
        b.first_ms = core.wall_ms
    b.last_ms = core.wall_ms
    return b


cdef void _begin(Core* core, int kind, Channel* channel, const Detail* detail) noexcept nogil:
    cdef History* history = core.history
    cdef Group* group = _group(core)
    _room(core)
    history.run.kind = <uint8_t> kind
    history.run.channel = channel
    history.run.consumer = detail.consumer
    history.run.key = NULL
    history.run.bucket = _text(history, detail.bucket)
    history.run.reason = _words(history, detail.reason)
    group.queue = _text(history, &channel.queue.text)
    group.channel = _text(history, &channel.text)


cdef inline bint _goes_on(Core* core, int kind, Channel* channel, const Detail* detail) noexcept nogil:
    """Whether a message belongs to the group before it."""
    cdef History* history = core.history
    cdef RunKey* run = &history.run
    cdef uint32_t count = _group(core).count
    if (
        count == 0 or count == GROUP_MAX or run.kind != kind or run.channel != channel
        or run.consumer != detail.consumer or not block_has_texts(history.current)
    ):
        return False
    if detail.bucket == NULL and detail.reason.length == 0:
        return run.bucket == 0 and run.reason == 0
    return (
        run.bucket == _text(history, detail.bucket)
        and run.reason == _words(history, detail.reason)
    )


cdef void _add(Core* core, Entry* entry, Reported* reported, uint64_t replaces) noexcept nogil:
    """To the run of its key, weight, buckets and priority; one that is not there yet begins, and one that
    replaces another has a run of its own. `run_of` may hold anything: what it says counts where that run is
    of the same text."""
    cdef History* history = core.history
    cdef Group* group = _group(core)
    cdef RunKey* last = &history.run
    cdef int32_t key
    cdef int32_t buckets = _text(history, &entry.set.text) if entry.set != NULL else 0
    cdef int32_t weight = <int32_t> key_weight(entry.key)
    cdef int32_t priority = <int32_t> entry_priority(entry)
    cdef uint32_t number
    cdef Run* run
    # An address alone may be another key's by now.
    if last.key == entry.key and last.key_hash == entry.key.text.hash:
        key = group.key
    else:
        key = group.key = _text(history, &entry.key.text)
        last.key, last.key_hash = entry.key, entry.key.text.hash
    number = group.run_of[key]
    run = &group.runs[number]
    reported.next = GROUP_MAX
    if (
        number < group.run_count and run.key == key and run.buckets == buckets and run.weight == weight
        and run.priority == priority and run.replaces == replaces
    ):
        group.reported[run.last].next = <uint16_t> group.count
    else:
        group.run_of[key] = <uint16_t> group.run_count
        run = &group.runs[group.run_count]
        group.run_count += 1
        run.key, run.buckets, run.weight, run.priority = key, buckets, weight, priority
        run.replaces = replaces
        run.first = <uint16_t> group.count
    run.last = <uint16_t> group.count
    group.count += 1


cdef void _row(Core* core, Block* b, const Run* run) noexcept nogil:
    """A run as a row; its messages follow."""
    cdef History* history = core.history
    cdef RunKey* common = &history.run
    cdef Group* group = _group(core)
    cdef uint32_t row = b.runs
    b.at_us[row] = core.wall_ms * 1000
    b.pass_number[row] = <int64_t> core.counters.passes
    b.kind[row] = common.kind
    b.queue[row], b.channel[row] = group.queue, group.channel
    b.key[row], b.weight[row], b.throttle_set[row] = run.key, run.weight, run.buckets
    b.priority[row] = run.priority
    b.replaces[row] = <int64_t> run.replaces
    b.consumer[row] = <int64_t> common.consumer
    b.bucket[row], b.reason[row] = common.bucket, common.reason
    b.many[row] = 0
    b.runs += 1


cdef inline void _message(Block* b, int kind, const Reported* reported, uint32_t place) noexcept nogil:
    cdef uint32_t at = b.messages
    b.offset[at], b.cost[at] = reported.offset, reported.cost
    b.attempts[at] = reported.attempts
    b.held_ms[at] = reported.held_ms
    b.place[at] = <int32_t> place
    if kind == DELIVERED:
        b.wait_no_consumer_ms[at] = reported.waited.no_consumer_ms
        b.wait_share_ms[at] = reported.waited.share_ms
        b.wait_throttle_ms[at] = reported.waited.throttle_ms
        b.wait_delay_ms[at] = reported.waited.delay_ms
        b.wait_held_ms[at] = reported.waited.held_ms
    b.messages += 1


cdef void decisions_reported(Core* core) noexcept nogil:
    cdef History* history = core.history
    cdef Block* b = history.current
    cdef Group* group = _group(core)
    cdef uint32_t i, at
    for i in range(group.run_count):
        _row(core, b, &group.runs[i])
        at = group.runs[i].first
        while at != GROUP_MAX:
            _message(b, history.run.kind, &group.reported[at], at)
            at = group.reported[at].next
        b.begins[b.runs] = <int32_t> b.messages
    group.count = group.run_count = 0


cdef void decided(
        Core* core, int kind, Channel* channel, Frame* frame, uint32_t index, uint32_t attempts,
        const Detail* detail) noexcept nogil:
    cdef Reported* reported
    cdef uint64_t offset
    if not records(core):
        return
    offset = frame_offset(frame, index)
    if not _is_sampled(core, channel.queue.number, offset):
        return
    if not _goes_on(core, kind, channel, detail):
        decisions_reported(core)
        _begin(core, kind, channel, detail)
    reported = &_group(core).reported[_group(core).count]
    reported.offset = <int64_t> offset
    reported.cost = entry_cost(&frame.entries[index])
    reported.attempts = <int32_t> attempts
    reported.held_ms = detail.held_ms
    if kind == DELIVERED:
        reported.waited = detail.waited
    _add(core, &frame.entries[index], reported, detail.replaces)


cdef void slot_decided(Core* core, int kind, Slot* slot, const Detail* detail) noexcept nogil:
    if records(core):
        decided(core, kind, share_of(slot).channel, share_of(slot).frame, slot.index, slot.attempts, detail)


cdef void lease_decided(
        Core* core, int kind, Lease* lease, const char* reason, uint32_t reason_length) noexcept nogil:
    cdef Detail detail
    if core.traces != NULL:
        detail.reason.at, detail.reason.length = reason, reason_length
        lease_traced(
            core, lease, OUT_NACKED if kind == NACKED else OUT_EXPIRED if kind == EXPIRED else OUT_RETURNED,
            detail.reason)
    if not records(core):
        return
    memset(&detail, 0, sizeof(Detail))
    if lease.consumer != NULL:
        detail.consumer = lease.consumer.number
    detail.held_ms = <int32_t> min(max(core.wall_ms - lease.leased_ms, <int64_t> 0), HELD_MS_MAX)
    detail.reason.at, detail.reason.length = reason, reason_length
    slot_decided(core, kind, lease.slot, &detail)


cdef void held(Core* core, Slot* first, const Text* bucket, uint64_t many, uint64_t cost) noexcept nogil:
    """A group of its own, of one message that stands for many."""
    cdef History* history = core.history
    cdef Frame* frame
    cdef Reported* reported
    cdef Detail detail
    if not records(core):
        return
    frame = share_of(first).frame
    decisions_reported(core)
    reported = &_group(core).reported[0]
    memset(&detail, 0, sizeof(Detail))
    detail.bucket = bucket
    _begin(core, THROTTLED, share_of(first).channel, &detail)
    reported.offset = <int64_t> frame_offset(frame, first.index)
    reported.cost = cost
    reported.attempts = reported.held_ms = 0
    _add(core, &frame.entries[first.index], reported, 0)
    decisions_reported(core)
    history.current.many[history.current.runs - 1] = <int64_t> many


# --- how a message ends ------------------------------------------------------------------------

cdef void ending_is(
        Core* core, int kind, const char* reason, uint64_t consumer, int64_t held_ms) noexcept nogil:
    cdef History* history = core.history
    if core.history == NULL:
        return
    history.ending = <unsigned char> kind
    history.ending_reason = reason
    history.ending_consumer = consumer
    history.ending_held_ms = <int32_t> min(max(held_ms, <int64_t> 0), HELD_MS_MAX)


cdef const char* _why(Core* core) noexcept nogil:
    if core.revoking == NULL:
        return b"deleted"
    if core.revoking[0] == c'P':
        return b"purge"
    return b"seek" if core.revoking[0] == c'S' else b"retention"


cdef void slot_ends(Core* core, Slot* slot) noexcept nogil:
    cdef History* history = core.history
    cdef Detail detail
    cdef int kind = DROPPED
    if history == NULL:
        return
    memset(&detail, 0, sizeof(Detail))
    if history.ending:
        kind = history.ending
        detail.reason.at = history.ending_reason
        detail.consumer = history.ending_consumer
        detail.held_ms = history.ending_held_ms
    else:
        detail.reason.at = _why(core)
    if detail.reason.at != NULL:
        detail.reason.length = <uint32_t> strlen(detail.reason.at)
    history.ending = 0
    slot_decided(core, kind, slot, &detail)
