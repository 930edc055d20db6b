"""Memory at one fixed address, so that all that lies in it can be written down and be taken up again by
another process as it was, pointers and all.

Only a replay that makes checkpoints, or begins at one, has an arena (checkpoint.pyx); a broker has none.
What is handed out is zero, and so is what was given back: the same course leaves the same bytes, and pages
of zeros need not be written down.

    0x2000_0000_0000   Arena: how much is used, blocks to be used again by their size
                       block: its size class, then its bytes; one behind the other
"""

from libc.stdint cimport uint64_t

cdef enum:
    ARENA_CLASSES = 96              # sizes up to 1 KiB in steps of 16 bytes, above in powers of two
    ARENA_PAGE_BYTES = 4096

cdef struct Arena:
    uint64_t used                   # bytes from its beginning on, this struct's included
    void*    root                   # where what lies here is to be entered from
    void*    unused[ARENA_CLASSES]  # blocks that were given back; each begins with the next one's address

# The process's arena, empty; NULL where the system does not give this address range.
cdef Arena* arena_open() noexcept nogil
cdef bint arena_holds(const void* at) noexcept nogil
# From here on the functions below take from the arena; before, and for what is not of it, they are the C
# library's.
cdef void arena_begin() noexcept nogil
cdef void* arena_malloc(size_t size) noexcept nogil
cdef void* arena_calloc(size_t count, size_t size) noexcept nogil
cdef void* arena_realloc(void* old, size_t size) noexcept nogil
cdef void arena_free(void* at) noexcept nogil
cdef size_t arena_size(const void* at) noexcept nogil       # of a block: as much as may be used of it
