"""Why one message of a frame is not taken: the bound it met, the code, the reason, the sentence."""

from libc.stdint cimport int32_t, uint32_t, uint64_t, uint8_t

from fila_server.core.structures.buffer cimport Slice

cdef enum:                          # of one extension of a lease
    EXTEND_MS_MIN = 1000
    EXTEND_MS_MAX = 43200000

cdef struct Limits:
    uint64_t payload_bytes_max
    uint32_t headers_max
    uint32_t header_key_bytes_max
    uint32_t header_value_bytes_max
    uint32_t fairness_key_bytes_max
    uint32_t throttle_key_bytes_max
    uint32_t throttle_keys_max
    uint32_t batch_messages_max
    uint64_t batch_bytes_max
    uint32_t dedup_key_bytes_max

cdef enum Refused:                  # why one message of a frame is not taken
    TAKEN = 0
    REFUSED_MALFORMED
    REFUSED_QUEUE_NAME
    REFUSED_PAYLOAD
    REFUSED_HEADER_COUNT
    REFUSED_HEADER_KEY
    REFUSED_HEADER_VALUE
    REFUSED_HEADER_TEXT
    REFUSED_TTL
    REFUSED_TTL_PAST
    REFUSED_DELAY
    REFUSED_DEDUP_KEY
    REFUSED_ROUTING_KEY
    REFUSED_THROTTLE_KEYS
    REFUSED_KEY_LIMIT
    REFUSED_QUEUE_UNKNOWN
    REFUSED_DEPTH
    REFUSED_BYTES
    REFUSED_DISK_FLOOR
    REFUSED_STALLED
    REFUSED_DISK_FULL
    REFUSED_DEDUP_FULL
    REFUSED_STOPPING
    REFUSED_NEIGHBOUR
    REFUSED_RESERVED
    REFUSED_NO_RIGHT
    REFUSED_FIRED
    REFUSED_ON_DUPLICATE
    REFUSED_MAX_WAIT
    REFUSED_OPTION_KEY
    REFUSED_OPTION_SHARE
    REFUSED_PRODUCER_ROUTING
    REFUSED_PRIORITY
    REFUSED_PRIORITY_IN_ORDER

cdef int32_t refusal_code(uint8_t refused) noexcept nogil
cdef const char* refusal_reason(uint8_t refused) noexcept nogil
cdef void refusal_text(uint8_t refused, const Limits* limits, char* text, size_t size) noexcept nogil
# The same, with the queue named where it is what was not found or is full.
cdef void refusal_text_of(
    uint8_t refused, Slice queue, const Limits* limits, char* text, size_t size) noexcept nogil
