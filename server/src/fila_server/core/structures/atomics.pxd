"""Words and flags that several threads touch: each is loaded and stored whole, in one order for all."""

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #define fila_atomic_load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
    #define fila_atomic_store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
    #define fila_atomic_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
    /* Of a word that one thread alone writes: a count that others may read a little late. */
    #define fila_count_add(p, v) \\
        __atomic_store_n((p), __atomic_load_n((p), __ATOMIC_RELAXED) + (v), __ATOMIC_RELAXED)
    #define fila_count_load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
    """
    uint64_t atomic_load "fila_atomic_load" (uint64_t* p) nogil
    void atomic_store "fila_atomic_store" (uint64_t* p, uint64_t v) nogil
    uint64_t atomic_add "fila_atomic_add" (uint64_t* p, uint64_t v) nogil
    bint flag_load "fila_atomic_load" (bint* p) nogil
    void flag_store "fila_atomic_store" (bint* p, bint v) nogil
    void count_add "fila_count_add" (uint64_t* p, uint64_t v) nogil
    uint64_t count_load "fila_count_load" (uint64_t* p) nogil
