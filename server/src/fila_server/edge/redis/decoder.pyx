from libc.stdint cimport uint8_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport strtod
from libc.string cimport memcmp, memcpy, memset, strlen

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.protobuf cimport LEN, QUEUE_FIELD, VARINT
from fila_server.core.structures.buffer cimport (
    buffer_free, buffer_init, buffer_reserve, must_malloc, put_bytes, put_u32be, put_u8, put_varint,
    varint_size, write_u32be, write_varint,
)
from fila_server.edge.redis.encode cimport put_error
from fila_server.edge.redis.resp cimport (
    NEEDS_MORE, TOO_LARGE, WHOLE, Arg, Found, reader_free, reader_init, reader_next, reader_put_back,
)

cdef enum:
    RUN_MESSAGES_MAX = 2048       # pushes merged into one frame: enough to pay for a commit,
    RUN_BYTES_MAX = 1048576       # few enough that one pass of the scheduler stays short
    COMMAND_ARGS_KEPT = 64        # a handler sees this many arguments and the true count
    LEASE_MESSAGES_MAX = 10000
    WAIT_S_MAX = 86400            # what is accepted; the core ends a wait after 300 s
    CHANNEL_FIELD = v1.LEASE_REQUEST_CHANNEL    # of an AckBatchRequest, too

cdef enum Verb:
    OTHER = 0
    RPUSH = 1
    HMGET = 2
    HDEL = 3

cdef const char* TICKET_REFUSED = (
    b"Invalid Ticket: must be an integer of 64 bits with its sign, as HMGET gave it")


cdef void decoder_init(
        Decoder* d, int64_t argument_bytes_max, int32_t batch_messages_max,
        int64_t batch_bytes_max) noexcept nogil:
    memset(d, 0, sizeof(Decoder))
    reader_init(&d.reader, argument_bytes_max, max(argument_bytes_max, batch_bytes_max) + 65536)
    d.batch_messages_max = batch_messages_max
    d.batch_bytes_max = batch_bytes_max


cdef void decoder_free(Decoder* d) noexcept nogil:
    while d.found_taken < d.found_count:
        buffer_free(&d.found[d.found_taken].body)
        d.found_taken += 1
    reader_free(&d.reader)


cdef bint decoder_next(Decoder* d, Buffer* scratch, Item* item) noexcept nogil:
    cdef Found found
    if d.found_taken == d.found_count:
        d.found_taken = d.found_count = 0
    while d.found_count == 0:
        found = reader_next(&d.reader)
        if found == WHOLE:
            _decode(d, scratch)
        elif found == NEEDS_MORE:
            if d.run_count == 0:
                return False
            _end_run(d, scratch)
        else:
            _end_run(d, scratch)
            _refused_by_reader(d, found)
    item[0] = d.found[d.found_taken]
    d.found_taken += 1
    return True


# --- what is found -----------------------------------------------------------------------------

cdef Item* _add(Decoder* d, ItemKind kind, int64_t number) noexcept nogil:
    cdef Item* item = &d.found[d.found_count]
    d.found_count += 1
    item.kind = kind
    item.number = number
    buffer_init(&item.body)
    return item


cdef void _add_copy(Decoder* d, ItemKind kind, Buffer* scratch, int64_t number) noexcept nogil:
    """The scratch buffer's bytes, in a place of their size."""
    cdef Item* item = _add(d, kind, number)
    item.body.data = <char*> must_malloc(scratch.length)
    memcpy(item.body.data, scratch.data, scratch.length)
    item.body.length = item.body.capacity = scratch.length
    scratch.length = 0
    if scratch.capacity > RUN_BYTES_MAX * 2:
        buffer_free(scratch)


cdef void _refuse(Decoder* d, const char* prefix, const char* why) noexcept nogil:
    cdef Item* item = _add(d, ITEM_REPLY, 0)
    put_error(&item.body, prefix, why, strlen(why))


cdef void _refused_by_reader(Decoder* d, Found found) noexcept nogil:
    cdef char text[200]
    if found == TOO_LARGE:
        _refuse(d, b"IPA", d.reader.refusal)
        return
    snprintf(text, sizeof(text), b"Protocol error: %s", d.reader.refusal)
    _refuse(d, b"ERR", text)
    d.found[d.found_count - 1].kind = ITEM_CLOSE


cdef void _bad_name(Decoder* d, const char* what, int size_max) noexcept nogil:
    cdef char text[128]
    snprintf(
        text, sizeof(text), b"%s must be 1 to %d bytes of A-Z a-z 0-9 . _ - and not start with a dot", what,
        size_max)
    _refuse(d, b"IPA", text)


cdef void _decode(Decoder* d, Buffer* scratch) noexcept nogil:
    cdef Arg name = d.reader.args[0]
    cdef Verb verb = _verb(d.reader.text + name.at, name.size)
    if verb == RPUSH and d.reader.argc == 3:
        _push(d, scratch)
        return
    _end_run(d, scratch)
    if verb == RPUSH:
        _push_many(d, scratch)
    elif verb == HMGET:
        _lease(d, scratch)
    elif verb == HDEL:
        _acks(d, scratch)
    else:
        _command(d, scratch)


cdef void _command(Decoder* d, Buffer* scratch) noexcept nogil:
    cdef uint32_t i
    for i in range(min(d.reader.argc, <uint32_t> COMMAND_ARGS_KEPT)):
        put_u32be(scratch, d.reader.args[i].size)
        put_bytes(scratch, d.reader.text + d.reader.args[i].at, d.reader.args[i].size)
    _add_copy(d, ITEM_COMMAND, scratch, d.reader.argc)


# --- RPUSH -------------------------------------------------------------------------------------

cdef void _push(Decoder* d, Buffer* scratch) noexcept nogil:
    """`RPUSH q m`: one message is all or nothing by itself, so neighbours may share a frame."""
    cdef const char* text = d.reader.text
    cdef Arg queue = d.reader.args[1]
    cdef Arg message = d.reader.args[2]
    cdef bint same_queue
    if not _is_name(text + queue.at, queue.size, QUEUE_BYTES_MAX):
        _end_run(d, scratch)
        _bad_name(d, b"queue", QUEUE_BYTES_MAX)
        return
    if d.run_count > 0 and scratch.length + message.size > RUN_BYTES_MAX:
        _end_run(d, scratch)
        reader_put_back(&d.reader)      # and begins the next
        return
    if d.run_count == 0:
        scratch.length = 0
        d.run_queue_size = queue.size
        memcpy(d.run_queue, text + queue.at, queue.size)
        _put_text(scratch, QUEUE_FIELD, text + queue.at, queue.size)
    same_queue = queue.size == d.run_queue_size and memcmp(text + queue.at, d.run_queue, queue.size) == 0
    _put_message(scratch, text + queue.at, 0 if same_queue else queue.size, text + message.at, message.size)
    d.run_count += 1
    if d.run_count >= RUN_MESSAGES_MAX or d.run_count >= <uint32_t> d.batch_messages_max:
        _end_run(d, scratch)            # now, so that nothing is in the scratch buffer between calls


cdef void _end_run(Decoder* d, Buffer* scratch) noexcept nogil:
    if d.run_count > 0:
        _add_copy(d, ITEM_PUSHES, scratch, d.run_count)
        d.run_count = 0


cdef void _push_many(Decoder* d, Buffer* scratch) noexcept nogil:
    """`RPUSH q m1 m2 ...`: one frame of its own, taken whole or refused whole."""
    cdef const char* text = d.reader.text
    cdef Arg* args = d.reader.args
    cdef uint32_t i, count
    cdef char why[160]
    if d.reader.argc < 3:
        _refuse(d, b"MPA", b"missing parameter: RPUSH queue message [message ...]")
        return
    if not _is_name(text + args[1].at, args[1].size, QUEUE_BYTES_MAX):
        _bad_name(d, b"queue", QUEUE_BYTES_MAX)
        return
    count = d.reader.argc - 2
    if count > <uint32_t> d.batch_messages_max:
        snprintf(
            why, sizeof(why), b"%u messages are over limits.batch_messages_max (%d): push fewer at a time",
            count, <int> d.batch_messages_max)
        _refuse(d, b"IPA", why)
        return
    _put_text(scratch, QUEUE_FIELD, text + args[1].at, args[1].size)
    for i in range(2, d.reader.argc):
        _put_message(scratch, NULL, 0, text + args[i].at, args[i].size)
    if <int64_t> scratch.length > d.batch_bytes_max:
        buffer_free(scratch)
        snprintf(
            why, sizeof(why), b"the messages are over limits.batch_bytes_max (%lld): push fewer at a time",
            <long long> d.batch_bytes_max)
        _refuse(d, b"IPA", why)
        return
    _add_copy(d, ITEM_PUSH_MANY, scratch, count)


# --- HMGET, HDEL -------------------------------------------------------------------------------

cdef bint _names(Decoder* d, Buffer* scratch) noexcept nogil:
    """Queue and channel of a request. False: refused."""
    cdef const char* text = d.reader.text
    cdef Arg* args = d.reader.args
    if not _is_name(text + args[1].at, args[1].size, QUEUE_BYTES_MAX):
        _bad_name(d, b"queue", QUEUE_BYTES_MAX)
        return False
    if not _is_name(text + args[2].at, args[2].size, CHANNEL_BYTES_MAX):
        _bad_name(d, b"channel", CHANNEL_BYTES_MAX)
        return False
    _put_text(scratch, QUEUE_FIELD, text + args[1].at, args[1].size)
    _put_text(scratch, CHANNEL_FIELD, text + args[2].at, args[2].size)
    return True


cdef void _lease(Decoder* d, Buffer* scratch) noexcept nogil:
    """`HMGET q ch count [timeout_s]`"""
    cdef const char* text = d.reader.text
    cdef Arg* args = d.reader.args
    cdef int64_t count = 0
    cdef int64_t wait_ms = 0
    cdef Item* item
    if d.reader.argc < 4:
        _refuse(d, b"MPA", b"missing parameter: HMGET queue channel count [timeout]")
    elif d.reader.argc > 5:
        _refuse(d, b"IPA", b"HMGET takes queue, channel, count and timeout, nothing more")
    elif _names(d, scratch):
        if d.reader.argc == 5:
            wait_ms = _wait_ms(text + args[4].at, args[4].size)
        if not _parse_int(text + args[3].at, args[3].size, &count) or count < 0:
            _refuse(d, b"IPA", b"count must be an integer of at least 0")
        elif wait_ms < 0:
            _refuse(d, b"IPA", b"timeout must be seconds from 0 to 86400; fractions are allowed")
        elif count == 0:
            item = _add(d, ITEM_REPLY, 0)
            put_bytes(&item.body, b"*0\r\n", 4)
        else:
            put_u8(scratch, v1.LEASE_REQUEST_MAX_MESSAGES << 3 | VARINT)
            put_varint(scratch, <uint64_t> min(count, <int64_t> LEASE_MESSAGES_MAX))
            if wait_ms > 0:
                put_u8(scratch, v1.LEASE_REQUEST_WAIT_MS << 3 | VARINT)
                put_varint(scratch, <uint64_t> wait_ms)
            _add_copy(d, ITEM_LEASE, scratch, wait_ms)
    scratch.length = 0


cdef void lease_at_once(Item* item) noexcept nogil:
    """How long it waits stands last in its request (`_lease`)."""
    item.body.length -= 1 + varint_size(<uint64_t> item.number)


cdef void _acks(Decoder* d, Buffer* scratch) noexcept nogil:
    """`HDEL q ch ticket [ticket ...]`: every ticket is read before any is sent on."""
    cdef const char* text = d.reader.text
    cdef Arg* args = d.reader.args
    cdef int64_t ticket = 0
    cdef uint32_t i
    cdef int32_t in_frame = 0
    cdef size_t names_size, began = 0
    cdef uint32_t frames = 1
    if d.reader.argc < 4:
        _refuse(d, b"MPA", b"missing parameter: HDEL queue channel ticket [ticket ...]")
        return
    put_u32be(scratch, 0)               # the frame's length, once it is known
    if not _names(d, scratch):
        scratch.length = 0
        return
    names_size = scratch.length - 4
    for i in range(3, d.reader.argc):
        if not _parse_int(text + args[i].at, args[i].size, &ticket):
            scratch.length = 0
            _refuse(d, b"IPA", TICKET_REFUSED)
            return
        if in_frame == d.batch_messages_max:
            write_u32be(scratch.data + began, <uint32_t> (scratch.length - began - 4))
            began = scratch.length
            buffer_reserve(scratch, names_size + 4)
            memcpy(scratch.data + began + 4, scratch.data + 4, names_size)
            scratch.length += names_size + 4
            frames += 1
            in_frame = 0
        put_u8(scratch, v1.ACK_BATCH_REQUEST_ITEMS << 3 | LEN)
        put_varint(scratch, 1 + varint_size(<uint64_t> ticket))
        put_u8(scratch, v1.SETTLE_ITEM_LEASE_ID << 3 | VARINT)
        put_varint(scratch, <uint64_t> ticket)
        in_frame += 1
    write_u32be(scratch.data + began, <uint32_t> (scratch.length - began - 4))
    _add_copy(d, ITEM_ACKS, scratch, <int64_t> scratch.length - 4 * <int64_t> frames)


# --- small parts -------------------------------------------------------------------------------

cdef Verb _verb(const char* name, uint32_t size) noexcept nogil:
    if size == 5:
        if _is_word(name, b"rpush", 5):
            return RPUSH
        if _is_word(name, b"hmget", 5):
            return HMGET
    elif size == 4 and _is_word(name, b"hdel", 4):
        return HDEL
    return OTHER


cdef bint _is_word(const char* text, const char* lower, uint32_t size) noexcept nogil:
    cdef uint32_t i
    for i in range(size):
        if (text[i] | 0x20) != lower[i]:
            return False
    return True


cdef bint _is_name(const char* text, uint32_t size, uint32_t size_max) noexcept nogil:
    cdef uint32_t i
    cdef uint8_t c
    if size == 0 or size > size_max or text[0] == c".":
        return False
    for i in range(size):
        c = <uint8_t> text[i]
        if not (
            97 <= c <= 122 or 48 <= c <= 57 or 65 <= c <= 90 or c == 45 or c == 46 or c == 95
        ):
            return False
    return True


cdef bint _parse_int(const char* text, uint32_t size, int64_t* value) noexcept nogil:
    """Read a decimal that fits in 64 bits with sign; nothing else, not even a space."""
    cdef uint64_t number = 0
    cdef uint64_t limit = 9223372036854775807
    cdef uint64_t digit
    cdef uint32_t i = 0
    if size > 0 and text[0] == c"-":
        limit += 1
        i = 1
    if i == size or size > 20:
        return False
    while i < size:
        if not (c"0" <= text[i] <= c"9"):
            return False
        digit = text[i] - c"0"
        if number > (limit - digit) // 10:
            return False
        number = number * 10 + digit
        i += 1
    value[0] = <int64_t> (0 - number) if text[0] == c"-" else <int64_t> number
    return True


cdef int64_t _wait_ms(const char* text, uint32_t size) noexcept nogil:
    """Seconds as text -> milliseconds, any positive wait at least 1; -1 when it is no such number."""
    cdef char copied[128]
    cdef char* end
    cdef uint32_t i
    cdef double seconds
    if size == 0 or size >= sizeof(copied):
        return -1
    for i in range(size):
        if not (c"0" <= text[i] <= c"9" or text[i] in (c".", c"e", c"E", c"+", c"-")):
            return -1
        copied[i] = text[i]
    copied[size] = 0
    seconds = strtod(copied, &end)
    if end != copied + size or not 0 <= seconds <= WAIT_S_MAX:      # nor 1e999, which is infinity
        return -1
    if seconds == 0:
        return 0
    return max(<int64_t> (seconds * 1000), <int64_t> 1)


cdef void _put_text(Buffer* b, uint8_t field, const char* text, uint32_t size) noexcept nogil:
    put_u8(b, field << 3 | LEN)
    put_varint(b, size)
    put_bytes(b, text, size)


cdef void _put_message(
        Buffer* b, const char* queue, uint32_t queue_size, const char* payload, uint32_t size) noexcept nogil:
    """An EnqueueMessage of a batch, with its queue, when it needs one, and payload."""
    cdef uint64_t inner = 0
    cdef char* to
    if queue_size > 0:
        inner += 1 + varint_size(queue_size) + queue_size
    if size > 0:
        inner += 1 + varint_size(size) + size
    buffer_reserve(b, inner + 12)
    to = b.data + b.length
    to[0] = <char> (v1.ENQUEUE_BATCH_REQUEST_MESSAGES << 3 | LEN)
    to += 1
    to += write_varint(to, inner)
    if queue_size > 0:
        to[0] = <char> (v1.ENQUEUE_MESSAGE_QUEUE << 3 | LEN)
        to += 1
        to += write_varint(to, queue_size)
        memcpy(to, queue, queue_size)
        to += queue_size
    if size > 0:
        to[0] = <char> (v1.ENQUEUE_MESSAGE_PAYLOAD << 3 | LEN)
        to += 1
        to += write_varint(to, size)
        memcpy(to, payload, size)
        to += size
    b.length = to - b.data
