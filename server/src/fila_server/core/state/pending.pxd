"""What waits for something: an answer for decisions, a failed message for its hook, a page for the disk; and
the rows of two small tables, and what an entry says of itself where its frame can't."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from fila_server.core.structures.bucket cimport Bucket
from fila_server.core.structures.buffer cimport Buffer, Slice
from fila_server.core.structures.fifo cimport Placed
from fila_server.core.structures.heap cimport HeapNode
from fila_server.core.structures.maps cimport Map64, Text
from fila_server.core.structures.ring cimport Turn
from fila_server.core.structures.timers cimport Timer
from fila_server.core.threads.mailbox cimport Command

cdef struct OpenReply:              # an answer that may wait for decisions
    uint32_t open
    uint64_t token
    int32_t  kind
    bint     durable
    bint     nack
    Buffer   payload

cdef struct Cohort:                 # messages of one channel whose age counts from one moment, see ages.pxd
    Placed   place                  # first; the position is that moment, in ms
    uint32_t waiting                # how many of them wait; while some do, it stands in Channel.waiting

cdef struct LeaseGroup:             # one LEASES record: what one frame to a consumer held
    LeaseGroup* next_marked
    uint64_t channel_number
    uint64_t queue_number
    uint64_t first_lease_id
    void*    channel                # the Channel on whose list it stands while one of its leases runs
    LeaseGroup *next, *prev         # there
    int64_t  leased_ms
    uint64_t consumer               # whose session says which it has begun; 0 = all begin on delivery
    int64_t  begun_until_ms         # when the last of those that were begun ends
    uint32_t live
    uint32_t count
    uint8_t* marks                  # LeaseMark, two bits a lease; NULL = none
    uint8_t  is_marked              # stands on Core.marked
    uint8_t  recorded               # a record of its marks exists

cdef struct Holder:                 # whose consumers hold leases: a principal, over all queues
    uint64_t number                 # of the table of rights
    uint32_t most                   # leases that it may have at a time; 0 = no bound
    uint64_t in_flight
    uint64_t consumers              # that point here
    uint64_t refused                # pulls, for want of room; since it was last told
    void*    stopped                # Consumers without room for the bound alone; a circle
    Holder*  next_waking
    bint     waking                 # stands on Core.waking

# the record of a lease that ended by failure, until what follows is on its way too
cdef struct LeaseRecord:
    LeaseGroup* group               # NULL = none is kept
    uint64_t lease_id
    bint     extended               # it has a record of its own

# a failed message set aside: its hook is asked, or its bytes are on their way
cdef struct Decision:
    Decision* next                  # of its frame's, or of those whose bytes are here
    uint64_t number
    uint64_t queue_number
    uint64_t channel_number
    uint64_t offset
    const char* reason              # a dead letter's; NULL = the hook decides
    uint64_t birth                  # of the channel, once a seek has taken the slot away; 0 until then
    uint32_t attempts               # as they were then
    int64_t  delay_ms               # the nack's own wish, -1 = none
    LeaseRecord record                  # so that a crash finds the failure undone, or done
    OpenReply* reply
    Slice    error                  # behind the struct

cdef enum:
    PAGE_MAX = 1000                 # messages

# a peek or a redrive that looks for its messages, or waits for their bytes
cdef struct Page:
    Page*    next
    Command* command
    uint64_t next_offset            # where it looks on; 0 = not begun
    uint64_t loads_seen             # it waits for bytes since then
    bint     waits_for_bytes
    uint32_t in_vain                # how often it waited for bytes and got no further
    uint32_t hot                    # how many of its first messages had their bytes by then
    uint32_t count
    uint64_t offsets[PAGE_MAX]      # found; they may be pending no more

cdef struct Sought:                 # a message that a call names
    uint64_t id_high, id_low
    Sought*  same_cell              # neighbour in Lookup.by_cell
    uint8_t  outcome                # CancelMessagesResponse.Outcome; 0 = it is looked for

# a call whose messages may stand anywhere, so that it looks for them in pieces
cdef struct Lookup:
    Lookup*  next
    Command* command
    Slice    queue, channel, tenant # within the command's bytes
    bint     walks                  # what can be found by arithmetic was
    bint     changed                # some message ended
    uint64_t next_offset            # where it looks on
    uint32_t count, open            # the latter: that are looked for still
    Map64    by_cell                # these
    Sought*  sought

cdef struct LastError:              # what a consumer said of a message that failed
    uint64_t id_high, id_low
    uint64_t channel                # its number
    uint32_t attempts               # after that failure
    uint32_t length
    char     text[256]

cdef struct Lookups:
    Lookup   *first, *last
    uint32_t count
    LastError* errors               # see index/last_errors; NULL until one is kept

cdef struct Chore:                  # work on a queue that is done in pieces, between passes
    Chore*   next
    Command* command                # a purge, answered when all is done; NULL: the queue's gone channels
    Chore*   behind                 # the next one for the same queue
    uint64_t queue_number
    uint64_t* channels              # their births
    uint32_t channel_count
    uint32_t channel_at
    uint64_t next_offset            # where it goes on
    uint64_t below                  # what came later is not meant
    uint64_t here                   # messages, of the channel at hand
    uint64_t most                   # of any channel

cdef struct DefaultsWalk:           # a queue's keys are told of its new defaults in pieces, between passes
    DefaultsWalk* next
    uint64_t queue_number
    uint32_t cursor                 # of the table of keys, where it goes on
    uint32_t capacity, reach        # the table's, when the last piece ended

cdef struct KeyDefaulting:          # what queues' defaults for their keys leave to do later
    DefaultsWalk* walks
    HeapNode* resting               # KeyExtras of keys that no message names, until their buckets are full;
    uint32_t resting_count          # and how many

cdef struct Known:                  # what a dedup key stands for
    uint64_t id_high
    uint64_t id_low
    uint64_t offset
    uint64_t batch                  # of new messages, in which its own is stored
    int64_t  began_ms               # on the wall clock, as stored; 0 in a record of before
    int64_t  expires_ms
    int64_t  due_ns                 # on the monotonic clock, which decides while the server runs; 0 = over
    int64_t  first_ms, first_ns     # when the first of those came that its message replaced, on both clocks
    uint64_t before                 # offset of the oldest of its messages that was pending as this one came
    bint     lasts                  # it is known as long as its message is pending, too

cdef struct Dedup:
    Text     text                   # first
    Dedup*   next                   # in order of look_ns
    int64_t  look_ns                # when to look whether it is over; with its window, or later
    Known    known

cdef struct Brought:                # a weight that a message gave its key, which the disk may refuse yet
    void*    key                    # the Key
    uint16_t weight, before
    uint8_t  is_moved               # by a message that was moved, which is never refused
    uint8_t  was_recorded           # Key.recorded, before it was put into the batch of messages

cdef struct Renamed:                # a key that another message took over, which the disk may refuse yet
    Dedup*   row
    Known    before

cdef struct Renames:
    Renamed* rows
    uint32_t count, capacity

# A message that is about to take the place of another one in a channel: it has become visible, or the lease
# behind which it waited has ended. Resolved before anything else looks (lifecycle/replacing.pyx).
cdef struct Replacing:
    uint64_t queue_number, channel_number
    uint64_t offset                 # its own
    uint64_t before                 # of the one that gives way; 0 = that one has ended
    uint64_t place                  # where that one stood, then: an offset; 0 = it takes no place over
    int64_t  due_ms, due_ns         # when its own delay ends, on both clocks; 0 = it has none

cdef struct Replacings:             # in the order of their offsets
    Replacing* rows
    uint32_t count, capacity

cdef struct Schedule:               # its definition is Python's; see index/schedules.pxd
    Text     text                   # first
    uint64_t due_ms                 # the moment it fires next, on the wall clock; 0 = none
    uint64_t next_ms                # the moment after, while `is_firing`
    bint     is_firing              # its message is taken and not written yet

cdef struct ConfigRow:
    Text     text                   # first
    uint32_t length
    char*    value

cdef struct KeyRateLimit:           # the rate of one fairness key, see scheduling/allowances.pxd
    Timer    timer                  # first; the next token, while somebody waits for one; or, while its key
                                    # rests, when it is full
    void*    key                    # the Key it belongs to
    Bucket   bucket
    bint     wanted                 # somebody waits for a token, or was woken for one and took none yet

cdef struct Committed:              # the rate of a fairness key that goes first while it has a token
    KeyRateLimit limit              # first
    Map64    turns                  # Channel's address -> FirstTurn

cdef struct FirstTurn:              # a flow's turn among those within their committed rate
    Turn     turn                   # first
    void*    flow
    uint64_t served                 # cost that went within it since the flow's clock looked last

cdef struct KeyExtras:              # what few fairness keys have; made when first needed, gone with the key
    HeapNode place                  # first; while it is paused, in Queue.paused_keys, and while it rests, in
    void*    key                    # KeyDefaulting.resting, by when that began, in ms; then: whose these are
    uint32_t cap                    # most leases at a time, 0 = no cap
    uint8_t  own                    # OwnWords: the operator's; what is not among them is the queue's default
    uint8_t  rests                  # no message names the key, and its bucket is not full
    KeyRateLimit* rate_limit        # NULL = none
    Committed* committed            # NULL = none
    Map64*   flows_by_channel       # NULL while it is used in few channels
    Map64    retrying               # by channel: failed messages that keep their place until the retry is due

cdef struct Expiry:                 # of a message with a time to live
    Timer    timer                  # first
    uint64_t queue_number
    uint64_t offset
    int64_t  expires_ms             # on the wall clock, as stored
    int64_t  due_ns                 # on the monotonic clock, which decides while the server runs
    bint     far                    # farther off than a timer reaches: it goes there in steps

# of an entry that came from another frame: dead-lettered, redriven, rewritten
cdef struct OwnIds:
    uint64_t id_high
    uint64_t id_low
    uint64_t offset
    int64_t  enqueued_ms
    int64_t  appended_ms

cdef struct Wait:                   # for the history: since when a slot waits, and what clocks said then
    uint32_t since_ms
    uint32_t no_room_ms
    uint32_t waiting_ms
    uint32_t stopped_ms
    uint32_t delay_ms
