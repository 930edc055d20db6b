"""One record of the log. An owner appends it, and every copy reads it. Numbers are little-endian.

    magic u8 0xF1 | version u8 | kind u8 | flags u8 | node u64
        | term: offset i64, nonce u64 | seq u64 | chain u64 | wall_ms i64 | live_bytes i64
        | body | crc32c u32, of all before it

    TAKEOVER    nonce u64 | cluster, 16 bytes | incarnation u32 | format u16
                | the node's name, its peers' address, its clients' address: each u8 and so many bytes
    PASS        what one pass writes
    PART        index u16 | count u16 | a piece of what one pass writes
    BARRIER     nothing

`term` is the term that the record belongs to. In a TAKEOVER it is the term that this record deposes; the new
term is (offset of the record, its nonce). `seq` counts the records of a term from 0. `chain` is the mark of
the record before, over all terms. A TAKEOVER has neither: both are 0, but in one that begins a later
incarnation, where they are those of the copy that it begins with. `live_bytes` is what the messages of the
owner take, for copies, which keep no count. One flag has a meaning, in a TAKEOVER: MOVED, the owner handed
over. A reader that meets another one is too old.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t

cdef enum:
    RECORD_BYTES_MAX = 900_000      # a topic takes 1 MB, and a batch of Kafka's has a frame of its own
    PART_BYTES_MAX = 899_932        # of the piece in a PART, without header, count and sum
    PARTS_MAX = 4096
    TEXT_BYTES_MAX = 255

cdef enum:                          # kinds
    TAKEOVER = 1
    PASS = 2
    PART = 3
    BARRIER = 4

cdef enum:                          # flags
    MOVED = 1

cdef enum RecordFault:
    RECORD_GOOD = 0
    RECORD_FOREIGN = 1              # it does not begin as a record does
    RECORD_NEWER = 2                # of a version, a kind or with a flag that this build does not know
    RECORD_CUT = 3                  # shorter than a header
    RECORD_LONG = 4
    RECORD_ALTERED = 5              # its sum is another
    RECORD_WRONG = 6                # its sum is right, and its fields contradict each other


cdef struct Term:
    int64_t  offset                 # of its TAKEOVER; -1 = no term has begun
    uint64_t nonce                  # a log that was cut gives offsets out again


cdef struct Record:
    uint8_t  kind, flags
    uint64_t node
    Term     term
    uint64_t seq, chain
    int64_t  wall_ms, live_bytes
    const uint8_t* body             # PASS and PART: bytes, in the record that was decoded
    uint32_t body_bytes
    uint16_t part, parts            # PART
    uint64_t nonce                  # TAKEOVER, as all below
    uint8_t  cluster[16]
    uint32_t incarnation
    uint16_t format                 # of what the owner will write
    const uint8_t* text[3]          # the node's name, its peers' and its clients' address
    uint8_t  text_bytes[3]


# The node's name, its peers' and its clients' address; who calls keeps them while the record is used.
cdef int takeover_says(Record* record, bytes name, bytes peer_addr, bytes client_addr) except -1
# How long it becomes; 0 when it is longer than a record may be.
cdef size_t record_bytes(const Record* record) noexcept nogil
# `out` has room for record_bytes.
cdef void record_encode(const Record* record, uint8_t* out) noexcept nogil
# Fills `record` where it answers RECORD_GOOD. Its pointers lead into `content`.
cdef RecordFault record_decode(const uint8_t* content, size_t length, Record* record) noexcept nogil
# What tells a record from any other: the `chain` of the record behind it.
cdef uint64_t record_mark(const uint8_t* content, size_t length) noexcept nogil

cdef inline bint same_term(const Term* one, const Term* other) noexcept nogil:
    return one.offset == other.offset and one.nonce == other.nonce
