"""A command's bytes are walked once. What stays is copied run by run, and a cut is its distance from the
one before and its length."""

from libc.stdint cimport uint32_t, uint8_t
from libc.string cimport memcmp, memcpy

from fila_server.core.history.decisions cimport decisions_reported
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport ENQUEUE, ENQUEUE_ATOMIC, ENQUEUE_STREAM, FIRE, STAGE
from fila_server.core.protocol.packed_routing cimport ROUTING_BYTES_MAX, Routing, take_routing
from fila_server.core.protocol.protobuf cimport LEN, MAP_KEY, MAP_VALUE, Fields, fields_parse, next_field
from fila_server.core.state.paths cimport queue_find
from fila_server.core.state.settings cimport Policy
from fila_server.core.state.state cimport Queue
from fila_server.core.storage.families cimport FAMILY_COUNT, FRAMES, STAGED
from fila_server.core.storage.rocksdb cimport rocksdb_iterator_t
from fila_server.core.storage.status cimport STORE_OK
from fila_server.core.storage.store cimport (
    scan_free, scan_key, scan_next, scan_seek_first, scan_status, scan_valid, scan_value, store_iterate,
)
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, put_bytes, put_varint, take_slice, take_u8, take_varint,
)
from fila_server.core.threads.blocks cimport INPUTS_MAX, INPUT_BYTES_MAX, Block, History, block_end

cdef enum:
    HOUR_MS = 3600000
    NAME_TAG = MAP_KEY << 3 | LEN   # of a header
    VALUE_TAG = MAP_VALUE << 3 | LEN
    HEADER_TAG = v1.ENQUEUE_MESSAGE_HEADERS << 3 | LEN
    PAYLOAD_TAG = v1.ENQUEUE_MESSAGE_PAYLOAD << 3 | LEN

cdef struct Cutter:                 # walks a command's bytes and leaves out what is not to be kept
    const char* begin
    const char* copied              # up to here the bytes are in `kept`
    Buffer*  cuts                   # varints: from the last cut to this one, and its length
    Buffer*  kept
    uint32_t count
    uint32_t ended                  # where the last cut ended


# --- rows --------------------------------------------------------------------------------------

cdef inline Block* _row(Core* core) noexcept nogil:
    cdef History* history = core.history
    cdef Block* b = history.current
    if b.inputs >= INPUTS_MAX or b.input_bytes >= INPUT_BYTES_MAX:
        decisions_reported(core)
        block_end(history)
        b = history.current
    if b.first_ms == 0:
        b.first_ms = core.wall_ms
    b.last_ms = core.wall_ms
    return b


cdef void input_put(
        Core* core, int kind, int64_t token, int64_t a, int64_t b, int64_t c, const char* bytes,
        uint64_t length) noexcept nogil:
    cdef History* history = core.history
    cdef Block* block
    cdef uint32_t row
    cdef uint64_t here
    if history.inputs_over:
        return
    while True:
        block = _row(core)
        row = block.inputs
        here = min(length, <uint64_t> (INPUT_BYTES_MAX - block.input_bytes))
        block.input_kind[row] = <unsigned char> kind
        block.input_pass[row] = <int64_t> core.counters.passes
        block.input_at_ms[row] = core.wall_ms
        block.input_token[row] = token
        block.input_a[row], block.input_b[row], block.input_c[row] = a, b, c
        if here:
            memcpy(block.input + block.input_bytes, bytes, here)
        bytes += here
        length -= here
        block.input_bytes += <uint32_t> here
        block.input_goes_on[row] = length > 0
        block.inputs += 1
        block.input_begins[block.inputs] = <int> block.input_bytes
        if length == 0:
            return


cdef void pass_begins(Core* core) noexcept nogil:
    cdef History* history = core.history
    cdef int64_t hour = core.wall_ms // HOUR_MS
    # A file holds rows of one hour, so a block does; and its reader may want what there is.
    if history.hour == 0:               # the opening's own pass, right behind the base
        history.hour = hour
    if hour != history.hour or history.cut_wanted:
        history.hour = hour
        history.cut_wanted = 0
        block_end(history)
    input_put(
        core, INPUT_PASS, 0, core.mono_ns, <int64_t> core.durable,
        core.disk_level | (<int64_t> core.stopping << 8), NULL, 0)


cdef void write_failed(Core* core, int call, int status) noexcept nogil:
    if core.history != NULL:
        input_put(core, INPUT_WRITE, 0, call, status, 0, NULL, 0)


# --- what is left out --------------------------------------------------------------------------

cdef inline void _cut(Cutter* cutter, const char* at, uint32_t length) noexcept nogil:
    cdef uint32_t begins = <uint32_t> (at - cutter.begin)
    if length == 0:
        return
    put_varint(cutter.cuts, begins - cutter.ended)
    put_varint(cutter.cuts, length)
    put_bytes(cutter.kept, cutter.copied, at - cutter.copied)
    cutter.copied = at + length
    cutter.ended = begins + length
    cutter.count += 1


cdef inline bint _is(Slice name, Slice other) noexcept nogil:
    return name.length == other.length and memcmp(name.at, other.at, name.length) == 0


cdef bint _is_policy(Policy* policy, Slice name) noexcept nogil:
    cdef uint32_t i
    if (
        _is(name, policy.fairness_key_header) or _is(name, policy.weight_header)
        or _is(name, policy.cost_header) or _is(name, policy.priority_header)
    ):
        return True
    for i in range(policy.throttle_header_count):
        if _is(name, policy.throttle_headers[i]):
            return True
    return False


cdef void _cut_header(Core* core, Cutter* cutter, Slice header, Policy* policy) noexcept nogil:
    cdef History* history = core.history
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields fields
    if history.headers == HEADERS_ALL:
        return
    if history.headers == HEADERS_POLICY and policy != NULL:
        if not fields_parse(&fields, header.at, header.length) or _is_policy(policy, fields.text[MAP_KEY]):
            return
    c.at, c.end, c.bad = header.at, header.at + header.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field <= MAP_VALUE and kind == LEN:
            _cut(cutter, text.at, text.length)


cdef void _cut_message(Core* core, Cutter* cutter, Slice message, Policy* policy) noexcept nogil:
    """Headers and payload, of a request for one message and of one in a batch alike."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    c.at, c.end, c.bad = message.at, message.at + message.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.ENQUEUE_MESSAGE_PAYLOAD and kind == LEN:
            _cut(cutter, text.at, text.length)
        elif field == v1.ENQUEUE_MESSAGE_HEADERS and kind == LEN:
            _cut_header(core, cutter, text, policy)


cdef void _cut_batch(Core* core, Cutter* cutter, Command* command, Slice batch) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef Slice last
    cdef uint64_t number
    cdef uint32_t i = 0
    cdef Queue* queue = NULL
    last.at, last.length = NULL, 0
    c.at, c.end, c.bad = batch.at, batch.at + batch.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field != v1.ENQUEUE_BATCH_REQUEST_MESSAGES or kind != LEN:
            continue
        if i < command.count and (command.items[i].queue.at != last.at or last.at == NULL):
            last = command.items[i].queue
            queue = queue_find(core, last) if last.length else NULL
        _cut_message(core, cutter, text, &queue.policy if queue != NULL else NULL)
        i += 1


cdef bint _cut_known_header(Core* core, Cutter* cutter, Slice header, Policy* policy) noexcept nogil:
    """A header as clients write it: its name, then its value. False: it is written otherwise."""
    cdef History* history = core.history
    cdef Cursor c
    cdef Slice name
    cdef Slice value
    c.at, c.end, c.bad = header.at, header.at + header.length, False
    if take_u8(&c) != NAME_TAG:
        return False
    name = take_slice(&c, take_varint(&c))
    if take_u8(&c) != VALUE_TAG:
        return False
    value = take_slice(&c, take_varint(&c))
    if c.bad or c.at != c.end:
        return False
    if history.headers == HEADERS_NONE or policy == NULL or not _is_policy(policy, name):
        _cut(cutter, name.at, name.length)
        _cut(cutter, value.at, value.length)
    return True


cdef void _cut_body(Core* core, Cutter* cutter, Slice body, Policy* policy) noexcept nogil:
    """Headers and payload of a message whose place is known: `_cut_message`, without looking for them."""
    cdef History* history = core.history
    cdef Cursor c
    cdef Slice text
    cdef uint8_t tag
    c.at, c.end, c.bad = body.at, body.at + body.length, False
    while c.at < c.end and not c.bad:
        body.at = c.at
        tag = take_u8(&c)
        text = take_slice(&c, take_varint(&c))
        if tag == PAYLOAD_TAG and not c.bad:
            _cut(cutter, text.at, text.length)
        elif tag != HEADER_TAG or c.bad:
            body.length = <uint32_t> (c.end - body.at)      # tags of several bytes
            _cut_message(core, cutter, body, policy)
            return
        elif history.headers != HEADERS_ALL and not _cut_known_header(core, cutter, text, policy):
            _cut_header(core, cutter, text, policy)


cdef bint _bodies_are_known(Command* command) noexcept nogil:
    """Whether the one parse left the place of each message's headers and payload within the bytes as they
    came."""
    cdef uint32_t i
    if command.rewritten:
        return False
    for i in range(command.count):
        if command.items[i].refused:
            return False
    return command.count > 0


cdef void _cut_items(Core* core, Cutter* cutter, Command* command) noexcept nogil:
    """A batch of which `_bodies_are_known`."""
    cdef Slice last
    cdef Slice body
    cdef uint32_t i
    cdef Queue* queue = NULL
    last.at, last.length = NULL, 0
    for i in range(command.count):
        if i == 0 or not _is(command.items[i].queue, last):
            last = command.items[i].queue
            queue = queue_find(core, last) if last.length else NULL
        body.at, body.length = command.bytes + command.items[i].at, command.items[i].length
        _cut_body(core, cutter, body, &queue.policy if queue != NULL else NULL)


cdef void _cut_staged(Core* core, Cutter* cutter, Slice body) noexcept nogil:
    """What a sink staged (sinks/sink_records.pxd): a version, the request behind its length, routings. The
    messages get their keys when they move, so the headers that their queues name are kept."""
    cdef Cursor c
    cdef Slice request
    cdef Slice named
    cdef Slice own
    cdef Slice text
    cdef Fields fields
    cdef uint32_t field, kind
    cdef uint64_t number
    cdef Queue* queue
    c.at, c.end, c.bad = body.at, body.at + body.length, False
    take_u8(&c)
    request = take_slice(&c, take_varint(&c))
    if c.bad or not fields_parse(&fields, request.at, request.length):
        return
    named = fields.text[v1.ENQUEUE_BATCH_REQUEST_QUEUE]
    c.at, c.end = request.at, request.at + request.length
    while next_field(&c, &field, &kind, &text, &number):
        if field != v1.ENQUEUE_BATCH_REQUEST_MESSAGES or kind != LEN:
            continue
        if not fields_parse(&fields, text.at, text.length):
            return
        own = fields.text[v1.ENQUEUE_MESSAGE_QUEUE]
        queue = queue_find(core, own if own.length else named)
        _cut_message(core, cutter, text, &queue.policy if queue != NULL else NULL)


cdef void _cut_command(Core* core, Cutter* cutter, Command* command, uint32_t wire_length) noexcept nogil:
    cdef Slice whole
    cdef Slice batch
    cdef Fields fields
    cdef Queue* queue
    whole.at, whole.length = command.bytes, wire_length
    if command.kind == ENQUEUE:
        queue = queue_find(core, command.queue)
        _cut_message(core, cutter, whole, &queue.policy if queue != NULL else NULL)
    elif _bodies_are_known(command):
        _cut_items(core, cutter, command)
    else:
        if command.kind == ENQUEUE_STREAM and fields_parse(&fields, whole.at, whole.length):
            batch = fields.text[v1.ENQUEUE_STREAM_REQUEST_BATCH]
            whole = batch if batch.length else whole
        elif command.kind == FIRE and fields_parse(&fields, whole.at, whole.length):
            whole = fields.text[seam.FIRING_BATCH]
        _cut_batch(core, cutter, command, whole)


cdef uint32_t _put_routings(Buffer* out, Command* command) noexcept nogil:
    """What hooks decided, by the number of its message; packed as they packed it."""
    cdef uint32_t i, count = 0
    cdef Cursor c
    cdef Routing routing
    cdef const char* begin
    if command.routings == NULL:
        return 0
    for i in range(command.count):
        begin = command.items[i].routing
        if begin == NULL:
            continue
        c.at, c.end, c.bad = begin, begin + ROUTING_BYTES_MAX, False
        take_routing(&c, &routing)
        put_varint(out, i)
        put_varint(out, <uint64_t> (c.at - begin))
        put_bytes(out, begin, c.at - begin)
        count += 1
    return count


# --- commands and loads ------------------------------------------------------------------------

cdef void _cutter_begin(Core* core, Cutter* cutter, const char* bytes) noexcept nogil:
    cdef History* history = core.history
    history.cuts.length = history.kept.length = history.scratch.length = 0
    cutter.begin = cutter.copied = bytes
    cutter.cuts, cutter.kept = &history.cuts, &history.kept
    cutter.count = cutter.ended = 0


cdef void _cutter_end(Core* core, Cutter* cutter, uint32_t length, Buffer* out) noexcept nogil:
    """{count, cuts} and what is left of the bytes."""
    cdef const char* end = cutter.begin + length
    put_varint(out, cutter.count)
    put_bytes(out, cutter.cuts.data, cutter.cuts.length)
    put_bytes(out, cutter.kept.data, cutter.kept.length)
    put_bytes(out, cutter.copied, end - cutter.copied)


cdef void _command(Core* core, Command* command) noexcept nogil:
    cdef History* history = core.history
    cdef Buffer* out = &history.scratch
    cdef Cutter cutter
    cdef uint32_t length = command.length - command.rewritten
    cdef uint32_t routings
    cdef size_t at
    _cutter_begin(core, &cutter, command.bytes)
    if ENQUEUE <= command.kind <= ENQUEUE_ATOMIC or command.kind == STAGE or command.kind == FIRE:
        routings = _put_routings(out, command)
        at = out.length
        if routings:                    # their count stands before them
            history.routings.length = 0
            put_bytes(&history.routings, out.data, at)
            out.length = 0
        put_varint(out, routings)
        if routings:
            put_bytes(out, history.routings.data, at)
        _cut_command(core, &cutter, command, length)
    else:
        put_varint(out, 0)
    _cutter_end(core, &cutter, length, out)
    input_put(
        core, INPUT_COMMAND, <int64_t> command.token, command.kind, length,
        command.stage.checksum if command.stage != NULL else 0, out.data, out.length)


cdef void commands_taken(Core* core, Command* first) noexcept nogil:
    cdef History* history = core.history
    while first != NULL and not history.inputs_over:
        _command(core, first)
        first = first.next


cdef void load_taken(Core* core, const Load* load) noexcept nogil:
    """Its bytes may be buried, and a redrive then reads them: where each field ends has to be known."""
    cdef History* history = core.history
    cdef Buffer* out
    cdef Cutter cutter
    cdef Slice whole
    if core.history == NULL:
        return
    out = &history.scratch
    out.length = 0
    if load.bytes != NULL:
        _cutter_begin(core, &cutter, load.bytes)
        whole.at, whole.length = load.bytes, <uint32_t> load.length
        if load.family == STAGED:
            _cut_staged(core, &cutter, whole)
        else:
            _cut_message(core, &cutter, whole, NULL)    # messages follow one another without a frame
        _cutter_end(core, &cutter, whole.length, out)
    input_put(
        core, INPUT_LOAD, <int64_t> load.queue_number, <int64_t> load.first_offset,
        <int64_t> load.length if load.bytes != NULL else -1,
        load.status | (LOAD_IS_STAGED if load.family == STAGED else 0), out.data, out.length)


# --- what an opening found -------------------------------------------------------------------
# A record is an input of its own: family, then key and value. Recovery has not begun, so no pass is under
# way whose bounds would count.

cdef int _family_put(Core* core, int family, StoreError* error) noexcept nogil:
    cdef History* history = core.history
    cdef rocksdb_iterator_t* scan = store_iterate(core.store, family, NULL)
    cdef Buffer* record = &history.scratch
    cdef const char* at
    cdef size_t length = 0
    cdef int status
    scan_seek_first(scan)
    while scan_valid(scan):
        record.length = 0
        at = scan_key(scan, &length)
        put_varint(record, length)
        put_bytes(record, at, length)
        at = scan_value(scan, &length)
        put_bytes(record, at, length)
        input_put(core, INPUT_RECORD, 0, family, <int64_t> record.length, 0, record.data, record.length)
        scan_next(scan)
    status = scan_status(core.store, scan, error)
    scan_free(scan)
    return status


cdef int base_put(Core* core, const char* head, size_t length, StoreError* error) noexcept nogil:
    cdef int family
    cdef int status = STORE_OK
    input_put(core, INPUT_BASE, 0, 0, 0, 0, head, length)
    for family in range(FAMILY_COUNT):
        if family != FRAMES and family != STAGED and status == STORE_OK:
            status = _family_put(core, family, error)
    if status == STORE_OK:
        input_put(core, INPUT_BASE_ENDS, 0, 0, 0, 0, NULL, 0)
    return status
