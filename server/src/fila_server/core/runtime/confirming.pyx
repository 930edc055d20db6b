"""One lock, held for a look or a step of the owner's rule, and while records are handed to the log, which
waits for nothing. Only the thread that confirms reads the log and writes the store."""

from libc.stdint cimport INT64_MAX, UINT64_MAX, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.formats.applying cimport record_apply
from fila_server.core.lifecycle.deliver cimport MESSAGES_PER_FRAME_MAX
from fila_server.core.log.log cimport LOG_FAILED, LOG_OK, LogRead, LogRecord, LogReport, LogStatus
from fila_server.core.log.owning cimport (
    OWNER_CONFIRMED, OWNER_HALTS, OWNER_READS, OWNER_RESIGNS, OwnerNext, owner_add, owner_free,
    owner_init, owner_next, owner_read, owner_reads_from, owner_report, owner_stamp,
)
from fila_server.core.log.reading cimport (
    TAKEN_BARRIER, TAKEN_HALT, TAKEN_LAST_PART, TAKEN_NOTHING, TAKEN_PART, TAKEN_PASS, TAKEN_TERM, Taken,
    log_reaches, log_rebase, log_stands, log_take, reading_init,
)
from fila_server.core.log.record cimport (
    BARRIER, PART, PART_BYTES_MAX, PASS, TAKEOVER, record_bytes, record_decode, record_encode,
)
from fila_server.core.state.open_core cimport LOOK_FAILS, LOOK_STANDS, LOOK_WAITS, Look
from fila_server.core.storage.rocksdb cimport (
    rocksdb_writebatch_count, rocksdb_writebatch_data, rocksdb_writebatch_t,
)
from fila_server.core.storage.status cimport STORE_OK
from fila_server.core.storage.store cimport store_sync
from fila_server.core.structures.atomics cimport atomic_add, atomic_load, atomic_store
from fila_server.core.structures.buffer cimport buffer_free, must_malloc, put_bytes
from fila_server.core.threads.locks cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from fila_server.core.threads.mailbox cimport mailbox_poke

cdef enum:
    PENDING_BYTES_MAX = 67108864
    STANDS_NS = 2000000000
    AHEAD_NS = 500000000
    BEAT_NS = 500000000
    UNCONFIRMED_NS = 5000000000
    TRY_NS = 500000000
    TRY_WAIT_MS = 200
    FROZEN_RETRY_NS = 2000000
    RECORDS_A_ROUND = 64
    BATCH_HEAD_BYTES = 12           # RocksDB's: a number and a count
    SENT_AT_FIRST = 64

cdef uint64_t A_BID = UINT64_MAX        # the tag of a takeover
LIVE_UNKNOWN = UINT64_MAX


cdef void group_init(
        Group* group, Store* store, StoreError* error, Log* log, uint64_t node) noexcept nogil:
    memset(group, 0, sizeof(Group))
    pthread_mutex_init(&group.lock, NULL)
    group.log, group.node, group.live_bytes = log, node, LIVE_UNKNOWN
    reading_init(&group.reading, 1)
    group.applying.store, group.applying.error, group.applying.reading = store, error, &group.reading


cdef void group_free(Group* group) noexcept nogil:
    while group.count:
        free(_oldest(group).content)
        group.first = (group.first + 1) & (group.room - 1)
        group.count -= 1
    free(group.sent)
    buffer_free(&group.joined)
    buffer_free(&group.applying.parts)
    owner_free(&group.owner)
    pthread_mutex_destroy(&group.lock)


cdef inline Sent* _oldest(Group* group) noexcept nogil:
    return &group.sent[group.first]


cdef void _ends(Group* group, GroupState how) noexcept nogil:
    atomic_store(&group.state, how)


# --- following -------------------------------------------------------------------------------

cdef uint32_t group_follow(Group* group, int32_t wait_ms) noexcept nogil:
    cdef Reading* reading = &group.reading
    cdef LogRecord[RECORDS_A_ROUND] records
    cdef LogRead read
    cdef LogError error
    cdef uint32_t i, taken = 0
    cdef int64_t first = reading.position + 1
    if group.state != GROUP_FOLLOWS and group.state != GROUP_BIDS:
        return 0
    _bid_reported(group)
    if not group.has_looked and reading.position >= 0:
        first = reading.position
    read.records, read.room = records, RECORDS_A_ROUND
    if group.log.read(group.log.held, first, &read, wait_ms, &error) != LOG_OK:
        return 0
    group.answers += read.count > 0 or read.end >= 0
    if read.end >= 0 and not log_reaches(reading, read.start, read.end):
        _ends(group, GROUP_HALTS)
    for i in range(read.count):
        if group.state != GROUP_FOLLOWS and group.state != GROUP_BIDS:
            break
        if read.records[i].offset == reading.position and not group.has_looked:
            if not log_stands(reading, read.records[i].content, read.records[i].length):
                _ends(group, GROUP_HALTS)
        else:
            group.read_bytes += read.records[i].length
            _follow(group, &read.records[i])
            taken += 1
        group.has_looked = True
    if read.end >= 0 and read.start == reading.position + 1:
        group.has_looked = True             # what it was to look at is truncated
    if read.count > 0 or read.end >= 0:
        group.is_end = read.end >= 0 and reading.position + 1 >= read.end
    return taken


cdef void _bid_reported(Group* group) noexcept nogil:
    """A takeover that failed may be in the log all the same; then its term is nobody's."""
    cdef LogReport report
    while group.log.reports(group.log.held, &report, 1, 0):
        if report.error and group.state == GROUP_BIDS:
            group.state = GROUP_FOLLOWS
            group.nonce = 0


cdef void _follow(Group* group, const LogRecord* found) noexcept nogil:
    cdef Record record
    cdef Taken taken = log_take(&group.reading, found.offset, found.content, found.length, &record)
    cdef bint is_mine
    if taken == TAKEN_HALT:
        _ends(group, GROUP_HALTS)
        return
    if record.kind == TAKEOVER and group.state == GROUP_BIDS:
        is_mine = record.node == group.node and record.nonce == group.nonce
        if taken == TAKEN_TERM and is_mine:
            owner_init(&group.owner, &group.reading)
            _ends(group, GROUP_OWNS)
        elif taken == TAKEN_TERM or is_mine:
            group.state = GROUP_FOLLOWS             # another one was first
    if taken != TAKEN_NOTHING:
        _apply(group, taken, &record)
    if taken != TAKEN_NOTHING and record.wall_ms - group.reading.begun_ms >= LIVE_KNOWN_MS:
        atomic_store(&group.live_bytes, <uint64_t> record.live_bytes)


cdef bint _apply(Group* group, Taken taken, const Record* record) noexcept nogil:
    """A store that refuses what is confirmed is of no use to an owner: False, and the term is over."""
    if record_apply(&group.applying, taken, record):
        return True
    _ends(group, GROUP_RESIGNS)
    return False


cdef void group_rebase(Group* group, int64_t end) noexcept nogil:
    log_rebase(&group.reading, end)
    group.has_looked = True                 # there is no last record of its own in this log
    atomic_store(&group.applying.end, <uint64_t> end)
    atomic_store(&group.synced, 0)
    _ends(group, GROUP_FOLLOWS)


cdef bint group_bid(Group* group, Record* record) noexcept nogil:
    cdef LogError error
    cdef uint8_t* content
    cdef size_t size
    cdef LogStatus status
    record.kind, record.node, record.term = TAKEOVER, group.node, group.reading.term
    record.wall_ms = max(record.wall_ms, group.reading.wall_ms)
    if record.incarnation > group.reading.incarnation:
        record.seq, record.chain = group.reading.seq, group.reading.chain
    size = record_bytes(record)
    content = <uint8_t*> must_malloc(size)
    record_encode(record, content)
    status = group.log.append(group.log.held, content, <uint32_t> size, A_BID, &error)
    free(content)
    if status == LOG_OK:
        group.state, group.nonce = GROUP_BIDS, record.nonce
    return status == LOG_OK


# --- appending (scheduler thread) --------------------------------------------------------------

cdef bint _stands(Group* group) noexcept nogil:
    cdef bint stands
    if atomic_load(&group.state) != GROUP_OWNS:
        return True
    pthread_mutex_lock(&group.lock)
    stands = group.bytes > PENDING_BYTES_MAX
    stands = stands or (group.count > 0 and group.host_ns - _oldest(group).host_ns > STANDS_NS)
    pthread_mutex_unlock(&group.lock)
    return stands


cdef void _join(Group* group, rocksdb_writebatch_t* batch) noexcept nogil:
    """Behind what is there: entries behind entries, and the counts added."""
    cdef size_t length
    cdef const char* bytes = rocksdb_writebatch_data(batch, &length)
    cdef uint32_t count, more = <uint32_t> rocksdb_writebatch_count(batch)
    if more == 0:
        return
    if group.joined.length == 0:
        put_bytes(&group.joined, bytes, length)
        return
    put_bytes(&group.joined, bytes + BATCH_HEAD_BYTES, length - BATCH_HEAD_BYTES)
    memcpy(&count, group.joined.data + 8, 4)
    count += more
    memcpy(group.joined.data + 8, &count, 4)


cdef bint group_append(Core* core) noexcept nogil:
    cdef Group* group = core.shared.group
    cdef Record record
    cdef size_t length, at = 0
    if _stands(group):
        return False
    group.joined.length = 0
    _join(group, core.settles)
    _join(group, core.apart)
    _join(group, core.enqueues)
    length = group.joined.length
    memset(&record, 0, sizeof(Record))
    record.kind = PASS if length else BARRIER
    if length > PART_BYTES_MAX:
        record.kind = PART
        record.parts = <uint16_t> ((length + PART_BYTES_MAX - 1) // PART_BYTES_MAX)
    while True:
        record.body = <const uint8_t*> group.joined.data + at
        record.body_bytes = <uint32_t> min(length - at, <size_t> PART_BYTES_MAX)
        at += record.body_bytes
        _send(core, &record, core.epoch if at == length else 0)
        if at == length:
            break
        record.part += 1
    _give(group)
    return True


cdef bint group_is_full(Group* group) noexcept nogil:
    cdef bint is_full
    pthread_mutex_lock(&group.lock)
    is_full = group.given < group.count
    pthread_mutex_unlock(&group.lock)
    return is_full


cdef void group_beat(Core* core) noexcept nogil:
    cdef Group* group = core.shared.group
    cdef Record record
    if group.host_ns - group.beat_ns < BEAT_NS and atomic_load(&group.looks) == group.looks_sent:
        return
    if _stands(group):
        return
    memset(&record, 0, sizeof(Record))
    record.kind = BARRIER
    _send(core, &record, 0)
    _give(group)


cdef void _send(Core* core, Record* record, uint64_t epoch) noexcept nogil:
    cdef Group* group = core.shared.group
    cdef Sent* sent
    cdef uint8_t* content
    cdef size_t size
    record.node, record.wall_ms, record.live_bytes = group.node, core.wall_ms, core.live_bytes
    group.looks_sent = atomic_load(&group.looks)
    owner_stamp(&group.owner, record)
    size = record_bytes(record)
    content = <uint8_t*> must_malloc(size)
    record_encode(record, content)
    pthread_mutex_lock(&group.lock)
    if group.count == group.room:
        _grow(group)
    sent = &group.sent[(group.first + group.count) & (group.room - 1)]
    sent.content, sent.length, sent.epoch = content, <uint32_t> size, epoch
    sent.tag = owner_add(&group.owner, record, content, size)
    sent.host_ns, sent.core_ns, sent.looks = group.host_ns, core.mono_ns, group.looks_sent
    group.count += 1
    group.bytes += size
    group.beat_ns = group.host_ns
    pthread_mutex_unlock(&group.lock)


cdef void _grow(Group* group) noexcept nogil:
    cdef uint32_t room = group.room * 2 if group.room else SENT_AT_FIRST
    cdef Sent* grown = <Sent*> must_malloc(room * sizeof(Sent))
    cdef uint32_t i
    for i in range(group.count):
        grown[i] = group.sent[(group.first + i) & (group.room - 1)]
    free(group.sent)
    group.sent, group.room, group.first = grown, room, 0


cdef void _give(Group* group) noexcept nogil:
    """To the log, as much as its queue takes; the rest follows when it has room."""
    cdef Sent* sent
    cdef LogStatus status
    pthread_mutex_lock(&group.lock)
    while group.given < group.count:
        sent = &group.sent[(group.first + group.given) & (group.room - 1)]
        status = group.log.append(group.log.held, sent.content, sent.length, sent.tag, &group.error)
        if status == LOG_FAILED:
            _ends(group, GROUP_RESIGNS)
        if status != LOG_OK:
            break
        group.given += 1
    pthread_mutex_unlock(&group.lock)


# --- confirming (commit thread) ----------------------------------------------------------------

cdef bint group_confirm(Core* core, int32_t wait_ms) noexcept nogil:
    cdef Group* group = core.shared.group
    cdef uint64_t before = atomic_load(&core.shared.durable)
    cdef OwnerNext step
    cdef uint64_t tag = 0
    if group.state != GROUP_OWNS:
        return False
    _reported(group, 0 if group.owner.is_reading else wait_ms)
    while True:
        pthread_mutex_lock(&group.lock)
        step = owner_next(&group.owner, &tag)
        pthread_mutex_unlock(&group.lock)
        if step == OWNER_READS:
            step = _read_back(group, wait_ms, &tag)
        if step != OWNER_CONFIRMED:
            break
        if not _confirmed(core, group):
            return atomic_load(&core.shared.durable) != before
    if step == OWNER_RESIGNS:
        _ends(group, GROUP_RESIGNS)
    elif step == OWNER_HALTS:
        _ends(group, GROUP_HALTS)
    elif _is_in_vain(group):
        _ends(group, GROUP_RESIGNS)
    else:
        _give(group)
    return atomic_load(&core.shared.durable) != before


cdef bint _is_in_vain(Group* group) noexcept nogil:
    """The log can be read, and has not confirmed the oldest for long."""
    cdef LogRecord[1] records
    cdef LogRead read
    cdef LogError error
    cdef int64_t host_ns
    cdef bint is_late
    pthread_mutex_lock(&group.lock)
    host_ns = group.host_ns
    is_late = group.count > 0 and host_ns - _oldest(group).host_ns > UNCONFIRMED_NS
    pthread_mutex_unlock(&group.lock)
    if not is_late or host_ns - group.tried_ns < TRY_NS:
        return False
    group.tried_ns = host_ns
    read.records, read.room = records, 1
    if group.log.read(group.log.held, group.reading.position, &read, TRY_WAIT_MS, &error) != LOG_OK:
        return False
    return read.count > 0 or read.end >= 0


cdef void _reported(Group* group, int32_t wait_ms) noexcept nogil:
    cdef LogReport[RECORDS_A_ROUND] reports
    cdef uint32_t i, count = RECORDS_A_ROUND
    while count == RECORDS_A_ROUND:
        count = group.log.reports(group.log.held, reports, RECORDS_A_ROUND, wait_ms)
        pthread_mutex_lock(&group.lock)
        for i in range(count):
            owner_report(
                &group.owner, reports[i].tag, reports[i].offset, reports[i].broker, reports[i].error)
        pthread_mutex_unlock(&group.lock)
        wait_ms = 0


cdef OwnerNext _read_back(Group* group, int32_t wait_ms, uint64_t* tag) noexcept nogil:
    """What the log holds since the last record that is known. OWNER_READS: it does not say more just now."""
    cdef LogRecord[RECORDS_A_ROUND] records
    cdef LogRead read
    cdef LogError error
    cdef OwnerNext step = OWNER_READS
    cdef uint32_t i
    read.records, read.room = records, RECORDS_A_ROUND
    if group.log.read(group.log.held, owner_reads_from(&group.owner), &read, wait_ms, &error) != LOG_OK:
        return OWNER_READS
    if read.end >= 0 and not log_reaches(&group.reading, read.start, read.end):
        return OWNER_HALTS
    for i in range(read.count):
        pthread_mutex_lock(&group.lock)
        step = owner_read(
            &group.owner, read.records[i].offset, read.records[i].content, read.records[i].length, tag)
        pthread_mutex_unlock(&group.lock)
        if step != OWNER_READS:
            break
    return step


cdef bint _confirmed(Core* core, Group* group) noexcept nogil:
    """The oldest that was sent: into the store, then its waiting callers may hear of it."""
    cdef Sent sent
    cdef Record record
    cdef Taken taken = TAKEN_BARRIER
    pthread_mutex_lock(&group.lock)
    sent = _oldest(group)[0]
    pthread_mutex_unlock(&group.lock)
    record_decode(sent.content, sent.length, &record)
    if record.kind == PASS:
        taken = TAKEN_PASS
    elif record.kind == PART:
        taken = TAKEN_LAST_PART if record.part + 1 == record.parts else TAKEN_PART
    if not _apply(group, taken, &record):
        return False
    pthread_mutex_lock(&group.lock)
    group.first = (group.first + 1) & (group.room - 1)
    group.count -= 1
    group.given -= 1
    group.bytes -= sent.length
    group.read_bytes += sent.length
    pthread_mutex_unlock(&group.lock)
    free(sent.content)
    group.confirmed += 1
    atomic_store(&group.looked, sent.looks)
    if sent.epoch:
        group.waited_ns = sent.host_ns
        atomic_store(&core.shared.durable, sent.epoch)
    return True


# --- the disk --------------------------------------------------------------------------------

cdef int group_sync(Group* group, StoreError* error) noexcept nogil:
    cdef uint64_t end = atomic_load(&group.applying.end)
    cdef int status = store_sync(group.applying.store, error)
    if status == STORE_OK:
        atomic_store(&group.synced, end)
    return status


# --- looks (any thread) ------------------------------------------------------------------------

cdef uint64_t group_look(Core* core) noexcept nogil:
    cdef Group* group = core.shared.group
    cdef uint64_t look
    if group == NULL:
        return 0
    look = atomic_add(&group.looks, 1)
    mailbox_poke(core.mailbox)
    return look


cdef Look group_looked(Group* group, uint64_t look) noexcept nogil:
    if atomic_load(&group.looked) >= look:
        return LOOK_STANDS
    return LOOK_WAITS if atomic_load(&group.state) == GROUP_OWNS else LOOK_FAILS


# --- the clock ---------------------------------------------------------------------------------

cdef int64_t group_now(Group* group, int64_t host_ns) noexcept nogil:
    cdef int64_t now_ns, end_ns = INT64_MAX
    pthread_mutex_lock(&group.lock)
    if group.count:
        end_ns = _oldest(group).core_ns + AHEAD_NS
    pthread_mutex_unlock(&group.lock)
    group.host_ns = host_ns
    now_ns = host_ns - group.stood_ns
    group.is_ahead = now_ns > end_ns
    if group.is_ahead:
        group.stood_ns += now_ns - end_ns
        now_ns = end_ns
    return now_ns


cdef int64_t group_wakes(Core* core, int64_t next_ns) noexcept nogil:
    cdef Group* group = core.shared.group
    cdef int64_t soon_ns = group.host_ns + FROZEN_RETRY_NS
    cdef bint lacks_ids
    if next_ns <= core.mono_ns:         # without ids that are promised no pass delivers anything
        lacks_ids = core.next_lease_id + MESSAGES_PER_FRAME_MAX > core.lease_id_durable
        return soon_ns if group.is_ahead or lacks_ids else group.host_ns
    if next_ns != INT64_MAX:
        next_ns += group.stood_ns
    if group.is_ahead:                  # what is due is due once the log goes on, and its end pokes
        next_ns = max(next_ns, soon_ns)
    if group.state == GROUP_OWNS:       # a beat that is due and did not leave waits for the log, too
        next_ns = min(next_ns, max(group.beat_ns + BEAT_NS, soon_ns))
    return next_ns
