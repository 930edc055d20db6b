"""Why a request is refused as a whole: what its sender is told, and the checks of a field that say so."""

from libc.stdint cimport int32_t

from fila_server.core.structures.buffer cimport Slice

cdef struct Problem:
    int32_t code
    char    reason[32]
    char    text[384]
    int32_t retry_ms                # of RESOURCE_EXHAUSTED; 0 = not told

cdef inline const char* release_alone() noexcept nogil:
    """What a nack is told that asks for two things at once."""
    return (
        b"release: not together with dead_letter or delay_ms; a message that did "
        b"not fail goes back as it was"
    )

# INVALID_ARGUMENT; `text` may have one %llu, which becomes `bound`.
cdef void problem_is(
    Problem* p, const char* reason, const char* text, unsigned long long bound) noexcept nogil
# Whether this is a name of a queue, a channel or a sink; else `p` says which field is to be mended.
cdef bint name_checked(Problem* p, Slice name, const char* field) noexcept nogil
