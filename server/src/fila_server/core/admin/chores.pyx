"""Purges remember the offset they have come to, so a frame that goes or is written anew in between is
no matter.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.admin.deleting cimport channels_clear
from fila_server.core.admin.step_budget cimport STEPS_PER_WORK
from fila_server.core.index.key_defaults cimport defaults_forget
from fila_server.core.lifecycle.answers cimport answer, answer_audited, answer_no_channel, answer_no_queue
from fila_server.core.lifecycle.ending cimport slot_done
from fila_server.core.lifecycle.seek cimport channel_rebuild
from fila_server.core.lifecycle.settle cimport lease_given_back
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport OK, PURGE_QUEUE
from fila_server.core.protocol.protobuf cimport Fields, channel_field, fields_parse, put_number_field
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.directory cimport directory_at, queue_revealed_below
from fila_server.core.state.kinds cimport DELAYED, LEASED, READY
from fila_server.core.state.paths cimport channel_find, frame_last_offset, frame_offset, share_find
from fila_server.core.state.pending cimport Chore
from fila_server.core.state.state cimport Channel, Frame, Key, Lease, Share, Slot
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_init, must_malloc
from fila_server.core.structures.maps cimport map64_get, textmap_get
from fila_server.core.threads.mailbox cimport command_free


# --- one after the other ---------------------------------------------------------------------

cdef bint chore_waits(Core* core, Queue* queue, Command* command) noexcept nogil:
    cdef Chore* last = queue.chore
    cdef Chore* behind
    if last == NULL:
        return False
    behind = <Chore*> must_malloc(sizeof(Chore))
    memset(behind, 0, sizeof(Chore))
    behind.command = command
    while last.behind != NULL:
        last = last.behind
    last.behind = behind
    return True


cdef void _list(Core* core, Chore* chore) noexcept nogil:
    chore.next = NULL
    if core.chores_last == NULL:
        core.chores = chore
    else:
        core.chores_last.next = chore
    core.chores_last = chore


cdef void _free(Chore* chore) noexcept nogil:
    if chore.command != NULL:
        command_free(chore.command)
    free(chore.channels)
    free(chore)


cdef void _hand_back(Core* core, Chore* behind) noexcept nogil:
    """The commands that waited run again, before whatever has come since."""
    cdef Command** at = &core.postponed
    cdef Command* rest = core.postponed
    cdef Chore* following
    while behind != NULL:
        following = behind.behind
        at[0] = behind.command
        at = &behind.command.next
        behind.command = NULL
        _free(behind)
        behind = following
    at[0] = rest


cdef void remains_begin(Core* core, Queue* queue) noexcept nogil:
    cdef Chore* chore
    if channels_clear(core, queue):     # as most are
        return
    chore = <Chore*> must_malloc(sizeof(Chore))
    memset(chore, 0, sizeof(Chore))
    chore.queue_number = queue.number
    queue.chore = chore
    _list(core, chore)


cdef bint _some(Core* core, Queue* queue, Chore* chore) noexcept nogil:
    return channels_clear(core, queue) if chore.command == NULL else _purge_some(core, queue, chore)


cdef bint chores_turn(Core* core) noexcept nogil:
    cdef Chore* chore = core.chores
    cdef Chore* last = core.chores_last
    cdef Chore* behind
    cdef Queue* queue
    cdef bint is_last = False
    while chore != NULL and not is_last and stage_goes_on(core):
        is_last = chore == last
        core.chores = chore.next
        if core.chores == NULL:
            core.chores_last = NULL
        queue = <Queue*> map64_get(&core.queues_by_number, chore.queue_number)
        if queue == NULL and chore.command != NULL:     # a dead-letter queue, which went with its queue
            answer_no_queue(core, chore.command)
        if queue == NULL or _some(core, queue, chore):
            behind = chore.behind
            if queue != NULL:
                queue.chore = NULL
            _free(chore)
            _hand_back(core, behind)
        else:
            _list(core, chore)
        chore = core.chores
    return core.chores != NULL or core.postponed != NULL


cdef void chores_forget(Core* core) noexcept nogil:
    cdef Chore* chore
    cdef Chore* behind
    defaults_forget(core)
    while core.chores != NULL:
        chore = core.chores
        core.chores = chore.next
        while chore != NULL:
            behind = chore.behind
            _free(chore)
            chore = behind
    core.chores_last = NULL


# --- purge -----------------------------------------------------------------------------------

cdef Slice _key_of(Command* command, Fields* fields, bint* all_keys) noexcept nogil:
    cdef int field = v1.PURGE_CHANNEL_REQUEST_FAIRNESS_KEY
    if command.kind == PURGE_QUEUE:
        field = v1.PURGE_QUEUE_REQUEST_FAIRNESS_KEY
    all_keys[0] = fields.seen & (1 << field) == 0
    return fields.text[field]


cdef void purge_begin(Core* core, Queue* queue, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Channel* channel
    cdef Chore* chore
    fields_parse(&fields, command.bytes, command.length)
    channel = NULL
    if command.kind != PURGE_QUEUE or fields.seen & (1 << v1.PURGE_QUEUE_REQUEST_CHANNEL):
        channel = channel_find(queue, fields.text[channel_field(command.kind)])
        if channel == NULL:
            answer_no_channel(core, command)
            command_free(command)
            return
    answer_audited(core)                # it has begun: what is gone by a crash in its middle is gone
    chore = <Chore*> must_malloc(sizeof(Chore))
    memset(chore, 0, sizeof(Chore))
    chore.command = command
    chore.queue_number = queue.number
    chore.below = queue_revealed_below(queue)
    chore.channels = <uint64_t*> must_malloc(max(queue.channel_count, <uint32_t> 1) * sizeof(uint64_t))
    if channel != NULL:
        chore.channels[0] = channel.birth
        chore.channel_count = 1
    else:
        channel = queue.channels
        while channel != NULL:
            chore.channels[chore.channel_count] = channel.birth
            chore.channel_count += 1
            channel = channel.next
    if _purge_some(core, queue, chore):     # as most are: where it stands among the pass's commands
        _free(chore)
        return
    queue.chore = chore
    _list(core, chore)


cdef Channel* _channel_at(Queue* queue, Chore* chore) noexcept nogil:
    cdef Channel* channel = queue.channels
    while channel != NULL and channel.birth != chore.channels[chore.channel_at]:
        channel = channel.next
    return channel


cdef bint _purge_some(Core* core, Queue* queue, Chore* chore) noexcept nogil:
    """True: all of it is done, and answered."""
    cdef Fields fields
    cdef Slice text
    cdef Key* key = NULL
    cdef bint all_keys = False
    cdef Channel* channel
    cdef Buffer buffer
    fields_parse(&fields, chore.command.bytes, chore.command.length)
    text = _key_of(chore.command, &fields, &all_keys)
    if not all_keys:
        key = <Key*> textmap_get(&queue.keys, text.at, text.length)
    while chore.channel_at < chore.channel_count:
        channel = _channel_at(queue, chore)
        # The key may go with its last message.
        if channel != NULL and (all_keys or key != NULL) and not _purge_channel(core, channel, chore, key):
            return False
        chore.most = max(chore.most, chore.here)
        chore.here = chore.next_offset = 0
        chore.channel_at += 1
    buffer_init(&buffer)
    put_number_field(&buffer, v1.PURGE_QUEUE_RESPONSE_PURGED, chore.most)
    answer(core, chore.command.token, OK, &buffer, True)
    return True


cdef bint _is_idle(Slot* slot) noexcept nogil:
    cdef Lease* lease
    if slot.state == LEASED:
        lease = <Lease*> slot.owner
        return lease != NULL and (not lease.begun or lease_given_back(lease))
    return slot.state == READY or slot.state == DELAYED


cdef bint _purge_channel(Core* core, Channel* channel, Chore* chore, Key* key) noexcept nogil:
    """Drop what is pending, of one key or of all, and what lies unbegun with consumers; a message
    that somebody works on stays with its holder. False: the stage is over."""
    cdef Frame* frame
    cdef Share* share
    cdef Slot* slot
    cdef uint64_t last
    cdef uint32_t i
    while True:
        if not stage_goes_on(core):
            return False
        frame = directory_at(&channel.queue.directory, chore.next_offset)
        if frame == NULL or frame_offset(frame, 0) >= chore.below:
            return True
        last = frame_last_offset(frame)
        if channel.rebuild_at and last >= channel.rebuild_at and frame.first_offset < channel.log_below:
            channel_rebuild(core, channel)      # it was told to start anew, and has not come this far
            core.counters.work += 1
            continue
        core.counters.work += 1 + frame.count // STEPS_PER_WORK
        share = share_find(frame, channel)
        for i in range(frame.count if share != NULL and share.remaining else 0):
            slot = &share.slots[i]
            if not stage_goes_on(core):
                chore.next_offset = max(chore.next_offset, frame_offset(frame, i))
                return False
            if _is_idle(slot) and (key == NULL or frame.entries[i].key == key):
                core.revoking = b"PURGE"
                slot_done(core, slot)
                core.revoking = NULL
                chore.here += 1
        chore.next_offset = last + 1
