"""The table of rights.pxd as Python fills it and asks it; one an engine, found in `CoreEngine.rights`."""

from libc.stdint cimport uint64_t

from fila_server.core.requests.rights cimport Principal, RightsTable

cdef class Rights:
    cdef RightsTable table
    cdef Principal* _principal(self, uint64_t number)
    cdef uint64_t _take(self, uint64_t caller, int what) except 0
