"""What a log is to the core: four functions. `model` keeps one in memory, `kafka` in a partition of a topic.

    append      OK: a report will come, once. STALLED: its queue is full, and nothing was appended.
                FAILED: it takes no more
    reports     what became of appended records: at most `room`, after `wait_ms` at most
    read        records from an offset on, none or at most `room`, after `wait_ms` at most; where the log ends
    truncate    forget what is below an offset

Of a log that is only read, append and reports are NULL: no copy can follow it (runtime/store_copy.pyx).
None raises or needs the GIL. append, reports, read and truncate may each be called by a thread of its own.
What is not LOG_OK leaves a sentence in the caller's LogError. Records that were read stand until the next
read.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

cdef enum LogStatus:
    LOG_OK = 0
    LOG_STALLED = 1
    LOG_FAILED = 2

cdef struct LogError:
    char text[400]

cdef struct LogReport:
    uint64_t tag
    int64_t  offset             # -1 = the log does not say
    int32_t  broker             # -1 = nobody knows
    int32_t  error              # 0 = it is in the log

cdef struct LogRecord:
    int64_t  offset
    const uint8_t* content
    uint32_t length

cdef struct LogRead:
    LogRecord* records          # the caller's, of so much room:
    uint32_t room
    uint32_t count
    int64_t  start, end         # of the first record there is, and of the next that comes; -1 = not known

cdef struct Log:
    void* held                  # what the functions know the log by
    LogStatus (*append)(
        void* held, const uint8_t* content, uint32_t length, uint64_t tag, LogError* error) noexcept nogil
    uint32_t (*reports)(void* held, LogReport* out, uint32_t room, int32_t wait_ms) noexcept nogil
    LogStatus (*read)(
        void* held, int64_t first, LogRead* out, int32_t wait_ms, LogError* error) noexcept nogil
    LogStatus (*truncate)(void* held, int64_t below, LogError* error) noexcept nogil
