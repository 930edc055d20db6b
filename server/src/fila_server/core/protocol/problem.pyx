"""Texts are written into the struct: nothing is allocated for a request that comes to nothing."""

from libc.stdio cimport snprintf

from fila_server.core.protocol.commands cimport INVALID_ARGUMENT
from fila_server.core.protocol.protobuf cimport name_valid


cdef void problem_is(
        Problem* p, const char* reason, const char* text, unsigned long long bound) noexcept nogil:
    p.code = INVALID_ARGUMENT
    p.retry_ms = 0
    snprintf(p.reason, sizeof(p.reason), b"%s", reason)
    snprintf(p.text, sizeof(p.text), text, bound)


cdef bint name_checked(Problem* p, Slice name, const char* field) noexcept nogil:
    if name_valid(name):
        return True
    p.code = INVALID_ARGUMENT
    snprintf(p.reason, sizeof(p.reason), b"INVALID_FIELD")
    if name.length == 0:
        snprintf(p.text, sizeof(p.text), b"%s: must not be empty", field)
    else:
        snprintf(
            p.text, sizeof(p.text),
            b"%s: a name is 1 to 251 bytes of A-Z a-z 0-9 . _ - and does not start with a dot", field)
    return False
