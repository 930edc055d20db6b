"""The owner's rule: which of its appended records are confirmed. A machine of reports and records read back.

    owner_add          a record that is about to be appended; its tag
    owner_report       what the log says of it: an offset, the broker that took it, an error
    owner_next         what is to be done now

    1. an error on any record                       the term is over: behind a hole all is void
    2. the offset behind the last one known, from the broker of the last one        confirmed
    3. another broker, a gap, or no offset          read from the last one known on (is it what it was?):
                                                    an effective TAKEOVER is met: the term is over
                                                    the record itself is met: confirmed
    4. an offset that is known already              the log was cut: halt

Records are confirmed in the order of their tags. In OWNER_READS the caller reads the log from
owner_reads_from on, gives the log's ends to log_reaches, and each record to owner_read until it answers
something else. When a term is over nothing of it may be used again: a process that resigns starts anew.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from fila_server.core.log.reading cimport Reading
from fila_server.core.log.record cimport Record

cdef enum OwnerNext:
    OWNER_WAITS = 0                 # for a report
    OWNER_CONFIRMED = 1             # the record of the tag that is told
    OWNER_READS = 2
    OWNER_RESIGNS = 3
    OWNER_HALTS = 4                 # the reading says why

cdef enum:
    NO_OFFSET = -1


cdef struct Appended:               # a record of the term that is not confirmed yet
    Record   record                 # its body is not kept
    uint64_t mark
    int64_t  offset
    int32_t  broker
    bint     is_reported


cdef struct Owner:
    Reading* reading                # of this node, which has read the owner's own takeover
    int32_t  broker                 # that took the last confirmed record; -1 = nobody knows
    bint     is_over, is_reading, has_looked
    Appended* appended              # a ring
    uint32_t first, count, room
    uint64_t tag                    # of the oldest one
    uint64_t seq, chain             # of the record that is added next


cdef void owner_init(Owner* owner, Reading* reading) noexcept nogil
cdef void owner_free(Owner* owner) noexcept nogil
# Fills in term, seq and chain of the record that comes next.
cdef void owner_stamp(Owner* owner, Record* record) noexcept nogil
cdef uint64_t owner_add(
    Owner* owner, const Record* record, const uint8_t* content, size_t length) noexcept nogil
# The log did not take the record that was added last (its queue is full): it was never added.
cdef void owner_take_back(Owner* owner) noexcept nogil
cdef void owner_report(Owner* owner, uint64_t tag, int64_t offset, int32_t broker, int error) noexcept nogil
cdef OwnerNext owner_next(Owner* owner, uint64_t* tag) noexcept nogil
cdef int64_t owner_reads_from(Owner* owner) noexcept nogil
cdef OwnerNext owner_read(
    Owner* owner, int64_t offset, const uint8_t* content, size_t length, uint64_t* tag) noexcept nogil
