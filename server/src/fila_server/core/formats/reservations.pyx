"""Read before everything else, and raised by whatever number is met later: the larger of the two counts."""

from libc.stdlib cimport free

from fila_server.core.formats.records cimport MARKS_OF
from fila_server.core.storage.families cimport (
    DEDUP, KEYS, LEASES, META, QUEUES, SETTLED, SINKS, STATES, Store,
)
from fila_server.core.storage.status cimport STORE_DAMAGED, STORE_NOT_FOUND, STORE_OK, store_failed
from fila_server.core.storage.store cimport store_get
from fila_server.core.structures.buffer cimport read_u64be

cdef uint64_t LEASE_IDS_SKIPPED = <uint64_t> 1 << 40


cdef bint _meta(Core* core, const char* name, size_t length, uint64_t* number, bint* damaged) noexcept nogil:
    """The higher of a reservation's two records; False when there is none that can be read."""
    cdef int families[2]
    cdef char* value
    cdef size_t size = 0
    cdef int i, status
    cdef bint found = False
    families[0], families[1] = META, SETTLED
    for i in range(2):
        value = NULL
        status = store_get(core.store, families[i], name, length, &value, &size, core.error)
        if status == STORE_OK and size == 9:
            number[0] = max(number[0], read_u64be(value + 1))
            found = True
        elif status != STORE_NOT_FOUND and families[i] == META:     # the scan of SETTLED counts its own
            damaged[0] = True
        free(value)
    return found


cdef int reservations_read(Core* core) noexcept nogil:
    """What was promised not to be given out again. What is read later raises it where it stands higher."""
    cdef Store* store = core.store
    cdef bint damaged = False
    cdef bint known
    cdef uint64_t lease_id = 0
    core.next_number = core.id_ms = 0
    known = _meta(core, b"leases", 6, &lease_id, &damaged)
    _meta(core, b"numbers", 7, &core.next_number, &damaged)
    _meta(core, b"id", 2, &core.id_ms, &damaged)
    core.id_sequence = 4095
    # Leases that ended left nothing behind to tell their ids by, and their holders may still come with them:
    # where the reservation is lost in both places, ids go on beyond all that can have been given out.
    core.next_lease_id = lease_id + 1 if known or store.created else LEASE_IDS_SKIPPED
    if not damaged:
        return STORE_OK
    core.counters.lost_ranges += 1
    core.counters.damaged_blocks += 1
    return damage_stops(core) if core.stop_on_damage else STORE_OK


cdef int damage_stops(Core* core) noexcept nogil:
    return store_failed(
        core.error, STORE_DAMAGED,
        "the data directory is damaged; restore it from a copy, or start with storage.on_damage = \"start\" "
        "to go on with what can be read (%s)", "a table of records fails its checksum")


cdef void number_met(Core* core, uint64_t number) noexcept nogil:
    """A record has this number of a queue or channel, which may be gone: no other one may get it."""
    number &= ~MARKS_OF                 # extensions and marks of leases have the
                                        # queue's number with these bits
    if number > core.next_number:
        core.next_number = number


cdef void numbers_met(Core* core, int family, const char* key, size_t length) noexcept nogil:
    if family == KEYS or family == DEDUP:
        if length > 8:
            number_met(core, read_u64be(key))
    elif family == SINKS:
        if length >= 8:
            number_met(core, read_u64be(key))
    elif family == QUEUES or family == SETTLED or family == LEASES or family == STATES:
        if length == 8 or length == 16 or length == 24:
            number_met(core, read_u64be(key))
        if length == 16 or length == 24:
            number_met(core, read_u64be(key + 8))
