"""Nothing points from a key to its lease, so a head is looked for among the channel's leases."""

from libc.stdint cimport int32_t, uint64_t

from fila_server.core.admin.step_budget cimport flow_first, may_step, steps_begin, steps_end
from fila_server.core.index.leases cimport lease_by_message_id
from fila_server.core.lifecycle.answers cimport answer_audited, answer_no_channel, answer_status
from fila_server.core.lifecycle.failure cimport reply_close, reply_open, slot_skip
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND, REPLY
from fila_server.core.protocol.protobuf cimport (
    put_nested, put_number_field, put_text_field, put_timestamp_field, put_uuid, uuid_parse,
)
from fila_server.core.scheduling.flows cimport flow_find
from fila_server.core.state.kinds cimport DELAYED, LEASED, TIMER_DELAY
from fila_server.core.state.paths cimport (
    channel_find, entry_of, flow_retrying, frame_id, frame_of, frame_offset, share_of,
)
from fila_server.core.state.pending cimport LeaseGroup, OpenReply
from fila_server.core.state.state cimport Consumer, Key, Lease
from fila_server.core.structures.buffer cimport Slice, buffer_free, buffer_init
from fila_server.core.structures.maps cimport map64_get, textmap_get
from fila_server.core.structures.timers cimport Timer

cdef enum:
    TIMERS_MAX = 65536


cdef Delay* first_delay(Core* core, Flow* flow, bint retries, StepBudget* steps) noexcept nogil:
    """The heap's beginning holds what is due soonest."""
    cdef uint32_t i
    cdef Timer* timer
    cdef Delay* delay
    cdef Delay* found = NULL
    for i in range(min(core.timers.count, <uint32_t> TIMERS_MAX)):
        if not may_step(steps):
            return NULL
        timer = core.timers.heap[i]
        if timer.kind != TIMER_DELAY:
            continue
        delay = <Delay*> timer
        if share_of(delay.slot).channel != flow.channel or entry_of(delay.slot).key != flow.key:
            continue
        if retries and not delay.keeps_place:
            continue
        if found == NULL or delay_due_ms(core, delay) < delay_due_ms(core, found):
            found = delay
    return found


cdef int64_t delay_due_ms(Core* core, Delay* delay) noexcept nogil:
    """The timer is sooner where the wall clock was set back."""
    if delay.far:
        return delay.due_ms
    return min(delay.due_ms, core.wall_ms + (delay.timer.due_ns - core.mono_ns) // 1000000 + 1)


cdef inline bint _is_of(Slot* slot, Flow* flow) noexcept nogil:
    return share_of(slot).channel == flow.channel and entry_of(slot).key == flow.key


cdef Slot* _leased(Core* core, Flow* flow, bint to_follow, StepBudget* steps) noexcept nogil:
    """A message of the flow; `to_follow`: of any flow, whose lease alone a message of this one waits for."""
    cdef LeaseGroup* group = flow.channel.groups
    cdef Lease* lease
    cdef uint32_t i
    while group != NULL:
        for i in range(group.count):
            if not may_step(steps):
                return NULL
            lease = <Lease*> map64_get(&core.leases, group.first_lease_id + i)
            if lease == NULL:
                continue
            if not to_follow:
                if _is_of(lease.slot, flow):
                    return lease.slot
            elif (
                lease.successor != NULL and lease.successor.timer.at == 0
                and _is_of(lease.successor.slot, flow)
            ):
                return lease.slot
        group = group.next
    return NULL


cdef Slot* slot_to_follow(Core* core, Flow* flow, StepBudget* steps) noexcept nogil:
    return _leased(core, flow, True, steps)


cdef Slot* _begun(Core* core, Flow* flow, StepBudget* steps) noexcept nogil:
    """Leased, or waiting for its retry; NULL too while a decision about it is asked for."""
    cdef Delay* delay
    if flow.in_flight:
        return _leased(core, flow, False, steps)
    delay = first_delay(core, flow, True, steps) if flow_retrying(flow) else NULL
    return delay.slot if delay != NULL else NULL


cdef void _put_id(Buffer* b, uint32_t field, Slot* slot) noexcept nogil:
    cdef Buffer inner
    cdef Slice text
    cdef uint64_t high, low
    frame_id(frame_of(slot), slot.index, &high, &low)
    buffer_init(&inner)
    put_uuid(&inner, high, low)
    text.at, text.length = inner.data, <uint32_t> inner.length
    put_text_field(b, field, text)
    buffer_free(&inner)


cdef void _put_consumer(Buffer* b, Consumer* consumer) noexcept nogil:
    cdef Slice name
    if consumer != NULL and consumer.number:
        put_number_field(b, v1.KEY_HEAD_CONSUMER_ID, consumer.number)
        name.at, name.length = consumer.name.data, <uint32_t> consumer.name.length
        put_text_field(b, v1.KEY_HEAD_CONSUMER_NAME, name)


cdef void put_head(Core* core, Buffer* b, uint32_t field, Flow* flow, StepBudget* steps) noexcept nogil:
    put_head_of(core, b, field, _begun(core, flow, steps))


cdef void put_head_of(Core* core, Buffer* b, uint32_t field, Slot* slot) noexcept nogil:
    cdef Buffer inner
    cdef Lease* lease
    if slot == NULL:
        return
    buffer_init(&inner)
    _put_id(&inner, v1.KEY_HEAD_MESSAGE_ID, slot)
    put_number_field(&inner, v1.KEY_HEAD_OFFSET, frame_offset(frame_of(slot), slot.index))
    put_number_field(&inner, v1.KEY_HEAD_ATTEMPTS, slot.attempts)
    if slot.state == LEASED:
        lease = <Lease*> slot.owner
        put_timestamp_field(&inner, v1.KEY_HEAD_LEASED_AT, lease.leased_ms)
        _put_consumer(&inner, lease.consumer)
    elif slot.state == DELAYED:
        put_timestamp_field(&inner, v1.KEY_HEAD_RETRY_AT, delay_due_ms(core, <Delay*> slot.owner))
    put_nested(b, field, &inner)
    buffer_free(&inner)


# --- skipping it -------------------------------------------------------------------------------

cdef void _refuse(
        Core* core, Command* command, int32_t code, const char* text, const char* why) noexcept nogil:
    answer_status(core, command.token, code, text, why)


cdef Slot* _head(Core* core, Flow* flow, bint has_id, uint64_t high, uint64_t low) noexcept nogil:
    cdef StepBudget steps = steps_begin()
    cdef Lease* lease = lease_by_message_id(core, flow.channel, high, low) if has_id else NULL
    cdef Slot* slot = NULL
    if lease != NULL and entry_of(lease.slot).key == flow.key:
        return lease.slot
    if flow.in_flight or flow_retrying(flow):
        slot = _begun(core, flow, &steps)
    elif flow.backlog:
        slot = flow_first(flow, &steps)
    steps_end(core, &steps)
    return slot


cdef bint _refused(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    """Whatever the key has: refused, and answered."""
    if channel_find(queue, fields.text[v1.SKIP_MESSAGE_REQUEST_CHANNEL]) == NULL:
        answer_no_channel(core, command)
    elif not queue.policy.in_order:
        _refuse(
            core, command, FAILED_PRECONDITION,
            b"queue: its key_order is relaxed, so no message keeps back those behind it; there is nothing to "
            b"skip", b"NOT_IN_ORDER")
    elif queue.dlq == NULL:
        _refuse(
            core, command, FAILED_PRECONDITION,
            b"queue: it has no dead-letter queue that a skipped message could go to; purge the key instead",
            b"NO_DLQ")
    else:
        return False
    return True


cdef void skip_message(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Slice text = fields.text[v1.SKIP_MESSAGE_REQUEST_FAIRNESS_KEY]
    cdef Slice id_text = fields.text[v1.SKIP_MESSAGE_REQUEST_MESSAGE_ID]
    cdef Key* key = <Key*> textmap_get(&queue.keys, text.at, text.length)
    cdef Flow* flow = NULL
    cdef Slot* slot = NULL
    cdef uint64_t high = 0, low = 0, head_high, head_low
    cdef bint has_id = uuid_parse(id_text, &high, &low)
    if _refused(core, command, fields, queue):
        return
    if id_text.length and not has_id:
        _refuse(
            core, command, INVALID_ARGUMENT,
            b"message_id: must be a UUID of 36 characters, or left out", b"INVALID_FIELD")
        return
    if key != NULL:
        flow = flow_find(key, channel_find(queue, fields.text[v1.SKIP_MESSAGE_REQUEST_CHANNEL]))
    if flow == NULL or flow.backlog == 0 and flow.in_flight == 0 and flow_retrying(flow) == 0:
        _refuse(
            core, command, NOT_FOUND,
            b"fairness_key: none of its messages waits or is leased in this channel", b"MESSAGE_NOT_FOUND")
        return
    slot = _head(core, flow, has_id, high, low)
    if slot == NULL:
        _refuse(
            core, command, FAILED_PRECONDITION,
            b"fairness_key: its first message failed, and what becomes of it is being decided; try again "
            b"shortly, or name the message in message_id", b"NOT_THE_FIRST")
        return
    frame_id(frame_of(slot), slot.index, &head_high, &head_low)
    if has_id and (high != head_high or low != head_low):
        _refuse(
            core, command, FAILED_PRECONDITION,
            b"message_id: another message is the key's first by now; explain names it", b"NOT_THE_FIRST")
        return
    _skip(core, command, slot)


cdef void _skip(Core* core, Command* command, Slot* slot) noexcept nogil:
    cdef OpenReply* reply = reply_open(core, command.token, REPLY, True)
    buffer_init(&reply.payload)
    _put_id(&reply.payload, v1.SKIP_MESSAGE_RESPONSE_MESSAGE_ID, slot)
    put_number_field(
        &reply.payload, v1.SKIP_MESSAGE_RESPONSE_OFFSET, frame_offset(frame_of(slot), slot.index))
    answer_audited(core)        # the answer may have to wait for the message's bytes
    core.revoking = b"SKIPPED"
    slot_skip(core, slot, reply)
    core.revoking = NULL
    reply_close(core, reply)
