"""The edge as Python sees it: threads that serve gRPC and Redis, events they tell, orders they take.

    bind ──► start(sockets) ──► take(), send(), end(), ... on the asyncio loop ──► drain(ms) ──► join()

The core outlives it: the outboxes and the mailbox are the engine's, and it is held until the threads have
ended.
"""

import os
import threading

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport errno
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.requests.parsed_frame cimport ParsedFrame
from fila_server.core.requests.rights_table cimport Rights
from fila_server.core.runtime.engine cimport CoreEngine
from fila_server.core.structures.buffer cimport (
    Buffer, buffer_free, buffer_init, must_malloc, put_bytes, put_u32be, put_u64be,
)
from fila_server.core.structures.maps cimport textmap_free, textmap_init, textmap_next, textmap_put
from fila_server.core.threads.locks cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from fila_server.core.threads.outbox cimport TOKEN_OUTBOX_SHIFT, outbox_order
from fila_server.edge.grpc.nghttp2 cimport nghttp2_info, nghttp2_version
from fila_server.edge.io.bridge cimport (
    EVENT_CALL, EVENT_UNWELCOME, ORDER_DRAIN, ORDER_END, ORDER_LISTEN, ORDER_MORE, ORDER_REDIS_END,
    ORDER_REDIS_LISTEN, ORDER_REDIS_REPLY, ORDER_REFUSED, ORDER_ROUTED, ORDER_SEND, Event, event_free,
    events_take,
)
from fila_server.edge.io.iothread cimport Common, IoThread, ScriptedName
from fila_server.edge.io.loop cimport loop_free, loop_new, loop_run
from fila_server.edge.io.sockets cimport atomic_add, atomic_load, atomic_store, close
from fila_server.edge.io.tls cimport tls_context, tls_replace

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int initval, int flags)
    enum: EFD_NONBLOCK
    enum: EFD_CLOEXEC

cdef enum:
    VERSION_LEAST = 0x013400        # 1.52.0; that it has the limits against floods is asked for by name
    THREADS_MAX = 16


def library_version():
    """The version of nghttp2 in use, such as "1.52.0"."""
    return nghttp2_version(0).version_str.decode()


cdef class NativeEdge:
    """One server's I/O threads. Its methods belong to the asyncio loop's thread."""

    cdef Common common
    cdef IoThread* threads[THREADS_MAX]
    cdef uint32_t threads_count
    cdef CoreEngine engine
    cdef list runners
    cdef bint is_started

    def __cinit__(self):
        memset(&self.common, 0, sizeof(Common))
        self.threads_count = 0
        self.common.event_fd = -1
        pthread_mutex_init(&self.common.lock, NULL)
        pthread_mutex_init(&self.common.scripted_lock, NULL)
        pthread_mutex_init(&self.common.tls_lock, NULL)
        textmap_init(&self.common.scripted)
        buffer_init(&self.common.gone_message)
        buffer_init(&self.common.gone_details)
        self.runners = []

    def __init__(
            self, CoreEngine engine, *, int threads, uint32_t message_bytes_max, int64_t unread_bytes_max,
            int64_t calls_outstanding_max, int first_kept=0, bint serves_strangers=False,
            bint takes_plain_keys=False, bint keeps_closed_streams=False, uint32_t connections_max=100000):
        """Make the threads' places; before the engine starts. Raises OSError, or RuntimeError where nghttp2
        is too old.

        Descriptors from `first_kept` on are no client's; 0: each may be. `serves_strangers`: without keys,
        other machines too; `takes_plain_keys`: from other machines too. `keeps_closed_streams`: what comes
        late for a stream is refused, not passed over, for some 300 bytes a stream. `connections_max`: of each
        thread; a further one is closed.
        """
        cdef int i, number
        cdef IoThread* io
        if nghttp2_version(VERSION_LEAST) == NULL:
            raise RuntimeError(f"libnghttp2 is {library_version()}, and 1.52.0 is the oldest that will do")
        self.engine = engine
        self.common.core = engine.core
        self.common.rights = &(<Rights> engine.rights).table
        self.common.serves_strangers = serves_strangers
        self.common.takes_plain_keys = takes_plain_keys
        self.common.message_bytes_max = message_bytes_max
        self.common.unread_bytes_max = unread_bytes_max
        self.common.calls_outstanding_max = calls_outstanding_max
        self.common.connections_max = connections_max
        self.common.descriptors_kept = first_kept
        self.common.keeps_closed_streams = keeps_closed_streams
        self.common.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        if self.common.event_fd < 0:
            raise OSError(errno, f"no eventfd for the edge: {os.strerror(errno)}")
        for i in range(threads):
            number = engine.open_outbox()
            io = loop_new(&self.common, number)
            if io == NULL:
                raise RuntimeError(
                    f"libnghttp2 {library_version()} has no limits against floods of resets and "
                    f"continuations; install your distribution's security updates")
            self.threads[self.threads_count] = io
            self.threads_count += 1
        for i in range(threads):
            self.threads[i].threads = self.threads
            self.threads[i].threads_count = threads

    def __dealloc__(self):
        cdef uint32_t i
        cdef Event* event
        cdef Event* following
        if not self.is_started:
            for i in range(self.threads_count):
                loop_free(self.threads[i])
            self.threads_count = 0
        if self.common.event_fd >= 0:
            event = events_take(&self.common)
            while event != NULL:
                following = event.next
                event_free(event)
                event = following
            close(self.common.event_fd)
        tls_replace(&self.common, NULL)
        self._forget_scripted()
        textmap_free(&self.common.scripted)
        buffer_free(&self.common.gone_message)
        buffer_free(&self.common.gone_details)
        pthread_mutex_destroy(&self.common.lock)
        pthread_mutex_destroy(&self.common.scripted_lock)
        pthread_mutex_destroy(&self.common.tls_lock)

    # --- life -----------------------------------------------------------------------------

    def start(self, listeners):
        """Serve on these sockets, which listen, do not block, and are the edge's from here on."""
        cdef Buffer none
        buffer_init(&none)
        for fd in listeners:
            outbox_order(self.threads[0].outbox, 0, ORDER_LISTEN, fd, &none)
        self.is_started = True
        for i in range(self.threads_count):
            runner = threading.Thread(target=self._run, args=(i,), name=f"io-{i + 1}", daemon=True)
            runner.start()
            self.runners.append(runner)

    def listen_redis(self, listeners):
        """Speak the Redis protocol on these sockets too, as `start` has them; before that."""
        cdef Buffer none
        buffer_init(&none)
        for fd in listeners:
            outbox_order(self.threads[0].outbox, 0, ORDER_REDIS_LISTEN, fd, &none)

    def _run(self, int i):
        with nogil:
            loop_run(self.threads[i])

    def set_tls(
            self, bytes chain, bytes key, bytes authorities, *, bint needs_certificate, bint newest_only,
            bytes ciphers):
        """Encrypt new connections with these, all PEM but `ciphers`: OpenSSL's list for TLS 1.2.

        `authorities`: whose certificates clients may come with; empty: none is asked for. Raises ValueError
        when they do not fit together; those before stay in use.
        """
        cdef char problem[256]
        cdef void* context = tls_context(
            PyBytes_AS_STRING(chain), PyBytes_GET_SIZE(chain), PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key),
            PyBytes_AS_STRING(authorities), PyBytes_GET_SIZE(authorities), needs_certificate, newest_only,
            PyBytes_AS_STRING(ciphers), problem, sizeof(problem))
        if context == NULL:
            raise ValueError(problem.decode("utf-8", "replace"))
        tls_replace(&self.common, context)

    def drain(self, int wait_ms, bytes message=b"", bytes details=b""):
        """Take no connections, refuse new calls, answer what is owed; leave after `wait_ms` at the latest.
        Calls are told UNAVAILABLE with this message and these details, a google.rpc.Status; without, that the
        broker stops. Once."""
        cdef Buffer none
        cdef uint32_t i
        buffer_init(&none)
        put_bytes(&self.common.gone_message, PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message))
        put_bytes(&self.common.gone_details, PyBytes_AS_STRING(details), PyBytes_GET_SIZE(details))
        for i in range(self.threads_count):
            outbox_order(self.threads[i].outbox, 0, ORDER_DRAIN, wait_ms, &none)

    def join(self):
        """Wait for the threads to end; once drained. Blocks."""
        cdef uint32_t i
        for runner in self.runners:
            runner.join()
        self.runners.clear()
        if self.is_started:
            self.is_started = False
            for i in range(self.threads_count):
                loop_free(self.threads[i])
            self.threads_count = 0

    # --- events ---------------------------------------------------------------------------

    @property
    def event_fd(self):
        """Readable when take() has something."""
        return self.common.event_fd

    def take(self):
        """What the threads handed over: a list of (what, token, number, bytes, parsed frame or None)."""
        cdef Event* event = events_take(&self.common)
        cdef Event* following
        cdef ParsedFrame parsed
        cdef list events = []
        while event != NULL:
            parsed = None
            if event.what == EVENT_CALL or event.what == EVENT_UNWELCOME:
                atomic_add(&self.common.calls_offered, -1)
            if event.command != NULL:
                parsed = ParsedFrame.__new__(ParsedFrame)
                parsed.limits = self.common.core.limits
                parsed.command = event.command
                event.command = NULL
            events.append((
                event.what, event.token, event.number,
                PyBytes_FromStringAndSize(event.bytes.data, event.bytes.length), parsed))
            following = event.next
            event_free(event)
            event = following
        return events

    # --- orders ---------------------------------------------------------------------------

    cdef _order(self, uint64_t token, int32_t kind, int32_t status, Buffer* payload):
        cdef uint32_t i
        for i in range(self.threads_count):
            if self.threads[i].number == token >> TOKEN_OUTBOX_SHIFT:
                outbox_order(self.threads[i].outbox, token, kind, status, payload)
                return
        free(payload.data)

    def send(self, uint64_t token, bytes message, bint compressed=False):
        """One message of the answer; an event tells when the socket has it.

        `compressed`: in the encoding that the request named; the call's first message is, or none.
        """
        cdef Buffer payload
        _copy(&payload, message)
        self._order(token, ORDER_SEND, compressed, &payload)

    def end(self, uint64_t token, int status, bytes message, bytes details):
        """The call's status; what was sent before goes first. `details` is a google.rpc.Status, or empty."""
        self._end(token, ORDER_END, status, message, details)

    def refuse(self, uint64_t token, int status, bytes message, bytes details):
        """As `end`, for a frame that came to be routed."""
        self._end(token, ORDER_REFUSED, status, message, details)

    cdef _end(self, uint64_t token, int32_t kind, int status, bytes message, bytes details):
        cdef Buffer payload
        buffer_init(&payload)
        put_u32be(&payload, <uint32_t> PyBytes_GET_SIZE(message))
        put_bytes(&payload, PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message))
        put_bytes(&payload, PyBytes_AS_STRING(details), PyBytes_GET_SIZE(details))
        self._order(token, kind, status, &payload)

    def more(self, uint64_t token):
        """The call's next message, please."""
        cdef Buffer none
        buffer_init(&none)
        self._order(token, ORDER_MORE, 0, &none)

    def routed(self, uint64_t token):
        """Its frame is with the scheduler; a stream's next may follow."""
        cdef Buffer none
        buffer_init(&none)
        self._order(token, ORDER_ROUTED, 0, &none)

    def redis_reply(self, uint64_t token, int client_is, uint64_t caller, bytes reply):
        """A Redis client's reply to what was asked, and who the client is from here on.

        `client_is`: the flags of redis_client.py; `caller` is 0 while keys are off. To one that was not
        asked for anything: that it may stay, or why it may not.
        """
        cdef Buffer payload
        buffer_init(&payload)
        put_u64be(&payload, caller)
        put_bytes(&payload, PyBytes_AS_STRING(reply), PyBytes_GET_SIZE(reply))
        self._order(token, ORDER_REDIS_REPLY, client_is, &payload)

    def redis_end(self, uint64_t token, bint at_once):
        """Answer what the client asked so far, end a read that waits, and close; or close at once."""
        cdef Buffer none
        buffer_init(&none)
        self._order(token, ORDER_REDIS_END, at_once, &none)

    # --- what all threads know ------------------------------------------------------------

    def set_scripted(self, names):
        """The names of all queues that have an on_enqueue script now; frames that name one go to Python.

        On return every frame that is not with the scheduler yet is judged by these.
        """
        cdef ScriptedName* name
        cdef bytes text
        pthread_mutex_lock(&self.common.scripted_lock)
        self._forget_scripted()
        for text in names:
            name = <ScriptedName*> must_malloc(sizeof(ScriptedName))
            memcpy(name.bytes, PyBytes_AS_STRING(text), min(PyBytes_GET_SIZE(text), 256))
            name.text.bytes = name.bytes
            name.text.length = <uint32_t> min(PyBytes_GET_SIZE(text), 256)
            textmap_put(&self.common.scripted, &name.text)
        atomic_store(&self.common.scripted_count, self.common.scripted.count)
        pthread_mutex_unlock(&self.common.scripted_lock)

    cdef _forget_scripted(self):
        cdef uint32_t cursor = 0
        cdef void* name = textmap_next(&self.common.scripted, &cursor)
        while name != NULL:
            free(name)
            name = textmap_next(&self.common.scripted, &cursor)
        textmap_free(&self.common.scripted)
        textmap_init(&self.common.scripted)

    @property
    def unread_bytes(self):
        """Answers of this edge that their clients have not read."""
        return atomic_load(&self.common.unread_bytes)

    def set_elsewhere_bytes(self, int64_t count):
        """The same of everybody else, for the budget is one."""
        atomic_store(&self.common.elsewhere_bytes, count)

    def counters(self):
        """What it holds just now, for tests and telemetry."""
        return {
            "connections": atomic_load(&self.common.connections),
            "calls_outstanding": atomic_load(&self.common.calls_outstanding),
            "unread_bytes": atomic_load(&self.common.unread_bytes),
            "redis_commands": atomic_load(&self.common.redis_commands),
            "redis_blocked": atomic_load(&self.common.redis_blocked),
        }


cdef void _copy(Buffer* to, bytes message):
    buffer_init(to)
    put_bytes(to, PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message))
