from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.index.holders cimport holder_bound, holder_told
from fila_server.core.lifecycle.answers cimport answer
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.commands cimport OK
from fila_server.core.protocol.protobuf cimport Fields, fields_parse, next_field, put_nested, put_number_field
from fila_server.core.state.pending cimport Holder
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_free, buffer_init
from fila_server.core.structures.maps cimport map64_get


cdef void _bound_and_tell(Core* core, const Fields* asked, Buffer* told) noexcept nogil:
    cdef Holder* holder = <Holder*> map64_get(&core.holders, asked.number[seam.HOLDER_PRINCIPAL])
    if holder == NULL:                  # nothing of it is here; it brings its bound along
        return
    holder_bound(core, holder, <uint32_t> asked.number[seam.HOLDER_MOST])
    put_number_field(told, seam.HELD_ROW_IN_FLIGHT, holder.in_flight)
    put_number_field(told, seam.HELD_ROW_REFUSED, holder.refused)
    holder_told(core, holder)


cdef void in_flight_command(Core* core, Command* command) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields asked
    cdef Buffer row
    cdef Buffer b
    buffer_init(&b)
    buffer_init(&row)
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == seam.HOLDERS_HOLDERS and fields_parse(&asked, text.at, text.length):
            row.length = 0
            _bound_and_tell(core, &asked, &row)
            put_nested(&b, seam.HELD_ROWS, &row)     # an empty one too: the rows answer one by one
    buffer_free(&row)
    answer(core, command.token, OK, &b, False)
