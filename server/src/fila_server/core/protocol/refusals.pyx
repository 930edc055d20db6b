"""One table."""

from libc.stdio cimport snprintf

from fila_server.core.protocol.commands cimport (
    FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAVAILABLE,
)

cdef enum:
    NAME_BYTES_MAX = 251            # of a queue that is made; its DLQ's name has four more


cdef int32_t refusal_code(uint8_t refused) noexcept nogil:
    if refused == REFUSED_QUEUE_UNKNOWN:
        return NOT_FOUND
    if refused == REFUSED_STOPPING:
        return UNAVAILABLE
    if refused in (
        REFUSED_DEPTH, REFUSED_BYTES, REFUSED_DISK_FLOOR, REFUSED_STALLED, REFUSED_DISK_FULL,
        REFUSED_DEDUP_FULL,
    ):
        return RESOURCE_EXHAUSTED
    if refused == REFUSED_NEIGHBOUR or refused == REFUSED_FIRED:
        return FAILED_PRECONDITION
    if refused == REFUSED_NO_RIGHT:
        return PERMISSION_DENIED
    return INVALID_ARGUMENT


cdef const char* refusal_reason(uint8_t refused) noexcept nogil:
    if refused == REFUSED_QUEUE_UNKNOWN:
        return b"QUEUE_NOT_FOUND"
    if refused == REFUSED_STOPPING:
        return b"SHUTTING_DOWN"
    if refused in (REFUSED_DISK_FLOOR, REFUSED_DISK_FULL):
        return b"DISK_FLOOR"
    if refused in (REFUSED_DEPTH, REFUSED_BYTES):
        return b"QUEUE_FULL"
    if refused in (REFUSED_STALLED, REFUSED_DEDUP_FULL):
        return b"OVERLOADED"
    if refused in (
        REFUSED_PAYLOAD, REFUSED_HEADER_COUNT, REFUSED_HEADER_KEY, REFUSED_HEADER_VALUE, REFUSED_DEDUP_KEY,
        REFUSED_ROUTING_KEY, REFUSED_THROTTLE_KEYS, REFUSED_KEY_LIMIT,
    ):
        return b"LIMIT_EXCEEDED"
    if refused == REFUSED_NEIGHBOUR:
        return b"NEIGHBOUR_REFUSED"
    if refused == REFUSED_NO_RIGHT:
        return b"PERMISSION_DENIED"
    if refused == REFUSED_FIRED:
        return b"SCHEDULE_MOVED"
    return b"INVALID_FIELD"


cdef const char* _state_text(uint8_t refused) noexcept nogil:
    """Refused for what the broker is like just now, not for what the message is."""
    if refused == REFUSED_QUEUE_UNKNOWN:
        return b"the queue does not exist; check its name, or create it"
    if refused == REFUSED_DEPTH:
        return b"the queue's max_depth is reached; try again when consumers have caught up"
    if refused == REFUSED_BYTES:
        return b"the queue's max_bytes is reached; try again when consumers have caught up"
    if refused == REFUSED_DISK_FLOOR:
        return b"the broker's disk is below storage.min_free_bytes; make room, acks and deliveries go on"
    if refused == REFUSED_DISK_FULL:
        return b"the broker's disk is full; make room, then try again"
    if refused == REFUSED_STALLED:
        return b"the storage engine is behind; try again shortly"
    if refused == REFUSED_DEDUP_FULL:
        return b"options.dedup_key: the table of dedup keys is full; try again later or send without the key"
    if refused == REFUSED_STOPPING:
        return b"the broker is shutting down; connect again"
    if refused == REFUSED_NEIGHBOUR:
        return b"another message of this all-or-nothing batch was refused, so nothing was stored"
    if refused == REFUSED_NO_RIGHT:
        return b"produce: this key has no such right here; an admin gives it with fila auth grant"
    if refused == REFUSED_FIRED:
        return b"due_ms: the schedule fires at another moment, or is gone; read it again"
    return b"refused"


cdef const char* _options_text(uint8_t refused) noexcept nogil:
    if refused == REFUSED_ON_DUPLICATE:
        return b"options.on_duplicate: FIRST or REPLACE, and REPLACE needs a dedup_key"
    if refused == REFUSED_MAX_WAIT:
        return b"options.max_wait_ms: at most 2^52 ms, and only with on_duplicate = REPLACE"
    if refused == REFUSED_OPTION_KEY:
        return b"options.fairness_key: at most %llu bytes of UTF-8"
    if refused == REFUSED_OPTION_SHARE:
        return b"options.weight, options.cost: 1 to 1000, and 0.001 to 1000000; left out, the queue decides"
    if refused == REFUSED_PRIORITY:
        return (
            b"options.priority: must be 0 to 3; leave it out, and it is what the queue's priority_header "
            b"says, or else 1"
        )
    if refused == REFUSED_PRIORITY_IN_ORDER:
        return (
            b"options.priority: this queue's key_order is strict, so no message of a key goes before an "
            b"earlier one; leave the priority out, or make the order relaxed (fila queue update --key-order "
            b"relaxed)"
        )
    return (
        b"options.fairness_key, weight, cost: this queue takes none from its producers; an operator "
        b"allows it with allow_producer_routing (fila queue update --producer-routing)"
    )


cdef void refusal_text(uint8_t refused, const Limits* limits, char* text, size_t size) noexcept nogil:
    cdef const char* form = NULL
    cdef unsigned long long bound = 0
    if refused == REFUSED_MALFORMED:
        form = b"messages: the bytes are no valid EnqueueMessage; check the client's encoder"
    elif refused == REFUSED_QUEUE_NAME:
        form = b"queue: a name is 1 to %llu bytes of A-Z a-z 0-9 . _ - and does not start with a dot"
        bound = NAME_BYTES_MAX
    elif refused == REFUSED_PAYLOAD:
        form = (
            b"payload: at most %llu bytes; store the payload elsewhere and send its address, or raise "
            b"limits.payload_bytes_max"
        )
        bound = limits.payload_bytes_max
    elif refused == REFUSED_HEADER_COUNT:
        form = b"headers: at most %llu headers a message"
        bound = limits.headers_max
    elif refused == REFUSED_HEADER_KEY:
        form = b"headers: a header's key is at most %llu bytes"
        bound = limits.header_key_bytes_max
    elif refused == REFUSED_HEADER_VALUE:
        form = b"headers: a header's value is at most %llu bytes"
        bound = limits.header_value_bytes_max
    elif refused == REFUSED_HEADER_TEXT:
        form = b"headers: keys and values must be valid UTF-8, and no key may be empty"
    elif refused == REFUSED_TTL:
        form = b"options.ttl_ms: at most 2^52 ms"
    elif refused == REFUSED_TTL_PAST:
        form = b"options.ttl_ms: must be at least 1 ms; leave it out for a message that does not expire"
    elif refused == REFUSED_DELAY:
        form = b"options.delay_ms, options.deliver_at: only one of them, and a moment between 1970 and 9999"
    elif refused == REFUSED_DEDUP_KEY:
        form = b"options.dedup_key: at most %llu bytes of UTF-8"
        bound = limits.dedup_key_bytes_max
    elif REFUSED_ON_DUPLICATE <= refused <= REFUSED_PRIORITY_IN_ORDER:
        form = _options_text(refused)
        bound = limits.fairness_key_bytes_max
    elif refused == REFUSED_ROUTING_KEY:
        form = b"headers: a fairness or throttle key taken from a header is at most %llu bytes"
        bound = limits.fairness_key_bytes_max
    elif refused == REFUSED_THROTTLE_KEYS:
        form = (
            b"throttle_keys: at most %llu a message, together with that of the queue's key_limit; name fewer"
        )
        bound = limits.throttle_keys_max
    elif refused == REFUSED_KEY_LIMIT:
        form = (
            b"headers: the fairness key and the queue's key_limit before it are at most %llu bytes together; "
            b"send a shorter key, or raise limits.throttle_key_bytes_max"
        )
        bound = limits.throttle_key_bytes_max
    elif refused == REFUSED_RESERVED:
        form = b"queue: names starting with _fila are the broker's own"
    else:
        form = _state_text(refused)
    snprintf(text, size, form, bound)


cdef void refusal_text_of(
        uint8_t refused, Slice queue, const Limits* limits, char* text, size_t size) noexcept nogil:
    cdef const char* form = NULL
    if refused == REFUSED_QUEUE_UNKNOWN:
        form = b"queue \"%.*s\" does not exist; check its name, or create it"
    elif refused == REFUSED_DEPTH:
        form = b"queue \"%.*s\" holds max_depth messages; try again when consumers have caught up"
    elif refused == REFUSED_BYTES:
        form = b"queue \"%.*s\" holds max_bytes bytes; try again when consumers have caught up"
    elif refused == REFUSED_NO_RIGHT:
        form = (
            b"produce: this key has no such right on queue \"%.*s\"; an admin gives it with fila auth "
            b"grant"
        )
    if form == NULL:
        refusal_text(refused, limits, text, size)
    else:
        snprintf(text, size, form, <int> queue.length, queue.at)
