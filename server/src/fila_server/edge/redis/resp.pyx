"""Finding whole commands in a stream of bytes. See resp.pxd for the picture."""

from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memchr, memmove, memset

from fila_server.core.structures.buffer cimport buffer_free, must_realloc, put_bytes
from fila_server.edge.redis.words cimport Word, word_next

cdef enum:
    KEPT_BYTES_IDLE = 16384      # a larger buffer is given back once it is empty
    ARGS_KEPT_IDLE = 512         # so is a larger table of arguments


cdef void reader_init(RespReader* r, int64_t argument_bytes_max, int64_t command_bytes_max) noexcept nogil:
    memset(r, 0, sizeof(RespReader))
    r.argument_bytes_max = argument_bytes_max
    r.command_bytes_max = command_bytes_max
    r.arguments_left = r.bulk_left = -1


cdef void reader_free(RespReader* r) noexcept nogil:
    buffer_free(&r.kept)
    buffer_free(&r.line)
    free(r.args)
    r.args = NULL


cdef void reader_feed(RespReader* r, const char* data, size_t length) noexcept nogil:
    reader_keep(r)
    if r.end == 0:
        r.is_borrowed = True
        r.base = data
        r.end = length
        return
    put_bytes(&r.kept, data, length)
    r.base = r.kept.data
    r.end = r.kept.length


cdef void reader_keep(RespReader* r) noexcept nogil:
    """Bring the unread bytes to the front of our own buffer."""
    cdef size_t left = r.end - r.start
    if r.is_borrowed:
        r.is_borrowed = False
        r.kept.length = 0
        put_bytes(&r.kept, r.base + r.start, left)
    elif r.start > 0 and left > 0:
        memmove(r.kept.data, r.kept.data + r.start, left)
    r.kept.length = left
    if left == 0 and r.kept.capacity > KEPT_BYTES_IDLE:
        buffer_free(&r.kept)
    if r.arguments_left < 0 and r.args_room > ARGS_KEPT_IDLE:
        free(r.args)
        r.args = NULL
        r.args_room = 0
    r.base = r.kept.data
    r.pos -= r.start
    r.start = 0
    r.end = left


cdef Found reader_next(RespReader* r) noexcept nogil:
    cdef int64_t count = 0
    cdef Found found
    while r.arguments_left < 0:
        r.start = r.pos
        if r.pos == r.end:
            return NEEDS_MORE
        if r.base[r.pos] != c"*":
            found = _read_line(r)
            if found == WHOLE and r.argc == 0:
                continue                # an empty line
            return found
        found = _read_header(r, &count)
        if found != WHOLE:
            return found
        if count < 0 or count > ARGUMENTS_MAX:
            return _broken(r, b"invalid multibulk length")
        if count > 0:                   # an empty array asks for nothing and gets no answer, as in Redis
            r.arguments_left = count
            r.bulk_left = -1
            r.argc = 0
            r.is_skipping = False
    return _read_array(r)


cdef Found _read_array(RespReader* r) noexcept nogil:
    """Go on with the arguments of an array, from wherever the last piece ended."""
    cdef Found found
    cdef size_t there, size
    while r.arguments_left > 0:
        if r.bulk_left < 0:
            found = _read_bulk_header(r)
            if found != WHOLE:
                return found
        there = r.end - r.pos
        size = <size_t> r.bulk_left
        if r.is_skipping:
            if there < size:
                r.bulk_left -= <int64_t> there
                r.pos = r.start = r.end
                return NEEDS_MORE
            r.pos += size
            r.start = r.pos
        else:
            if there < size:
                return NEEDS_MORE
            _arg_add(r, r.pos - r.start, size - 2)
            r.pos += size
            if r.base[r.pos - 2] != c"\r" or r.base[r.pos - 1] != c"\n":
                snprintf(
                    r.refusal, sizeof(r.refusal), b"expected CRLF after a bulk string of %zu bytes", size - 2)
                return _lost(r)
        r.bulk_left = -1
        r.arguments_left -= 1
    r.arguments_left = -1
    if r.is_skipping:
        return TOO_LARGE
    r.text = r.base + r.start
    return WHOLE


cdef Found _read_bulk_header(RespReader* r) noexcept nogil:
    cdef int64_t size = 0
    cdef Found found
    cdef char got
    if r.pos == r.end:
        return NEEDS_MORE
    if r.base[r.pos] != c"$":
        got = r.base[r.pos]
        snprintf(
            r.refusal, sizeof(r.refusal), b"expected '$', got '%c'",
            <int> (got if 32 <= got < 127 else <char> c"?"))
        return _lost(r)
    found = _read_header(r, &size)
    if found != WHOLE:
        return found
    if size < 0 or size > BULK_BYTES_MAX:
        return _broken(r, b"invalid bulk length")
    if size > r.argument_bytes_max:
        if not r.is_skipping:
            snprintf(
                r.refusal, sizeof(r.refusal),
                b"an argument of %lld bytes is over limits.payload_bytes_max (%lld)", <long long> size,
                <long long> r.argument_bytes_max)
        _skip(r)
    elif <int64_t> (r.pos - r.start) + size > r.command_bytes_max:
        if not r.is_skipping:
            snprintf(
                r.refusal, sizeof(r.refusal),
                b"the command is over %lld bytes: send fewer messages at a time",
                <long long> r.command_bytes_max)
        _skip(r)
    r.bulk_left = size + 2
    return WHOLE


cdef Found _read_header(RespReader* r, int64_t* value) noexcept nogil:
    """Read "*<n>\\r\\n" or "$<n>\\r\\n" at `pos`."""
    cdef const char* at = r.base + r.pos + 1
    cdef size_t there = r.end - r.pos - 1
    cdef size_t i = 0
    cdef int64_t number = 0
    cdef bint negative = False
    if there > 0 and at[0] == c"-":
        negative = True
        i = 1
    while i < there and i < HEADER_BYTES_MAX and c"0" <= at[i] <= c"9":
        if number <= BULK_BYTES_MAX:    # beyond, it stays too large, whatever follows
            number = number * 10 + (at[i] - c"0")
        i += 1
    if i < there and (at[i] != c"\r" or i == <size_t> negative):
        return _bad_header(r)
    if i + 1 < there and at[i + 1] != c"\n":
        return _bad_header(r)
    if i + 2 > there:
        return _bad_header(r) if i >= HEADER_BYTES_MAX else NEEDS_MORE
    value[0] = -number - 1 if negative else number
    r.pos += i + 3
    return WHOLE


cdef Found _bad_header(RespReader* r) noexcept nogil:
    if r.base[r.pos] == c"*":
        return _broken(r, b"invalid multibulk length")
    return _broken(r, b"invalid bulk length")


cdef Found _read_line(RespReader* r) noexcept nogil:
    """Read a line as a person types it; its words become arguments like any other."""
    cdef size_t there = r.end - r.start
    cdef const char* found = <const char*> memchr(
        r.base + r.start + r.line_seen, c"\n", there - r.line_seen)
    cdef Word word
    cdef int more
    if found == NULL:
        r.line_seen = there
        if there > LINE_BYTES_MAX:
            return _broken(r, b"too big inline request")
        return NEEDS_MORE
    r.line_seen = 0
    r.pos = found - r.base + 1
    if r.pos - r.start > LINE_BYTES_MAX:
        return _broken(r, b"too big inline request")
    r.argc = 0
    r.line.length = 0
    word.at = r.base + r.start
    word.end = found + 1
    while True:
        more = word_next(&word, &r.line)
        if more < 0:
            return _broken(r, b"unbalanced quotes in request")
        if more == 0:
            break
        _arg_add(r, word.began, r.line.length - word.began)
    r.text = r.line.data
    return WHOLE


cdef Found _broken(RespReader* r, const char* why) noexcept nogil:
    snprintf(r.refusal, sizeof(r.refusal), b"%s", why)
    return _lost(r)


cdef Found _lost(RespReader* r) noexcept nogil:
    """Nothing after this point can be trusted to be a command."""
    r.pos = r.start = r.end
    return BROKEN


cdef void _skip(RespReader* r) noexcept nogil:
    r.is_skipping = True
    r.start = r.pos
    r.argc = 0


cdef void _arg_add(RespReader* r, size_t at, size_t size) noexcept nogil:
    if r.argc == r.args_room:
        r.args_room = 16 if r.args_room == 0 else r.args_room * 2
        r.args = <Arg*> must_realloc(r.args, r.args_room * sizeof(Arg))
    r.args[r.argc].at = <uint32_t> at
    r.args[r.argc].size = <uint32_t> size
    r.argc += 1
