"""See decisions.pxd."""

from libc.string cimport memset, strlen

from fila_server.core.doors.blocks cimport (
    CHANGES_MAX, MESSAGES_MAX, RUNS_MAX, Block, History, RunKey, block_end, block_has_texts, block_text,
)
from fila_server.core.state.paths cimport frame_offset, key_weight, share_of
from fila_server.core.state.state cimport Entry
from fila_server.core.structures.maps cimport text_hash

cdef enum:
    REASON_BYTES_MAX = 256

cdef int64_t HELD_MS_MAX = 0x7FFFFFFF


cdef inline bint _is_sampled(Core* core, uint64_t queue, uint64_t offset) noexcept nogil:
    """All that is decided about a message, or nothing."""
    cdef uint64_t mixed
    if core.history.sample <= 1:
        return True
    mixed = (offset ^ (queue << 40)) * <uint64_t> 0x9E3779B97F4A7C15
    return (mixed >> 32) % core.history.sample == 0


cdef Block* _room(Core* core) noexcept nogil:
    """The current block, with room for a row with all its texts; a new one where this one has none."""
    cdef Block* b = core.history.current
    if b.runs >= RUNS_MAX or b.messages >= MESSAGES_MAX or b.changes >= CHANGES_MAX or not block_has_texts(b):
        block_end(core.history)
        b = core.history.current
    if b.first_ms == 0:
        b.first_ms = core.wall_ms
    b.last_ms = core.wall_ms
    return b


cdef inline int32_t _text(History* history, const Text* text) noexcept nogil:
    return block_text(history, text.bytes, text.length, text.hash) if text != NULL else 0


cdef inline int32_t _words(History* history, Slice words) noexcept nogil:
    cdef uint32_t length = words.length
    if length > REASON_BYTES_MAX:
        length = REASON_BYTES_MAX
        while length and <unsigned char> words.at[length] & 0xC0 == 0x80:       # not within a character
            length -= 1
    return block_text(history, words.at, length, text_hash(words.at, length)) if length else 0


cdef void _begin(
        Core* core, Block* b, int kind, Channel* channel, Entry* entry, const Detail* detail) noexcept nogil:
    """A new row; its messages follow."""
    cdef History* history = core.history
    cdef uint32_t row = b.runs
    b.at_us[row] = core.wall_ms * 1000
    b.pass_number[row] = <int64_t> core.counters.passes
    b.kind[row] = <unsigned char> kind
    b.queue[row] = _text(history, &channel.queue.text)
    b.channel[row] = _text(history, &channel.text)
    b.key[row] = _text(history, &entry.key.text)
    b.weight[row] = <int32_t> key_weight(entry.key)
    b.consumer[row] = <int64_t> detail.consumer
    b.throttle_set[row] = _text(history, &entry.set.text) if entry.set != NULL else 0
    b.bucket[row] = _text(history, detail.bucket)
    b.reason[row] = _words(history, detail.reason)
    b.many[row] = 0
    b.begins[row] = b.begins[row + 1] = <int32_t> b.messages
    b.runs += 1
    history.run.pass_number = core.counters.passes
    history.run.channel = channel
    history.run.key = entry.key
    history.run.key_hash = entry.key.text.hash
    history.run.consumer = detail.consumer
    history.run.bucket = b.bucket[row]
    history.run.reason = b.reason[row]
    history.run.kind = <unsigned char> kind


cdef inline bint _goes_on(
        Core* core, Block* b, int kind, Channel* channel, Entry* entry, const Detail* detail) noexcept nogil:
    """Whether this message belongs to the run before it. An address alone may be another key's by now."""
    cdef RunKey* run = &core.history.run
    if (
        run.kind != kind or run.key != entry.key or run.channel != channel
        or run.pass_number != core.counters.passes or run.key_hash != entry.key.text.hash
        or run.consumer != detail.consumer
    ):
        return False
    if detail.bucket == NULL and detail.reason.length == 0:
        return run.bucket == 0 and run.reason == 0
    return (
        run.bucket == _text(core.history, detail.bucket)
        and run.reason == _words(core.history, detail.reason)
    )


cdef void decided(
        Core* core, int kind, Channel* channel, Frame* frame, uint32_t index, uint32_t attempts,
        const Detail* detail) noexcept nogil:
    cdef Entry* entry
    cdef Block* b
    cdef uint32_t at
    cdef uint64_t offset
    if not records(core):
        return
    offset = frame_offset(frame, index)
    if not _is_sampled(core, channel.queue.number, offset):
        return
    entry = &frame.entries[index]
    b = _room(core)
    if not _goes_on(core, b, kind, channel, entry, detail):
        _begin(core, b, kind, channel, entry, detail)
    at = b.messages
    b.offset[at] = <int64_t> offset
    b.cost[at] = entry.cost
    b.attempts[at] = <int32_t> attempts
    b.held_ms[at] = detail.held_ms
    if kind == DELIVERED:
        b.wait_no_consumer_ms[at] = detail.waited.no_consumer_ms
        b.wait_share_ms[at] = detail.waited.share_ms
        b.wait_throttle_ms[at] = detail.waited.throttle_ms
        b.wait_delay_ms[at] = detail.waited.delay_ms
        b.wait_held_ms[at] = detail.waited.held_ms
    b.messages += 1
    b.begins[b.runs] = <int32_t> b.messages


cdef void slot_decided(Core* core, int kind, Slot* slot, const Detail* detail) noexcept nogil:
    if records(core):
        decided(core, kind, share_of(slot).channel, share_of(slot).frame, slot.index, slot.attempts, detail)


cdef void lease_decided(
        Core* core, int kind, Lease* lease, const char* reason, uint32_t reason_length) noexcept nogil:
    cdef Detail detail
    if not records(core):
        return
    memset(&detail, 0, sizeof(Detail))
    if lease.consumer != NULL:
        detail.consumer = lease.consumer.number
    detail.held_ms = <int32_t> min(max(core.wall_ms - lease.leased_ms, <int64_t> 0), HELD_MS_MAX)
    detail.reason.at, detail.reason.length = reason, reason_length
    slot_decided(core, kind, lease.slot, &detail)


cdef void held(Core* core, Slot* first, const Text* bucket, uint64_t many, uint64_t cost) noexcept nogil:
    cdef Detail detail
    cdef Block* b
    cdef uint32_t at
    if not records(core):
        return
    memset(&detail, 0, sizeof(Detail))
    detail.bucket = bucket
    b = _room(core)
    _begin(core, b, THROTTLED, share_of(first).channel, &share_of(first).frame.entries[first.index], &detail)
    memset(&core.history.run, 0, sizeof(RunKey))        # a row of its own
    at = b.messages
    b.offset[at] = <int64_t> frame_offset(share_of(first).frame, first.index)
    b.cost[at] = cost
    b.attempts[at] = b.held_ms[at] = 0
    b.many[b.runs - 1] = <int64_t> many
    b.messages += 1
    b.begins[b.runs] = <int32_t> b.messages


# --- how a message ends ------------------------------------------------------------------------

cdef void ending_is(
        Core* core, int kind, const char* reason, uint64_t consumer, int64_t held_ms) noexcept nogil:
    if core.history == NULL:
        return
    core.history.ending = <unsigned char> kind
    core.history.ending_reason = reason
    core.history.ending_consumer = consumer
    core.history.ending_held_ms = <int32_t> min(max(held_ms, <int64_t> 0), HELD_MS_MAX)


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


# --- changes -----------------------------------------------------------------------------------

cdef void limit_changed(Core* core, ThrottleKey* bucket) noexcept nogil:
    cdef Block* b
    cdef uint32_t row
    if not records(core):
        return
    b = _room(core)
    row = b.changes
    b.change_at_us[row] = core.wall_ms * 1000
    b.change_pass[row] = <int64_t> core.counters.passes
    b.change_kind[row] = CHANGED_LIMIT
    b.change_queue[row] = b.change_channel[row] = b.change_value[row] = 0
    b.change_name[row] = _text(core.history, &bucket.text)
    if bucket.has_rate and bucket.has_burst:
        b.change_rate[row], b.change_burst[row] = bucket.rate, bucket.burst
    else:                               # a bucket without a limit
        b.change_rate[row] = b.change_burst[row] = -1
    b.changes += 1
