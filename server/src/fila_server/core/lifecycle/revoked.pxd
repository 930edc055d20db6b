"""Sessions are told of each lease that ended without their doing: one Revoked a session, reason and pass."""

from fila_server.core.state.state cimport Consumer, Core, Lease

# it ends now, for `core.revoking`
cdef void lease_revoke(Core* core, Lease* lease) noexcept nogil
cdef void revoked_note(
    Core* core, Consumer* consumer, unsigned long long lease_id, const char* why) noexcept nogil
cdef void revoked_tell(Core* core, Consumer* consumer) noexcept nogil            # what is noted, now
# to everybody, with this pass
cdef void revoked_flush(Core* core) noexcept nogil
cdef void revoked_forget(Core* core, Consumer* consumer) noexcept nogil
