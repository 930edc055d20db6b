"""Where one Redis command ends and the next begins, in bytes that arrive in any pieces.

    *3\r\n $5\r\nRPUSH\r\n $6\r\norders\r\n $2\r\nhi\r\n        an array of bulk strings
    PING\r\n                                                 or a line, as a person types it

The reader keeps what has arrived, finds the next whole command, and says where its
arguments lie. It copies nothing that is whole when it arrives. What decides about memory is
decided on the declared length, before a byte is kept: a command that is too large is skipped
as it streams by, a length no client would send breaks the connection.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t

from fila_server.core.structures.buffer cimport Buffer

cdef enum:
    ARGUMENTS_MAX = 1048576      # in one command; Redis has the same bound
    BULK_BYTES_MAX = 536870912   # declared lengths above it are no message, but a broken client
    LINE_BYTES_MAX = 65536       # an inline command
    HEADER_BYTES_MAX = 32        # "*<count>" or "$<length>"

cdef enum Found:
    NEEDS_MORE = 0       # no whole command yet
    WHOLE = 1            # `args` and `argc` describe one
    TOO_LARGE = 2        # one went by that was over a limit; `refusal` says which
    BROKEN = 3           # framing is lost for good; `refusal` says why

cdef struct Arg:
    uint32_t at          # from `text`
    uint32_t size

cdef struct RespReader:
    Buffer   kept            # unread bytes of earlier pieces
    bint     is_borrowed     # the unread bytes are the caller's, and nothing older is left over
    const char* base         # the unread bytes: the caller's, or in `kept`
    size_t   start           # first byte of the command being read
    size_t   pos             # next byte to look at
    size_t   end
    int64_t  arguments_left  # of the command being read; -1 between commands
    int64_t  bulk_left       # bytes of the argument being read with its CRLF; -1 before its header
    bint     is_skipping     # the command being read is over a limit
    size_t   line_seen       # bytes of an unfinished inline command already searched for its end
    Buffer   line            # arguments of an inline command, unquoted, one after the other

    Arg*     args
    uint32_t argc
    uint32_t args_room
    const char* text         # what `args` point into
    char     refusal[160]

    int64_t  argument_bytes_max
    int64_t  command_bytes_max       # below 4 GiB: offsets within a command are 32 bits wide

cdef void reader_init(RespReader* r, int64_t argument_bytes_max, int64_t command_bytes_max) noexcept nogil
cdef void reader_free(RespReader* r) noexcept nogil
# Takes another piece; whatever `args` pointed at before is no longer valid. The bytes stay the caller's, and
# must stay as they are until the next reader_feed or reader_keep.
cdef void reader_feed(RespReader* r, const char* data, size_t length) noexcept nogil
# Copies what is unread of the caller's bytes.
cdef void reader_keep(RespReader* r) noexcept nogil
# The next whole command; its arguments are valid until the next call of the reader.
cdef Found reader_next(RespReader* r) noexcept nogil

cdef inline void reader_put_back(RespReader* r) noexcept nogil:
    """The command that was found last, and nothing has been asked for since, is found again."""
    r.pos = r.start

cdef inline size_t reader_unread(const RespReader* r) noexcept nogil:
    """Bytes that wait for the rest of their command, or to be looked at."""
    return r.end - r.start
