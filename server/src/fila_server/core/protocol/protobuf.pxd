"""`fila.v1` on the wire, as far as the core reads and writes it itself.

One parse: a frame is walked once, at submission, and becomes a table of Items that travels
with it; everything later works on positions. A message's headers and payload have the same
numbers in EnqueueRequest, EnqueueMessage and Message: they are kept as the bytes they arrived
in and spliced into the delivery.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from fila_server.core.protocol.refusals cimport Limits
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice

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

cdef struct Options:                # EnqueueOptions; only where given
    int64_t  delay_ms               # -1 = not given
    int64_t  deliver_at_ms          # -1 = not given
    int64_t  ttl_ms                 # -1 = not given
    Slice    dedup_key

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
    int64_t  enqueued_ms
    int64_t  appended_ms
    int64_t  leased_ms              # 0 = not leased
    int64_t  expires_ms
    int64_t  due_ms                 # 0 = not delayed
    uint32_t throttle_count
    Slice    throttle[16]

# --- reading
cdef int channel_field(int32_t kind) noexcept nogil         # of the request that the command is made of
cdef bint fields_parse(Fields* fields, const char* bytes, size_t length) noexcept nogil
cdef bint next_field(Cursor* c, uint32_t* field, uint32_t* kind, Slice* text, uint64_t* number) noexcept nogil
cdef bint utf8_valid(const char* at, size_t length) noexcept nogil
cdef bint name_valid(Slice name) noexcept nogil
cdef bint uuid_parse(Slice text, uint64_t* high, uint64_t* low) noexcept nogil
cdef int64_t timestamp_ms(Slice text, bint* bad) noexcept nogil
cdef bint header_find(const char* body, uint32_t length, Slice name, Slice* value) noexcept nogil
cdef bint next_header(Cursor* c, Slice* name, Slice* value) noexcept nogil

# Walks one EnqueueRequest or EnqueueMessage. `spare` takes a rewritten body where headers and
# payload were not one run of bytes; item.at then counts from `spare_base`.
cdef void item_parse(
    Item* item, const char* frame, Slice message, Buffer* spare, uint32_t spare_base,
    const Limits* limits) noexcept nogil

# --- writing
cdef void put_tag(Buffer* b, uint32_t field, uint32_t kind) noexcept nogil
cdef void put_text_field(Buffer* b, uint32_t field, Slice text) noexcept nogil
cdef void put_number_field(Buffer* b, uint32_t field, uint64_t number) noexcept nogil
cdef void put_double_field(Buffer* b, uint32_t field, double number) noexcept nogil
cdef void put_timestamp_field(Buffer* b, uint32_t field, int64_t ms) noexcept nogil
cdef void put_uuid(Buffer* b, uint64_t high, uint64_t low) noexcept nogil
cdef void put_message(Buffer* b, uint32_t field, const View* view, Buffer* tail) noexcept nogil
cdef void put_status(Buffer* b, int32_t code, const char* message, const char* reason) noexcept nogil
cdef void put_status_field(
    Buffer* b, uint32_t field, int32_t code, const char* message, const char* reason) noexcept nogil
cdef void put_nested(Buffer* b, uint32_t field, const Buffer* inner) noexcept nogil
