from libc.stdint cimport int64_t
from libc.stdio cimport snprintf

from fila_server.core.threads.locks cimport pthread_mutex_lock, pthread_mutex_unlock
from fila_server.edge.io.bridge cimport header_put
from fila_server.edge.io.openssl cimport *
from fila_server.edge.io.sockets cimport EAGAIN, send_some, set_errno

cdef extern from "<errno.h>" nogil:
    int EPROTO

cdef enum:
    RECORD_BYTES = 16384
    SEAL_BYTES = 65536              # encrypted at a time: four records, one system call
    SEAL_BYTES_KEPT = 16384         # of what OpenSSL has written to; more is given back when it is sent
    HANDSHAKES_A_TURN = 16          # some milliseconds; the others wait for the next turn
    NAMES_MAX = 16                  # of a certificate

cdef const unsigned char* H2 = b"\x02h2"
cdef const char* CIPHERS = b"ECDHE+AESGCM:ECDHE+CHACHA20"       # of TLS 1.2: those that RFC 9113 leaves


# --- certificates ----------------------------------------------------------------------------

cdef int _choose(
        SSL* ssl, const unsigned char** to, unsigned char* length, const unsigned char* theirs,
        unsigned int theirs_length, void* user) noexcept nogil:
    """HTTP/2 or nothing; what speaks the Redis protocol has no name for it."""
    if (<Connection*> SSL_get_app_data(ssl)).redis != NULL:
        return SSL_TLSEXT_ERR_NOACK
    if SSL_select_next_proto(
            <unsigned char**> to, length, H2, 3, theirs, theirs_length) == OPENSSL_NPN_NEGOTIATED:
        return SSL_TLSEXT_ERR_OK
    return SSL_TLSEXT_ERR_ALERT_FATAL


cdef int _no_password(char* to, int size, int writing, void* user) noexcept nogil:
    return -1


cdef bint _say(char* problem, size_t size, const char* what) noexcept nogil:
    cdef const char* why = ERR_reason_error_string(ERR_peek_last_error())
    snprintf(problem, size, b"%s: %s", what, why if why != NULL else <const char*> b"it holds none")
    return False


cdef bint _use_chain(
        SSL_CTX* context, const char* at, size_t length, char* problem, size_t size) noexcept nogil:
    cdef BIO* bio = BIO_new_mem_buf(at, <int> length)
    cdef X509* certificate = PEM_read_bio_X509(bio, NULL, <void*> _no_password, NULL)
    cdef bint done = certificate != NULL and SSL_CTX_use_certificate(context, certificate) == 1
    X509_free(certificate)
    while done:
        certificate = PEM_read_bio_X509(bio, NULL, <void*> _no_password, NULL)
        if certificate == NULL:
            break                   # the end, which OpenSSL calls an error
        if SSL_CTX_add0_chain_cert(context, certificate) != 1:
            X509_free(certificate)
            done = False
    BIO_free(bio)
    return done or _say(problem, size, b"tls.cert_file")


cdef bint _use_key(
        SSL_CTX* context, const char* at, size_t length, char* problem, size_t size) noexcept nogil:
    cdef BIO* bio = BIO_new_mem_buf(at, <int> length)
    cdef EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, NULL, <void*> _no_password, NULL)
    cdef bint done = (
        key != NULL and SSL_CTX_use_PrivateKey(context, key) == 1
        and SSL_CTX_check_private_key(context) == 1)
    EVP_PKEY_free(key)
    BIO_free(bio)
    return done or _say(problem, size, b"tls.key_file")


cdef bint _use_authorities(
        SSL_CTX* context, const char* at, size_t length, char* problem, size_t size) noexcept nogil:
    cdef BIO* bio = BIO_new_mem_buf(at, <int> length)
    cdef X509_STORE* store = SSL_CTX_get_cert_store(context)
    cdef X509* certificate = PEM_read_bio_X509(bio, NULL, <void*> _no_password, NULL)
    cdef bint done = certificate != NULL
    while certificate != NULL:
        if X509_STORE_add_cert(store, certificate) != 1 or SSL_CTX_add_client_CA(context, certificate) != 1:
            done = False
        X509_free(certificate)
        certificate = PEM_read_bio_X509(bio, NULL, <void*> _no_password, NULL)
    BIO_free(bio)
    return done or _say(problem, size, b"tls.client_ca_file")


cdef void* tls_context(
        const char* chain, size_t chain_length, const char* key, size_t key_length, const char* authorities,
        size_t authorities_length, bint needs_certificate, bint newest_only, const char* ciphers,
        char* problem, size_t problem_size) noexcept nogil:
    cdef SSL_CTX* context = SSL_CTX_new(TLS_server_method())
    cdef int verify = SSL_VERIFY_NONE
    cdef bint done
    ERR_clear_error()
    if context == NULL:
        _say(problem, problem_size, b"tls")
        return NULL
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION if newest_only else TLS1_2_VERSION)
    SSL_CTX_set_options(
        context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET
        | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF)
    # Connections last: a session that is resumed would save little, and outlive its certificate.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF)
    SSL_CTX_set_num_tickets(context, 0)
    SSL_CTX_set_mode(
        context,
        SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER)
    SSL_CTX_set_alpn_select_cb(context, _choose, NULL)
    done = _use_chain(context, chain, chain_length, problem, problem_size)
    done = done and _use_key(context, key, key_length, problem, problem_size)
    if done and authorities_length:
        done = _use_authorities(context, authorities, authorities_length, problem, problem_size)
        verify = SSL_VERIFY_PEER | (SSL_VERIFY_FAIL_IF_NO_PEER_CERT if needs_certificate else 0)
    SSL_CTX_set_verify(context, verify, NULL)
    if done and SSL_CTX_set_cipher_list(context, ciphers if ciphers[0] else CIPHERS) != 1:
        done = _say(problem, problem_size, b"tls.ciphers")
    ERR_clear_error()
    if done:
        return context
    SSL_CTX_free(context)
    return NULL


cdef void tls_replace(Common* common, void* context) noexcept nogil:
    cdef void* before
    pthread_mutex_lock(&common.tls_lock)
    before = common.tls
    common.tls = context
    pthread_mutex_unlock(&common.tls_lock)
    SSL_CTX_free(<SSL_CTX*> before)


# --- a connection ----------------------------------------------------------------------------

cdef bint tls_begin(Connection* connection) noexcept nogil:
    cdef Common* common = connection.thread.common
    cdef SSL_CTX* context
    cdef SSL* ssl
    pthread_mutex_lock(&common.tls_lock)
    context = <SSL_CTX*> common.tls
    if context != NULL:
        SSL_CTX_up_ref(context)
    pthread_mutex_unlock(&common.tls_lock)
    connection.is_shaken = context == NULL
    if context == NULL:
        return True
    ssl = SSL_new(context)
    SSL_CTX_free(context)           # the connection holds it now
    if ssl == NULL:
        return False
    connection.tls = ssl
    SSL_set_app_data(ssl, connection)
    SSL_set_accept_state(ssl)
    return SSL_set_rfd(ssl, connection.fd) == 1 and _new_seal(connection)


cdef bint _new_seal(Connection* connection) noexcept nogil:
    cdef BIO* bio = BIO_new(BIO_s_mem())
    if bio == NULL:
        return False
    SSL_set0_wbio(<SSL*> connection.tls, bio)       # frees the one before
    connection.seal = bio
    connection.sealed_done = 0
    return True


cdef void tls_end(Connection* connection) noexcept nogil:
    cdef SSL* ssl = <SSL*> connection.tls
    if ssl == NULL:
        return
    tls_farewell(connection)        # where the socket takes it
    SSL_free(ssl)
    connection.tls = connection.seal = NULL


cdef void tls_farewell(Connection* connection) noexcept nogil:
    ERR_clear_error()
    if tls_flush(connection) and connection.is_shaken:
        SSL_shutdown(<SSL*> connection.tls)
        tls_flush(connection)
    ERR_clear_error()


cdef void _shaken(Connection* connection) noexcept nogil:
    """Keep its DNS and URI names, and when the client's certificate ends; its common name says nothing."""
    cdef X509* certificate = SSL_get1_peer_certificate(<SSL*> connection.tls)
    cdef GENERAL_NAMES* names
    cdef GENERAL_NAME* name
    cdef const ASN1_STRING* text
    cdef int days, seconds, i
    connection.is_shaken = True
    if certificate == NULL:
        return
    if ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) == 1:
        connection.certificate_ends_ns = connection.thread.now_ns + (
            days * <int64_t> 86400 + seconds) * 1000000000
    names = <GENERAL_NAMES*> X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL)
    for i in range(min(sk_GENERAL_NAME_num(names), NAMES_MAX) if names != NULL else 0):
        name = sk_GENERAL_NAME_value(names, i)
        if name.type == GEN_DNS or name.type == GEN_URI:
            text = <const ASN1_STRING*> name.d.dNSName
            header_put(
                &connection.names, b":dns" if name.type == GEN_DNS else b":uri", 4,
                <const char*> ASN1_STRING_get0_data(text), <size_t> ASN1_STRING_length(text))
    GENERAL_NAMES_free(names)
    X509_free(certificate)


cdef bint _shake(Connection* connection) noexcept nogil:
    """A step of the handshake. False with errno: there is more to come, or the connection is of no use."""
    cdef SSL* ssl = <SSL*> connection.tls
    cdef const unsigned char* protocol
    cdef unsigned int length
    cdef int result
    if connection.thread.handshakes >= HANDSHAKES_A_TURN:
        set_errno(EAGAIN)           # epoll tells again
        return False
    connection.thread.handshakes += 1
    result = SSL_do_handshake(ssl)
    if result != 1:
        set_errno(EAGAIN if SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else EPROTO)
        return False
    SSL_get0_alpn_selected(ssl, &protocol, &length)
    if length != 2 and connection.redis == NULL:    # HTTP/2 over TLS has to be asked for
        set_errno(EPROTO)
        return False
    _shaken(connection)
    return True


cdef ssize_t tls_read(Connection* connection, char* to, size_t size) noexcept nogil:
    cdef SSL* ssl = <SSL*> connection.tls
    cdef size_t got = 0
    cdef int result, why
    ERR_clear_error()
    if not connection.is_shaken and not _shake(connection):
        return -1
    # Never less room than a record has: OpenSSL would keep the rest of one, and epoll know nothing of it.
    while size - got >= RECORD_BYTES:
        result = SSL_read(ssl, to + got, <int> (size - got))
        if result <= 0:
            why = SSL_get_error(ssl, result)
            if got:
                break               # what is wrong shows again
            if why == SSL_ERROR_ZERO_RETURN:
                return 0
            set_errno(EAGAIN if why == SSL_ERROR_WANT_READ else EPROTO)
            return -1
        got += <size_t> result
    return <ssize_t> got


cdef bint tls_flush(Connection* connection) noexcept nogil:
    cdef BIO* bio = <BIO*> connection.seal
    cdef char* at
    cdef size_t length = <size_t> BIO_get_mem_data(bio, &at)
    cdef ssize_t sent
    while connection.sealed_done < length:
        sent = send_some(connection.fd, at + connection.sealed_done, length - connection.sealed_done)
        if sent < 0:
            return False
        connection.sealed_done += <size_t> sent
    if length == 0:
        return True
    if length > SEAL_BYTES_KEPT and connection.is_shaken:
        return _new_seal(connection)
    BIO_reset(bio)
    connection.sealed_done = 0
    return True


cdef ssize_t tls_send(Connection* connection, const char* at, size_t length) noexcept nogil:
    cdef int result
    cdef size_t done
    if not tls_flush(connection):
        return -1
    if connection.sealed_of == 0:
        ERR_clear_error()
        while connection.sealed_of < min(length, <size_t> SEAL_BYTES):
            result = SSL_write(
                <SSL*> connection.tls, at + connection.sealed_of,
                <int> (min(length, <size_t> SEAL_BYTES) - connection.sealed_of))
            if result <= 0:
                set_errno(EPROTO)   # into memory it is never too much
                return -1
            connection.sealed_of += <size_t> result
        if not tls_flush(connection):
            return -1
    done = connection.sealed_of
    connection.sealed_of = 0
    return <ssize_t> done
