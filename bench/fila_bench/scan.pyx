# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The two replies of the hot path, read for exactly what the generator needs.

A delivery is turned straight into the packed lease ids of the ack that answers it, so a
message costs the consumer a walk over five field headers and no Python object.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy


cdef const uint8_t* read_varint(const uint8_t* at, const uint8_t* end, uint64_t* value) noexcept nogil:
    """Return the byte after the varint, or NULL when it is cut off."""
    cdef uint64_t result = 0
    cdef int shift = 0
    while at < end and shift < 70:
        result |= <uint64_t>(at[0] & 0x7F) << shift
        if at[0] < 0x80:
            value[0] = result
            return at + 1
        at += 1
        shift += 7
    return NULL


cdef const uint8_t* read_field(
    const uint8_t* at, const uint8_t* end, uint64_t* field, uint64_t* value, const uint8_t** content
) noexcept nogil:
    """Step over one field: number fields leave `value`, blocks leave `content` with `value` as length."""
    cdef uint64_t tag
    at = read_varint(at, end, &tag)
    if at == NULL:
        return NULL
    field[0] = tag >> 3
    content[0] = NULL
    if tag & 7 == 0:
        return read_varint(at, end, value)
    if tag & 7 == 1:
        memcpy(value, at, 8)
        return at + 8 if at + 8 <= end else NULL
    if tag & 7 == 5:
        return at + 4 if at + 4 <= end else NULL
    if tag & 7 != 2:
        return NULL
    at = read_varint(at, end, value)
    if at == NULL or value[0] > <uint64_t>(end - at):
        return NULL
    content[0] = at
    return at + value[0]


cdef struct Seen:
    uint64_t lease_id
    uint64_t attempt_count
    const uint8_t* payload
    uint64_t payload_bytes


cdef bint read_message(const uint8_t* at, const uint8_t* end, Seen* seen) noexcept nogil:
    """Message: payload 3, metadata 4 {attempt_count 4, lease_id 7}."""
    cdef uint64_t field = 0, value = 0
    cdef const uint8_t* content = NULL
    cdef const uint8_t* inner
    cdef const uint8_t* inner_end
    seen.lease_id = 0
    seen.attempt_count = 0
    seen.payload = NULL
    seen.payload_bytes = 0
    while at < end:
        at = read_field(at, end, &field, &value, &content)
        if at == NULL:
            return False
        if content == NULL:
            continue
        if field == 3:
            seen.payload = content
            seen.payload_bytes = value
        elif field == 4:
            inner, inner_end = content, content + value
            while inner < inner_end:
                inner = read_field(inner, inner_end, &field, &value, &content)
                if inner == NULL:
                    return False
                if field == 4 and content == NULL:
                    seen.attempt_count = value
                elif field == 7 and content == NULL:
                    seen.lease_id = value
    return True


cdef Py_ssize_t write_varint(uint8_t* to, uint64_t value) noexcept nogil:
    cdef Py_ssize_t size = 0
    while value > 0x7F:
        to[size] = <uint8_t>(value & 0x7F) | 0x80
        value >>= 7
        size += 1
    to[size] = <uint8_t>value
    return size + 1


def delivery(bytes frame, list sent_ns=None):
    """Return (messages, their lease ids packed for a Settle, payload bytes).

    (0, b"", 0) for a frame that is no delivery. With `sent_ns`, the little-endian u64 that
    opens each payload is appended to it: the moment its producer wrote there.
    """
    cdef const uint8_t* at = <const uint8_t*>PyBytes_AS_STRING(frame)
    cdef const uint8_t* end = at + PyBytes_GET_SIZE(frame)
    cdef const uint8_t* content = NULL
    cdef const uint8_t* inner
    cdef const uint8_t* inner_end
    cdef uint64_t field = 0, value = 0, payload_bytes = 0, stamp = 0
    cdef Seen seen
    cdef Py_ssize_t count = 0, packed_bytes = 0
    cdef uint8_t packed[10 * 10000]

    while at < end:
        at = read_field(at, end, &field, &value, &content)
        if at == NULL:
            raise ValueError("the frame is cut off")
        if field != 2 or content == NULL:
            continue
        inner, inner_end = content, content + value
        while inner < inner_end:
            inner = read_field(inner, inner_end, &field, &value, &content)
            if inner == NULL:
                raise ValueError("a delivery is cut off")
            if field != 1 or content == NULL:
                continue
            if count == 10000 or not read_message(content, content + value, &seen):
                raise ValueError("a message of the delivery is malformed, or there are more than 10,000")
            count += 1
            payload_bytes += seen.payload_bytes
            packed_bytes += write_varint(packed + packed_bytes, seen.lease_id)
            if sent_ns is not None and seen.payload_bytes >= 8:
                memcpy(&stamp, seen.payload, 8)
                sent_ns.append(stamp)
    return count, PyBytes_FromStringAndSize(<char*>packed, packed_bytes), payload_bytes


def enqueue_results(bytes frame):
    """Return (stored, refused) of an EnqueueStreamResponse: a result carries an error in field 3."""
    cdef const uint8_t* at = <const uint8_t*>PyBytes_AS_STRING(frame)
    cdef const uint8_t* end = at + PyBytes_GET_SIZE(frame)
    cdef const uint8_t* content = NULL
    cdef const uint8_t* inner
    cdef const uint8_t* inner_end
    cdef uint64_t field = 0, value = 0
    cdef Py_ssize_t stored = 0, refused = 0
    cdef bint failed

    while at < end:
        at = read_field(at, end, &field, &value, &content)
        if at == NULL:
            raise ValueError("the frame is cut off")
        if field != 2 or content == NULL:
            continue
        inner, inner_end = content, content + value
        failed = False
        while inner < inner_end:
            inner = read_field(inner, inner_end, &field, &value, &content)
            if inner == NULL:
                raise ValueError("a result is cut off")
            # An ItemStatus of code 0 is empty: present, but no error.
            if field == 3 and content != NULL and value > 0:
                failed = True
        if failed:
            refused += 1
        else:
            stored += 1
    return stored, refused


def settle_failures(bytes frame):
    """Return how many failures a Settled (field 3 of the session's response) lists."""
    cdef const uint8_t* at = <const uint8_t*>PyBytes_AS_STRING(frame)
    cdef const uint8_t* end = at + PyBytes_GET_SIZE(frame)
    cdef const uint8_t* content = NULL
    cdef const uint8_t* inner
    cdef const uint8_t* inner_end
    cdef uint64_t field = 0, value = 0
    cdef Py_ssize_t failures = 0

    while at < end:
        at = read_field(at, end, &field, &value, &content)
        if at == NULL:
            raise ValueError("the frame is cut off")
        if field != 3 or content == NULL:
            continue
        inner, inner_end = content, content + value
        while inner < inner_end:
            inner = read_field(inner, inner_end, &field, &value, &content)
            if inner == NULL:
                raise ValueError("a settled frame is cut off")
            if field == 2:
                failures += 1
    return failures
