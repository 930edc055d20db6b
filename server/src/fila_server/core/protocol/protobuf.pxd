"""`fila.v1` on the wire, as far as the core reads and writes it itself.

One parse: a frame is walked once, at submission, and becomes a table of Items (items.pxd) that travels
with it; everything later works on positions. A message's headers and payload have the same
numbers in EnqueueRequest, EnqueueMessage and Message: they are kept as the bytes they arrived
in and spliced into the delivery.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, take_slice, take_varint

cdef enum:                          # a field's kind on the wire: what follows its number
    VARINT = 0
    FIXED64 = 1
    LEN = 2                         # its length, then that many bytes
    FIXED32 = 5

cdef enum:                          # fields of every entry of a map
    MAP_KEY = 1
    MAP_VALUE = 2

cdef enum:
    QUEUE_FIELD = 1                 # of every request that names one queue

cdef enum Priority:                 # of a message among those of its fairness key, from 0
    PRIORITY_USUAL = 1
    PRIORITY_MAX = 3

cdef struct Options:                # EnqueueOptions; only where given
    int64_t  delay_ms               # -1 = not given
    int64_t  deliver_at_ms          # -1 = not given
    int64_t  ttl_ms                 # -1 = not given
    Slice    dedup_key
    bint     replaces               # an earlier message of that key gives way
    int64_t  max_wait_ms            # 0 = no bound
    Slice    fairness_key           # empty = not given
    uint32_t weight                 # 0 = not given
    double   cost                   # 0 = not given
    int32_t  priority               # -1 = not given

cdef enum Answered:                 # Item.answered; 0 = not yet
    BY_ITSELF = 1                   # it is stored
    BY_AN_EARLIER = 2               # an earlier message has its dedup key, and stands for it

cdef struct Item:                   # one message of a frame
    uint32_t at                     # its headers and payload, in the command's bytes
    uint32_t length
    uint32_t payload_length
    uint16_t header_count
    uint8_t  refused
    uint8_t  answered               # an Answered
    Slice    queue                  # empty = the frame's
    Options* options                # NULL = none
    const char* routing             # what a hook decided, packed (parsed_frame.pyx), in
                                    # the command's `decided`; NULL = none
    uint64_t id_high                # the answer
    uint64_t id_low
    uint64_t offset

# the fields 1..15 of a request that are scalars or texts; the last one wins
cdef struct Fields:
    Slice    text[16]
    uint64_t number[16]
    uint32_t seen

cdef struct View:                   # what a delivered Message says
    uint64_t id_high
    uint64_t id_low
    const char* body
    uint32_t body_length
    Slice    fairness_key
    uint32_t weight
    uint32_t attempts
    bint     redelivered
    bint     came_back
    Slice    queue
    Slice    channel
    uint64_t offset
    uint64_t lease_id
    uint32_t cost                   # thousandths
    uint32_t priority
    int64_t  enqueued_ms
    int64_t  appended_ms
    int64_t  leased_ms              # 0 = not leased
    int64_t  expires_ms
    int64_t  due_ms                 # 0 = not delayed
    uint32_t throttle_count
    Slice    throttle[16]

# --- reading
# Inline: a function of another module is called through a pointer, with all that it returns in memory, and
# this one is called for each field of each message. 456 of 1,122 instructions a message of two headers.
cdef inline bint next_field(
        Cursor* c, uint32_t* field, uint32_t* kind, Slice* text, uint64_t* number) noexcept nogil:
    """Step over one field. False at the end, and with `c.bad` set where the bytes are no message."""
    cdef uint64_t tag
    if c.at >= c.end or c.bad:
        return False
    tag = take_varint(c)
    field[0] = <uint32_t> (tag >> 3)
    kind[0] = <uint32_t> (tag & 7)
    text.at = c.at
    text.length = 0
    number[0] = 0
    if tag > <uint64_t> 0xFFFFFFFF or field[0] == 0:
        c.bad = True
    elif kind[0] == VARINT:
        number[0] = take_varint(c)
    elif kind[0] == LEN:
        text[0] = take_slice(c, take_varint(c))
    elif kind[0] == FIXED64:
        text[0] = take_slice(c, 8)
        if not c.bad:
            memcpy(number, text.at, 8)
    elif kind[0] == FIXED32:
        text[0] = take_slice(c, 4)
        if not c.bad:
            memcpy(number, text.at, 4)
    else:                           # groups are not proto3
        c.bad = True
    return not c.bad

cdef int channel_field(int32_t kind) noexcept nogil         # of the request that the command is made of
cdef bint fields_parse(Fields* fields, const char* bytes, size_t length) noexcept nogil
cdef bint utf8_valid(const char* at, size_t length) noexcept nogil
cdef bint name_valid(Slice name) noexcept nogil
cdef bint uuid_parse(Slice text, uint64_t* high, uint64_t* low) noexcept nogil
cdef int64_t timestamp_ms(Slice text, bint* bad) noexcept nogil
cdef bint header_find(const char* body, uint32_t length, Slice name, Slice* value) noexcept nogil
cdef bint next_header(Cursor* c, Slice* name, Slice* value) noexcept nogil

# --- writing
cdef void put_tag(Buffer* b, uint32_t field, uint32_t kind) noexcept nogil
cdef void put_text_field(Buffer* b, uint32_t field, Slice text) noexcept nogil
cdef void put_number_field(Buffer* b, uint32_t field, uint64_t number) noexcept nogil
# Nothing for the usual one.
cdef void put_priority_field(Buffer* b, uint32_t field, uint32_t priority) noexcept nogil
cdef void put_double_field(Buffer* b, uint32_t field, double number) noexcept nogil
cdef void put_timestamp_field(Buffer* b, uint32_t field, int64_t ms) noexcept nogil
cdef void put_uuid(Buffer* b, uint64_t high, uint64_t low) noexcept nogil
cdef void put_message(Buffer* b, uint32_t field, const View* view, Buffer* tail) noexcept nogil
cdef void put_status(Buffer* b, int32_t code, const char* message, const char* reason) noexcept nogil
cdef void put_status_field(
    Buffer* b, uint32_t field, int32_t code, const char* message, const char* reason) noexcept nogil
cdef void put_nested(Buffer* b, uint32_t field, const Buffer* inner) noexcept nogil
