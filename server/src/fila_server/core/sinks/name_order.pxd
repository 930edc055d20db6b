"""Sinks in the order of their names: a page of a listing costs what is on it, however many sinks there are.

One array of pointers. A new sink moves those behind it by one place, 80 KB of them at the default bound; an
opening puts all in order at once.
"""

from libc.stdint cimport uint32_t

from fila_server.core.state.sinks cimport Sink
from fila_server.core.state.state cimport Core
from fila_server.core.structures.buffer cimport Slice

# Where the first stands whose name is not below this one; in_order_count where none does.
cdef uint32_t name_place(Core* core, Slice name) noexcept nogil
cdef bint name_is(Sink* sink, Slice name) noexcept nogil
cdef void name_put(Core* core, Sink* sink) noexcept nogil
cdef void name_remove(Core* core, Sink* sink) noexcept nogil
cdef void names_put_all(Core* core) noexcept nogil              # of a table that has just been read
cdef void names_forget(Core* core) noexcept nogil
