"""The rule of reading.pxd. Judged by the slow twin in tests/log/twin.py."""

from libc.stdint cimport int64_t, uint16_t, uint64_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.log.record cimport (
    BARRIER, MOVED, PART, PASS, RECORD_GOOD, TAKEOVER, Record, record_decode, record_mark, same_term,
)


cdef void reading_init(Reading* reading, uint16_t format_max) noexcept nogil:
    memset(reading, 0, sizeof(Reading))
    reading.format_max = format_max
    reading.position = reading.term.offset = -1


cdef Taken log_halt(Reading* reading, HaltReason reason, int64_t at) noexcept nogil:
    reading.halted = reason
    reading.halted_at = at
    return TAKEN_HALT


cdef Taken log_take(
        Reading* reading, int64_t offset, const uint8_t* content, size_t length,
        Record* record) noexcept nogil:
    cdef Taken taken
    if reading.halted != HALT_NONE:
        return TAKEN_HALT
    if offset != reading.position + 1:
        return log_halt(reading, HALT_GAP, offset)
    reading.fault = record_decode(content, length, record)
    if reading.fault != RECORD_GOOD:
        return log_halt(reading, HALT_RECORD, offset)
    if record.kind == TAKEOVER:
        taken = _take_bid(reading, offset, record)
    else:
        taken = _take_of_term(reading, offset, record)
    if taken == TAKEN_HALT:
        return taken
    reading.position = offset
    reading.mark = record_mark(content, length)
    if taken == TAKEN_NOTHING:
        return taken
    if taken == TAKEN_TERM:
        reading.wall_ms = record.wall_ms
    else:
        _follow(reading, reading.mark, record)
    return taken


cdef Taken _take_bid(Reading* reading, int64_t offset, const Record* record) noexcept nogil:
    cdef bint deposes = same_term(&record.term, &reading.term)
    if reading.has_cluster and memcmp(reading.cluster, record.cluster, 16) != 0:
        return log_halt(reading, HALT_CLUSTER, offset)
    if record.incarnation < reading.incarnation or (
        record.incarnation == reading.incarnation and not deposes
    ):
        reading.void_bids += 1
        return TAKEN_NOTHING
    if record.format > reading.format_max:
        return log_halt(reading, HALT_FORMAT, offset)
    if record.incarnation > reading.incarnation and not (
        deposes and record.seq == reading.seq and (record.incarnation <= 1 or record.chain == reading.chain)
    ):
        return log_halt(reading, HALT_ANEW, offset)
    memcpy(reading.cluster, record.cluster, 16)
    reading.has_cluster = True
    if not record.flags & MOVED or log_short_terms(reading) == 0:
        reading.short_terms = log_short_terms(reading)
    reading.node, reading.begun_ms = record.node, record.wall_ms
    reading.incarnation = record.incarnation
    reading.term.offset, reading.term.nonce = offset, record.nonce
    reading.seq = reading.part = reading.parts = 0      # parts of the term that ended are applied by nobody
    reading.terms += 1
    return TAKEN_TERM


cdef uint32_t log_short_terms(const Reading* reading) noexcept nogil:
    if reading.term.offset < 0 or <double> reading.wall_ms - <double> reading.begun_ms >= SHORT_TERM_MS:
        return 0
    return reading.short_terms + 1


cdef Taken _take_of_term(Reading* reading, int64_t offset, const Record* record) noexcept nogil:
    if (
        reading.term.offset < 0 or not same_term(&record.term, &reading.term) or record.seq != reading.seq
    ):
        reading.stale += 1
        return TAKEN_NOTHING
    if record.chain != reading.chain:
        return log_halt(reading, HALT_CHAIN if reading.chain else HALT_FOUNDED, offset)
    if record.kind == PART:
        if record.part != reading.part or (reading.parts != 0 and record.parts != reading.parts):
            return log_halt(reading, HALT_PARTS, offset)
        return TAKEN_LAST_PART if record.part + 1 == record.parts else TAKEN_PART
    if reading.parts != 0:
        return log_halt(reading, HALT_PARTS, offset)
    return TAKEN_PASS if record.kind == PASS else TAKEN_BARRIER


cdef void _follow(Reading* reading, uint64_t mark, const Record* record) noexcept nogil:
    """An effective record of the term, at the reading's position."""
    reading.seq += 1
    reading.chain = mark
    reading.wall_ms = record.wall_ms
    if record.kind == PART:
        reading.part_records += 1
        reading.part, reading.parts = record.part + 1, record.parts
        if reading.part == reading.parts:
            reading.part = reading.parts = 0
            reading.passes += 1
    elif record.kind == BARRIER:
        reading.barriers += 1
    else:
        reading.passes += 1


cdef void log_confirm(
        Reading* reading, int64_t offset, uint64_t mark, const Record* record) noexcept nogil:
    reading.position, reading.mark = offset, mark
    _follow(reading, mark, record)


cdef void log_rebase(Reading* reading, int64_t end) noexcept nogil:
    reading.halted, reading.fault, reading.halted_at = HALT_NONE, RECORD_GOOD, 0
    reading.position, reading.mark = end - 1, 0
    reading.part = reading.parts = 0


cdef bint log_stands(Reading* reading, const uint8_t* content, size_t length) noexcept nogil:
    if reading.halted == HALT_NONE and record_mark(content, length) != reading.mark:
        log_halt(reading, HALT_CHANGED, reading.position)
    return reading.halted == HALT_NONE


cdef bint log_reaches(Reading* reading, int64_t start, int64_t end) noexcept nogil:
    if reading.halted == HALT_NONE:
        if end <= reading.position:
            log_halt(reading, HALT_CUT, end)
        elif start > reading.position + 1:
            log_halt(reading, HALT_BEGINS_LATER, start)
    return reading.halted == HALT_NONE


# ---- for tests and offline tools, never on the message path

FAULTS = {
    1: "is none of this log's: nobody else may write to the topic",
    2: "was written by a newer version of Fila: upgrade this one",
    3: "is cut short",
    4: "is longer than a record may be",
    5: "was altered: its checksum is another",
    6: "contradicts itself, though its checksum is right",
}


cdef str reading_why(const Reading* r):
    """What it saw when it halted, as a sentence; empty while it goes on."""
    at = r.halted_at
    if r.halted == HALT_NONE:
        return ""
    if r.halted == HALT_RECORD:
        return f"the record at offset {at} {FAULTS[r.fault]}"
    if r.halted == HALT_CLUSTER:
        return f"the takeover at offset {at} is of another cluster: this is another cluster's log"
    if r.halted == HALT_FORMAT:
        return (
            f"the owner whose takeover is at offset {at} writes a newer format: upgrade this version of "
            "Fila"
        )
    if r.halted == HALT_CHAIN:
        return (
            f"the record at offset {at} does not follow the one before it: the log lost records, or has "
            "others"
        )
    if r.halted == HALT_FOUNDED:
        return (
            f"the record at offset {at} follows what no record has: the group began with the data of a "
            "broker, and only a copy has it"
        )
    if r.halted == HALT_PARTS:
        return f"the record at offset {at} breaks off a pass of several parts"
    if r.halted == HALT_GAP:
        return (
            f"offset {at} does not follow {r.position}: the topic is compacted, or a transaction wrote "
            "to it"
        )
    if r.halted == HALT_ANEW:
        return (
            f"from the takeover at offset {at} on the log goes on from another copy than this one: the group "
            "was reseeded"
        )
    if r.halted == HALT_CUT:
        return f"the log ends before offset {at}, and offset {r.position} was read: it lost its end"
    if r.halted == HALT_BEGINS_LATER:
        return (
            f"the log begins at offset {at}, and what comes after {r.position} is gone: only a copy has "
            "it"
        )
    return (
        f"the record at offset {at} is not the one that was read there: the log lost its end and went on"
    )


cdef class LogReading:
    """A reader, with Python hands."""

    cdef Reading reading

    def __init__(self, uint16_t format_max=1, bytes cluster=b"", uint64_t chain=0):
        """`chain` is that of the first record, where a group began with a broker's data."""
        reading_init(&self.reading, format_max)
        self.reading.chain = chain
        if cluster:
            memcpy(self.reading.cluster, <const char*>cluster, min(16, len(cluster)))
            self.reading.has_cluster = True

    def take(self, int64_t offset, bytes content):
        """What it makes of the record: a number of Taken."""
        cdef Record record
        return log_take(&self.reading, offset, <const uint8_t*><const char*>content, len(content), &record)

    def follows(self, uint64_t chain):
        """Where a group began with a broker's data a reader that applies nothing goes on."""
        self.reading.halted, self.reading.chain = HALT_NONE, chain

    def stands(self, bytes content):
        return log_stands(&self.reading, <const uint8_t*><const char*>content, len(content))

    def rebase(self, int64_t end):
        log_rebase(&self.reading, end)

    def reaches(self, int64_t start, int64_t end):
        return log_reaches(&self.reading, start, end)

    def state(self):
        """All that the rule goes by, and its counts."""
        cdef Reading* r = &self.reading
        return {
            "position": r.position, "mark": r.mark, "term": (r.term.offset, r.term.nonce),
            "incarnation": r.incarnation, "seq": r.seq, "chain": r.chain, "part": r.part, "parts": r.parts,
            "wall_ms": r.wall_ms, "terms": r.terms, "passes": r.passes, "barriers": r.barriers,
            "part_records": r.part_records, "stale": r.stale, "void_bids": r.void_bids, "halted": r.halted,
            "cluster": (<char*>r.cluster)[:16], "node": r.node, "begun_ms": r.begun_ms,
            "short_terms": log_short_terms(r),
        }

    @property
    def is_halted(self):
        return self.reading.halted != HALT_NONE

    @property
    def why(self):
        """What it saw when it halted, as a sentence; empty while it goes on."""
        return reading_why(&self.reading)
