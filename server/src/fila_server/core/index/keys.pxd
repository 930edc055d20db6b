"""Fairness keys of a queue, each kept once for as long as a message,
an operator's setting or a flow needs it."""

from fila_server.core.state.state cimport Core, Key, Queue
from fila_server.core.structures.buffer cimport Slice

# --- interned texts
cdef Key* key_intern(Core* core, Queue* queue, Slice text) noexcept nogil
cdef void key_release(Core* core, Key* key) noexcept nogil
cdef void key_drop_if_idle(Core* core, Key* key) noexcept nogil
# What its record says, of either version.
cdef void key_recover(Core* core, Key* key, const char* value, size_t length) noexcept nogil
