"""One thread uses it: a replay has no other that would."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from fila_server.core.structures.pages cimport MADV_DONTNEED, madvise

cdef extern from "<sys/mman.h>" nogil:
    void* mmap(void* at, size_t length, int protection, int flags, int descriptor, long offset)
    enum:
        PROT_READ
        PROT_WRITE
        MAP_PRIVATE
        MAP_ANONYMOUS
        MAP_NORESERVE
        MAP_FIXED_NOREPLACE

cdef uint64_t PLACE = 0x200000000000       # between a program's heap and its libraries, on every 64 bit Linux
cdef uint64_t BYTES_MAX = <uint64_t> 1 << 36

cdef enum:
    HEAD_BYTES = 16                         # keeps blocks aligned as malloc's are
    STEP_BYTES = 16
    SMALL_BYTES_MAX = 1024
    SMALL_CLASSES = 64
    LARGE_BYTES_MIN = 131072                # from here on pages are given back to the system

cdef Arena* arena = NULL
cdef bint serves = False
# As this module was linked with them: others may be told to call the functions below in their place.
cdef void* (*of_libc_malloc)(size_t) noexcept nogil
cdef void* (*of_libc_calloc)(size_t, size_t) noexcept nogil
cdef void* (*of_libc_realloc)(void*, size_t) noexcept nogil
cdef void (*of_libc_free)(void*) noexcept nogil
of_libc_malloc, of_libc_calloc, of_libc_realloc, of_libc_free = malloc, calloc, realloc, free


cdef Arena* arena_open() noexcept nogil:
    global arena
    cdef void* got
    if arena == NULL:
        got = mmap(
            <void*> PLACE, BYTES_MAX, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0)
        if <uint64_t> got != PLACE:         # an old kernel takes the address for a wish
            return NULL
        arena = <Arena*> got
        arena.used = (sizeof(Arena) + HEAD_BYTES - 1) // HEAD_BYTES * HEAD_BYTES
    return arena


cdef void arena_begin() noexcept nogil:
    global serves
    serves = True


cdef bint arena_holds(const void* at) noexcept nogil:
    return PLACE <= <uint64_t> at < PLACE + BYTES_MAX


cdef inline uint64_t _class_of(size_t size) noexcept nogil:
    cdef uint64_t found = SMALL_CLASSES
    if size <= SMALL_BYTES_MAX:
        return (size + STEP_BYTES - 1) // STEP_BYTES - 1 if size else 0
    while _bytes_of(found) < size:
        found += 1
    return found


cdef inline size_t _bytes_of(uint64_t number) noexcept nogil:
    if number < SMALL_CLASSES:
        return (number + 1) * STEP_BYTES
    return <size_t> 2 * SMALL_BYTES_MAX << (number - SMALL_CLASSES)


cdef size_t arena_size(const void* at) noexcept nogil:
    return _bytes_of((<const uint64_t*> (<const char*> at - HEAD_BYTES))[0])


cdef void* arena_malloc(size_t size) noexcept nogil:
    cdef uint64_t number
    cdef char* at
    if not serves:
        return of_libc_malloc(size)
    if size > BYTES_MAX // 4:
        return NULL
    number = _class_of(size)
    at = <char*> arena.unused[number]
    if at != NULL:
        arena.unused[number] = (<void**> at)[0]
        (<void**> at)[0] = NULL
        return at
    if arena.used + HEAD_BYTES + _bytes_of(number) > BYTES_MAX:
        return NULL
    at = <char*> arena + arena.used
    (<uint64_t*> at)[0] = number
    arena.used += HEAD_BYTES + _bytes_of(number)
    return at + HEAD_BYTES


cdef void* arena_calloc(size_t count, size_t size) noexcept nogil:
    if not serves:
        return of_libc_calloc(count, size)
    if size and count > BYTES_MAX // size:
        return NULL
    return arena_malloc(count * size)


cdef void* arena_realloc(void* old, size_t size) noexcept nogil:
    cdef void* made
    cdef size_t before
    if old == NULL:
        return arena_malloc(size)
    if not arena_holds(old):
        return of_libc_realloc(old, size)
    before = arena_size(old)
    if size <= before and (size > before // 2 or before <= SMALL_BYTES_MAX):
        return old
    made = arena_malloc(size)
    if made != NULL:
        memcpy(made, old, min(size, before))
        arena_free(old)
    return made


cdef void arena_free(void* at) noexcept nogil:
    cdef size_t size
    cdef uint64_t number, begins, ends
    if not arena_holds(at):
        of_libc_free(at)
        return
    size = arena_size(at)
    number = (<uint64_t*> (<char*> at - HEAD_BYTES))[0]
    begins = <uint64_t> at
    if size >= LARGE_BYTES_MIN:
        begins = (begins + ARENA_PAGE_BYTES - 1) // ARENA_PAGE_BYTES * ARENA_PAGE_BYTES
        ends = (<uint64_t> at + size) // ARENA_PAGE_BYTES * ARENA_PAGE_BYTES
        madvise(<void*> begins, ends - begins, MADV_DONTNEED)
        memset(at, 0, begins - <uint64_t> at)
        memset(<void*> ends, 0, <uint64_t> at + size - ends)
    else:
        memset(at, 0, size)
    (<void**> at)[0] = arena.unused[number]
    arena.unused[number] = at
