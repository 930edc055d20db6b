"""A frame of messages between its one parse and the mailbox: what a hook may look at and decide.

Hooks run on the I/O thread, under the GIL, a frame at a time. So messages leave here packed in one
string for many of them, and their routings return in one: no header and no key becomes a Python object.
on_enqueue.lua reads and writes the same layout. All numbers are big-endian.

    a message   u32 bytes of payload | u32 n | n x (u32 length, name, u32 length, value)
                eight zero bytes follow the last one
    a routing   u8 what is given | u8 n | u16 weight | f64 cost | u16 length, fairness key
                | n x (u16 length, throttle key)
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp, memcpy

from fila_server.core.protocol.packed_routing cimport Routing, take_routing
from fila_server.core.protocol.protobuf cimport Item, header_find, next_header, utf8_valid
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, put_slice, put_u32be, put_u64be,
)
from fila_server.core.threads.mailbox cimport HookRoutings, command_free


cdef const char* TENANT_HEADER = "fila-tenant"


cdef bint _same(Slice a, Slice b) noexcept nogil:
    if a.length != b.length:
        return False
    # A batch names its queue once: mostly these are the same bytes, not just equal ones.
    return a.at == b.at or memcmp(a.at, b.at, a.length) == 0


cdef void _pack(Buffer* b, const char* bytes, const Item* item, Slice fairness_header) noexcept nogil:
    """A tenant's message names its tenant in the fairness header, whatever its producer wrote there."""
    cdef Cursor c
    cdef Slice name
    cdef Slice value
    cdef Slice tenant
    cdef Slice header
    header.at, header.length = TENANT_HEADER, 11
    tenant.at, tenant.length = NULL, 0
    if fairness_header.length:
        header_find(bytes + item.at, item.length, header, &tenant)
    put_u32be(b, item.payload_length)
    put_u32be(b, item.header_count + (tenant.length > 0))
    if tenant.length:
        put_u32be(b, fairness_header.length)
        put_slice(b, fairness_header)
        put_u32be(b, tenant.length)
        put_slice(b, tenant)
    c.at = bytes + item.at
    c.end = c.at + item.length
    c.bad = False
    while next_header(&c, &name, &value):
        if tenant.length and _same(name, fairness_header):
            value = tenant
        put_u32be(b, name.length)
        put_slice(b, name)
        put_u32be(b, value.length)
        put_slice(b, value)


cdef const char* _copied(Command* command, const char* routings, size_t length) noexcept nogil:
    """Where the routings are for as long as the command lives."""
    cdef HookRoutings* copy = <HookRoutings*> must_malloc(sizeof(HookRoutings) + length)
    copy.next = command.routings
    command.routings = copy
    memcpy(copy.bytes, routings, length)
    return copy.bytes


cdef str _problem_of(const Routing* r, const Limits* limits):
    """Why the core could not take these keys: Lua's strings are any
    bytes, and the settings bound them further."""
    cdef uint32_t i
    if r.fairness_key.length > limits.fairness_key_bytes_max:
        return (
            f"fairness_key must be at most {limits.fairness_key_bytes_max} bytes, got "
            f"{r.fairness_key.length}"
        )
    if r.throttle_count > limits.throttle_keys_max:
        return f"throttle_keys must be at most {limits.throttle_keys_max}, got {r.throttle_count}"
    for i in range(r.throttle_count):
        if r.throttle[i].length > limits.throttle_key_bytes_max:
            return (f"throttle_keys must be at most {limits.throttle_key_bytes_max} bytes each, "
                    f"got {r.throttle[i].length}")
        if not utf8_valid(r.throttle[i].at, r.throttle[i].length):
            return "throttle_keys must be valid UTF-8"
    # One key that is no text would spoil every answer it appears in.
    if not utf8_valid(r.fairness_key.at, r.fairness_key.length):
        return "fairness_key must be valid UTF-8"
    return None


cdef class ParsedFrame:
    """What CoreEngine.parse gives and submit_parsed takes."""

    def __cinit__(self):
        self.command = NULL

    def __dealloc__(self):
        if self.command != NULL:
            command_free(self.command)

    cdef _check(self, Py_ssize_t i):
        if self.command == NULL or i < 0 or i >= <Py_ssize_t> self.command.count:
            raise IndexError(i)

    def unrefused(self):
        """The indices of the messages that are not refused already."""
        cdef uint32_t i
        cdef uint32_t count = self.command.count if self.command != NULL else 0
        for i in range(count):
            if self.command.items[i].refused:
                return [i for i in range(count) if not self.command.items[i].refused]
        return range(count)

    def queue(self, Py_ssize_t i):
        """The name of the queue message i goes to."""
        self._check(i)
        return (<const char*> self.command.items[i].queue.at)[:self.command.items[i].queue.length]

    def queues(self):
        """The names of all queues the frame's messages go to; without those refused already."""
        cdef set found = set()
        cdef Slice last
        cdef uint32_t i
        last.at, last.length = NULL, 0
        for i in range(self.command.count if self.command != NULL else 0):
            if self.command.items[i].refused:
                continue
            if last.at == NULL or not _same(self.command.items[i].queue, last):
                last = self.command.items[i].queue
                found.add((<const char*> last.at)[:last.length])
        return found

    def staged(self):
        """Of a Stage request: the names of its queue and its sink."""
        cdef Command* command = self.command
        if command == NULL or command.stage == NULL:
            raise ValueError("the frame stages nothing, or was submitted already")
        return (
            (<const char*> command.queue.at)[:command.queue.length].decode(),
            (<const char*> command.stage.sink.at)[:command.stage.sink.length].decode(),
        )

    def frame_bytes(self):
        """Bytes of the whole frame, which stay in memory for as long as it is not submitted."""
        return self.command.length if self.command != NULL else 0

    def was_shown(self, int64_t shown_ns, int64_t routed_ns):
        """From when to when its scripts had it, on the monotonic clock: for the spans of its messages."""
        if self.command != NULL:
            self.command.shown_ns, self.command.routed_ns = shown_ns, routed_ns

    def pack(
            self, indices, Py_ssize_t at, Py_ssize_t count_max, size_t bytes_max, bytes fairness_header=b""):
        """Messages indices[at], indices[at + 1], ... as long as they go to
        the same queue: how many, and their bytes.

        At most `count_max`, and none more once there are `bytes_max`
        bytes; at least one. None may be refused.
        """
        cdef Buffer b
        cdef Py_ssize_t count = 0
        cdef Py_ssize_t end = min(<Py_ssize_t> len(indices), at + count_max)
        cdef Py_ssize_t i
        cdef Slice queue
        cdef Slice header
        header.at, header.length = <const char*> fairness_header, <uint32_t> len(fairness_header)
        buffer_init(&b)
        try:
            while at + count < end:
                i = indices[at + count]
                self._check(i)
                if self.command.items[i].refused:
                    raise ValueError(f"message {i} is refused already")
                if count == 0:
                    queue = self.command.items[i].queue
                elif b.length >= bytes_max or not _same(self.command.items[i].queue, queue):
                    break
                _pack(&b, self.command.bytes, &self.command.items[i], header)
                count += 1
            put_u64be(&b, 0)
            return count, PyBytes_FromStringAndSize(b.data, b.length)
        finally:
            buffer_free(&b)

    def route(self, indices, Py_ssize_t at, Py_ssize_t count, bytes routings, Py_ssize_t start):
        """A hook's decisions for messages indices[at] to indices[at +
        count - 1], packed, from byte `start` on.

        Returns how many were taken, what is wrong with the next one,
        or None, and the byte behind them and it.
        """
        cdef const char* given = PyBytes_AS_STRING(routings)
        cdef Py_ssize_t taken_end = start
        cdef Py_ssize_t seen_end = start
        cdef Cursor c
        cdef Routing routing
        cdef Py_ssize_t done, i
        cdef object problem = None
        if not 0 <= start <= PyBytes_GET_SIZE(routings):
            raise ValueError(f"byte {start} is outside of routings of {PyBytes_GET_SIZE(routings)} bytes")
        c.at, c.end, c.bad = given + start, given + PyBytes_GET_SIZE(routings), False
        for done in range(count):
            self._check(indices[at + done])
            take_routing(&c, &routing)
            if c.bad:
                raise ValueError(f"routing {done} of {count} is cut short")
            seen_end = c.at - given
            problem = _problem_of(&routing, &self.limits)
            if problem is not None:
                count = done
                break
            taken_end = seen_end
        if taken_end > start:
            # Nothing more: a frame may wait for hours, and its script is asked again every few seconds.
            c.at = _copied(self.command, given + start, taken_end - start)
            c.end = c.at + (taken_end - start)
            for done in range(count):
                i = indices[at + done]
                self._check(i)
                self.command.items[i].routing = c.at
                take_routing(&c, &routing)
        return count, problem, seen_end
