"""TLS of a connection: OpenSSL reads from the socket, and writes into memory, from where the loop sends it.

    tls_begin    a new connection  ──►  encrypted, where Python has set up certificates
    tls_read     as read()         ──►  what was decrypted
    tls_send     as send()         ──►  how many of the bytes are on their way, encrypted

Reads end where OpenSSL has no whole record, so nothing it holds is waited for in vain. A record is made only
when the one before has left, so that a client that does not read has one in memory, and its memory is given
back when it has left: ten thousand quiet connections have none.

Certificates are replaced by replacing `Common.tls`; connections keep those they began with.
"""

from libc.stddef cimport size_t

from fila_server.edge.io.iothread cimport Common, Connection

cdef bint tls_begin(Connection* connection) noexcept nogil              # False: no memory
cdef void tls_end(Connection* connection) noexcept nogil
# -1 with errno EAGAIN: nothing whole is there; -1 with another errno: the connection is of no use.
cdef ssize_t tls_read(Connection* connection, char* to, size_t size) noexcept nogil
cdef ssize_t tls_send(Connection* connection, const char* at, size_t length) noexcept nogil
# Sends what the handshake has to say. False with errno: not all of it.
cdef bint tls_flush(Connection* connection) noexcept nogil
# Says that nothing more comes from us.
cdef void tls_farewell(Connection* connection) noexcept nogil
# What new connections are set up with; takes the reference.
cdef void tls_replace(Common* common, void* context) noexcept nogil
# NULL: `problem` says what does not fit. `authorities` of no length: no client is asked for a certificate.
cdef void* tls_context(
    const char* chain, size_t chain_length, const char* key, size_t key_length, const char* authorities,
    size_t authorities_length, bint needs_certificate, bint newest_only, const char* ciphers,
    char* problem, size_t problem_size) noexcept nogil
