"""The rule of owning.pxd. Judged by the slow twin in tests/log/twin.py, and over random interleavings."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport abort, free, malloc
from libc.string cimport memset

from fila_server.core.log.reading cimport (
    HALT_CHANGED, HALT_CUT, HALT_GAP, TAKEN_HALT, TAKEN_NOTHING, TAKEN_TERM, Reading, Taken, log_confirm,
    log_halt, log_reaches, log_stands, log_take, reading_init,
)
from fila_server.core.log.record cimport Record, RECORD_GOOD, record_decode, record_mark

cdef enum:
    ROOM_AT_FIRST = 16


cdef void owner_init(Owner* owner, Reading* reading) noexcept nogil:
    memset(owner, 0, sizeof(Owner))
    owner.reading = reading
    owner.broker = -1
    owner.seq, owner.chain = reading.seq, reading.chain


cdef void owner_free(Owner* owner) noexcept nogil:
    free(owner.appended)
    owner.appended = NULL
    owner.count = owner.room = 0


cdef inline Appended* _at(Owner* owner, uint32_t place) noexcept nogil:
    return &owner.appended[(owner.first + place) & (owner.room - 1)]


cdef void _grow(Owner* owner) noexcept nogil:
    cdef uint32_t room = owner.room * 2 if owner.room else ROOM_AT_FIRST
    cdef Appended* grown = <Appended*>malloc(room * sizeof(Appended))
    cdef uint32_t i
    if grown == NULL:
        abort()
    for i in range(owner.count):
        grown[i] = _at(owner, i)[0]
    free(owner.appended)
    owner.appended, owner.room, owner.first = grown, room, 0


cdef void owner_stamp(Owner* owner, Record* record) noexcept nogil:
    record.term = owner.reading.term
    record.seq, record.chain = owner.seq, owner.chain


cdef uint64_t owner_add(
        Owner* owner, const Record* record, const uint8_t* content, size_t length) noexcept nogil:
    cdef Appended* added
    if owner.count == owner.room:
        _grow(owner)
    added = _at(owner, owner.count)
    added.record = record[0]
    added.record.body = NULL
    added.mark = record_mark(content, length)
    added.is_reported = False
    owner.count += 1
    owner.seq += 1
    owner.chain = added.mark
    return owner.tag + owner.count - 1


cdef void owner_take_back(Owner* owner) noexcept nogil:
    cdef Appended* last = _at(owner, owner.count - 1)
    owner.count -= 1
    owner.seq, owner.chain = last.record.seq, last.record.chain


cdef void owner_report(
        Owner* owner, uint64_t tag, int64_t offset, int32_t broker, int error) noexcept nogil:
    cdef Appended* added
    if tag < owner.tag or tag >= owner.tag + owner.count:
        return                                          # confirmed by reading, before its report came
    if error != 0:
        owner.is_over = True
    added = _at(owner, <uint32_t>(tag - owner.tag))
    added.is_reported = True
    added.offset, added.broker = offset if offset >= 0 else NO_OFFSET, broker


cdef OwnerNext _confirmed(Owner* owner, uint64_t* tag) noexcept nogil:
    tag[0] = owner.tag
    owner.tag += 1
    owner.first = (owner.first + 1) & (owner.room - 1)
    owner.count -= 1
    owner.is_reading = False
    return OWNER_CONFIRMED


cdef OwnerNext owner_next(Owner* owner, uint64_t* tag) noexcept nogil:
    cdef Reading* reading = owner.reading
    cdef Appended* oldest
    if reading.halted:
        return OWNER_HALTS
    if owner.is_over:
        return OWNER_RESIGNS
    if owner.is_reading:
        return OWNER_READS
    if owner.count == 0 or not _at(owner, 0).is_reported:
        return OWNER_WAITS
    oldest = _at(owner, 0)
    if oldest.offset != NO_OFFSET and oldest.offset <= reading.position:
        log_halt(reading, HALT_CUT, oldest.offset)
        return OWNER_HALTS
    if oldest.offset == reading.position + 1 and oldest.broker == owner.broker and oldest.broker >= 0:
        log_confirm(reading, oldest.offset, oldest.mark, &oldest.record)
        return _confirmed(owner, tag)
    owner.broker = oldest.broker
    owner.is_reading = True
    owner.has_looked = False
    return OWNER_READS


cdef int64_t owner_reads_from(Owner* owner) noexcept nogil:
    return owner.reading.position + 1 if owner.has_looked else owner.reading.position


cdef OwnerNext owner_read(
        Owner* owner, int64_t offset, const uint8_t* content, size_t length,
        uint64_t* tag) noexcept nogil:
    cdef Reading* reading = owner.reading
    cdef Record record
    cdef Taken taken
    if not owner.has_looked:
        owner.has_looked = True
        if offset != reading.position:
            log_halt(reading, HALT_GAP, offset)
        return OWNER_READS if log_stands(reading, content, length) else OWNER_HALTS
    taken = log_take(reading, offset, content, length, &record)
    if taken == TAKEN_HALT:
        return OWNER_HALTS
    if taken == TAKEN_NOTHING:
        return OWNER_READS
    if taken == TAKEN_TERM:
        owner.is_over = True
        return OWNER_RESIGNS
    if owner.count == 0 or reading.mark != _at(owner, 0).mark:
        log_halt(reading, HALT_CHANGED, offset)         # of this term, and not what its owner wrote
        return OWNER_HALTS
    return _confirmed(owner, tag)


# ---- for tests, never on the message path

cdef class LogOwner:
    """An owner and its reader, with Python hands."""

    cdef Reading reading
    cdef Owner owner

    def __init__(self):
        reading_init(&self.reading, 1)

    def __dealloc__(self):
        owner_free(&self.owner)

    def take(self, int64_t offset, bytes content):
        """As a reader; an owner takes nothing so."""
        cdef Record record
        return log_take(&self.reading, offset, <const uint8_t*><const char*>content, len(content), &record)

    def stands(self, bytes content):
        return log_stands(&self.reading, <const uint8_t*><const char*>content, len(content))

    def reaches(self, int64_t start, int64_t end):
        return log_reaches(&self.reading, start, end)

    def begin(self):
        """The last record that was taken is its own takeover, and effective."""
        owner_free(&self.owner)
        owner_init(&self.owner, &self.reading)

    def next_stamp(self):
        """(term, seq, chain) of the next record."""
        cdef Record record
        owner_stamp(&self.owner, &record)
        return (record.term.offset, record.term.nonce), record.seq, record.chain

    def add(self, bytes content):
        cdef Record record
        if record_decode(<const uint8_t*><const char*>content, len(content), &record) != RECORD_GOOD:
            raise ValueError("an owner appends whole records")
        return owner_add(&self.owner, &record, <const uint8_t*><const char*>content, len(content))

    def take_back(self):
        owner_take_back(&self.owner)

    def report(self, uint64_t tag, int64_t offset, int32_t broker, int error):
        owner_report(&self.owner, tag, offset, broker, error)

    def next(self):
        """(what is to be done, the tag that is confirmed)."""
        cdef uint64_t tag = 0
        cdef int step = owner_next(&self.owner, &tag)
        return step, tag

    def read(self, int64_t offset, bytes content):
        cdef uint64_t tag = 0
        cdef int step = owner_read(
            &self.owner, offset, <const uint8_t*><const char*>content, len(content), &tag)
        return step, tag

    @property
    def reads_from(self):
        return owner_reads_from(&self.owner)

    @property
    def position(self):
        return self.reading.position

    @property
    def term(self):
        return self.reading.term.offset, self.reading.term.nonce

    @property
    def halted(self):
        return self.reading.halted
