"""Throttle keys and the distinct sets of them that messages carry, each kept once."""

from libc.stdint cimport uint32_t

from fila_server.core.state.state cimport Core, ThrottleKey, ThrottleSet
from fila_server.core.structures.buffer cimport Slice

cdef ThrottleKey* throttle_key_intern(Core* core, Slice name) noexcept nogil
cdef void throttle_key_drop_if_idle(Core* core, ThrottleKey* bucket) noexcept nogil
# The set of these keys (at most 16; repeated ones count once), with one more reference; NULL for none.
cdef ThrottleSet* set_intern(Core* core, const Slice* names, uint32_t count) noexcept nogil
cdef void set_release(Core* core, ThrottleSet* set) noexcept nogil
