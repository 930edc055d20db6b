"""Patterns, decisions and quotas; tenant.pyx binds a tenant's messages to its fairness key."""

from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport (
    CANCEL_MESSAGES, CONSUME_OPEN, ENQUEUE, ENQUEUE_ATOMIC, EXTEND_LEASE, LEASE, RESOURCE_EXHAUSTED,
    SESSION_OPEN, STAGE, UNAUTHENTICATED,
)
from fila_server.core.protocol.protobuf cimport (
    QUEUE_FIELD, VARINT, Fields, Item, channel_field, fields_parse, put_text_field,
)
from fila_server.core.protocol.refusals cimport REFUSED_NO_RIGHT, REFUSED_QUEUE_UNKNOWN
from fila_server.core.requests.tenant cimport TENANT_ENTRY_BYTES, tenant_bind
from fila_server.core.structures.buffer cimport (
    Buffer, buffer_reserve, must_malloc, put_u8, put_varint,
)
from fila_server.core.structures.maps cimport (
    map64_get, textmap_free, textmap_get, textmap_init, textmap_next, textmap_put,
)
from fila_server.core.threads.locks cimport pthread_mutex_lock, pthread_mutex_unlock
from fila_server.core.threads.mailbox cimport DENIED, HIDDEN

cdef enum:
    ALLOWED_MAX = 4096              # decisions kept a principal; then they are made anew
    RETRY_MS_MAX = 60000
    AT_A_TIME_RETRY_MS = 1000       # streams and connections end when their holders like
    STORED_RETRY_MS = 1000          # how often what is stored is counted anew (access/quotas.py)
    HOLDER_BYTES_MAX = 24           # of both

cdef const char* DLQ_SUFFIX = ".dlq"
cdef const char* OWN_PREFIX = "_fila"


# --- patterns --------------------------------------------------------------------------------

cdef bint _matches(const char* pattern, uint32_t length, Slice name) noexcept nogil:
    """`*` stands for any run of bytes; at most length times name.length steps."""
    cdef uint32_t p = 0, n = 0, star = 0, resumed = 0
    cdef bint starred = False
    while n < name.length:
        if p < length and pattern[p] == c'*':
            starred, star, resumed = True, p, n
            p += 1
        elif p < length and pattern[p] == name.at[n]:
            p += 1
            n += 1
        elif starred:
            resumed += 1
            p, n = star + 1, resumed
        else:
            return False
    while p < length and pattern[p] == c'*':
        p += 1
    return p == length


cdef inline bint _ends(Slice text, const char* ending, uint32_t length) noexcept nogil:
    return text.length >= length and memcmp(text.at + text.length - length, ending, length) == 0


cdef inline bint _begins(Slice text, const char* beginning, uint32_t length) noexcept nogil:
    return text.length >= length and memcmp(text.at, beginning, length) == 0


cdef bint _reaches(Slice pattern, Slice queue) noexcept nogil:
    """Dead letters and the broker's own queues are reached by patterns that say so."""
    if _ends(queue, DLQ_SUFFIX, 4) and not _ends(pattern, DLQ_SUFFIX, 4):
        return False
    if _begins(queue, OWN_PREFIX, 5) and not _begins(pattern, OWN_PREFIX, 5):
        return False
    return _matches(pattern.at, pattern.length, queue)


# --- decisions -------------------------------------------------------------------------------

cdef void allowed_forget(Principal* p) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Allowed* row
    while True:
        row = <Allowed*> textmap_next(&p.allowed, &cursor)
        if row == NULL:
            break
        free(row)
    textmap_free(&p.allowed)
    textmap_init(&p.allowed)


cdef Allowed* _allowed(Principal* p, Slice queue) noexcept nogil:
    """The decision about this queue; under the lock."""
    cdef Allowed* row = <Allowed*> textmap_get(&p.allowed, queue.at, queue.length)
    cdef Grant* grant
    cdef uint32_t i
    if row != NULL:
        return row
    if p.allowed.count >= ALLOWED_MAX:
        allowed_forget(p)
    row = <Allowed*> must_malloc(sizeof(Allowed) + queue.length)
    memset(row, 0, sizeof(Allowed))
    memcpy(<char*> row + sizeof(Allowed), queue.at, queue.length)
    row.text.bytes = <char*> row + sizeof(Allowed)
    row.text.length = queue.length
    if p.rights & ADMIN:
        row.everywhere = row.somewhere = EVERY_RIGHT
    else:
        for i in range(p.grant_count):
            grant = &p.grants[i]
            if _reaches(grant.queue, queue):
                row.somewhere |= grant.rights
                if grant.channel.length == 0:
                    row.everywhere |= grant.rights
    textmap_put(&p.allowed, &row.text)
    return row


cdef uint32_t _on_channel(Principal* p, Slice queue, Slice channel) noexcept nogil:
    """Rights by grants that name channels."""
    cdef uint32_t i, rights = 0
    for i in range(p.grant_count):
        if (
            p.grants[i].channel.length and _reaches(p.grants[i].queue, queue)
            and _matches(p.grants[i].channel.at, p.grants[i].channel.length, channel)
        ):
            rights |= p.grants[i].rights
    return rights


cdef Principal* principal_of(RightsTable* table, uint64_t caller) noexcept nogil:
    cdef Caller* row = <Caller*> map64_get(&table.callers, caller)
    if row == NULL or row.is_over:
        return NULL
    return <Principal*> map64_get(&table.principals, row.principal)


cdef int64_t rights_find(
        RightsTable* table, Slice key_id, const char* digest, int64_t wall_ms) noexcept nogil:
    cdef Caller* row
    cdef int64_t found = CALLER_UNKNOWN
    cdef unsigned char difference = 0
    cdef int i
    pthread_mutex_lock(&table.lock)
    row = <Caller*> textmap_get(&table.keys, key_id.at, key_id.length)
    if row != NULL:
        for i in range(DIGEST_BYTES):
            difference |= <unsigned char> row.digest[i] ^ <unsigned char> digest[i]
        if difference == 0:
            found = <int64_t> row.number
            if row.expires_ms and row.expires_ms <= wall_ms:
                found = CALLER_EXPIRED
    pthread_mutex_unlock(&table.lock)
    return found


cdef bint rights_holds(RightsTable* table, uint64_t caller) noexcept nogil:
    cdef bint held
    pthread_mutex_lock(&table.lock)
    held = principal_of(table, caller) != NULL
    pthread_mutex_unlock(&table.lock)
    return held


cdef void rights_on(
        RightsTable* table, uint64_t caller, Slice queue, Slice channel,
        uint32_t* everywhere, uint32_t* somewhere) noexcept nogil:
    cdef Principal* p
    cdef Allowed* row
    if caller == 0 and not table.is_on:
        everywhere[0] = somewhere[0] = EVERY_RIGHT
        return
    everywhere[0] = somewhere[0] = 0
    pthread_mutex_lock(&table.lock)
    p = principal_of(table, caller)
    if p != NULL:
        row = _allowed(p, queue)
        everywhere[0], somewhere[0] = row.everywhere, row.somewhere
        if channel.length and row.somewhere != row.everywhere:
            everywhere[0] |= _on_channel(p, queue, channel)
    pthread_mutex_unlock(&table.lock)


# --- quotas ----------------------------------------------------------------------------------

cdef void _refill(Allowance* quota, int64_t now_ns) noexcept nogil:
    """A second's worth at most; what a large frame overdrew is earned back first."""
    if quota.rate <= 0:
        return
    if now_ns > quota.refilled_ns:
        quota.level += (now_ns - quota.refilled_ns) * 1e-9 * quota.rate
        quota.refilled_ns = now_ns
    if quota.level > quota.rate:
        quota.level = quota.rate


cdef int32_t _wait_ms(Allowance* quota) noexcept nogil:
    cdef double wait_ms
    if quota.rate <= 0 or quota.level > 0:
        return 0
    wait_ms = -quota.level / quota.rate * 1000 + 1
    return <int32_t> wait_ms if wait_ms < RETRY_MS_MAX else RETRY_MS_MAX


cdef void _say_full(Principal* p, Problem* problem) noexcept nogil:
    problem.code = RESOURCE_EXHAUSTED
    problem.retry_ms = STORED_RETRY_MS
    snprintf(problem.reason, sizeof(problem.reason), b"QUOTA_EXCEEDED")
    snprintf(
        problem.text, sizeof(problem.text),
        b"quota: at most %llu bytes stored for tenant \"%.*s\", and there are %llu; have some consumed or "
        b"purged, or ask an admin for more",
        <unsigned long long> p.stored_max, <int> min(p.tenant.length, <uint32_t> 128), p.tenant.at,
        <unsigned long long> p.stored)


cdef bint rights_admit(
        RightsTable* table, uint64_t caller, int32_t kind, int64_t now_ns, Problem* problem) noexcept nogil:
    cdef Principal* p
    cdef int32_t wait_ms = 0
    cdef const char* what = b"messages"
    cdef double rate = 0
    cdef bint is_full = False
    if not table.is_on or not (ENQUEUE <= kind <= ENQUEUE_ATOMIC or kind == STAGE):
        return True
    pthread_mutex_lock(&table.lock)
    p = principal_of(table, caller)
    if p != NULL:
        _refill(&p.messages, now_ns)
        _refill(&p.bytes, now_ns)
        wait_ms, rate = _wait_ms(&p.messages), p.messages.rate
        if _wait_ms(&p.bytes) > wait_ms:
            wait_ms, rate, what = _wait_ms(&p.bytes), p.bytes.rate, b"bytes"
        is_full = wait_ms == 0 and p.stored_max > 0 and p.stored >= p.stored_max
        if is_full:
            _say_full(p, problem)
        p.refused += wait_ms > 0 or is_full
    pthread_mutex_unlock(&table.lock)
    if wait_ms == 0:
        return not is_full
    problem.code = RESOURCE_EXHAUSTED
    problem.retry_ms = wait_ms
    snprintf(problem.reason, sizeof(problem.reason), b"QUOTA_EXCEEDED")
    snprintf(
        problem.text, sizeof(problem.text),
        b"quota: at most %.0f %s a second for this key's name; send again in %d ms, or ask an admin for more",
        rate, what, <int> wait_ms)
    return False


cdef void _say_gone(Problem* problem) noexcept nogil:
    problem.code = UNAUTHENTICATED
    problem.retry_ms = 0
    snprintf(problem.reason, sizeof(problem.reason), b"UNAUTHENTICATED")
    snprintf(
        problem.text, sizeof(problem.text),
        b"the key was revoked or has expired; ask an admin for another")


cdef uint64_t rights_take(
        RightsTable* table, uint64_t caller, int what, Problem* problem) noexcept nogil:
    cdef Principal* p
    cdef uint64_t number = 0
    cdef uint32_t most = 0
    pthread_mutex_lock(&table.lock)
    p = principal_of(table, caller)
    if p != NULL:
        most = p.at_a_time[what].most
        if most == 0 or p.at_a_time[what].count < most:
            p.at_a_time[what].count += 1
            number = p.number
        else:
            p.refused += 1
    pthread_mutex_unlock(&table.lock)
    if number:
        return number
    if most == 0:
        _say_gone(problem)
        return 0
    problem.code = RESOURCE_EXHAUSTED
    problem.retry_ms = AT_A_TIME_RETRY_MS
    snprintf(problem.reason, sizeof(problem.reason), b"QUOTA_EXCEEDED")
    snprintf(
        problem.text, sizeof(problem.text),
        b"quota: at most %u %s at a time for this key's name; close one, or ask an admin for more", most,
        <const char*> (b"streams" if what == STREAMS else b"connections"))
    return 0


cdef void rights_give(RightsTable* table, uint64_t principal, int what) noexcept nogil:
    cdef Principal* p
    pthread_mutex_lock(&table.lock)
    p = <Principal*> map64_get(&table.principals, principal)
    if p != NULL and p.at_a_time[what].count:
        p.at_a_time[what].count -= 1
    pthread_mutex_unlock(&table.lock)


# --- frames ----------------------------------------------------------------------------------

cdef void _judge_items(Principal* p, Command* command) noexcept nogil:
    """Once a queue where a frame's messages go to one, as they mostly do."""
    cdef Slice last
    cdef Item* item
    cdef uint32_t i
    cdef uint32_t somewhere = 0
    cdef bint fresh
    last.at, last.length = NULL, 0
    for i in range(command.count):
        item = &command.items[i]
        if item.refused or item.queue.length == 0:
            continue
        fresh = last.at == NULL or item.queue.length != last.length
        if fresh or (item.queue.at != last.at and memcmp(item.queue.at, last.at, last.length) != 0):
            last = item.queue
            somewhere = _allowed(p, last).somewhere
        if not somewhere & PRODUCE:
            item.refused = REFUSED_NO_RIGHT if somewhere else REFUSED_QUEUE_UNKNOWN


cdef void rights_names(const Command* command, Slice* queue, Slice* channel) noexcept nogil:
    """Queue and channel of a settle, a pull or a stream's opening; the parse has checked both."""
    cdef Fields fields
    cdef Slice opening
    fields_parse(&fields, command.bytes, command.length)
    if command.kind == SESSION_OPEN:
        opening = fields.text[v1.CONSUME_SESSION_REQUEST_OPEN]
        fields_parse(&fields, opening.at, opening.length)
    queue[0], channel[0] = fields.text[QUEUE_FIELD], fields.text[channel_field(command.kind)]
    if channel.length == 0:
        channel.at, channel.length = b"default", 7


cdef void _judge_named(Principal* p, Command* command, uint32_t wanted) noexcept nogil:
    cdef Slice queue
    cdef Slice channel
    cdef Allowed* row
    cdef uint32_t rights
    rights_names(command, &queue, &channel)
    row = _allowed(p, queue)
    rights = row.everywhere
    if row.somewhere != row.everywhere and not rights & wanted:
        rights |= _on_channel(p, queue, channel)
    if row.somewhere == 0:
        command.verdict = HIDDEN
    elif not rights & wanted:
        command.verdict = DENIED
    elif row.somewhere != row.everywhere or not rights & (CONSUME | MANAGE | VIEW):
        command.sees_a_part = True      # names of channels are not for who only takes back


cdef void _name_holder(Command* command, uint64_t principal, uint32_t most) noexcept nogil:
    """Behind what the client sent, so that what it may have put there does not count."""
    cdef Buffer named
    named.data = command.bytes
    named.length = named.capacity = command.length
    buffer_reserve(&named, HOLDER_BYTES_MAX)
    put_u8(&named, seam.OPENER_PRINCIPAL << 3 | VARINT)
    put_varint(&named, principal)
    put_u8(&named, seam.OPENER_MOST << 3 | VARINT)
    put_varint(&named, most)
    command.bytes, command.length = named.data, <uint32_t> named.length


cdef void _name_canceller(Command* command, Slice tenant) noexcept nogil:
    """In the same way."""
    cdef Buffer named
    named.data = command.bytes
    named.length = named.capacity = command.length
    put_text_field(&named, seam.CANCELLER_TENANT, tenant)
    command.bytes, command.length = named.data, <uint32_t> named.length


cdef bint rights_judge(
        RightsTable* table, uint64_t caller, Command* command, int64_t now_ns,
        Problem* problem) noexcept nogil:
    cdef Principal* p
    cdef int32_t kind = command.kind
    cdef uint64_t holder = 0
    cdef uint32_t most = 0
    cdef uint64_t length
    cdef Slice tenant
    cdef char name[512]
    tenant.at, tenant.length = name, 0
    if not table.is_on:
        return True
    if not (
        ENQUEUE <= kind <= EXTEND_LEASE
        or kind in (LEASE, CONSUME_OPEN, SESSION_OPEN, STAGE, CANCEL_MESSAGES)
    ):
        return True                     # judged by who sends it, as rights_on says
    pthread_mutex_lock(&table.lock)
    p = principal_of(table, caller)
    if p != NULL and (kind <= ENQUEUE_ATOMIC or kind == STAGE):
        if kind != STAGE:               # who sends that judges queue and sink, and refuses tenants' keys
            _judge_items(p, command)
        _refill(&p.messages, now_ns)
        _refill(&p.bytes, now_ns)
        p.messages.level -= command.count
        p.bytes.level -= command.length
        length = command.length         # and a header each: of small messages most of what is stored of them
        length += command.count * (TENANT_ENTRY_BYTES + p.tenant.length) if p.tenant.length else 0
        p.stored += length              # before the core has counted it
        p.let_in += length
        if kind != STAGE and p.tenant.length and p.tenant.length <= sizeof(name):
            memcpy(name, p.tenant.at, p.tenant.length)
            tenant.length = p.tenant.length
    elif p != NULL and kind == CANCEL_MESSAGES:
        _judge_named(p, command, CANCEL)
        _name_canceller(command, p.tenant)
    elif p != NULL:
        _judge_named(p, command, CONSUME)
        holder, most = p.number, p.in_flight_max
    pthread_mutex_unlock(&table.lock)
    if p == NULL:
        _say_gone(problem)
        return False
    if tenant.length:
        tenant_bind(command, tenant)
    if kind == LEASE or kind == CONSUME_OPEN or kind == SESSION_OPEN:
        _name_holder(command, holder, most)
    return True
