"""What the edge uses of OpenSSL: SHA-256 of a key's secret, and TLS."""

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t

cdef extern from "<openssl/evp.h>" nogil:
    ctypedef struct EVP_MD:
        pass
    ctypedef struct EVP_MD_CTX:
        pass
    ctypedef struct EVP_PKEY:
        pass
    const EVP_MD* EVP_sha256()
    EVP_MD_CTX* EVP_MD_CTX_new()
    void EVP_MD_CTX_free(EVP_MD_CTX* context)
    # With NULL for the digest: the same as before, without looking it up.
    int EVP_DigestInit_ex(EVP_MD_CTX* context, const EVP_MD* digest, void* engine)
    int EVP_DigestUpdate(EVP_MD_CTX* context, const void* at, size_t length)
    int EVP_DigestFinal_ex(EVP_MD_CTX* context, unsigned char* to, unsigned int* length)
    void EVP_PKEY_free(EVP_PKEY* key)

cdef extern from "<openssl/bio.h>" nogil:
    ctypedef struct BIO:
        pass
    ctypedef struct BIO_METHOD:
        pass
    const BIO_METHOD* BIO_s_mem()
    BIO* BIO_new(const BIO_METHOD* kind)
    BIO* BIO_new_mem_buf(const void* at, int length)
    int BIO_up_ref(BIO* bio)
    int BIO_free(BIO* bio)
    int BIO_reset(BIO* bio)
    long BIO_get_mem_data(BIO* bio, char** at)

cdef extern from "<openssl/err.h>" nogil:
    unsigned long ERR_get_error()
    unsigned long ERR_peek_last_error()
    void ERR_clear_error()
    const char* ERR_reason_error_string(unsigned long error)

cdef extern from "<openssl/x509v3.h>" nogil:
    enum:
        NID_subject_alt_name
        GEN_DNS
        GEN_URI
    ctypedef struct X509:
        pass
    ctypedef struct X509_STORE:
        pass
    ctypedef struct ASN1_TIME:
        pass
    ctypedef struct ASN1_IA5STRING:
        pass
    ctypedef struct ASN1_STRING:
        pass
    ctypedef union GENERAL_NAME_d:
        ASN1_IA5STRING* dNSName
        ASN1_IA5STRING* uniformResourceIdentifier
    ctypedef struct GENERAL_NAME:
        int type
        GENERAL_NAME_d d
    ctypedef struct GENERAL_NAMES:
        pass
    void X509_free(X509* certificate)
    const ASN1_TIME* X509_get0_notAfter(const X509* certificate)
    int ASN1_TIME_diff(int* days, int* seconds, const ASN1_TIME* start, const ASN1_TIME* end)
    void* X509_get_ext_d2i(const X509* certificate, int nid, int* critical, int* index)
    int sk_GENERAL_NAME_num(const GENERAL_NAMES* names)
    GENERAL_NAME* sk_GENERAL_NAME_value(const GENERAL_NAMES* names, int i)
    void GENERAL_NAMES_free(GENERAL_NAMES* names)
    const unsigned char* ASN1_STRING_get0_data(const ASN1_STRING* text)
    int ASN1_STRING_length(const ASN1_STRING* text)
    int X509_STORE_add_cert(X509_STORE* store, X509* certificate)

cdef extern from "<openssl/pem.h>" nogil:
    X509* PEM_read_bio_X509(BIO* bio, X509** to, void* password, void* user)
    EVP_PKEY* PEM_read_bio_PrivateKey(BIO* bio, EVP_PKEY** to, void* password, void* user)

cdef extern from "<openssl/ssl.h>" nogil:
    enum:
        TLS1_2_VERSION
        TLS1_3_VERSION
        SSL_VERIFY_NONE
        SSL_VERIFY_PEER
        SSL_VERIFY_FAIL_IF_NO_PEER_CERT
        SSL_ERROR_NONE
        SSL_ERROR_WANT_READ
        SSL_ERROR_ZERO_RETURN
        SSL_TLSEXT_ERR_OK
        SSL_TLSEXT_ERR_ALERT_FATAL
        SSL_TLSEXT_ERR_NOACK
        SSL_SESS_CACHE_OFF
        OPENSSL_NPN_NEGOTIATED
    uint64_t SSL_OP_NO_RENEGOTIATION
    uint64_t SSL_OP_NO_COMPRESSION
    uint64_t SSL_OP_NO_TICKET
    uint64_t SSL_OP_CIPHER_SERVER_PREFERENCE
    uint64_t SSL_OP_IGNORE_UNEXPECTED_EOF
    long SSL_MODE_RELEASE_BUFFERS
    long SSL_MODE_ENABLE_PARTIAL_WRITE
    long SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
    ctypedef struct SSL:
        pass
    ctypedef struct SSL_CTX:
        pass
    ctypedef struct SSL_METHOD:
        pass
    ctypedef int (*AlpnChoice)(
        SSL*, const unsigned char**, unsigned char*, const unsigned char*, unsigned int, void*) noexcept nogil
    const SSL_METHOD* TLS_server_method()
    SSL_CTX* SSL_CTX_new(const SSL_METHOD* method)
    void SSL_CTX_free(SSL_CTX* context)
    int SSL_CTX_up_ref(SSL_CTX* context)
    int SSL_CTX_set_min_proto_version(SSL_CTX* context, int version)
    uint64_t SSL_CTX_set_options(SSL_CTX* context, uint64_t options)
    long SSL_CTX_set_mode(SSL_CTX* context, long mode)
    long SSL_CTX_set_session_cache_mode(SSL_CTX* context, long mode)
    int SSL_CTX_set_num_tickets(SSL_CTX* context, size_t count)
    int SSL_CTX_set_cipher_list(SSL_CTX* context, const char* ciphers)
    int SSL_CTX_use_certificate(SSL_CTX* context, X509* certificate)
    long SSL_CTX_add0_chain_cert(SSL_CTX* context, X509* certificate)
    int SSL_CTX_use_PrivateKey(SSL_CTX* context, EVP_PKEY* key)
    int SSL_CTX_check_private_key(const SSL_CTX* context)
    X509_STORE* SSL_CTX_get_cert_store(const SSL_CTX* context)
    int SSL_CTX_add_client_CA(SSL_CTX* context, X509* certificate)
    void SSL_CTX_set_verify(SSL_CTX* context, int mode, void* callback)
    void SSL_CTX_set_alpn_select_cb(SSL_CTX* context, AlpnChoice choice, void* user)
    int SSL_select_next_proto(
        unsigned char** to, unsigned char* length, const unsigned char* ours, unsigned int ours_length,
        const unsigned char* theirs, unsigned int theirs_length)
    SSL* SSL_new(SSL_CTX* context)
    void SSL_free(SSL* ssl)
    int SSL_set_rfd(SSL* ssl, int fd)
    void SSL_set0_wbio(SSL* ssl, BIO* bio)
    int SSL_set_app_data(SSL* ssl, void* data)
    void* SSL_get_app_data(const SSL* ssl)
    void SSL_set_accept_state(SSL* ssl)
    int SSL_is_init_finished(const SSL* ssl)
    int SSL_do_handshake(SSL* ssl)
    int SSL_read(SSL* ssl, void* to, int size)
    int SSL_write(SSL* ssl, const void* at, int length)
    int SSL_shutdown(SSL* ssl)
    int SSL_get_error(const SSL* ssl, int result)
    void SSL_get0_alpn_selected(const SSL* ssl, const unsigned char** at, unsigned int* length)
    X509* SSL_get1_peer_certificate(const SSL* ssl)
