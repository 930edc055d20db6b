from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from fila_server.core.lifecycle.answers cimport answer
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.commands cimport OK
from fila_server.core.protocol.protobuf cimport VARINT, next_field, put_number_field, put_tag
from fila_server.core.state.state cimport Key, Queue
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_init, put_varint
from fila_server.core.structures.maps cimport text_hash, textmap_get_hashed, textmap_next

cdef enum:
    KEYS_MAX = 64
    QUEUES_A_PART = 512             # 32,768 look-ups in one command; some milliseconds of a pass


cdef void stored_command(Core* core, Command* command) noexcept nogil:
    cdef Slice[KEYS_MAX] names
    cdef uint64_t[KEYS_MAX] hashes
    cdef uint64_t[KEYS_MAX] stored
    cdef Cursor c
    cdef Slice text
    cdef Buffer b
    cdef Queue* queue
    cdef Key* key
    cdef uint64_t number
    cdef uint32_t field, kind, i, queues = 0, count = 0, cursor = 0
    memset(stored, 0, sizeof(stored))
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == seam.STORED_PAGE_KEYS and count < KEYS_MAX:
            names[count] = text
            hashes[count] = text_hash(text.at, text.length)
            count += 1
        elif field == seam.STORED_PAGE_CURSOR:
            cursor = <uint32_t> number
    while queues < QUEUES_A_PART:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            break
        queues += 1
        for i in range(count):
            key = <Key*> textmap_get_hashed(&queue.keys, names[i].at, names[i].length, hashes[i])
            if key != NULL:
                stored[i] += key.stored_bytes
    buffer_init(&b)
    for i in range(count):
        # Zeros too: the numbers answer the keys one by one.
        put_tag(&b, seam.STORED_BYTES_STORED, VARINT)
        put_varint(&b, stored[i])
    put_number_field(&b, seam.STORED_BYTES_CURSOR, cursor if queues == QUEUES_A_PART else 0)
    put_number_field(&b, seam.STORED_BYTES_CAPACITY, core.queues.capacity)
    answer(core, command.token, OK, &b, False)
