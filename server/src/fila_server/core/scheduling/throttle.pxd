"""Throttle keys and the distinct sets of them that messages carry, each kept once; and which limit a key has.

A key that no message names any more is *idle* as long as something of its limit is used. Of a pattern any
number of names may be met, so an idle one goes once it is full, a second at the earliest, and the one that is
idle for longest goes when there are IDLE_MAX.
"""

from libc.stdint cimport uint32_t

from fila_server.core.state.limits cimport Limit
from fila_server.core.state.state cimport Core, ThrottleKey, ThrottleSet
from fila_server.core.structures.buffer cimport Slice

cdef enum:
    IDLE_MAX = 1000000

cdef ThrottleKey* throttle_key_intern(Core* core, Slice name) noexcept nogil
# Something that kept it ended: it goes, or is idle.
cdef void throttle_key_drop_if_idle(Core* core, ThrottleKey* key) noexcept nogil
# Its timer came while nothing names it.
cdef void throttle_key_look(Core* core, ThrottleKey* key) noexcept nogil
# The limit of its name, else of the pattern with the longest beginning, else LimitTable.none.
cdef Limit* limit_nearest(Core* core, Slice name) noexcept nogil
# From now on it has this limit. Nobody is woken: see limits.pxd.
cdef void throttle_key_belongs(Core* core, ThrottleKey* key, Limit* limit) noexcept nogil
# The set of these keys (at most 16; repeated ones count once), with one more reference; NULL for none.
cdef ThrottleSet* set_intern(Core* core, const Slice* names, uint32_t count) noexcept nogil
cdef void set_release(Core* core, ThrottleSet* set) noexcept nogil
