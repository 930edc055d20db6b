"""See store_copy.pyx."""

from libc.stdint cimport int64_t

from fila_server.core.log.end cimport LogEnd
from fila_server.core.state.opaque cimport Group, Store

# A store's own sentence under the error's name.
cdef object store_error(int status, str text, str data_dir)

cdef class StoreCopy:
    cdef Store* store
    cdef Group* group
    cdef LogEnd log
    cdef bytes cluster
    cdef str name
    cdef bint is_open               # an engine that takes it over closes it
    cdef bint has_store             # here or in an engine
    cdef int users                  # that make a checkpoint, or keep the disk small
    cdef object used                # a Condition: one of them is done
    cdef bint has_disk
    cdef int64_t min_free_bytes, ballast_bytes
    cdef ends(self)
    cdef _open_disk(self)
