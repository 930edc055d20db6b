"""The way to the asyncio loop, for what is not hot, and what it orders in return.

    I/O thread ──Event──► a list, an eventfd ──► edge.take() ──► a task of the loop
               ◄──Order── the thread's outbox ◄── edge.send(), edge.end(), ...

Bounded by calls: none has more than one event of each kind under way, but for its messages, of which the
next is sent only when Python asks for it. The calls of all clients that Python has not taken yet are
CALLS_OFFERED_MAX at most: without that bound clients that ask and leave would fill the memory, and stop the
loop for as long as it takes them in. The second half of the places is for all connections alike.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint64_t

from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.threads.mailbox cimport Command
from fila_server.edge.io.iothread cimport Common, Connection, Event

cdef enum EventKind:                # native/python_calls.py has the same numbers; a test holds them together
    EVENT_CALL = 1                  # metadata; number: nanoseconds left, 0 = no deadline
    EVENT_MESSAGE = 2
    EVENT_HALF_CLOSED = 3
    EVENT_SENT = 4                  # the socket has the message that was sent
    # the client or the server ended it; number: 1 when its answer was written
    EVENT_GONE = 5
    EVENT_FRAME = 6                 # of a queue with a script: a command, parsed; number: 1 when it may wait
    EVENT_STOPPED = 7               # a thread has ended
    EVENT_UNWELCOME = 8             # as CALL, of nobody whom the threads let in: Python says why
    EVENT_REDIS_OPENED = 9          # who it is, packed as headers are; number: its socket
    # one the threads don't know: u32 length, argument, ...; number: how many there were. The next comes when
    # this one is answered
    EVENT_REDIS_COMMAND = 10
    EVENT_REDIS_GONE = 11

cdef enum OrderKind:                # none of ReplyKind
    ORDER_SEND = 64                 # status: 1 when it is compressed
    ORDER_END = 65                  # payload: u32 bytes of the message, message, details
    ORDER_MORE = 66                 # the next message of this call, please
    ORDER_ROUTED = 67               # its frame is with the scheduler now
    ORDER_REFUSED = 68              # as END, for a frame that came by EVENT_FRAME
    ORDER_CONNECTION = 69           # from the thread that accepts: status is the socket, payload its peer
    ORDER_LISTEN = 70               # status: a socket that listens
    ORDER_DRAIN = 71                # status: milliseconds until it leaves at the latest
    ORDER_REDIS_CONNECTION = 72     # as CONNECTION
    ORDER_REDIS_LISTEN = 73         # as LISTEN
    # status: ClientIs; payload: u64 caller, then the reply to what was asked, or to whom is not let in
    ORDER_REDIS_REPLY = 74
    ORDER_REDIS_END = 75            # answer what runs, and close; status 1: close

cdef enum ClientIs:                 # redis_client.py has the same numbers
    CLIENT_KNOWN = 1                # it has a key, or needs none
    CLIENT_QUITS = 2                # closed behind this reply
    CLIENT_SPEAKS_3 = 4             # RESP3
    CLIENT_LEAVES_AT_ONCE = 8       # with QUITS: without a moment to read why

# A place for a CALL or an UNWELCOME, given back as Python takes it. False: there is none.
cdef bint offer_begin(Connection* connection) noexcept nogil
# Takes over the command and the bytes.
cdef void event_put(
    Common* common, int32_t what, uint64_t token, int64_t number, Command* command,
    Buffer* payload) noexcept nogil
cdef Event* events_take(Common* common) noexcept nogil         # a list, oldest first; the caller frees it
cdef void event_free(Event* event) noexcept nogil
# A header as Python gets it: u32 length, name, u32 length, value.
cdef void header_put(
    Buffer* to, const char* name, size_t name_length, const char* value, size_t length) noexcept nogil
