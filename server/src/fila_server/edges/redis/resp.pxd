"""Where one Redis command ends and the next begins, in bytes that arrive in any pieces.

    *3\r\n $5\r\nRPUSH\r\n $6\r\norders\r\n $2\r\nhi\r\n        an array of bulk strings
    PING\r\n                                                 or a line, as a person types it

The reader keeps what has arrived, finds the next whole command, and says where its
arguments lie. It makes no Python object per argument and copies nothing that is whole when
it arrives. What decides about memory is decided on the declared length, before a byte is
kept: a command that is too large is skipped as it streams by, a length no client would send
breaks the connection.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

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

cdef class RespReader:
    cdef bytes arrived           # the last piece, borrowed while nothing older is left over
    cdef Buffer kept             # else everything unread, copied
    cdef const char* base        # the unread bytes: in `arrived` or in `kept`
    cdef Py_ssize_t start        # first byte of the command being read
    cdef Py_ssize_t pos          # next byte to look at
    cdef Py_ssize_t end
    cdef int64_t arguments_left  # of the command being read; -1 between commands
    cdef int64_t bulk_left       # bytes of the argument being read with its CRLF; -1 before its header
    cdef bint skipping           # the command being read is over a limit
    cdef Py_ssize_t line_seen    # bytes of an unfinished inline command already searched for its end
    cdef bytes line              # arguments of an inline command, unquoted, one after the other

    cdef Arg* args
    cdef int32_t argc
    cdef int32_t args_room
    cdef const char* text        # what `args` point into
    cdef bytes refusal

    cdef readonly int64_t argument_bytes_max
    cdef readonly int64_t command_bytes_max

    cdef int feed_bytes(self, bytes data) except -1
    cdef Found next(self) except? BROKEN
    cdef int keep_rest(self) except -1
    cdef bint is_idle(self) noexcept
    cdef Found read_array(self) except? BROKEN
    cdef Found read_inline(self) except? BROKEN
    cdef Found read_header(self, int64_t* value) except? BROKEN
    cdef Found bad_header(self) except? BROKEN
    cdef Found broken(self, bytes why) except? BROKEN
    cdef int begin_skipping(self, bytes why) except -1
    cdef int add_arg(self, Py_ssize_t at, int64_t size) except -1
    cdef bytes arg(self, int32_t i)
