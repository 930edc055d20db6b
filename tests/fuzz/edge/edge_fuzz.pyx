"""One I/O thread of the edge under libFuzzer: bytes in, a real core behind, and nothing may be left.

    input: one byte of Switches, one that says how the rest is cut into reads, the rest

Each input is one connection, from its first byte until it is closed. The thread's turns are those of the
shipped loop; its clock, its socket (sockets.h) and the asyncio loop's part are here. When the connection is
gone the thread must be as it was before: no call outstanding, no byte counted, nobody waiting. What is lost
would be lost for good in a server.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdio cimport fprintf, stderr
from libc.stdlib cimport abort
from libc.string cimport memset

from fila_server.core.requests.rights_table cimport Rights
from fila_server.core.runtime.engine cimport CoreEngine
from fila_server.core.structures.buffer cimport Buffer, buffer_init, put_bytes, put_u32be, put_u64be
from fila_server.core.structures.maps cimport textmap_init
from fila_server.core.threads.locks cimport pthread_mutex_init
from fila_server.core.threads.outbox cimport outbox_order
from fila_server.edge.io.bridge cimport (
    CLIENT_KNOWN, CLIENT_SPEAKS_3, EVENT_CALL, EVENT_HALF_CLOSED, EVENT_MESSAGE, EVENT_REDIS_COMMAND,
    EVENT_REDIS_OPENED, EVENT_UNWELCOME, ORDER_END, ORDER_MORE, ORDER_REDIS_REPLY, ORDER_SEND, Event,
    event_free, events_take,
)
from fila_server.edge.io.connection cimport connection_close, connection_new
from fila_server.edge.io.iothread cimport Common, Connection, IoThread
from fila_server.edge.io.loop cimport loop_new, loop_turn
from fila_server.edge.io.sockets cimport EPOLLIN, EPOLLOUT, epoll_event

cdef extern from "sockets.h" nogil:
    enum: FUZZ_FD
    struct fuzz_client_struct "fuzz_client":
        const uint8_t* at
        size_t left
        int has_ended
        size_t takes
        int is_closed
        uint32_t watched
    fuzz_client_struct fuzz_client

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one)(const uint8_t *data, size_t size));
    """
    int LLVMFuzzerRunDriver(int* argc, char*** argv, int (*one)(const uint8_t*, size_t) noexcept)

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int initval, int flags)
    enum: EFD_NONBLOCK

cdef enum Switches:
    SPEAKS_REDIS = 1
    HAS_PREFACE = 2                 # and an empty SETTINGS: what is mutated comes behind them
    READS_NOTHING = 4
    READS_LITTLE = 8
    HALF_CLOSES = 16                # at its end, in place of leaving
    KNOWS_RESP3 = 32

cdef enum:
    NS_A_TURN = 20000000
    READS_MAX = 64
    TURNS_AFTER = 8                 # for answers that are still on their way
    UNIMPLEMENTED = 12

cdef const char* PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

cdef Common common
cdef IoThread* io
cdef CoreEngine engine
cdef int64_t now_ns = 1000000000


# --- the asyncio loop's part -------------------------------------------------------------------

cdef void _answer(Event* event, uint8_t switches) noexcept:
    cdef Buffer payload
    buffer_init(&payload)
    if event.what == EVENT_REDIS_OPENED or event.what == EVENT_REDIS_COMMAND:
        put_u64be(&payload, 0)
        if event.what == EVENT_REDIS_COMMAND:
            put_bytes(&payload, b"+OK\r\n", 5)
        outbox_order(
            io.outbox, event.token, ORDER_REDIS_REPLY,
            CLIENT_KNOWN | (CLIENT_SPEAKS_3 if switches & KNOWS_RESP3 else 0), &payload)
    elif event.what == EVENT_MESSAGE:
        # An echo, and the next one, please.
        put_bytes(&payload, event.bytes.data, event.bytes.length)
        outbox_order(io.outbox, event.token, ORDER_SEND, 0, &payload)
        outbox_order(io.outbox, event.token, ORDER_MORE, 0, &payload)
    elif event.what == EVENT_HALF_CLOSED or event.what == EVENT_UNWELCOME:
        put_u32be(&payload, 4)
        put_bytes(&payload, b"told", 4)
        outbox_order(io.outbox, event.token, ORDER_END, UNIMPLEMENTED, &payload)


cdef void _serve_python(uint8_t switches) noexcept:
    cdef Event* event = events_take(&common)
    cdef Event* following
    while event != NULL:
        _answer(event, switches)
        if event.what == EVENT_CALL or event.what == EVENT_UNWELCOME:
            common.calls_offered -= 1
        following = event.next
        event_free(event)
        event = following


# --- turns -------------------------------------------------------------------------------------

cdef void _turn(Connection* connection, uint8_t switches) noexcept:
    """What came is read, then core and asyncio loop have their say, and their answers are taken."""
    global now_ns
    cdef epoll_event event
    now_ns += NS_A_TURN
    io.now_ns = now_ns
    # As epoll would: nothing is told that is not watched.
    event.events = fuzz_client.watched & (EPOLLIN | (EPOLLOUT if fuzz_client.takes else 0))
    event.data.ptr = connection
    loop_turn(io, &event, 1 if connection != NULL and event.events else 0)
    _serve_python(switches)
    engine.run_pass(now_ns, now_ns + 1700000000000000000)
    engine.commit()
    event.data.ptr = io
    loop_turn(io, &event, 1)


cdef void _is_left(const char* what, int64_t count) noexcept:
    if count:
        fprintf(stderr, b"%lld %s left over when the connection is gone\n", <long long> count, what)
        abort()


cdef void _check() noexcept:
    _is_left(b"connections", io.connections_count)
    _is_left(b"calls outstanding", common.calls_outstanding)
    _is_left(b"calls offered", common.calls_offered)
    _is_left(b"bytes unread", common.unread_bytes)
    _is_left(b"bytes half read", <int64_t> io.partial_bytes)
    _is_left(b"waiting reads", common.redis_blocked)
    _is_left(b"consumers of the core's", engine.core.consumers.count)
    _is_left(b"descriptors", not fuzz_client.is_closed)


cdef int _one(const uint8_t* data, size_t size) noexcept:
    cdef uint8_t switches
    cdef size_t piece
    cdef int reads
    if size < 2:
        return 0
    switches, piece = data[0], (size - 2) // (data[1] % READS_MAX + 1) + 1
    data += 2
    size -= 2
    fuzz_client.left = fuzz_client.has_ended = fuzz_client.is_closed = 0
    fuzz_client.takes = 0 if switches & READS_NOTHING else 100 if switches & READS_LITTLE else 1 << 30
    connection_new(io, FUZZ_FD, b"ipv4:127.0.0.1:9", switches & SPEAKS_REDIS)
    if switches & HAS_PREFACE and not switches & SPEAKS_REDIS:
        fuzz_client.at, fuzz_client.left = <const uint8_t*> PREFACE, 33
        _turn(io.connections, switches)
    for reads in range(READS_MAX):
        if io.connections == NULL or size == 0:
            break
        fuzz_client.at, fuzz_client.left = data, min(piece, size)
        data += fuzz_client.left
        size -= fuzz_client.left
        _turn(io.connections, switches)
    fuzz_client.has_ended = (switches & HALF_CLOSES) != 0
    for reads in range(TURNS_AFTER):
        if io.connections != NULL:
            _turn(io.connections, switches)
    if io.connections != NULL:
        connection_close(io.connections)
    for reads in range(TURNS_AFTER):
        _turn(NULL, switches)           # answers that nobody waits for come back
    _check()
    return 0


# --- beginning ---------------------------------------------------------------------------------

def run(CoreEngine core, list arguments):
    """Fuzz with libFuzzer's arguments; ends the process."""
    global engine, io
    cdef int argc = <int> len(arguments)
    cdef char* words[64]
    cdef char** argv = words
    cdef int i
    engine = core
    memset(&common, 0, sizeof(Common))
    common.core = engine.core
    common.rights = &(<Rights> engine.rights).table
    common.message_bytes_max = 1 << 20
    common.unread_bytes_max = 1 << 24
    common.calls_outstanding_max = 1000
    common.event_fd = eventfd(0, EFD_NONBLOCK)
    pthread_mutex_init(&common.lock, NULL)
    pthread_mutex_init(&common.scripted_lock, NULL)
    pthread_mutex_init(&common.tls_lock, NULL)
    textmap_init(&common.scripted)
    io = loop_new(&common, engine.open_outbox())
    if io == NULL:
        raise OSError("no I/O thread")
    for i in range(argc):
        words[i] = arguments[i]
    return LLVMFuzzerRunDriver(&argc, &argv, _one)
