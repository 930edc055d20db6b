# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Finding whole commands in a stream of bytes. See resp.pxd for the picture."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memchr, memmove

from fila_server.core.structures.buffer cimport Buffer, buffer_free, buffer_init, must_realloc, put_bytes

from fila_server.edges.redis.inline import UnbalancedQuotes, split_line

cdef enum:
    KEPT_BYTES_IDLE = 65536      # a larger buffer is given back once it is empty
    ARGS_KEPT_IDLE = 4096        # so is a larger table of arguments


cdef class RespReader:
    """The unread bytes of one connection."""

    def __cinit__(self, int64_t argument_bytes_max, int64_t command_bytes_max):
        if command_bytes_max > 0xFFFFFFFF:
            raise ValueError("offsets within a command are 32 bits wide")
        buffer_init(&self.kept)
        self.argument_bytes_max = argument_bytes_max
        self.command_bytes_max = command_bytes_max
        self.arguments_left = -1
        self.bulk_left = -1
        self.args = NULL
        self.args_room = 0

    def __dealloc__(self):
        buffer_free(&self.kept)
        free(self.args)

    cdef bint is_idle(self) noexcept:
        """Between commands, with nothing unread."""
        return self.pos == self.end and self.arguments_left < 0

    cdef int feed_bytes(self, bytes data) except -1:
        """Take another piece. Whatever `next` pointed at before is no longer valid."""
        self.keep_rest()
        if self.end == 0:
            self.arrived = data
            self.base = PyBytes_AS_STRING(data)
            self.end = PyBytes_GET_SIZE(data)
            return 0
        put_bytes(&self.kept, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        self.base = self.kept.data
        self.end = <Py_ssize_t> self.kept.length
        return 0

    cdef int keep_rest(self) except -1:
        """Bring the unread bytes to the front of our own buffer and let go of the last piece."""
        cdef Py_ssize_t left = self.end - self.start
        if self.arrived is not None:
            self.kept.length = 0
            put_bytes(&self.kept, self.base + self.start, left)
            self.arrived = None
        elif self.start > 0 and left > 0:
            memmove(self.kept.data, self.kept.data + self.start, left)
        self.kept.length = left
        if left == 0 and self.kept.capacity > KEPT_BYTES_IDLE:
            buffer_free(&self.kept)
        if self.arguments_left < 0 and self.args_room > ARGS_KEPT_IDLE:
            free(self.args)
            self.args = NULL
            self.args_room = 0
        self.base = self.kept.data
        self.pos -= self.start
        self.start = 0
        self.end = left
        return 0

    cdef Found next(self) except? BROKEN:
        """Find the next whole command. Its arguments are valid until the next call."""
        cdef int64_t count = 0
        cdef Found found
        while self.arguments_left < 0:
            self.start = self.pos
            if self.pos == self.end:
                return NEEDS_MORE
            if self.base[self.pos] != c"*":
                found = self.read_inline()
                if found == WHOLE and self.argc == 0:
                    continue      # an empty line
                return found
            found = self.read_header(&count)
            if found != WHOLE:
                return found
            if count < 0 or count > ARGUMENTS_MAX:
                return self.broken(b"invalid multibulk length")
            if count > 0:      # an empty array asks for nothing and gets no answer, as in Redis
                self.arguments_left = count
                self.bulk_left = -1
                self.argc = 0
                self.skipping = False
        return self.read_array()

    cdef Found read_array(self) except? BROKEN:
        """Go on with the arguments of an array, from wherever the last piece ended."""
        cdef int64_t size = 0
        cdef int64_t there
        cdef Found found
        while self.arguments_left > 0:
            if self.bulk_left < 0:
                if self.pos == self.end:
                    return NEEDS_MORE
                if self.base[self.pos] != c"$":
                    return self.broken(b"expected '$', got '%c'" % _printable(self.base[self.pos]))
                found = self.read_header(&size)
                if found != WHOLE:
                    return found
                if size < 0 or size > BULK_BYTES_MAX:
                    return self.broken(b"invalid bulk length")
                if size > self.argument_bytes_max:
                    self.begin_skipping(b"an argument of %d bytes is over limits.payload_bytes_max (%d)"
                                        % (size, self.argument_bytes_max))
                elif self.pos - self.start + size > self.command_bytes_max:
                    self.begin_skipping(b"the command is over %d bytes: send fewer messages at a time"
                                        % self.command_bytes_max)
                self.bulk_left = size + 2
            if self.skipping:
                there = self.end - self.pos
                if there < self.bulk_left:
                    self.bulk_left -= there
                    self.pos = self.start = self.end
                    return NEEDS_MORE
                self.pos += self.bulk_left
                self.start = self.pos
            else:
                if self.end - self.pos < self.bulk_left:
                    return NEEDS_MORE
                self.add_arg(self.pos - self.start, self.bulk_left - 2)
                self.pos += self.bulk_left
                if self.base[self.pos - 2] != c"\r" or self.base[self.pos - 1] != c"\n":
                    return self.broken(
                        b"expected CRLF after a bulk string of %d bytes" % (self.bulk_left - 2))
            self.bulk_left = -1
            self.arguments_left -= 1
        self.arguments_left = -1
        if self.skipping:
            return TOO_LARGE
        self.text = self.base + self.start
        return WHOLE

    cdef Found read_header(self, int64_t* value) except? BROKEN:
        """Read "*<n>\\r\\n" or "$<n>\\r\\n" at `pos`."""
        cdef const char* at = self.base + self.pos + 1
        cdef Py_ssize_t there = self.end - self.pos - 1
        cdef Py_ssize_t i = 0
        cdef int64_t number = 0
        cdef bint negative = False
        if there > 0 and at[0] == c"-":
            negative = True
            i = 1
        while i < there and i < HEADER_BYTES_MAX and c"0" <= at[i] <= c"9":
            if number <= BULK_BYTES_MAX:      # beyond, it stays too large, whatever follows
                number = number * 10 + (at[i] - c"0")
            i += 1
        if i < there and (at[i] != c"\r" or i == <Py_ssize_t> negative):
            return self.bad_header()
        if i + 1 < there and at[i + 1] != c"\n":
            return self.bad_header()
        if i + 2 > there:
            return self.bad_header() if i >= HEADER_BYTES_MAX else NEEDS_MORE
        value[0] = -number - 1 if negative else number
        self.pos += i + 3
        return WHOLE

    cdef Found bad_header(self) except? BROKEN:
        if self.base[self.pos] == c"*":
            return self.broken(b"invalid multibulk length")
        return self.broken(b"invalid bulk length")

    cdef Found read_inline(self) except? BROKEN:
        """Read a line as a person types it; its words become arguments like any other."""
        cdef const char* found = <const char*> memchr(
            self.base + self.start + self.line_seen, c"\n", self.end - self.start - self.line_seen)
        cdef list words
        cdef Py_ssize_t at = 0
        if found == NULL:
            self.line_seen = self.end - self.start
            if self.line_seen > LINE_BYTES_MAX:
                return self.broken(b"too big inline request")
            return NEEDS_MORE
        self.line_seen = 0
        self.pos = found - self.base + 1
        if self.pos - self.start > LINE_BYTES_MAX:
            return self.broken(b"too big inline request")
        try:
            words = split_line(PyBytes_FromStringAndSize(self.base + self.start, self.pos - self.start))
        except UnbalancedQuotes:
            return self.broken(b"unbalanced quotes in request")
        self.argc = 0
        for word in words:
            self.add_arg(at, len(word))
            at += len(word)
        self.line = b"".join(words)
        self.text = PyBytes_AS_STRING(self.line)
        return WHOLE

    cdef Found broken(self, bytes why) except? BROKEN:
        """Framing is lost: nothing after this point can be trusted to be a command."""
        self.refusal = why
        self.pos = self.start = self.end
        return BROKEN

    cdef int begin_skipping(self, bytes why) except -1:
        if not self.skipping:
            self.refusal = why
        self.skipping = True
        self.start = self.pos
        self.argc = 0
        return 0

    cdef int add_arg(self, Py_ssize_t at, int64_t size) except -1:
        if self.argc == self.args_room:
            self.args_room = 16 if self.args_room == 0 else self.args_room * 2
            self.args = <Arg*> must_realloc(self.args, self.args_room * sizeof(Arg))
        self.args[self.argc].at = <uint32_t> at
        self.args[self.argc].size = <uint32_t> size
        self.argc += 1
        return 0

    cdef bytes arg(self, int32_t i):
        return PyBytes_FromStringAndSize(self.text + self.args[i].at, self.args[i].size)


cdef int _printable(char c) noexcept:
    return c if 32 <= c < 127 else c"?"
