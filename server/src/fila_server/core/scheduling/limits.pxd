"""The table of limits: one is set or deleted, and what waits at its throttle keys feels it.

    exact name   its throttle key, if there is one, at once
    pattern      keys that have it, and those that have the next shorter one or none: in pieces, pass by pass

New keys have what the table says, so a walk ends. Until it has come to a key, that one counts as before.
"""

from fila_server.core.state.limits cimport Limit, LimitTerms
from fila_server.core.state.state cimport Core
from fila_server.core.structures.buffer cimport Slice

cdef void limits_init(Core* core) noexcept nogil
# To the history, each of them.
cdef void limits_reported(Core* core) noexcept nogil
# The limit of just this name, or NULL; made where there is none.
cdef Limit* limit_find(Core* core, Slice name) noexcept nogil
cdef Limit* limit_of(Core* core, Slice name) noexcept nogil
# Its terms are these; where they say nothing and no half of a short form is left, it goes.
cdef void limit_set(Core* core, Limit* limit, const LimitTerms* terms) noexcept nogil
cdef bint limit_says_something(const LimitTerms* terms) noexcept nogil
# A stage: a piece of each walk. True: there is more.
cdef bint limits_turn(Core* core) noexcept nogil
