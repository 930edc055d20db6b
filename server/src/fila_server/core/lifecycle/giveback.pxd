"""A delivery comes back without counting as an attempt: nobody saw it, its
consumer let go of it, or its consumer is gone."""

from fila_server.core.state.state cimport Core, Lease

cdef enum Return:                   # what is known of a delivery that comes back uncounted
    UNWRITTEN = 1                   # nobody saw it
    GIVEN_BACK = 2                  # its consumer says it has not looked at it
    MAY_BE_SEEN = 3                        # somebody may have worked on it

cdef void lease_return(Core* core, Lease* lease, int how) noexcept nogil
