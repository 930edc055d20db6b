"""Two hash maps for the scheduler thread: by number, and by text.

Open addressing, linear probing, power-of-two capacity, at most 3/4 full. A removal shifts its followers back,
so there are no tombstones and a map that was large once is not slow for ever; it gives memory back as it
empties. Out of memory aborts, as everywhere in the core. Neither may be changed between two calls of `next`.
"""

from libc.stdint cimport uint32_t, uint64_t

cdef struct Cell64:
    uint64_t key
    void*    value             # NULL = empty cell, so every key may be used, 0 too


cdef struct Map64:             # number -> pointer
    Cell64*  cells
    uint32_t count
    uint32_t capacity          # cells: 0 or a power of two


cdef packed struct Text:       # embedded FIRST in whatever is found by text; packed, so that what follows
    uint64_t hash              # it may begin behind its 20 bytes. `hash` is filled in by textmap_put
    const char* bytes          # owned by the embedder
    uint32_t length


cdef struct TextMap:           # text -> Text*
    uint64_t* cells            # address and two pieces of the hash; 0 = empty
    uint32_t count
    uint32_t capacity
    uint32_t reach             # no text stands farther than this behind the cell its hash names


cdef void map64_init(Map64* map) noexcept nogil
cdef void map64_free(Map64* map) noexcept nogil
cdef void map64_put(Map64* map, uint64_t key, void* value) noexcept nogil # value not NULL; replaces
cdef void* map64_get(Map64* map, uint64_t key) noexcept nogil             # NULL when absent
cdef void* map64_remove(Map64* map, uint64_t key) noexcept nogil          # the removed value, or NULL
# start with cursor 0; NULL at the end
cdef void* map64_next(Map64* map, uint32_t* cursor) noexcept nogil

# Texts come from outside. The seed makes it impossible to choose a million of them that collide; set it once,
# before the first text is hashed: a later change would hide what is already in a map.
cdef void maps_seed(uint64_t seed) noexcept nogil
cdef uint64_t text_hash(const char* text, uint32_t length) noexcept nogil

cdef void textmap_init(TextMap* map) noexcept nogil
# the texts belong to their embedders
cdef void textmap_free(TextMap* map) noexcept nogil
cdef void textmap_put(TextMap* map, Text* text) noexcept nogil            # replaces one of equal bytes
cdef Text* textmap_get(TextMap* map, const char* text, uint32_t length) noexcept nogil
cdef Text* textmap_get_hashed(TextMap* map, const char* text, uint32_t length, uint64_t hash) noexcept nogil
# this very Text, or NULL when it is not in
cdef Text* textmap_remove(TextMap* map, Text* text) noexcept nogil
cdef Text* textmap_next(TextMap* map, uint32_t* cursor) noexcept nogil
