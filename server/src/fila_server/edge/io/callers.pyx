from libc.stdint cimport int64_t, uint32_t, uint8_t
from libc.stdio cimport snprintf
from libc.string cimport memchr, memcmp, memcpy, memset, strlen

from fila_server.core.protocol.commands cimport RESOURCE_EXHAUSTED
from fila_server.core.protocol.problem cimport Problem
from fila_server.core.requests.rights cimport (
    CONNECTIONS, DIGEST_BYTES, STREAMS, RightsTable, rights_find, rights_give, rights_names, rights_take,
)
from fila_server.core.structures.buffer cimport (
    Buffer, Slice, buffer_free, buffer_init, put_bytes, put_slice, read_u32be,
)
from fila_server.core.threads.mailbox cimport ALLOWED
from fila_server.edge.grpc.submission cimport refuse_problem
from fila_server.edge.io.bridge cimport EVENT_UNWELCOME, event_put, header_put, offer_begin
from fila_server.edge.io.iothread cimport CONSUMER, PRODUCER, PULL, SESSION_CONSUMER, TO_PYTHON
from fila_server.edge.io.openssl cimport (
    EVP_MD_CTX, EVP_DigestFinal_ex, EVP_DigestInit_ex, EVP_DigestUpdate, EVP_MD_CTX_free, EVP_MD_CTX_new,
    EVP_sha256,
)
from fila_server.edge.io.response cimport call_refuse
from fila_server.edge.io.sockets cimport wall_ms
from fila_server.edge.io.token_entries cimport entry_new, entry_token

cdef enum:
    KEY_BYTES_MAX = 256
    CERTIFICATE_NAME_BYTES_MAX = 255

cdef const char* SCHEME = b"bearer "
cdef const char* KEY_PREFIX = b"fila_"
cdef const char* AUTHORIZATION = b"authorization"
cdef enum:
    SCHEME_LENGTH = 7
    KEY_PREFIX_LENGTH = 5
    AUTHORIZATION_LENGTH = 13


cdef bint callers_prepare(IoThread* io) noexcept nogil:
    cdef EVP_MD_CTX* context = EVP_MD_CTX_new()
    io.digest = context
    # Looked up here, once: that costs more than the hash.
    return context != NULL and EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1


cdef void callers_unprepare(IoThread* io) noexcept nogil:
    EVP_MD_CTX_free(<EVP_MD_CTX*> io.digest)


# --- a key -----------------------------------------------------------------------------------

cdef bint _is_bearer(const char* at, size_t length) noexcept nogil:
    cdef size_t i
    cdef uint8_t letter
    if length < SCHEME_LENGTH:
        return False
    for i in range(SCHEME_LENGTH):
        letter = <uint8_t> at[i]
        if (letter | 0x20 if 0x41 <= letter <= 0x5A else letter) != <uint8_t> SCHEME[i]:
            return False
    return True


cdef uint64_t caller_of(Connection* connection, const char* value, size_t length) noexcept nogil:
    """Of "Bearer fila_<id>_<secret>", read as access/keys.py reads it."""
    cdef EVP_MD_CTX* context = <EVP_MD_CTX*> connection.thread.digest
    cdef unsigned char digest[DIGEST_BYTES]
    cdef const char* end
    cdef Slice key_id
    cdef int64_t found
    if not connection.may_send_keys or not _is_bearer(value, length):
        return 0
    value += SCHEME_LENGTH
    length -= SCHEME_LENGTH
    while length and value[0] == c' ':
        value += 1
        length -= 1
    while length and value[length - 1] == c' ':
        length -= 1
    if not KEY_PREFIX_LENGTH < length <= KEY_BYTES_MAX or memcmp(value, KEY_PREFIX, KEY_PREFIX_LENGTH) != 0:
        return 0
    key_id.at = value + KEY_PREFIX_LENGTH
    end = <const char*> memchr(key_id.at, c'_', length - KEY_PREFIX_LENGTH)
    if end == NULL:
        return 0
    key_id.length = <uint32_t> (end - key_id.at)
    if (
        EVP_DigestInit_ex(context, NULL, NULL) != 1
        or EVP_DigestUpdate(context, end + 1, value + length - end - 1) != 1
        or EVP_DigestFinal_ex(context, digest, NULL) != 1
    ):
        return 0
    found = rights_find(connection.thread.common.rights, key_id, <const char*> digest, wall_ms())
    return <uint64_t> found if found > 0 else 0


cdef uint64_t _of_certificate(Connection* connection) noexcept nogil:
    """The first of the certificate's names that is somebody's; asked anew each time: grants make them."""
    cdef char nobody[DIGEST_BYTES]
    cdef char name[CERTIFICATE_NAME_BYTES_MAX + 5]
    cdef const char* at = connection.names.data
    cdef const char* end = at + connection.names.length
    cdef Slice key_id
    cdef uint32_t length
    cdef int64_t found
    memset(nobody, 0, DIGEST_BYTES)
    memcpy(name, b"cert:", 5)
    while at < end:
        at += 4 + read_u32be(at)        # whether it is DNS's or a URI
        length = read_u32be(at)
        if length <= CERTIFICATE_NAME_BYTES_MAX:
            memcpy(name + 5, at + 4, length)
            key_id.at, key_id.length = name, length + 5
            found = rights_find(connection.thread.common.rights, key_id, nobody, 0)
            if found > 0:
                return <uint64_t> found
        at += 4 + length
    return 0


# --- coming in -------------------------------------------------------------------------------

cdef inline bint _is_stream(const Call* call) noexcept nogil:
    return call.shape in (PULL, PRODUCER, CONSUMER, SESSION_CONSUMER)


cdef bint caller_enter(Call* call) noexcept nogil:
    cdef Connection* connection = call.connection
    cdef IoThread* io = connection.thread
    cdef RightsTable* table = io.common.rights
    cdef Problem problem
    if table.is_on:
        if call.caller == 0 and not call.has_key:
            call.caller = _of_certificate(connection)
        if call.caller == 0 and not call.is_open_to_all:
            _turn_away(call)
            return False
        if call.caller == 0:
            return True
        # A connection is its first key's.
        if connection.counted_of == 0:
            connection.counted_of = rights_take(table, call.caller, CONNECTIONS, &problem)
        if connection.counted_of and _is_stream(call):
            call.stream_of = rights_take(table, call.caller, STREAMS, &problem)
        if connection.counted_of and (call.stream_of or not _is_stream(call)):
            return True
        refuse_problem(call, &problem)
        return False
    call.caller = 0                 # while keys are off one that is sent all the same says nothing
    if connection.is_local or io.common.serves_strangers or call.is_open_to_all:
        return True
    _turn_away(call)
    return False


cdef void caller_report(Call* call) noexcept nogil:
    cdef const char* peer = call.connection.peer
    cdef char number[24]
    header_put(&call.metadata, b":peer", 5, peer, strlen(peer))
    put_bytes(&call.metadata, call.connection.names.data, call.connection.names.length)
    snprintf(number, sizeof(number), b"%llu", <unsigned long long> call.caller)
    header_put(&call.metadata, b":caller", 7, number, strlen(number))


cdef bint caller_offered(Call* call) noexcept nogil:
    if offer_begin(call.connection):
        return True
    call_refuse(
        call, RESOURCE_EXHAUSTED, b"too many calls of all clients are waiting to be begun; try again shortly",
        b"OVERLOADED")
    return False


cdef void _keep_key_alone(Call* call) noexcept nogil:
    """Of what a stranger sent nothing else is looked at. A longer key is none, cut off or not."""
    cdef Buffer reported = call.metadata
    cdef const char* at = reported.data
    cdef const char* end = at + reported.length
    cdef const char* name
    cdef uint32_t name_length, length
    buffer_init(&call.metadata)
    while at < end:
        name_length = read_u32be(at)
        name = at + 4
        at = name + name_length
        length = read_u32be(at)
        if name_length == AUTHORIZATION_LENGTH and memcmp(name, AUTHORIZATION, name_length) == 0:
            header_put(
                &call.metadata, name, name_length, at + 4, min(length, <uint32_t> (2 * KEY_BYTES_MAX)))
            break
        at += 4 + length
    buffer_free(&reported)


cdef void _turn_away(Call* call) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    if not caller_offered(call):
        return
    call.is_unwelcome = True
    call.shape = TO_PYTHON
    _keep_key_alone(call)
    call.entry = entry_new(io, call, NULL)
    if call.method != NULL:
        header_put(&call.metadata, b":path", 5, call.method.path, call.method.path_length)
    caller_report(call)
    event_put(
        io.common, EVENT_UNWELCOME, entry_token(io, call.entry, False), call.timeout_ns, NULL, &call.metadata)


# --- what it keeps open ----------------------------------------------------------------------------

cdef void caller_holds(Call* call, const Command* command) noexcept nogil:
    cdef Slice queue
    cdef Slice channel
    call.holds.length = 0
    # The core's refusal is on its way: there is no right to take back, and the judge must not answer first.
    if call.caller == 0 or command.verdict != ALLOWED:
        return
    rights_names(command, &queue, &channel)
    put_slice(&call.holds, queue)
    put_slice(&call.holds, channel)
    call.holds_queue_length = queue.length


cdef void caller_disconnects(Connection* connection) noexcept nogil:
    if connection.counted_of:
        rights_give(connection.thread.common.rights, connection.counted_of, CONNECTIONS)
        connection.counted_of = 0


cdef void caller_leaves(Call* call) noexcept nogil:
    if call.stream_of:
        rights_give(call.connection.thread.common.rights, call.stream_of, STREAMS)
        call.stream_of = 0
