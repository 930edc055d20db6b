"""The log of model.pxd. Out of memory aborts, as everywhere in the core."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.stdio cimport snprintf
from libc.stdlib cimport abort, calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove

from fila_server.core.log.end cimport LogEnd
from fila_server.core.log.log cimport (
    LOG_FAILED, LOG_OK, LOG_STALLED, Log, LogError, LogRead, LogRecord, LogReport, LogStatus,
)

cdef enum:
    REFUSED = 1                 # the error of a report


cdef void* _room_for_one(void* rows, uint32_t count, uint32_t* room, size_t size) noexcept nogil:
    if count == room[0]:
        room[0] = max(16, room[0] * 2)
        rows = realloc(rows, room[0] * size)
        if rows == NULL:
            abort()
    return rows


cdef ModelLog* model_new() noexcept nogil:
    cdef ModelLog* model = <ModelLog*>calloc(1, sizeof(ModelLog))
    if model == NULL:
        abort()
    return model


cdef void model_free(ModelLog* model) noexcept nogil:
    model_cut(model, model.count)
    free(model.records)
    free(model)


cdef ModelEnd* model_end_new(ModelLog* model) noexcept nogil:
    cdef ModelEnd* end = <ModelEnd*>calloc(1, sizeof(ModelEnd))
    if end == NULL:
        abort()
    end.model = model
    end.sent_max = 64
    end.log.held = end
    end.log.append, end.log.reports = _append, _reports
    end.log.read, end.log.truncate = _read, _truncate
    return end


cdef void model_end_free(ModelEnd* end) noexcept nogil:
    cdef uint32_t i
    for i in range(end.sent_count):
        free(end.sent[i].record.content)
    free(end.sent)
    free(end.reports)
    free(end)


cdef LogStatus _append(
        void* held, const uint8_t* content, uint32_t length, uint64_t tag, LogError* error) noexcept nogil:
    cdef ModelEnd* end = <ModelEnd*>held
    cdef ModelSent* sent
    if end.sent_count >= end.sent_max:
        snprintf(error.text, sizeof(error.text), "%u records wait to be appended", end.sent_count)
        return LOG_STALLED
    end.sent = <ModelSent*>_room_for_one(end.sent, end.sent_count, &end.sent_room, sizeof(ModelSent))
    sent = &end.sent[end.sent_count]
    end.sent_count += 1
    sent.record.content = <uint8_t*>malloc(length + 1)
    if sent.record.content == NULL:
        abort()
    memcpy(sent.record.content, content, length)
    sent.record.length = length
    sent.tag, sent.due_ms = tag, end.model.now_ms + end.delay_ms
    return LOG_OK


cdef uint32_t _reports(void* held, LogReport* out, uint32_t room, int32_t wait_ms) noexcept nogil:
    """Nobody waits in a simulation: what is not there comes in a later turn."""
    cdef ModelEnd* end = <ModelEnd*>held
    cdef uint32_t count = min(room, end.report_count)
    if count:
        memcpy(out, end.reports, count * sizeof(LogReport))
        end.report_count -= count
        memmove(end.reports, end.reports + count, end.report_count * sizeof(LogReport))
    return count


cdef LogStatus _read(
        void* held, int64_t first, LogRead* out, int32_t wait_ms, LogError* error) noexcept nogil:
    cdef ModelEnd* end = <ModelEnd*>held
    cdef ModelLog* model = end.model
    cdef int64_t at
    out.count, out.start, out.end = 0, -1, -1
    end.seen = min(<int64_t>model.count, max(end.seen, <int64_t>model.count - end.lag))
    if model.is_stalled:
        return LOG_OK
    out.start, out.end = model.start, end.seen
    if first < model.start:             # as brokers have it: only where the log begins is told
        return LOG_OK
    for at in range(first, end.seen):
        if out.count == out.room:
            break
        out.records[out.count] = LogRecord(at, model.records[at].content, model.records[at].length)
        out.count += 1
    return LOG_OK


cdef LogStatus _truncate(void* held, int64_t below, LogError* error) noexcept nogil:
    cdef ModelLog* model = (<ModelEnd*>held).model
    if below > model.count:
        snprintf(error.text, sizeof(error.text), "the log ends at %lld", <long long>model.count)
        return LOG_FAILED
    model.start = max(model.start, below)
    return LOG_OK


cdef void _land(ModelLog* model, const ModelRecord* record) noexcept nogil:
    cdef ModelRecord* landed
    model.records = <ModelRecord*>_room_for_one(
        model.records, model.count, &model.room, sizeof(ModelRecord))
    landed = &model.records[model.count]
    model.count += 1
    landed.content = <uint8_t*>malloc(record.length + 1)
    if landed.content == NULL:
        abort()
    memcpy(landed.content, record.content, record.length)
    landed.length = record.length


cdef void _report(ModelEnd* end, uint64_t tag, int64_t offset, int32_t error) noexcept nogil:
    end.reports = <LogReport*>_room_for_one(
        end.reports, end.report_count, &end.report_room, sizeof(LogReport))
    end.reports[end.report_count] = LogReport(tag, offset, end.model.leader, error)
    end.report_count += 1
    end.seen = max(end.seen, offset + 1)                # a broker answers when all in sync have the record


cdef bint model_turn(ModelEnd* end, int64_t now_ms, uint64_t chance) noexcept nogil:
    cdef ModelLog* model = end.model
    cdef ModelChances* chances = &model.chances
    cdef ModelSent sent
    cdef uint32_t drawn = <uint32_t>(chance % 1000)
    model.now_ms = max(model.now_ms, now_ms)
    if end.sent_count == 0 or model.is_stalled or end.sent[0].due_ms > model.now_ms:
        return False
    sent = end.sent[0]
    if drawn < chances.lost_report:
        _land(model, &sent.record)
        return True
    end.sent_count -= 1
    memmove(end.sent, end.sent + 1, end.sent_count * sizeof(ModelSent))
    drawn -= chances.lost_report
    if drawn < chances.error_lost:
        _report(end, sent.tag, -1, REFUSED)
    elif drawn < chances.error_lost + chances.error_landed:
        _land(model, &sent.record)
        _report(end, sent.tag, -1, REFUSED)
    else:
        _land(model, &sent.record)
        drawn -= chances.error_lost + chances.error_landed
        _report(end, sent.tag, -1 if drawn < chances.no_offset else <int64_t>model.count - 1, 0)
    free(sent.record.content)
    return True


cdef void model_cut(ModelLog* model, uint32_t records) noexcept nogil:
    while records and model.count:
        model.count -= 1
        records -= 1
        free(model.records[model.count].content)
    model.start = min(model.start, <int64_t>model.count)


# ---- for tests, never on the message path

cdef class SimulatedLog:
    """One log, with Python hands."""

    cdef ModelLog* model

    def __cinit__(self):
        self.model = model_new()

    def __dealloc__(self):
        model_free(self.model)

    def chances(
            self, uint32_t lost_report=0, uint32_t no_offset=0, uint32_t error_landed=0,
            uint32_t error_lost=0):
        self.model.chances = ModelChances(lost_report, no_offset, error_landed, error_lost)

    def cut(self, uint32_t records):
        model_cut(self.model, records)

    def move(self, int32_t leader):
        self.model.leader = leader

    def stall(self, bint is_stalled):
        self.model.is_stalled = is_stalled

    def content(self, uint32_t offset):
        if offset >= self.model.count:
            raise IndexError(offset)
        return (<char*>self.model.records[offset].content)[:self.model.records[offset].length]

    def __len__(self):
        return self.model.count


cdef class SimulatedEnd(LogEnd):
    """A node's way to the log, through the four functions that the core would call."""

    cdef ModelEnd* end
    cdef SimulatedLog model

    def __cinit__(self, SimulatedLog log):
        self.model = log
        self.end = model_end_new(log.model)
        self.log = &self.end.log

    def __dealloc__(self):
        model_end_free(self.end)

    def slow(self, int64_t delay_ms=0, int64_t lag=0, uint32_t sent_max=64):
        self.end.delay_ms, self.end.lag, self.end.sent_max = delay_ms, lag, sent_max

    def turn(self, int64_t now_ms, uint64_t chance):
        return model_turn(self.end, now_ms, chance)

    def append(self, bytes content, uint64_t tag):
        cdef LogError error
        cdef Log* log = &self.end.log
        return log.append(log.held, <const uint8_t*><const char*>content, <uint32_t>len(content), tag, &error)

    def reports(self, uint32_t room=64):
        cdef LogReport[64] out
        cdef Log* log = &self.end.log
        cdef uint32_t count = log.reports(log.held, out, min(room, 64), 0)
        return [(out[i].tag, out[i].offset, out[i].broker, out[i].error) for i in range(count)]

    def read(self, int64_t first, uint32_t room=64):
        """(records with their offsets, the log's start, its end as this reader sees it); -1: it stalls."""
        cdef LogRecord[64] records
        cdef LogRead out
        cdef LogError error
        cdef Log* log = &self.end.log
        out.records, out.room = records, min(room, 64)
        log.read(log.held, first, &out, 0, &error)
        found = [
            (records[i].offset, (<const char*>records[i].content)[:records[i].length])
            for i in range(out.count)
        ]
        return found, out.start, out.end

    def truncate(self, int64_t below):
        """What was wrong; empty when it was done."""
        cdef LogError error
        cdef Log* log = &self.end.log
        if log.truncate(log.held, below, &error) == LOG_OK:
            return ""
        return error.text.decode()
