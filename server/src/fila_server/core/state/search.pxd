"""What a page of messages is to show, and what was found for it so far."""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.state cimport Channel, Slot
from fila_server.core.structures.buffer cimport Slice

cdef struct Search:                 # what a page is to show; made anew in each pass
    Channel* channel
    Slice    key                    # empty = any
    bint     lists                  # says what each is doing, also of those that are leased; needs no bytes
    uint64_t after_offset
    uint64_t to_offset
    uint32_t most
    uint32_t count
    uint64_t bytes
    Slot**   slots
