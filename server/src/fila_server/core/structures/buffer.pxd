"""A growing run of bytes, and the varints and big-endian numbers written into it.

Inline only: every encoder in the core goes through these few lines. Linux overcommits, so
a failed allocation means the process is past saving; it stops as `kill -9` would stop it,
and recovery covers that case anyway.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport abort, free, malloc, realloc
from libc.string cimport memcpy

cdef struct Slice:
    const char* at
    uint32_t length

cdef struct Buffer:
    char*  data
    size_t length
    size_t capacity

cdef inline void* must_malloc(size_t size) noexcept nogil:
    cdef void* got = malloc(size if size else 1)
    if got == NULL:
        abort()
    return got

cdef inline void* must_realloc(void* old, size_t size) noexcept nogil:
    cdef void* got = realloc(old, size if size else 1)
    if got == NULL:
        abort()
    return got

cdef inline void buffer_init(Buffer* b) noexcept nogil:
    b.data = NULL
    b.length = 0
    b.capacity = 0

cdef inline void buffer_free(Buffer* b) noexcept nogil:
    free(b.data)
    buffer_init(b)

cdef inline void buffer_reserve(Buffer* b, size_t more) noexcept nogil:
    """Make sure `more` bytes can be written without another look at the capacity."""
    cdef size_t wanted = b.length + more
    if wanted > b.capacity:
        b.capacity = wanted + (wanted >> 1) + 64
        b.data = <char*> must_realloc(b.data, b.capacity)

cdef inline void put_u8(Buffer* b, uint8_t value) noexcept nogil:
    buffer_reserve(b, 1)
    b.data[b.length] = <char> value
    b.length += 1

cdef inline void put_bytes(Buffer* b, const void* source, size_t length) noexcept nogil:
    if length == 0:
        return
    buffer_reserve(b, length)
    memcpy(b.data + b.length, source, length)
    b.length += length

cdef inline void put_slice(Buffer* b, Slice s) noexcept nogil:
    put_bytes(b, s.at, s.length)

cdef inline size_t write_varint(char* to, uint64_t value) noexcept nogil:
    cdef size_t n = 0
    while value >= 0x80:
        to[n] = <char> (<uint8_t> (value & 0x7F) | 0x80)
        value >>= 7
        n += 1
    to[n] = <char> <uint8_t> value
    return n + 1

cdef inline void put_varint(Buffer* b, uint64_t value) noexcept nogil:
    buffer_reserve(b, 10)
    b.length += write_varint(b.data + b.length, value)

cdef inline void put_zigzag(Buffer* b, int64_t value) noexcept nogil:
    put_varint(b, (<uint64_t> value << 1) ^ <uint64_t> (value >> 63))

cdef inline size_t varint_size(uint64_t value) noexcept nogil:
    cdef size_t n = 1
    while value >= 0x80:
        value >>= 7
        n += 1
    return n

cdef inline void put_u32be(Buffer* b, uint32_t value) noexcept nogil:
    buffer_reserve(b, 4)
    write_u32be(b.data + b.length, value)
    b.length += 4

cdef inline void put_u64be(Buffer* b, uint64_t value) noexcept nogil:
    buffer_reserve(b, 8)
    write_u64be(b.data + b.length, value)
    b.length += 8

cdef inline void write_u32be(char* to, uint32_t value) noexcept nogil:
    to[0] = <char> <uint8_t> (value >> 24)
    to[1] = <char> <uint8_t> (value >> 16)
    to[2] = <char> <uint8_t> (value >> 8)
    to[3] = <char> <uint8_t> value

cdef inline void write_u64be(char* to, uint64_t value) noexcept nogil:
    write_u32be(to, <uint32_t> (value >> 32))
    write_u32be(to + 4, <uint32_t> value)

cdef inline uint32_t read_u32be(const char* at) noexcept nogil:
    cdef const uint8_t* u = <const uint8_t*> at
    return (<uint32_t> u[0] << 24) | (<uint32_t> u[1] << 16) | (<uint32_t> u[2] << 8) | u[3]

cdef inline uint64_t read_u64be(const char* at) noexcept nogil:
    return (<uint64_t> read_u32be(at) << 32) | read_u32be(at + 4)

# Reading: a cursor never passes `end`; `bad` stays set once anything did not fit.

cdef struct Cursor:
    const char* at
    const char* end
    bint bad

cdef inline uint64_t take_varint(Cursor* c) noexcept nogil:
    cdef uint64_t value = 0
    cdef uint64_t byte
    cdef int shift = 0
    while c.at < c.end and shift < 64:
        byte = <uint8_t> c.at[0]
        c.at += 1
        if shift == 63 and byte > 1:
            break
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    c.bad = True
    return 0

cdef inline int64_t take_zigzag(Cursor* c) noexcept nogil:
    cdef uint64_t value = take_varint(c)
    return <int64_t> (value >> 1) ^ -(<int64_t> (value & 1))

cdef inline Slice take_slice(Cursor* c, uint64_t length) noexcept nogil:
    cdef Slice s
    s.at = c.at
    s.length = 0
    if length > <uint64_t> (c.end - c.at):
        c.bad = True
        return s
    s.length = <uint32_t> length
    c.at += length
    return s

cdef inline uint64_t take_u64be(Cursor* c) noexcept nogil:
    if c.end - c.at < 8:
        c.bad = True
        return 0
    c.at += 8
    return read_u64be(c.at - 8)

cdef inline uint8_t take_u8(Cursor* c) noexcept nogil:
    cdef uint8_t value
    if c.at >= c.end:
        c.bad = True
        return 0
    value = <uint8_t> c.at[0]
    c.at += 1
    return value
