"""A pass of the log is the bytes of one RocksDB batch."""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.log.reading cimport TAKEN_BARRIER, TAKEN_LAST_PART, TAKEN_PART, TAKEN_PASS, TAKEN_TERM
from fila_server.core.log.record cimport Term
from fila_server.core.storage.families cimport FAMILY_COUNT, META, Store
from fila_server.core.storage.rocksdb cimport (
    rocksdb_column_family_handle_get_id, rocksdb_writebatch_create_from, rocksdb_writebatch_t,
)
from fila_server.core.storage.status cimport STORE_DAMAGED, STORE_OK, STORE_TOO_NEW, store_failed
from fila_server.core.storage.store cimport (
    batch_delete, batch_free, batch_new, batch_put, store_get, store_write,
)
from fila_server.core.structures.atomics cimport atomic_store
from fila_server.core.structures.buffer cimport put_bytes

cdef enum:
    APPLIED_VERSION = 1
    BARRIERS_UNSAID_MAX = 4096
    BATCH_HEAD_BYTES = 12           # RocksDB's: a number and a count

cdef const char* APPLIED = "applied"

cdef struct Applied:                # as it is on disk; numbers are little-endian, as in the log
    uint32_t version, incarnation
    uint8_t  cluster[16]
    int64_t  position
    uint64_t mark
    Term     term
    uint64_t seq, chain, node
    int64_t  wall_ms, begun_ms
    uint32_t short_terms


cdef bint record_apply(Applying* applying, Taken taken, const Record* record) noexcept nogil:
    cdef bint done = True
    if taken == TAKEN_PASS:
        return _write(applying, <const char*> record.body, record.body_bytes)
    if taken == TAKEN_BARRIER:
        return _say(applying)
    if taken == TAKEN_TERM or record.part == 0:
        applying.parts.length = 0
    if taken == TAKEN_PART or taken == TAKEN_LAST_PART:
        put_bytes(&applying.parts, record.body, record.body_bytes)
    if taken == TAKEN_LAST_PART:
        done = _write(applying, applying.parts.data, applying.parts.length)
        applying.parts.length = 0
    return done


cdef bint _write(Applying* applying, const char* bytes, size_t length) noexcept nogil:
    if length < BATCH_HEAD_BYTES:
        store_failed(applying.error, STORE_DAMAGED, "a pass of the log is too short to be one%s", "")
        return False
    return _put(applying, rocksdb_writebatch_create_from(bytes, length))


cdef bint _say(Applying* applying) noexcept nogil:
    if applying.reading.position < <int64_t> applying.end + BARRIERS_UNSAID_MAX:
        return True
    return _put(applying, batch_new())


cdef bint _put(Applying* applying, rocksdb_writebatch_t* batch) noexcept nogil:
    """The batch, and where in the log it was."""
    cdef int status
    applied_put(applying, batch)
    status = store_write(applying.store, batch, applying.error)
    batch_free(batch)
    if status == STORE_OK:
        atomic_store(&applying.end, <uint64_t> (applying.reading.position + 1))
    return status == STORE_OK


cdef void applied_put(Applying* applying, rocksdb_writebatch_t* batch) noexcept nogil:
    cdef Reading* reading = applying.reading
    cdef Applied applied
    memset(&applied, 0, sizeof(Applied))
    applied.version, applied.incarnation = APPLIED_VERSION, reading.incarnation
    memcpy(applied.cluster, reading.cluster, 16)
    applied.position, applied.mark, applied.term = reading.position, reading.mark, reading.term
    applied.seq, applied.chain, applied.wall_ms = reading.seq, reading.chain, reading.wall_ms
    applied.node, applied.begun_ms, applied.short_terms = reading.node, reading.begun_ms, reading.short_terms
    batch_put(applying.store, batch, META, APPLIED, 7, <const char*> &applied, sizeof(Applied))


cdef void applied_remove(Applying* applying, rocksdb_writebatch_t* batch) noexcept nogil:
    batch_delete(applying.store, batch, META, APPLIED, 7)


cdef int applied_read(Applying* applying) noexcept nogil:
    cdef Reading* reading = applying.reading
    cdef char* value
    cdef size_t length
    cdef Applied applied
    cdef int status = store_get(applying.store, META, APPLIED, 7, &value, &length, applying.error)
    if status != STORE_OK:
        return status
    if length == sizeof(Applied):
        memcpy(&applied, value, sizeof(Applied))
    free(value)
    if length != sizeof(Applied) or applied.version != APPLIED_VERSION:
        return store_failed(
            applying.error, STORE_TOO_NEW,
            "the record of what this copy has applied has a form that this server does not know; start the "
            "newer server again%s", "")
    memcpy(reading.cluster, applied.cluster, 16)
    reading.has_cluster, reading.incarnation = True, applied.incarnation
    reading.position, reading.mark, reading.term = applied.position, applied.mark, applied.term
    reading.seq, reading.chain, reading.wall_ms = applied.seq, applied.chain, applied.wall_ms
    reading.node, reading.begun_ms, reading.short_terms = applied.node, applied.begun_ms, applied.short_terms
    applying.end = <uint64_t> (applied.position + 1)
    return STORE_OK


cdef bint families_agree(Applying* applying) noexcept nogil:
    """RocksDB numbers families as they are made; a directory that gained one later may have other numbers."""
    cdef Store* store = applying.store
    cdef uint32_t family
    for family in range(FAMILY_COUNT):
        if rocksdb_column_family_handle_get_id(store.family[family]) != family:
            store_failed(
                applying.error, STORE_DAMAGED,
                "the families of this data directory are numbered in another order than those of a copy: "
                "make the copy anew%s", "")
            return False
    return True
