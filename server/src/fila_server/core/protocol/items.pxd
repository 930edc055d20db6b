"""One message of a frame taken apart: where its bytes lie, what its options say, or why it is refused."""

from libc.stdint cimport uint32_t

from fila_server.core.protocol.protobuf cimport Item
from fila_server.core.protocol.refusals cimport Limits
from fila_server.core.structures.buffer cimport Buffer, Slice

# Walks one EnqueueRequest or EnqueueMessage. `spare` takes a rewritten body where headers and
# payload were not one run of bytes; item.at then counts from `spare_base`.
cdef void item_parse(
    Item* item, const char* frame, Slice message, Buffer* spare, uint32_t spare_base,
    const Limits* limits) noexcept nogil
