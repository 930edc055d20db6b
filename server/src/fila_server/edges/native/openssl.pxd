"""What the edge uses of OpenSSL's libcrypto: SHA-256 of a key's secret."""

from libc.stddef cimport size_t

cdef extern from "<openssl/evp.h>" nogil:
    ctypedef struct EVP_MD:
        pass
    ctypedef struct EVP_MD_CTX:
        pass
    const EVP_MD* EVP_sha256()
    EVP_MD_CTX* EVP_MD_CTX_new()
    void EVP_MD_CTX_free(EVP_MD_CTX* context)
    # With NULL for the digest: the same as before, without looking it up.
    int EVP_DigestInit_ex(EVP_MD_CTX* context, const EVP_MD* digest, void* engine)
    int EVP_DigestUpdate(EVP_MD_CTX* context, const void* at, size_t length)
    int EVP_DigestFinal_ex(EVP_MD_CTX* context, unsigned char* to, unsigned int* length)
