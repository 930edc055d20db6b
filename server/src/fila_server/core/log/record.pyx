"""Bytes of a record, in and out. Nothing is copied: a decoded record points into the bytes it was made of."""

from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fila_server.core.structures.checksum cimport crc32c

cdef enum:
    MAGIC = 0xF1
    VERSION = 1
    HEADER_BYTES = 60
    SUM_BYTES = 4
    PART_HEAD_BYTES = 4
    TAKEOVER_HEAD_BYTES = 30

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "records are little-endian, and so must be the machine"
    #endif
    static inline uint64_t fila_record_fold(uint64_t a, uint64_t b) {
        unsigned __int128 both = (unsigned __int128)a * b;
        return (uint64_t)both ^ (uint64_t)(both >> 64);
    }
    """
    uint64_t fold "fila_record_fold"(uint64_t a, uint64_t b) nogil

cdef uint64_t FIRST_SECRET = 0x9E3779B97F4A7C15ULL
cdef uint64_t SECOND_SECRET = 0xD6E8FEB86659FD93ULL


cdef uint64_t record_mark(const uint8_t* content, size_t length) noexcept nogil:
    """Sixteen bytes a step; the last step has zeros behind what is left, and the length tells them apart."""
    cdef uint64_t mark = FIRST_SECRET ^ length
    cdef uint64_t words[2]
    while length >= 16:
        memcpy(words, content, 16)
        mark = fold(words[0] ^ FIRST_SECRET, words[1] ^ mark)
        content += 16
        length -= 16
    words[0] = words[1] = 0
    memcpy(words, content, length)
    mark = fold(words[0] ^ FIRST_SECRET, words[1] ^ mark)
    return fold(mark ^ SECOND_SECRET, FIRST_SECRET)


cdef inline size_t _body_bytes(const Record* record) noexcept nogil:
    cdef size_t size = record.body_bytes
    cdef int i
    if record.kind == PART:
        size += PART_HEAD_BYTES
    elif record.kind == TAKEOVER:
        size = TAKEOVER_HEAD_BYTES
        for i in range(3):
            size += 1 + record.text_bytes[i]
    elif record.kind == BARRIER:
        size = 0
    return size


cdef size_t record_bytes(const Record* record) noexcept nogil:
    cdef size_t size = HEADER_BYTES + _body_bytes(record) + SUM_BYTES
    return size if size <= RECORD_BYTES_MAX else 0


cdef void record_encode(const Record* record, uint8_t* out) noexcept nogil:
    cdef uint8_t* at = out
    cdef uint32_t checksum
    at[0], at[1], at[2], at[3] = MAGIC, VERSION, record.kind, record.flags
    memcpy(at + 4, &record.node, 8)
    memcpy(at + 12, &record.term.offset, 8)
    memcpy(at + 20, &record.term.nonce, 8)
    memcpy(at + 28, &record.seq, 8)
    memcpy(at + 36, &record.chain, 8)
    memcpy(at + 44, &record.wall_ms, 8)
    memcpy(at + 52, &record.live_bytes, 8)
    at += HEADER_BYTES
    if record.kind == TAKEOVER:
        at = _put_takeover(record, at)
    elif record.kind != BARRIER:
        if record.kind == PART:
            memcpy(at, &record.part, 2)
            memcpy(at + 2, &record.parts, 2)
            at += PART_HEAD_BYTES
        memcpy(at, record.body, record.body_bytes)
        at += record.body_bytes
    checksum = crc32c(out, at - out)
    memcpy(at, &checksum, SUM_BYTES)


cdef uint8_t* _put_takeover(const Record* record, uint8_t* at) noexcept nogil:
    cdef int i
    memcpy(at, &record.nonce, 8)
    memcpy(at + 8, record.cluster, 16)
    memcpy(at + 24, &record.incarnation, 4)
    memcpy(at + 28, &record.format, 2)
    at += TAKEOVER_HEAD_BYTES
    for i in range(3):
        at[0] = record.text_bytes[i]
        memcpy(at + 1, record.text[i], record.text_bytes[i])
        at += 1 + record.text_bytes[i]
    return at


cdef RecordFault record_decode(const uint8_t* content, size_t length, Record* record) noexcept nogil:
    cdef uint32_t checksum
    if length == 0 or content[0] != MAGIC:
        return RECORD_FOREIGN
    if length > 1 and content[1] != VERSION:
        return RECORD_NEWER
    if length < HEADER_BYTES + SUM_BYTES:
        return RECORD_CUT
    if length > RECORD_BYTES_MAX:
        return RECORD_LONG
    length -= SUM_BYTES
    memcpy(&checksum, content + length, SUM_BYTES)
    if crc32c(content, length) != checksum:
        return RECORD_ALTERED
    memset(record, 0, sizeof(Record))
    record.kind, record.flags = content[2], content[3]
    if record.flags & ~(MOVED if record.kind == TAKEOVER else 0):
        return RECORD_NEWER
    if record.kind < TAKEOVER or record.kind > BARRIER:
        return RECORD_NEWER
    memcpy(&record.node, content + 4, 8)
    memcpy(&record.term.offset, content + 12, 8)
    memcpy(&record.term.nonce, content + 20, 8)
    memcpy(&record.seq, content + 28, 8)
    memcpy(&record.chain, content + 36, 8)
    memcpy(&record.wall_ms, content + 44, 8)
    memcpy(&record.live_bytes, content + 52, 8)
    if record.term.offset < -1:
        return RECORD_WRONG
    return _body(content + HEADER_BYTES, length - HEADER_BYTES, record)


cdef RecordFault _body(const uint8_t* body, size_t length, Record* record) noexcept nogil:
    if record.kind == TAKEOVER:
        return _takeover(body, length, record)
    if record.kind == BARRIER:
        return RECORD_WRONG if length > 0 else RECORD_GOOD
    if record.kind == PART:
        if length < PART_HEAD_BYTES:
            return RECORD_WRONG
        memcpy(&record.part, body, 2)
        memcpy(&record.parts, body + 2, 2)
        if record.part >= record.parts or record.parts > PARTS_MAX:
            return RECORD_WRONG
        body += PART_HEAD_BYTES
        length -= PART_HEAD_BYTES
    record.body, record.body_bytes = body, <uint32_t>length
    return RECORD_GOOD


cdef RecordFault _takeover(const uint8_t* body, size_t length, Record* record) noexcept nogil:
    cdef const uint8_t* end = body + length
    cdef int i
    if length < TAKEOVER_HEAD_BYTES:
        return RECORD_WRONG
    memcpy(&record.nonce, body, 8)
    memcpy(record.cluster, body + 8, 16)
    memcpy(&record.incarnation, body + 24, 4)
    memcpy(&record.format, body + 28, 2)
    if record.incarnation <= 1 and (record.seq != 0 or record.chain != 0):
        return RECORD_WRONG
    body += TAKEOVER_HEAD_BYTES
    for i in range(3):
        if end - body < 1 or end - body < 1 + body[0]:
            return RECORD_WRONG
        record.text[i], record.text_bytes[i] = body + 1, body[0]
        body += 1 + body[0]
    return RECORD_GOOD if body == end else RECORD_WRONG


# ---- for tests and offline tools, never on the message path

KIND_TAKEOVER, KIND_PASS, KIND_PART, KIND_BARRIER = TAKEOVER, PASS, PART, BARRIER
BYTES_MAX = RECORD_BYTES_MAX
PIECE_BYTES_MAX = PART_BYTES_MAX


cdef int takeover_says(Record* record, bytes name, bytes peer_addr, bytes client_addr) except -1:
    cdef bytes text
    for i, text in enumerate((name, peer_addr, client_addr)):
        if len(text) > TEXT_BYTES_MAX:
            raise ValueError(f"a name or address has {len(text)} bytes; {TEXT_BYTES_MAX} are the end")
        record.text[i], record.text_bytes[i] = <const uint8_t*><const char*>text, <uint8_t>len(text)
    return 0


cdef int _fill(Record* record, dict fields, list kept) except -1:
    """`kept` holds the texts as long as the record points into them."""
    cdef bytes text
    memset(record, 0, sizeof(Record))
    record.kind, record.flags = fields["kind"], fields.get("flags", 0)
    record.node = fields.get("node", 0)
    record.term.offset, record.term.nonce = fields.get("term", (-1, 0))
    record.seq, record.chain = fields.get("seq", 0), fields.get("chain", 0)
    record.wall_ms, record.live_bytes = fields.get("wall_ms", 0), fields.get("live_bytes", 0)
    record.part, record.parts = fields.get("part", 0), fields.get("parts", 0)
    record.nonce, record.incarnation = fields.get("nonce", 0), fields.get("incarnation", 0)
    record.format = fields.get("format", 0)
    text = fields.get("body", b"")
    kept.append(text)
    record.body, record.body_bytes = <const uint8_t*><const char*>text, len(text)
    text = fields.get("cluster", bytes(16))
    memcpy(record.cluster, <const char*>text, min(16, len(text)))
    texts = [fields.get(name, "").encode() for name in ("name", "peer_addr", "client_addr")]
    kept += texts
    return takeover_says(record, texts[0], texts[1], texts[2])


def encode(**fields):
    """The bytes of a record; ValueError when it would be too long."""
    cdef Record record
    cdef list kept = []
    cdef uint8_t* out
    cdef size_t size
    _fill(&record, fields, kept)
    size = record_bytes(&record)
    if size == 0:
        raise ValueError(f"a record has at most {RECORD_BYTES_MAX} bytes; give the pass in parts")
    out = <uint8_t*>malloc(size)
    try:
        record_encode(&record, out)
        return (<char*>out)[:size]
    finally:
        free(out)


def decode(bytes content):
    """(what is wrong with it, its fields); no fields where anything is."""
    cdef Record record
    cdef int fault = record_decode(<const uint8_t*><const char*>content, len(content), &record)
    if fault != RECORD_GOOD:
        return fault, {}
    fields = {
        "kind": record.kind, "node": record.node, "term": (record.term.offset, record.term.nonce),
        "seq": record.seq, "chain": record.chain, "wall_ms": record.wall_ms, "live_bytes": record.live_bytes,
    }
    if record.kind == TAKEOVER:
        fields |= {
            "nonce": record.nonce, "cluster": (<char*>record.cluster)[:16], "incarnation": record.incarnation,
            "format": record.format, "flags": record.flags,
        }
        for i, name in enumerate(("name", "peer_addr", "client_addr")):
            fields[name] = (<char*>record.text[i])[:record.text_bytes[i]].decode(errors="replace")
    if record.kind == PART:
        fields |= {"part": record.part, "parts": record.parts}
    if record.kind in (PASS, PART):
        fields["body"] = (<char*>record.body)[:record.body_bytes]
    return fault, fields


def mark(bytes content):
    """The `chain` of the record behind this one."""
    return record_mark(<const uint8_t*><const char*>content, len(content))
