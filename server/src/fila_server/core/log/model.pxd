"""A log in memory, for simulations: one ModelLog, and a ModelEnd for each node that uses it.

Nothing happens by itself, and nothing is random here. The driver says what time it is, hands in a number for
each record that may land (model_turn), moves the leader, cuts the log or stalls it. A record that lands
meets one of these, by its number and the log's chances:

    it is in the log, and its report says where
    it is in the log, and its answer is lost: it stays in the queue, and lands again
    it is in the log, and its report says no offset
    it is in the log, and its report is an error
    it is not in the log, and its report is an error

Each end has a queue of what it appended and did not land, a delay, and a reader that may lag behind.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from fila_server.core.log.log cimport Log, LogReport

cdef struct ModelRecord:
    uint8_t* content
    uint32_t length

cdef struct ModelSent:
    ModelRecord record
    uint64_t tag
    int64_t  due_ms

cdef struct ModelChances:       # of a thousand records that land
    uint32_t lost_report, no_offset, error_landed, error_lost

cdef struct ModelLog:
    ModelRecord* records        # all that ever landed and was not cut
    uint32_t count, room
    int64_t  start              # what is below was truncated
    int32_t  leader
    int64_t  now_ms
    bint     is_stalled         # nothing lands, and nobody reads
    ModelChances chances

cdef struct ModelEnd:
    ModelLog* model
    Log      log
    ModelSent* sent             # in order; the first one lands next
    uint32_t sent_count, sent_room
    LogReport* reports
    uint32_t report_count, report_room
    uint32_t sent_max           # more: append answers STALLED
    int64_t  delay_ms
    int64_t  seen               # the end of the log as this reader sees it;
    int64_t  lag                # so many records behind at most


cdef ModelLog* model_new() noexcept nogil
cdef void model_free(ModelLog* model) noexcept nogil
cdef ModelEnd* model_end_new(ModelLog* model) noexcept nogil
cdef void model_end_free(ModelEnd* end) noexcept nogil
# The first record in the end's queue lands if it is due. True: something landed, or was refused.
cdef bint model_turn(ModelEnd* end, int64_t now_ms, uint64_t chance) noexcept nogil
# The last records are gone, as when a replica that lacked them became the leader.
cdef void model_cut(ModelLog* model, uint32_t records) noexcept nogil
