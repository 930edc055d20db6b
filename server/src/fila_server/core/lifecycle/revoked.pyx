"""Ids gather in their consumer, one frame a reason and pass."""

from libc.stdint cimport uint32_t
from libc.string cimport strlen

from fila_server.core.lifecycle.answers cimport emit
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport FRAME, NOTICE, OK
from fila_server.core.protocol.protobuf cimport put_nested, put_number_field, put_text_field
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, buffer_free, buffer_init, put_varint, take_slice, take_varint,
)


cdef void lease_revoke(Core* core, Lease* lease) noexcept nogil:
    """Only those are told who keep account of their leases, and of
    messages that were on their way to them."""
    cdef const char* why = b"LEASE_LOST"
    if lease.consumer == NULL or not lease.consumer.tracks_begun or lease.consumer.token == 0:
        return
    if lease.delivery != NULL and not lease.delivery.sent:
        return
    if core.revoking != NULL:
        why = core.revoking
    revoked_note(core, lease.consumer, lease.lease_id, why)


cdef void revoked_note(
        Core* core, Consumer* consumer, unsigned long long lease_id, const char* why) noexcept nogil:
    if consumer.revoked.length and consumer.revoked_why != why:
        revoked_report(core, consumer)
    if not consumer.reported:
        consumer.reported = True
        consumer.next_reported = core.reported
        core.reported = consumer
    consumer.revoked_why = why
    put_varint(&consumer.revoked, lease_id)


cdef void revoked_report(Core* core, Consumer* consumer) noexcept nogil:
    cdef Buffer revoked
    cdef Buffer payload
    cdef Slice why
    if consumer.revoked.length == 0:
        return
    buffer_init(&revoked)
    buffer_init(&payload)
    put_nested(&revoked, v1.CONSUME_SESSION_RESPONSE_REVOKED_LEASE_IDS, &consumer.revoked)          # packed
    why.at, why.length = consumer.revoked_why, <uint32_t> strlen(consumer.revoked_why)
    put_text_field(&revoked, v1.CONSUME_SESSION_RESPONSE_REVOKED_REASON, why)
    put_nested(&payload, v1.CONSUME_SESSION_RESPONSE_REVOKED, &revoked)
    buffer_free(&revoked)
    consumer.revoked.length = 0
    if consumer.token:
        emit(core, consumer.token, FRAME, OK, &payload, False)
    else:
        buffer_free(&payload)


cdef void revoked_flush(Core* core) noexcept nogil:
    cdef Consumer* consumer = core.reported
    core.reported = NULL
    if core.limit_table.crossed.length:
        _budgets_report(core)
    while consumer != NULL:
        consumer.reported = False
        revoked_report(core, consumer)
        consumer = consumer.next_reported


cdef void _budgets_report(Core* core) noexcept nogil:
    cdef Buffer* crossed = &core.limit_table.crossed
    cdef Cursor c
    cdef Buffer payload
    c.at, c.end, c.bad = crossed.data, crossed.data + crossed.length, False
    while c.at < c.end and not c.bad:
        buffer_init(&payload)
        put_number_field(&payload, seam.NOTICE_WHAT, LIMIT_BUDGET)
        put_number_field(&payload, seam.NOTICE_NUMBER, take_varint(&c))
        put_number_field(&payload, seam.NOTICE_UNREPORTED, take_varint(&c))
        put_text_field(&payload, seam.NOTICE_QUEUE, take_slice(&c, take_varint(&c)))
        put_text_field(&payload, seam.NOTICE_CHANNEL, take_slice(&c, take_varint(&c)))
        emit(core, 0, NOTICE, OK, &payload, False)
    crossed.length = 0


cdef void revoked_forget(Core* core, Consumer* consumer) noexcept nogil:
    cdef Consumer** link = &core.reported
    if consumer.reported:
        while link[0] != consumer:
            link = &link[0].next_reported
        link[0] = consumer.next_reported
        consumer.reported = False
    buffer_free(&consumer.revoked)


# --- what happened by itself -----------------------------------------------------------------
# An event to the edge, as a script's is; nobody waits for it.

cdef void notice_of(Core* core, int what, Slice name, uint64_t number) noexcept nogil:
    cdef Buffer payload
    buffer_init(&payload)
    put_number_field(&payload, seam.NOTICE_WHAT, <uint64_t> what)
    put_text_field(&payload, seam.NOTICE_QUEUE, name)
    put_number_field(&payload, seam.NOTICE_NUMBER, number)
    emit(core, 0, NOTICE, OK, &payload, False)


cdef void notice(Core* core, int what, Queue* queue, Channel* channel, uint64_t number) noexcept nogil:
    cdef Buffer payload
    cdef Slice text
    buffer_init(&payload)
    put_number_field(&payload, seam.NOTICE_WHAT, <uint64_t> what)
    text.at, text.length = queue.text.bytes, queue.text.length
    put_text_field(&payload, seam.NOTICE_QUEUE, text)
    if channel != NULL:
        text.at, text.length = channel.text.bytes, channel.text.length
        put_text_field(&payload, seam.NOTICE_CHANNEL, text)
    put_number_field(&payload, seam.NOTICE_NUMBER, number)
    emit(core, 0, NOTICE, OK, &payload, False)
