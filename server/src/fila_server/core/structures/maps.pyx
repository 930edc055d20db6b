"""The two maps. Both probe alike; they differ in how a cell is
recognised, so each has its own short loops."""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport abort, calloc, free, malloc
from libc.string cimport memcmp, memcpy

from fila_server.core.structures.pages cimport pages_huge

cdef enum:
    CAPACITY_MIN = 8
    NEAR_BITS = 10
    NEAR = (1 << NEAR_BITS) - 1         # as far as a cell tells where its text belongs

cdef uint64_t TEXT_ADDRESS = (<uint64_t>1 << 48) - 1


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Both halves of the 128-bit product, folded: every bit of either factor reaches every bit of
    the result. */ static inline uint64_t fila_fold(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    static inline uint64_t fila_read8(const char *at) { uint64_t v; memcpy(&v, at, 8); return v; }
    static inline uint64_t fila_read4(const char *at) { uint32_t v; memcpy(&v, at, 4); return v; }
    """
    uint64_t fila_fold(uint64_t a, uint64_t b) noexcept nogil
    uint64_t fila_read8(const char* at) noexcept nogil
    uint64_t fila_read4(const char* at) noexcept nogil


# ---- hashing
# ------------------------------------------------------------------------------------------------

cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15ULL


cdef uint64_t[3] _secret


cdef inline uint64_t _mixed(uint64_t number) noexcept nogil:
    number = (number ^ (number >> 32)) * 0xD6E8FEB86659FD93ULL
    number = (number ^ (number >> 32)) * 0xD6E8FEB86659FD93ULL
    return number ^ (number >> 32)


cdef void maps_seed(uint64_t seed) noexcept nogil:
    cdef int i
    for i in range(3):
        seed += GOLDEN
        _secret[i] = _mixed(seed) | 1


cdef uint64_t text_hash(const char* text, uint32_t length) noexcept nogil:
    """Hash the text in strides of 16 bytes; the last stride may overlap the one before it.

    A factor of 0 would forget all that came before, and is met only by who knows the secrets.
    """
    cdef uint64_t hash = _secret[0] ^ length
    cdef uint64_t first, last
    cdef const char* end = text + length
    if length >= 16:
        while end - text > 16:
            hash = fila_fold(fila_read8(text) ^ _secret[1], fila_read8(text + 8) ^ hash)
            text += 16
        first = fila_read8(end - 16)
        last = fila_read8(end - 8)
    elif length >= 8:
        first = fila_read8(text)
        last = fila_read8(end - 8)
    elif length >= 4:
        first = fila_read4(text)
        last = fila_read4(end - 4)
    elif length > 0:
        first = (<uint64_t>(<unsigned char>text[0]) << 16) | (
            <uint64_t>(<unsigned char>text[length >> 1]) << 8)
        last = <unsigned char>text[length - 1]
    else:
        first = 0
        last = 0
    hash = fila_fold(first ^ _secret[1], last ^ hash)
    return fila_fold(hash ^ _secret[2], _secret[1])


maps_seed(0)                                     # so that a process which never seeds still has odd secrets


# ---- cells
# ------------------------------------------------------------------------------------------------

cdef void* _cells_new(uint32_t capacity, size_t size) noexcept nogil:
    """All empty. Those of a million texts are on 4,096 pages of 4 KiB, or on 8 of 2 MiB."""
    cdef void* cells = calloc(capacity, size)
    if cells != NULL:
        pages_huge(cells, capacity * size)
    return cells


# ---- by number
# ----------------------------------------------------------------------------------------------

cdef void map64_init(Map64* map) noexcept nogil:
    map.cells = NULL
    map.count = 0
    map.capacity = 0


cdef void map64_free(Map64* map) noexcept nogil:
    free(map.cells)
    map64_init(map)


cdef inline uint32_t _home64(Map64* map, uint64_t key) noexcept nogil:
    return <uint32_t>_mixed(key) & (map.capacity - 1)


cdef inline uint32_t _find64(Map64* map, uint64_t key) noexcept nogil:
    """The cell that holds `key`, or the empty one where it belongs. The map has an empty cell."""
    cdef uint32_t at = _home64(map, key)
    while map.cells[at].value != NULL and map.cells[at].key != key:
        at = (at + 1) & (map.capacity - 1)
    return at


cdef bint _resize64(Map64* map, uint32_t capacity) noexcept nogil:
    cdef Cell64* before = map.cells
    cdef uint32_t capacity_before = map.capacity
    cdef uint32_t at
    cdef Cell64* cells = <Cell64*>_cells_new(capacity, sizeof(Cell64))
    if cells == NULL:
        return False
    map.cells = cells
    map.capacity = capacity
    for at in range(capacity_before):
        if before[at].value != NULL:
            map.cells[_find64(map, before[at].key)] = before[at]
    free(before)
    return True


cdef void map64_put(Map64* map, uint64_t key, void* value) noexcept nogil:
    cdef uint32_t at
    if map.capacity > 0:
        at = _find64(map, key)
        if map.cells[at].value != NULL:
            map.cells[at].value = value
            return
    if 4 * (<uint64_t>map.count + 1) > 3 * <uint64_t>map.capacity:
        if not _resize64(map, max(<uint32_t>CAPACITY_MIN, 2 * map.capacity)):
            abort()
    at = _find64(map, key)
    map.cells[at].key = key
    map.cells[at].value = value
    map.count += 1


cdef void* map64_get(Map64* map, uint64_t key) noexcept nogil:
    return map.cells[_find64(map, key)].value if map.capacity > 0 else NULL


cdef void* map64_remove(Map64* map, uint64_t key) noexcept nogil:
    cdef uint32_t gap, at, mask = map.capacity - 1
    cdef void* value
    if map.capacity == 0:
        return NULL
    gap = _find64(map, key)
    value = map.cells[gap].value
    if value == NULL:
        return NULL
    at = gap
    while True:
        at = (at + 1) & mask
        if map.cells[at].value == NULL:
            break
        # A key whose way from home to here leads over the gap would be lost: it fills the gap.
        if ((at - _home64(map, map.cells[at].key)) & mask) >= ((at - gap) & mask):
            map.cells[gap] = map.cells[at]
            gap = at
    map.cells[gap].value = NULL
    map.count -= 1
    if map.capacity > CAPACITY_MIN and 8 * <uint64_t>map.count < map.capacity:
        _resize64(map, map.capacity >> 1)        # when even that fails, the large one stays
    return value


cdef void* map64_next(Map64* map, uint32_t* cursor) noexcept nogil:
    while cursor[0] < map.capacity:
        cursor[0] += 1
        if map.cells[cursor[0] - 1].value != NULL:
            return map.cells[cursor[0] - 1].value
    return NULL


# ---- by text
# ------------------------------------------------------------------------------------------------

cdef void textmap_init(TextMap* map) noexcept nogil:
    map.cells = NULL
    map.count = 0
    map.capacity = 0
    map.reach = 0


cdef void textmap_free(TextMap* map) noexcept nogil:
    free(map.cells)
    textmap_init(map)


# A cell is the text's address in its low 48 bits and 16 bits of its hash above: user space has no
# more on any machine we run on (and 8 bytes a cell instead of 16 is 17 bytes a key at a million keys).
# 6 bits are the hash's highest: where they differ, nobody looks at the text. 10 are its lowest: they tell how
# far a text stands behind its place, so that a removal moves texts without looking at them. With a million
# keys each look is a miss of all caches, and was a quarter of what draining them cost.

cdef inline Text* _text(uint64_t cell) noexcept nogil:
    return <Text*><uintptr_t>(cell & TEXT_ADDRESS)


cdef inline uint64_t _pieces(uint64_t hash) noexcept nogil:
    return hash << (64 - NEAR_BITS) | hash >> (48 + NEAR_BITS) << 48


cdef inline uint64_t _cell(Text* text) noexcept nogil:
    return <uint64_t><uintptr_t>text | _pieces(text.hash)


cdef inline uint32_t _away(TextMap* map, uint32_t at) noexcept nogil:
    """How far the text in this cell stands behind the one its hash names."""
    cdef uint32_t mask = map.capacity - 1
    if map.reach > NEAR:
        return (at - <uint32_t>_text(map.cells[at]).hash) & mask
    return (at - <uint32_t>(map.cells[at] >> (64 - NEAR_BITS))) & mask & NEAR


cdef inline uint32_t _find_text(
        TextMap* map, const char* text, uint32_t length, uint64_t hash) noexcept nogil:
    """The cell that holds the text, or the empty one where it belongs. The map has an empty cell."""
    cdef uint32_t at = <uint32_t>hash & (map.capacity - 1)
    cdef uint64_t pieces = _pieces(hash)
    cdef Text* found
    while True:
        if map.cells[at] == 0:
            return at
        if (map.cells[at] ^ pieces) & ~TEXT_ADDRESS == 0:      # else not even a look at the text
            found = _text(map.cells[at])
            if found.hash == hash and found.length == length and memcmp(found.bytes, text, length) == 0:
                return at
        at = (at + 1) & (map.capacity - 1)


cdef bint _resize_text(TextMap* map, uint32_t capacity) noexcept nogil:
    cdef uint64_t* before = map.cells
    cdef uint32_t capacity_before = map.capacity
    cdef uint32_t i, at, home
    cdef uint64_t* cells = <uint64_t*>_cells_new(capacity, sizeof(uint64_t))
    if cells == NULL:
        return False
    map.cells = cells
    map.capacity = capacity
    map.reach = 0
    for i in range(capacity_before):
        if before[i] != 0:
            home = at = <uint32_t>_text(before[i]).hash & (capacity - 1)
            while cells[at] != 0:                # all are different: the first empty cell is right
                at = (at + 1) & (capacity - 1)
            cells[at] = before[i]
            map.reach = max(map.reach, (at - home) & (capacity - 1))
    free(before)
    return True


cdef void textmap_put(TextMap* map, Text* text) noexcept nogil:
    cdef uint32_t at
    text.hash = text_hash(text.bytes, text.length)
    if map.capacity > 0:
        at = _find_text(map, text.bytes, text.length, text.hash)
        if map.cells[at] != 0:
            map.cells[at] = _cell(text)
            return
    if 4 * (<uint64_t>map.count + 1) > 3 * <uint64_t>map.capacity:
        if not _resize_text(map, max(<uint32_t>CAPACITY_MIN, 2 * map.capacity)):
            abort()
    at = _find_text(map, text.bytes, text.length, text.hash)
    map.cells[at] = _cell(text)
    map.reach = max(map.reach, (at - <uint32_t>text.hash) & (map.capacity - 1))
    map.count += 1


cdef Text* textmap_get(TextMap* map, const char* text, uint32_t length) noexcept nogil:
    return textmap_get_hashed(map, text, length, text_hash(text, length))


cdef Text* textmap_get_hashed(TextMap* map, const char* text, uint32_t length, uint64_t hash) noexcept nogil:
    return _text(map.cells[_find_text(map, text, length, hash)]) if map.capacity > 0 else NULL


cdef Text* textmap_remove(TextMap* map, Text* text) noexcept nogil:
    cdef uint32_t gap, at, mask = map.capacity - 1
    if map.capacity == 0:
        return NULL
    gap = <uint32_t>text.hash & mask
    while _text(map.cells[gap]) != text:
        if map.cells[gap] == 0:
            return NULL
        gap = (gap + 1) & mask
    at = gap
    while True:
        at = (at + 1) & mask
        if map.cells[at] == 0:
            break
        # As in map64_remove: a text reached over the gap fills it.
        if _away(map, at) >= ((at - gap) & mask):
            map.cells[gap] = map.cells[at]
            gap = at
    map.cells[gap] = 0
    map.count -= 1
    if map.capacity > CAPACITY_MIN and 16 * <uint64_t>map.count < map.capacity:     # it looks at every text
        _resize_text(map, map.capacity >> 1)     # when even that fails, the large one stays
    return text


cdef Text* textmap_next(TextMap* map, uint32_t* cursor) noexcept nogil:
    while cursor[0] < map.capacity:
        cursor[0] += 1
        if map.cells[cursor[0] - 1] != 0:
            return _text(map.cells[cursor[0] - 1])
    return NULL


# ---- for tests and benchmarks
# -------------------------------------------------------------------------------

cdef class NumberMap:
    """Numbers to numbers above 0."""

    cdef Map64 map

    def __cinit__(self):
        map64_init(&self.map)

    def __dealloc__(self):
        map64_free(&self.map)

    def put(self, uint64_t key, uint64_t value):
        if value == 0:
            raise ValueError("0 would be a NULL pointer, which means absent")
        map64_put(&self.map, key, <void*>value)

    def get(self, uint64_t key):
        return <uint64_t>map64_get(&self.map, key)

    def remove(self, uint64_t key):
        return <uint64_t>map64_remove(&self.map, key)

    def values(self):
        cdef uint32_t cursor = 0
        cdef void* value = map64_next(&self.map, &cursor)
        cdef list values = []
        while value != NULL:
            values.append(<uint64_t>value)
            value = map64_next(&self.map, &cursor)
        return values

    @property
    def capacity(self):
        return self.map.capacity

    def __len__(self):
        return self.map.count

    def spin(self, uint64_t passes, uint64_t key_count, uint64_t stride):
        """Look up `passes` keys, stride apart below key_count, in one call. Returns how many there were."""
        cdef uint64_t i, found = 0, key = 0
        with nogil:
            for i in range(passes):
                found += map64_get(&self.map, key) != NULL
                key = (key + stride) % key_count
        return found


cdef class TextTable:
    """A set of texts, each copied in, so that two of equal bytes can be told apart by number."""

    cdef TextMap map
    cdef dict _owned                             # number -> address, for the texts that were put

    def __cinit__(self):
        textmap_init(&self.map)
        self._owned = {}

    def __dealloc__(self):
        textmap_free(&self.map)
        for address in self._owned.values():
            free(<void*><uint64_t>address)

    def put(self, uint64_t number, bytes text):
        cdef uint32_t length = len(text)
        if number in self._owned:
            raise ValueError(f"text {number} was put before")
        cdef Text* owned = <Text*>malloc(sizeof(Text) + length)
        if owned == NULL:
            raise MemoryError()
        memcpy(<char*>owned + sizeof(Text), <const char*>text, length)
        owned.bytes = <char*>owned + sizeof(Text)
        owned.length = length
        self._owned[number] = <uint64_t>owned
        textmap_put(&self.map, owned)

    def _number(self, uint64_t address):
        for number, owned in self._owned.items():
            if owned == address:
                return number
        return None

    def get(self, bytes text):
        """The number under which the text was put, or None."""
        return self._number(<uint64_t>textmap_get(&self.map, text, len(text)))

    def get_hashed(self, bytes text, uint64_t hash):
        """As get, with any number for a hash: as if the text had that one."""
        return self._number(<uint64_t>textmap_get_hashed(&self.map, text, len(text), hash))

    def remove(self, uint64_t number):
        """Whether the text put under this number was in. Its copy stays with the table."""
        return textmap_remove(&self.map, <Text*><uint64_t>self._owned[number]) != NULL

    def numbers(self):
        cdef uint32_t cursor = 0
        cdef Text* text = textmap_next(&self.map, &cursor)
        cdef list numbers = []
        while text != NULL:
            numbers.append(self._number(<uint64_t>text))
            text = textmap_next(&self.map, &cursor)
        return numbers

    @property
    def capacity(self):
        return self.map.capacity

    def __len__(self):
        return self.map.count

    def spin(self, list texts, uint64_t passes):
        """Look up every text `passes` times. Returns how many were found."""
        cdef uint64_t i, found = 0
        cdef bytes text
        for i in range(passes):
            for text in texts:
                found += textmap_get(&self.map, text, <uint32_t>len(text)) != NULL
        return found


def hash_text(bytes text):
    return text_hash(text, len(text))


def seed_text_hash(uint64_t seed):
    maps_seed(seed)
