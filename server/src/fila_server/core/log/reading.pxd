"""One rule by which a log is read: by owner, copy, recovery and simulation, and by `log verify`.

    log_take(reading, offset, record)       the records of the log, each once, in order

    TAKEOVER    effective if it deposes the term that is. Then the term is (its offset, its nonce), and seq
                begins at 0. Otherwise it is void: the bid was late, or comes a second time. One of a newer
                incarnation is effective for who stands where the copy stood that it begins with
    any other   effective if its term and its seq are those that come next; otherwise it is stale

What is void or stale is skipped and counted. A reader halts where it cannot know what others read:

    a record that is not whole, or is of a newer format (record.pxd)
    a takeover of another cluster, or of a newer incarnation that begins with another copy
    an effective record behind another `chain` than the reader's, or parts that are not one pass. The first
    one of a group that began with a broker's data has a chain that no record made: so nobody follows it who
    has no copy
    an offset that does not follow, a log that was cut, or one that begins later
    a last record that is no longer what it was (log_stands)

A reader that has halted takes nothing more. It keeps what it saw, for the sentence that an operator reads.
The rule reads no clock, allocates nothing, and its state is this struct: a copy keeps it with what it has
applied.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from fila_server.core.log.record cimport Record, Term

cdef enum Taken:
    TAKEN_NOTHING = 0               # void or stale
    TAKEN_TERM = 1
    TAKEN_PASS = 2                  # apply its body
    TAKEN_PART = 3                  # keep its body, and apply nothing yet
    TAKEN_LAST_PART = 4             # apply all parts since the first, joined
    TAKEN_BARRIER = 5
    TAKEN_HALT = 6

cdef enum HaltReason:
    HALT_NONE = 0
    HALT_RECORD = 1                 # `fault` says which RecordFault
    HALT_CLUSTER = 2
    HALT_FORMAT = 3
    HALT_CHAIN = 4
    HALT_PARTS = 5
    HALT_GAP = 6
    HALT_CUT = 7
    HALT_BEGINS_LATER = 8
    HALT_CHANGED = 9
    HALT_FOUNDED = 10               # the group began with a broker's data: only a copy has what is before
    HALT_ANEW = 11                  # the group was reseeded with another copy


cdef enum:
    SHORT_TERM_MS = 10000


cdef struct Reading:
    uint8_t  cluster[16]
    bint     has_cluster            # false until the first takeover, where nobody knows the cluster before
    uint16_t format_max             # the newest that this reader can apply
    int64_t  position               # of the last record taken; -1 = none
    uint64_t mark                   # of that record
    Term     term
    uint32_t incarnation
    uint64_t node                   # whose term it is
    int64_t  begun_ms               # the time in the term's takeover
    uint32_t short_terms            # so many in a row before it had no record SHORT_TERM_MS behind theirs
    uint64_t seq                    # that comes next
    uint64_t chain
    uint16_t part, parts            # of a pass of which not all parts are there; 0 = none is under way
    int64_t  wall_ms                # of the last effective record: no term's clock begins before
    uint64_t terms, passes, barriers, part_records, stale, void_bids
    uint8_t  halted                 # a HaltReason
    uint8_t  fault
    int64_t  halted_at              # the offset; of a log that was cut or begins later, its end or start


cdef void reading_init(Reading* reading, uint16_t format_max) noexcept nogil
# Fills `record`, but not where it halts for an offset that does not follow or a record that is not whole.
cdef Taken log_take(
    Reading* reading, int64_t offset, const uint8_t* content, size_t length, Record* record) noexcept nogil
# Whatever the log holds below `end`, this reader goes on there with what it has. Only a takeover of a newer
# incarnation makes that a term.
cdef void log_rebase(Reading* reading, int64_t end) noexcept nogil
# The record at reading.position, read again. False: it is another one, and the reader has halted.
cdef bint log_stands(Reading* reading, const uint8_t* content, size_t length) noexcept nogil
# The log begins at `start`, and `end` is the offset of what comes next. False: the reader has halted.
cdef bint log_reaches(Reading* reading, int64_t start, int64_t end) noexcept nogil
# The owner's own record, which is known to stand at `offset` with nothing between: as log_take would have it.
cdef void log_confirm(
    Reading* reading, int64_t offset, uint64_t mark, const Record* record) noexcept nogil
# So many terms in a row have been short, with the one that is, if it had no more records.
cdef uint32_t log_short_terms(const Reading* reading) noexcept nogil
cdef Taken log_halt(Reading* reading, HaltReason reason, int64_t at) noexcept nogil
# Why it halted, as a sentence; with the GIL.
cdef str reading_why(const Reading* r)
