"""Each method holds the lock for what a judging thread could meet half done."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server import errors
from fila_server.core.protocol.problem cimport Problem
from fila_server.core.requests.rights cimport (
    CALLER_UNKNOWN, CONNECTIONS, DIGEST_BYTES, STREAMS, Allowance, Caller, Grant, allowed_forget, rights_find,
    rights_give, rights_holds, rights_on, rights_take,
)
from fila_server.core.structures.buffer cimport Slice, must_malloc
from fila_server.core.structures.maps cimport (
    map64_free, map64_get, map64_init, map64_next, map64_put, map64_remove, textmap_free, textmap_get,
    textmap_init, textmap_put, textmap_remove,
)
from fila_server.core.threads.locks cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef Slice _copied(bytes text):
    cdef Slice copy
    copy.length = <uint32_t> len(text)
    copy.at = <const char*> must_malloc(copy.length)
    memcpy(<void*> copy.at, <const char*> text, copy.length)
    return copy


cdef void _principal_free(Principal* p) noexcept nogil:
    cdef uint32_t i
    for i in range(p.grant_count):
        free(<void*> p.grants[i].queue.at)
        free(<void*> p.grants[i].channel.at)
    free(p.grants)
    free(<void*> p.tenant.at)
    allowed_forget(p)
    textmap_free(&p.allowed)
    free(p)


cdef void _keep_level(Allowance* quota, const Allowance* before, double rate, int64_t now_ns) noexcept nogil:
    quota.rate = rate
    quota.refilled_ns = now_ns
    quota.level = rate
    if before != NULL and before.rate > 0 and before.level < rate:
        quota.level = before.level      # a change of something else is no new allowance


cdef class Rights:
    """The table, as Python writes it and reads it. Any thread may call any method."""

    def __cinit__(self):
        memset(&self.table, 0, sizeof(RightsTable))
        pthread_mutex_init(&self.table.lock, NULL)
        map64_init(&self.table.principals)
        map64_init(&self.table.callers)
        textmap_init(&self.table.keys)

    def __dealloc__(self):
        cdef uint32_t cursor = 0
        cdef Principal* p
        cdef Caller* caller
        while True:
            p = <Principal*> map64_next(&self.table.principals, &cursor)
            if p == NULL:
                break
            _principal_free(p)
        cursor = 0
        while True:
            caller = <Caller*> map64_next(&self.table.callers, &cursor)
            if caller == NULL:
                break
            free(caller)
        map64_free(&self.table.principals)
        map64_free(&self.table.callers)
        textmap_free(&self.table.keys)
        pthread_mutex_destroy(&self.table.lock)

    def switch_on(self):
        """From now on everybody needs a key."""
        self.table.is_on = True

    @property
    def is_on(self):
        """Whether everybody needs a key."""
        return bool(self.table.is_on)

    @property
    def generation(self):
        """Counts changes: what is open is judged again when it moved."""
        return self.table.generation

    cdef Principal* _principal(self, uint64_t number):
        return <Principal*> map64_get(&self.table.principals, number)

    def put_principal(
            self, uint64_t number, list grants, bytes tenant, double messages_per_s, double bytes_per_s,
            int64_t now_ns, uint32_t connections_max=0, uint32_t streams_max=0,
            uint64_t stored_max=0, uint32_t in_flight_max=0):
        """Make or replace a principal. grants: (rights, queue pattern, channel pattern) each.

        Of the bounds 0 is none.
        """
        cdef Principal* p = <Principal*> must_malloc(sizeof(Principal))
        cdef Principal* before
        cdef uint32_t i = 0
        memset(p, 0, sizeof(Principal))
        textmap_init(&p.allowed)
        p.grant_count = <uint32_t> len(grants)
        p.grants = <Grant*> must_malloc(p.grant_count * sizeof(Grant))
        for rights, queue, channel in grants:
            p.grants[i].rights = rights
            p.grants[i].queue = _copied(queue)
            p.grants[i].channel = _copied(channel)
            p.rights |= p.grants[i].rights
            i += 1
        p.tenant = _copied(tenant)
        p.number = number
        p.at_a_time[CONNECTIONS].most = connections_max
        p.at_a_time[STREAMS].most = streams_max
        p.stored_max = stored_max
        p.in_flight_max = in_flight_max
        pthread_mutex_lock(&self.table.lock)
        before = self._principal(number)
        _keep_level(&p.messages, &before.messages if before != NULL else NULL, messages_per_s, now_ns)
        _keep_level(&p.bytes, &before.bytes if before != NULL else NULL, bytes_per_s, now_ns)
        if before != NULL:
            p.refused = before.refused
            p.stored, p.let_in, p.in_flight = before.stored, before.let_in, before.in_flight
            p.at_a_time[CONNECTIONS].count = before.at_a_time[CONNECTIONS].count
            p.at_a_time[STREAMS].count = before.at_a_time[STREAMS].count
        map64_put(&self.table.principals, number, p)
        self.table.generation += 1
        pthread_mutex_unlock(&self.table.lock)
        if before != NULL:
            _principal_free(before)

    def drop_principal(self, uint64_t number):
        """Its keys mean nothing from now on."""
        cdef Principal* p
        pthread_mutex_lock(&self.table.lock)
        p = <Principal*> map64_remove(&self.table.principals, number)
        self.table.generation += 1
        pthread_mutex_unlock(&self.table.lock)
        if p != NULL:
            _principal_free(p)

    def put_key(
            self, uint64_t caller, uint64_t principal, bytes key_id, bytes digest, int64_t expires_ms,
            bint is_over=False):
        """Make a key, or change when it expires (0 = never); its number is its holder's caller."""
        cdef Caller* row = <Caller*> must_malloc(sizeof(Caller) + len(key_id))
        cdef Caller* before
        cdef bint is_another
        if len(digest) != DIGEST_BYTES:
            free(row)
            raise ValueError(f"a digest has {DIGEST_BYTES} bytes")
        memset(row, 0, sizeof(Caller))
        memcpy(<char*> row + sizeof(Caller), <const char*> key_id, len(key_id))
        row.text.bytes = <char*> row + sizeof(Caller)
        row.text.length = <uint32_t> len(key_id)
        row.number, row.principal, row.expires_ms, row.is_over = caller, principal, expires_ms, is_over
        memcpy(row.digest, <const char*> digest, DIGEST_BYTES)
        pthread_mutex_lock(&self.table.lock)
        # In one turn of the lock: no call of its holder meets a key that is not there.
        before = <Caller*> map64_remove(&self.table.callers, caller)
        if before != NULL:
            textmap_remove(&self.table.keys, &before.text)
        is_another = textmap_get(&self.table.keys, row.text.bytes, row.text.length) != NULL
        if not is_another:
            textmap_put(&self.table.keys, &row.text)
            map64_put(&self.table.callers, caller, row)
        self.table.generation += 1
        pthread_mutex_unlock(&self.table.lock)
        free(before)
        if is_another:
            free(row)
            raise ValueError("two keys of one id")

    def put_over(self, uint64_t caller, bint is_over):
        """The clock came past the key's end, or went back before it: what the key holds open goes by that."""
        cdef Caller* row
        pthread_mutex_lock(&self.table.lock)
        row = <Caller*> map64_get(&self.table.callers, caller)
        if row != NULL and row.is_over != is_over:
            row.is_over = is_over
            self.table.generation += 1
        pthread_mutex_unlock(&self.table.lock)

    def drop_key(self, uint64_t caller):
        """The key is nobody's from now on."""
        cdef Caller* row
        pthread_mutex_lock(&self.table.lock)
        row = <Caller*> map64_remove(&self.table.callers, caller)
        if row != NULL:
            textmap_remove(&self.table.keys, &row.text)
            self.table.generation += 1
        pthread_mutex_unlock(&self.table.lock)
        free(row)

    def find(self, bytes key_id, bytes digest, int64_t wall_ms):
        """The caller, 0 for a key that is none, -1 for one that has expired."""
        cdef Slice name
        name.at, name.length = <const char*> key_id, <uint32_t> len(key_id)
        if len(digest) != DIGEST_BYTES:
            return CALLER_UNKNOWN
        return rights_find(&self.table, name, digest, wall_ms)

    def holds(self, uint64_t caller):
        """Whether the key is there and belongs to somebody."""
        return bool(rights_holds(&self.table, caller))

    cdef uint64_t _take(self, uint64_t caller, int what) except 0:
        cdef Problem problem
        cdef uint64_t principal = rights_take(&self.table, caller, what, &problem)
        if principal == 0:
            raise errors.from_reply(
                problem.code, problem.text.decode("utf-8", "replace"), problem.reason.decode())
        return principal

    def take_stream(self, uint64_t caller):
        """Count a stream; the number returned is for give_stream. Raises QuotaExceeded, Unauthenticated."""
        return self._take(caller, STREAMS)

    def take_connection(self, uint64_t caller):
        """Count a connection, as take_stream does a stream."""
        return self._take(caller, CONNECTIONS)

    def give_stream(self, uint64_t principal):
        """A stream of the principal's is over."""
        rights_give(&self.table, principal, STREAMS)

    def give_connection(self, uint64_t principal):
        """A connection of the principal's is over."""
        rights_give(&self.table, principal, CONNECTIONS)

    def let_in(self, uint64_t principal):
        """Bytes of the principal's frames let in since the start; read before its bytes are counted."""
        cdef Principal* p
        cdef uint64_t count
        pthread_mutex_lock(&self.table.lock)
        p = self._principal(principal)
        count = p.let_in if p != NULL else 0
        pthread_mutex_unlock(&self.table.lock)
        return count

    def put_stored(self, uint64_t principal, uint64_t stored, uint64_t let_in):
        """So many bytes of its tenant's were counted after `let_in` was read; what came in since is added."""
        cdef Principal* p
        pthread_mutex_lock(&self.table.lock)
        p = self._principal(principal)
        if p != NULL:
            p.stored = stored + p.let_in - let_in
        pthread_mutex_unlock(&self.table.lock)

    def stored(self, uint64_t principal):
        """Bytes of its tenant's, as its quota goes by."""
        cdef Principal* p
        cdef uint64_t count
        pthread_mutex_lock(&self.table.lock)
        p = self._principal(principal)
        count = p.stored if p != NULL else 0
        pthread_mutex_unlock(&self.table.lock)
        return count

    def put_held(self, uint64_t principal, uint64_t in_flight, uint64_t refused):
        """So many messages are in flight with its consumers, and so many more pulls were refused for that."""
        cdef Principal* p
        pthread_mutex_lock(&self.table.lock)
        p = self._principal(principal)
        if p != NULL:
            p.in_flight = in_flight
            p.refused += refused
        pthread_mutex_unlock(&self.table.lock)

    def in_use(self, uint64_t principal):
        """(connections, streams, messages in flight as the core last told) of the principal now."""
        cdef Principal* p
        cdef tuple reported = (0, 0, 0)
        pthread_mutex_lock(&self.table.lock)
        p = self._principal(principal)
        if p != NULL:
            reported = (p.at_a_time[CONNECTIONS].count, p.at_a_time[STREAMS].count, p.in_flight)
        pthread_mutex_unlock(&self.table.lock)
        return reported

    def on(self, uint64_t caller, bytes queue, bytes channel=b""):
        """(rights on every channel of the queue and on `channel`, rights on some channel of it)."""
        cdef Slice q
        cdef Slice c
        cdef uint32_t everywhere, somewhere
        q.at, q.length = <const char*> queue, <uint32_t> len(queue)
        c.at, c.length = <const char*> channel, <uint32_t> len(channel)
        rights_on(&self.table, caller, q, c, &everywhere, &somewhere)
        return everywhere, somewhere

    def refused(self, uint64_t principal):
        """Frames of this principal's that were beyond its quotas."""
        cdef Principal* p
        cdef uint64_t count
        pthread_mutex_lock(&self.table.lock)
        p = self._principal(principal)
        count = p.refused if p != NULL else 0
        pthread_mutex_unlock(&self.table.lock)
        return count
