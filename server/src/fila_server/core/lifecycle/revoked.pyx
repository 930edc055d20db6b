"""Ids gather in their consumer, one frame a reason and pass."""

from libc.stdint cimport uint32_t
from libc.string cimport strlen

from fila_server.core.lifecycle.answers cimport emit
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport FRAME, OK
from fila_server.core.protocol.protobuf cimport put_nested, put_text_field
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_free, buffer_init, put_varint


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
        revoked_tell(core, consumer)
    if not consumer.told:
        consumer.told = True
        consumer.next_told = core.told
        core.told = consumer
    consumer.revoked_why = why
    put_varint(&consumer.revoked, lease_id)


cdef void revoked_tell(Core* core, Consumer* consumer) noexcept nogil:
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
    cdef Consumer* consumer = core.told
    core.told = NULL
    while consumer != NULL:
        consumer.told = False
        revoked_tell(core, consumer)
        consumer = consumer.next_told


cdef void revoked_forget(Core* core, Consumer* consumer) noexcept nogil:
    cdef Consumer** link = &core.told
    if consumer.told:
        while link[0] != consumer:
            link = &link[0].next_told
        link[0] = consumer.next_told
        consumer.told = False
    buffer_free(&consumer.revoked)
