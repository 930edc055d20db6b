"""What the system is told of the pages that memory lies in."""

from libc.stdint cimport uintptr_t

cdef extern from "<sys/mman.h>" nogil:
    int madvise(void* at, size_t length, int advice)
    enum:
        MADV_DONTNEED
        MADV_HUGEPAGE

cdef enum:
    PAGE_BYTES = 4096
    HUGE_FROM_BYTES = 4194304       # two huge pages of 2 MiB: one of them lies within, wherever it begins

cdef inline void pages_huge(void* at, size_t length) noexcept nogil:
    """Of large memory where every look lands on another page: on small ones finding the page costs more than
    the look. A wish: the system may have none, or be told to give none."""
    cdef size_t skipped = (PAGE_BYTES - <uintptr_t> at % PAGE_BYTES) % PAGE_BYTES
    if length >= HUGE_FROM_BYTES:
        madvise(<char*> at + skipped, (length - skipped) // PAGE_BYTES * PAGE_BYTES, MADV_HUGEPAGE)
