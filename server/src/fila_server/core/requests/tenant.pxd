"""A tenant's messages are its tenant's, whatever their headers say: rights.pyx asks on their way in."""

from fila_server.core.structures.buffer cimport Buffer, Slice
from fila_server.core.threads.mailbox cimport Command

cdef enum:
    TENANT_ENTRY_BYTES = 20         # of the tenant's header as a field of its message, but for the name in it

# Puts the tenant's header behind each message's own, without those that could pass for it, and its dedup keys
# into the tenant's own space: a byte that is no UTF-8 stands around the tenant's name, so no other producer's
# key can be the same.
cdef void tenant_bind(Command* command, Slice tenant) noexcept nogil
# A dedup key of a tenant's as it is stored.
cdef void tenant_dedup_key(Buffer* to, Slice tenant, Slice key) noexcept nogil
