"""The one parse: a request's bytes become a Command, or a reason why not.

Runs on the submitting thread, without the GIL, before the mailbox is touched. What it
checks nobody checks again: names, sizes, counts, UTF-8, options.
"""

from libc.stdint cimport int32_t, uint64_t

from fila_server.core.protocol.problem cimport Problem
from fila_server.core.protocol.refusals cimport Limits
from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.threads.mailbox cimport Command

# Puts rewritten bytes behind the frame's own, and moves every slice to the frame's new place.
cdef void spare_adopt(Command* command, Buffer* spare) noexcept nogil
# NULL with `problem` filled when the request as a whole is refused.
cdef Command* command_parse(
    int32_t kind, uint64_t token, const char* bytes, size_t length, const Limits* limits,
    Problem* problem) noexcept nogil
# The same of bytes that came from malloc, without copying them; they are freed when the request is refused.
cdef Command* command_parse_adopted(
    int32_t kind, uint64_t token, char* bytes, size_t length, const Limits* limits,
    Problem* problem) noexcept nogil
