"""Lines of memory that are asked for before they are needed. A hint: what `at` points to is not read, so it
may be anything. With a million keys nearly every line of one is far from memory's caches, and a look costs as
much as a hundred instructions unless it was asked for a few messages before.
"""

from fila_server.core.structures.maps cimport Text, TextMap

cdef extern from *:
    """
    /* The empty statement of assembly is an effect: a function that does nothing but ask would have none, and
    the compiler would leave out every call of it. */
    #define fila_prefetch(at) do { __builtin_prefetch((at), 1); __asm__ volatile (""); } while (0)
    """
    void prefetch "fila_prefetch" (const void* at) noexcept nogil

cdef inline void prefetch_lines(const char* at) noexcept nogil:
    """Four of 64 bytes, from `at` on."""
    prefetch(at)
    prefetch(at + 64)
    prefetch(at + 128)
    prefetch(at + 192)

cdef inline void prefetch_cell(const TextMap* map, const Text* text) noexcept nogil:
    """Where the text stands in its map, or would stand; its hash is read."""
    prefetch(&map.cells[text.hash & (map.capacity - 1)])
