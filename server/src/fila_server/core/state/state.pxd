"""Everything the scheduler thread owns, as structs: read this page first.

    Core ── queues by name ──► Queue ── directory, by offset ──► Frame ── entries: one Entry a message
              │                  │                                 │
              │                  ├─ channels ──► Channel           └─ shares: one Share a channel
              │                  │                 └ ring of Flows            └ slots: one Slot a message
              │                  └─ keys by text ──► Key ─ flows: one a channel
              ├─ throttle keys ──► ThrottleKey (bucket, rings of those that wait)
              ├─ leases by lease_id ──► Lease          ├─ consumers by token ──► Consumer
              └─ timers (leases, delays, time to live, buckets, waiting pulls)

An Entry is what all channels share of a message (where its bytes are, how it is routed); a
Slot is one channel's view of it (state, position, attempts). A Frame is what arrived together
and is one record on disk. Nothing here is reachable from another thread, except Core.shared.

Sizes (64 bit): Entry 32, Slot 40, so a pending message costs 72 bytes and its part of a
frame's overhead; a further channel 40. A fairness key costs 208, its first Flow included, and its text.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from fila_server.core.protocol.refusals cimport Limits
from fila_server.core.state.limits cimport Limit, LimitTable, Parts
from fila_server.core.state.opaque cimport (
    History, Loader, Outboxes, Store, StoreError, Traces, rocksdb_writebatch_t,
)
from fila_server.core.state.pending cimport (
    Brought, Chore, Cohort, Decision, Dedup, Holder, KeyDefaulting, KeyExtras, LeaseGroup, Lookups, OwnIds,
    Page, Renames, Replacings, Wait,
)
from fila_server.core.state.settings cimport Policy
from fila_server.core.state.shared cimport Shared
from fila_server.core.state.sinks cimport Sinks
from fila_server.core.structures.bucket cimport Bucket
from fila_server.core.structures.buffer cimport Buffer, Slice
from fila_server.core.structures.counters cimport (
    CoreCounters, Failures, Hour, Latency, QueueCounters, Rates, Tally,
)
from fila_server.core.structures.fifo cimport Fifo, Placed
from fila_server.core.structures.heap cimport HeapNode
from fila_server.core.structures.maps cimport Map64, Text, TextMap
from fila_server.core.structures.ring cimport Ring, Turn
from fila_server.core.structures.timers cimport Timer, Timers
from fila_server.core.threads.mailbox cimport Command, Mailbox

cdef struct Body:                   # the bytes of a frame while they are hot
    uint32_t refs                   # the frame's own, and one for each delivery that waits to be encoded
    uint32_t length
    char*    bytes
    Frame*   frame                  # NULL once the frame is gone
    Body     *newer, *older         # in order of last use, for eviction

cdef struct ThrottleKey:            # see limits.pxd
    Text     text                   # first
    uint32_t refs, in_flight        # throttle sets that name it; leases of messages that do
    bint     limited, charged       # its limit holds what it has nothing for; messages take from it
    bint     dirty, recorded, idle  # its level is to be written with this pass; is on disk; see below
    Limit*   limit                  # LimitTable.none where it has none
    Parts*   parts                  # NULL: it has `bucket` alone, in messages
    Bucket   bucket                 # its first rate
    Timer    timer                  # the next token for its lines; idle: when to look at it again
    Waiters* waiters                # one a channel
    Ring*    turns                  # of those whose keys want tokens; NULL while there are no waiters
    uint64_t waiting, passed        # the former: `Waiter`s that want a token
    ThrottleKey *next_dirty, *next_of_limit, *prev_of_limit, *newer, *older     # the last two: idle

cdef struct Waiters:                # one channel's flows that wait for one bucket: see waiters.pxd
    Turn     turn                   # first; among the channels at the bucket
    ThrottleKey* bucket
    Channel* channel
    bint     in_woken               # one of the channel's `woken_waiters`
    Ring     ring                   # of those that want a token
    Waiter*  first
    uint64_t count, messages, woken         # flows; their messages, spoken for or not; tokens spoken for
    int64_t  spoken                 # what the messages with these should cost
    Waiters  *next, *next_woken, *prev_woken    # of the bucket; neighbours among `woken_waiters`

cdef struct Waiter:                 # one flow's sub-queues that wait for one bucket; they share one turn
    Turn     turn                   # first; IDLE while a token is spoken for each of its messages
    Waiters* waiters
    Flow*    flow
    Waiter   *next, *prev           # of the line
    HeapNode* held                  # its sub-queues by the rank of their first message, without `chosen`
    Subqueue* chosen                # may go: the lowest, while a token is spoken for it; NULL = none is
    uint64_t messages, tokens       # of its sub-queues; spoken for these
    int64_t  spoken, owed           # what these tokens' messages should cost; what those that went cost more

cdef struct ThrottleSet:            # a distinct set of throttle keys, sorted
    Text     text                   # first: the keys, length-prefixed
    uint32_t refs                   # entries and subqueues that point here
    uint32_t count
    ThrottleKey* members[16]

cdef struct KeyClock:                  # what is kept of a key in one channel, also while it is idle
    Text     text                   # first: the key's; the bytes follow the struct
    Flow*    flow                   # NULL while the key is idle
    Channel* channel
    int64_t  touched_ms             # on the monotonic clock
    uint64_t delivered, arrived     # by flows that ended
    uint64_t served_seen            # of the flow's `served`, already in the hour
    double   virtual_at             # the channel's `virtual` up to which `due` is counted; below 0: not yet
    Hour     hour
    Rates    rates                  # as of the last look of who watches the queue
    KeyClock *newer, *older         # of the channel, in order of last use

cdef struct Flow:
    Turn     turn                   # first
    uint32_t backlog                # READY slots, held by a throttle or not; it fills the Turn's last word
    Fifo     fifo                   # ready messages of the usual priority without throttle keys
    Subqueues* subqueues            # NULL until a message comes that does not go there
    Key*     key
    Channel* channel
    Flow*    next_of_key
    uint32_t in_flight, delayed     # the former: LEASED and DECIDING
    uint32_t arrived                # messages that came into the channel; it wraps
    uint32_t delivered              # messages begun, below 2^32; see flow_delivered
    uint32_t unbegun                # leases that were not begun: they are held, or came back; see flow_leased
    uint32_t since_ms               # how far its waiting is accounted for (clocks.pxd), and
    uint32_t no_room_ms             # the channel's clock of having no room, then
    uint32_t stopped_since_ms, stopped_ms   # while it is paused or capped, and what that adds up to
    uint8_t  parked                 # a Parked
    uint8_t  joined                 # stands with the ring: on its list, or deferred
    uint8_t  delivered_wraps        # how often `delivered` went round
    uint8_t  no_clock               # looked for among the channel's clocks, and has no row
    uint64_t served                 # cost, in thousandths
    KeyClock*   clock               # NULL: nothing worth remembering so far

cdef struct Key:                    # a fairness key of one queue
    Text     text                   # first; the bytes stand behind the struct
    uint32_t refs                   # entries that carry it
    Queue*   queue
    Flow*    flows
    uint64_t stored_bytes           # of its messages in frames
    uint16_t weight                 # of the newest enqueue, as it came: what counts is frames.key_weight
    uint16_t table_weight           # of the queue's weight table, 0 = not in it
    uint16_t admin_weight           # 0 = none set
    uint8_t  paused, recorded       # the latter: a KEYS record exists, with this weight
    KeyExtras* extras               # NULL for nearly every key
    Flow     first                  # of the channel that used it first; further channels' are made apart

cdef struct Subqueue:               # a flow's ready messages of one priority and set of throttle keys
    HeapNode node                   # first
    Fifo     fifo
    uint32_t count                  # of its fifo
    uint16_t kept                   # bits: the keys of its set of which it keeps something
    uint8_t  priority
    uint32_t waiting_since_ms, waiting_ms # while it stands in a line, and what that adds up to
    uint64_t ticket                 # of when it first had to wait since a message of it went; 0 = it had not
    uint64_t cost, held, held_cost  # history: of all; messages told to be held; of those
    ThrottleKey* held_by            # history: the bucket that was told
    Flow*    flow
    ThrottleSet* set                # Core.no_throttle_keys where it has none
    Waiter*  waiter                 # where it stands; NULL = in no line
    Subqueue *sibling, *sibling_prev        # of the flow

cdef struct Subqueues:              # of one flow
    Subqueue* first
    HeapNode* eligible              # those that may go, by the rank of their first message
    uint32_t waiting                # READY slots of those that stand in lines and may not go
    Map64    by_kind, waiter_by_bucket  # ThrottleSet's address, priority -> Subqueue; ThrottleKey's -> Waiter

cdef struct Entry:                  # what all channels share of one message
    Key*     key
    ThrottleSet* set                # NULL = none
    uint32_t at                     # where its headers and payload stand in the frame's bytes
    uint32_t length
    uint32_t cost_bits              # its cost, in thousandths, and its priority: entry_cost, entry_priority
    int32_t  enqueued_delta_ms      # enqueued_at - frame.appended_ms

cdef struct Frame:
    uint64_t first_offset           # its key on disk, under the queue's number
    uint64_t id_high, id_low        # of entry 0; entry i has id_low + i
    int64_t  appended_ms
    Queue*   queue
    Body*    body                   # NULL = cold
    Share*   shares
    OwnIds*  own_ids                # NULL = ids and offsets run on from the first
    uint32_t count
    uint32_t live                   # entries that some channel still wants
    uint32_t body_bytes, live_bytes
    uint8_t  loading, loaded_seen   # asked of the reader thread; read back once already
    uint8_t  has_expiries           # some entry has an Expiry
    uint8_t  dying, revealed        # goes with this pass; its channels have shares, or will by a rebuild
    uint8_t  durable                # until it is revealed: not before its epoch is synced
    uint8_t  revealing              # some of its channels have their shares, and more are to come
    Decision* failures              # that wait for its bytes; a circle, and this the newest
    Tally*   tallies                # of each entry, NULL while one channel has it
    uint32_t burials                # dead letters that wait for its bytes and have no slot any more
    Frame*   next_dying
    void*    times                  # records.Times of its messages, until it is visible; NULL = none have any
    int64_t* first_due_ms           # of each entry: when its first delay ends, 0 = it has none; or NULL
    uint64_t only                   # redriven: the `birth` of the one channel it is for; 0 = every channel
    Entry    entries[1]             # count

cdef struct Slot:                   # one message in one channel
    Placed   place                  # first; READY: where it stands in its fifo
    void*    owner                  # READY: its Subqueue, else its Flow; LEASED: Lease; DELAYED: Delay
    uint32_t index                  # of its entry in the frame
    uint16_t attempts
    uint8_t  state
    uint8_t  marks                  # SlotMark

cdef struct Share:                  # one channel's view of one frame
    Share*   next_of_frame
    Channel* channel
    Frame*   frame
    Share*   next_dirty
    uint32_t remaining              # slots not DONE
    uint8_t  dirty, recorded        # its SETTLED record is to be written with this pass; exists
    Wait*    waits                  # behind the slots; NULL without a history
    Cohort   cohort                 # of its messages, but for those that were delayed at first
    Slot     slots[1]               # frame.count

cdef struct Delay:
    Timer    timer                  # first
    Slot*    slot
    int64_t  due_ms                 # 0 = it waits for a lease's end alone, and its timer is not set
    bint     far, keeps_place       # see timer_step_ns; it failed, and goes back to where it stood
    Lease*   behind                 # of the message that it replaces; NULL = of none, or it has just ended
    uint64_t before                 # that message's offset; 0 = it waits for no lease

cdef struct Lease:
    Timer    timer                  # first
    uint64_t lease_id
    Slot*    slot
    Consumer* consumer              # NULL for pulls, and once its consumer is forgotten
    Holder*  holder                 # NULL = nobody's: keys are off, or it is of before a restart
    Lease    *next, *prev           # of the consumer
    LeaseGroup* group
    Lease*   same_id                # neighbour in leased_ids
    Delivery* delivery              # until it was written
    Delay*   successor              # of the message that replaces its own; NULL = none does
    uint32_t at                     # its place in the delivery
    uint8_t  extended, is_limited   # has a record of its own; counts at the throttle keys of its message
    uint8_t  begun, committed       # its consumer works on it; it went within its key's committed rate
    int64_t  leased_ms, expires_ms
    int64_t  due_ns                 # when it ends; the timer may fire sooner, and is then set again

cdef struct Delivery:               # messages picked together for one consumer
    Delivery* next                  # of the consumer, oldest first
    Consumer* consumer
    LeaseGroup* group
    Lease**  leases                 # NULL where one ended meanwhile
    Body**   pins                   # bytes held until it is sent; NULL unless it had to wait for some
    uint32_t count
    uint8_t  sent

cdef struct Consumer:
    Timer    timer                  # first; PULL: when it is answered; else when to look at `deadline_ms`
    uint64_t token                  # of its stream; 0 once that is gone
    uint64_t number                 # its consumer_id, never used twice; 0 = PULL
    Channel* channel
    Consumer *next, *prev           # circular, of the channel: those that are here, or those away
    Consumer *next_leaving, *prev_leaving
    Consumer* next_reported         # of those that are told of leases with this pass
    Holder*  holder                 # NULL = nobody's
    Consumer *next_stopped, *prev_stopped   # of the holder's circle; NULL = it does not stand there
    Lease*   leases                 # newest first
    Delivery *first, *last          # not written yet
    Consumer *next_reader, *prev_reader     # of those whose next delivery waits for the same bytes
    uint64_t reads                  # which these are; 0 = it waits for none
    uint32_t unwritten, in_flight, max_in_flight
    uint32_t limit                  # leases it may hold now: its credit, never above max_in_flight
    uint32_t max_batch              # messages a frame; PULL: messages it asked for
    uint8_t  kind, batched, tracks_begun    # batched: STREAM, ConsumeResponse.messages not .message
    uint8_t  away                   # its stream is gone; a session may resume until `deadline_ms`
    uint8_t  fate                   # it leaves: a Fate; 0 = not
    uint8_t  reported               # stands on Core.told
    uint32_t begun                  # of `in_flight`
    int64_t  lease_ms               # how long its leases last; 0 = the queue's visibility timeout
    int64_t  silence_ms             # longest between two signs of life; 0 = not judged
    int64_t  opened_ms, deadline_ms # the latter on Core.heard_ms: silent, or away, for too long then
    uint64_t returned, handling_us  # the latter as it reports it
    Buffer   revoked                # lease ids, for this pass's Revoked
    const char* revoked_why
    Buffer   name, peer

cdef struct Channel:
    Text     text                   # first
    Queue*   queue
    Channel* next                   # of the queue
    uint64_t number                 # never used twice; a seek takes a new one
    uint64_t birth                  # its first number, which stays
    Map64    places                 # by offset, of messages that stand where another one stood: its offset
    uint64_t start_offset           # entries below are not its own, or done
    uint64_t tail_from              # frames below are finished: where the next look for its tail begins
    int64_t  created_ms, touched_ms
    Ring     ring
    Ring*    committed              # of FirstTurns, asked before it; NULL = none has stood there
    Consumer* turn                  # whose turn among the consumers
    Consumer* looked_from           # of those nobody had room since then; NULL = the look begins anew
    Consumer* away                  # consumers whose stream is gone and that still hold leases
    uint32_t consumers, waiting_pulls       # the former are streams alone
    int64_t  next_position
    uint64_t requeue_seq
    uint64_t placed_to              # highest offset with its first place here: what comes back stands behind
    uint64_t ready, delayed, in_flight, unbegun     # the latter: of those in flight
    Fifo     waiting                # Cohorts, the oldest first
    Map64    delayed_cohorts        # of messages that were delayed at first: by that moment
    LeaseGroup *groups, *groups_last        # of its leases, the oldest first
    uint64_t rebuild_at             # seek: frames from this offset on are still to be taken in; 0 = none
    uint64_t log_below              # below: in the log when the channel started, its delays over then
    int64_t  started_ns             # when that was, on the monotonic clock; not kept over a restart
    uint64_t leased, delivered, acked       # delivered: begun, which is at the lease where nobody tracks it
    uint64_t returned, failed       # leases that came back uncounted; attempts that failed
    uint64_t idle_after_ms          # it is deleted after so long without use; 0 = never
    int64_t  used_ms, noticed_ms    # on Core.heard_ms; when a message that keeps returning was last told of
    Waiters* woken_waiters          # those that count on tokens of buckets where other channels wait
    bint     has_room               # some consumer may take more; false only once deliver has looked
    uint32_t no_room_since_ms, no_room_ms   # while has_room is false; what longer stretches of that add up to
    uint32_t active_keys            # flows with something ready or delayed
    uint64_t weight, served         # of the flows with the ring; cost delivered, in thousandths
    double   virtual                # cost delivered a unit of weight: what each backlogged flow was due
    TextMap  clocks                 # of KeyClocks, by the key's text
    KeyClock *clocks_newest, *clocks_oldest
    Hour     hour                   # over all flows, those without a row too
    Channel  *next_active, *prev_active     # circular list of channels that may have work
    uint64_t reveal                 # the number of the last of the queue's reveals that came by
    uint64_t shares, flows          # how many point here
    uint8_t  active, copied, gone   # copied: recovery, as the queue's; gone: a Gone
    void*    recovery               # recover.pyx's notes, while it runs

cdef struct DirectoryCell:
    uint64_t first_offset, id_high
    Frame*   frame                  # NULL once deleted

cdef struct Directory:              # a queue's frames in offset order
    DirectoryCell* cells
    uint32_t start, count           # cells in use from 0, deleted ones included
    uint32_t capacity, live, own    # the latter: frames whose entries have ids of their own

cdef struct Building:               # one message on its way into a frame
    Command* command
    uint32_t item, length
    Key*     key
    ThrottleSet* set
    uint32_t cost_bits, weight      # the former as an Entry's; the latter is for its key
    const char* at
    int64_t  deliver_at_ms, expires_ms      # 0 = now; never
    int64_t  enqueued_ms            # 0 = this pass
    uint64_t replaces, behind       # offsets: see Times in formats/records.pxd
    uint64_t id_high, id_low        # 0 = a new id
    Channel* only                   # NULL = every channel

cdef struct Builder:                # what meets in one pass for one queue becomes one frame
    Queue*   queue
    Building* items
    uint32_t count, capacity
    uint64_t bytes
    Builder* next
    bint     moves                  # dead letters and redrives: written with the settles, not refusable

cdef struct Queue:
    Text     text                   # first
    uint64_t number                 # its incarnation, never used twice
    Buffer   config                 # the serialized QueueConfig, as stored
    Policy   policy
    int64_t  created_ms
    uint64_t next_offset
    uint64_t offset_reserved, offset_reserved_durable, offset_reserved_epoch   # below: promised on disk
    int64_t  appended_ms            # of the newest entry
    int64_t  used_ms                # last enqueue, on Core.heard_ms
    uint64_t dead_reported          # of counters.dead_dropped, as the edge was told
    Failures failures               # of late; see paths.failure_counted
    uint64_t idle_offset            # next_offset when it was last looked at
    Effect   *revealing, *revealing_last    # its first frame is being revealed; what comes behind it waits
    Queue    *next_revealing, *next_gone
    uint64_t reveals                # how many of its frames were begun
    Chore*   chore                  # the change to it that is being carried out, and those that wait for it
    Queue*   dlq                    # NULL for a DLQ
    bint     is_dlq, owns_dlq, is_recovered, copied     # the last: recovery, its record is in both families
    TextMap  keys, channels_by_name, dedup, schedules
    Channel* channels
    Channel* gone                   # channels that are being taken apart,
    uint64_t gone_offset            # the first of them without the frames below,
    uint32_t gone_cursor            # and without these of the queue's keys
    uint32_t channel_count, coming  # the latter: messages of the command at hand, until the first is taken
    uint64_t coming_bytes
    Directory directory
    HeapNode* paused_keys           # KeyExtras.paused, at the root the one paused first; and how many
    uint32_t paused_count
    Dedup    *dedup_oldest, *dedup_newest
    Map64    expiries               # offset -> Expiry
    uint64_t arriving               # stored, not durable yet
    uint32_t arriving_durable       # frames of these that wait for their sync: later ones wait behind them
    uint64_t depth, in_flight       # distinct messages pending, and leased, in some channel
    uint64_t stored_bytes           # of its frames
    uint64_t unwanted_bytes         # of done messages in frames that others pin
    uint64_t staged_bytes, promised # in sinks: bytes staged for it; messages published and still on their way
    QueueCounters counters
    Latency  latency
    Builder  building, moving
    bint     build_listed, move_listed
    uint64_t rewrite_at, retained_at        # where looks for frames to rewrite, or drop, begin
    int64_t  retained_ms            # until when the oldest frame of this walk is kept by age; or INT64_MAX
    Timer    visit                  # when housekeeping visits it next: see visits.pxd
    int64_t  visited_bytes          # what it has in Core.live_bytes
    Queue*   next_unused
    bint     is_unused, is_gone     # stands on Core.unused; deleted: nobody visits it any more

cdef struct Effect:                # an answer, a stream's frame, or a stored frame's visibility, in order
    Effect* next
    uint64_t epoch                  # leaves once this one is durable; 0 = once this pass is written
    uint64_t token
    int32_t  kind, status
    uint64_t queue_number           # of an enqueue's answer: behind the frames of that queue; 0 = of none
    Buffer   payload
    Frame*   frame                  # not NULL: becomes visible

cdef struct Core:
    Store*   store
    StoreError* error               # the scheduler thread's own
    Shared   shared
    Limits   limits
    Mailbox* mailbox
    Outboxes* outboxes              # answers, and those that left and are not handed over yet
    Loader*  loader
    History* history                # NULL = none is recorded
    Traces*  traces                 # NULL = no spans are made
    # --- settings
    int64_t  quantum
    bint     durable_default, stop_on_damage
    uint64_t hot_bytes_max, dedup_rows_max
    # --- clocks of this pass
    int64_t  mono_ns
    uint32_t mono_ms                # the same; it wraps after 49 days, so only differences count
    int64_t  wall_ms, opened_ms, opened_ns      # opened: the first pass's, when all counters began
    uint64_t durable                # shared.durable and shared.stopping, read once a pass: a pass is a
    bint     stopping               # function of what it took in
    int64_t  heard_ms               # goes on only while the edge reads its sockets: silence is judged by it
    int64_t  listened_ns            # when the edge last said so; 0 = never yet
    Queue*   unused                 # with the next pass: is it, or a channel of it, to go as unused?
    uint64_t random[2]
    uint64_t id_ms, id_sequence
    # --- tables
    TextMap  queues, throttle_keys, throttle_sets, config
    ThrottleSet no_throttle_keys    # of sub-queues whose messages name none
    LimitTable limit_table
    Map64    queues_by_number, leases, holders, leased_ids      # the last: see leases.pxd
    Map64    consumers, decisions   # by token; by number
    Map64    readers                # Consumers that wait for bytes, by which: see sending.pyx
    Map64    streams                # the same but for pulls, and those that are away or leave: by number
    Consumer *leaving, *reported
    Holder   *waking, *waking_last  # those with room again, whose stopped consumers are looked at in turn
    const char* revoking            # why leases end just now, for those who hold them; NULL = LEASE_LOST
    LeaseGroup* marked              # their marks are to be written with this pass
    Timers   timers
    Channel* active                 # circular
    uint64_t next_number, number_reserved, audit_next   # for queues and channels; for what admins did
    uint64_t next_lease_id, lease_id_reserved, lease_id_durable, lease_id_epoch, dedup_rows, auditing_token
    Slice    auditing               # to be recorded of the command `auditing_token` once it succeeded
    # --- this pass
    rocksdb_writebatch_t* settles   # everything but new messages
    rocksdb_writebatch_t* enqueues  # refused as a whole when the disk will not take it
    rocksdb_writebatch_t* apart     # what must outlive a damaged block of the log: again, behind `settles`
    Share*   dirty_shares
    ThrottleKey* dirty_keys
    Builder  *builders, *movers
    Building* spare_items           # of a builder, for the next one that begins
    uint32_t spare_capacity, pages_count    # of these items; of the pages below
    Effect   *passing, *passing_last        # answers of this pass
    Decision *unasked, *unasked_last        # bytes they waited for are here; oldest first
    uint64_t decision_number
    Page     *pages, *pages_last
    Lookups  lookups                # messages that calls name
    uint64_t loads_taken            # answers of the reader thread
    Queue    *gone, *gone_last, *revealing, *revealing_last     # taken apart; in turn to become visible
    Chore    *chores, *chores_last  # changes that are carried out in pieces, each in its turn
    KeyDefaulting key_defaulting
    uint64_t stage_end, enqueued_batch      # see budget.pxd; which batch of new messages is being built
    char**   moved_bytes            # bytes of moved messages, until their frame is built
    uint32_t moved_bytes_count, moved_bytes_capacity
    Frame    *stored, *stored_last  # frames of this pass, oldest first, until it is written
    Brought* brought                # weights that this pass's messages brought, until it is written
    uint32_t brought_count, brought_capacity
    Renames  renames                # dedup keys that this pass's messages took over, until it is written
    Replacings replacings           # messages about to take another's place
    Frame*   dying
    Command* postponed              # taken from the mailbox, for the next pass
    Command  *enqueued, *enqueued_last      # enqueue commands of this pass, answered once it is written
    bint     sync_wanted
    int64_t  blocked_since_ns
    # --- epochs
    uint64_t epoch                  # being built
    Effect   *outgoing, *outgoing_last      # may leave, in this order; see answers.pxd
    Effect   *unsynced, *unsynced_last      # for `durable`
    # --- bytes in memory
    uint64_t hot_bytes
    Body     *newest, *oldest
    uint32_t rebuilding, clocks_count       # channels that take in retained frames; rows of all channels
    int      disk_level, disk_low   # as of this pass
    Timer    housekeeping
    int64_t  index_bytes            # frames, shares, keys, flows
    uint64_t keys_count
    Timers   visits                 # of queues: see visits.pxd
    int64_t  housekeeping_ns        # when housekeeping ran last
    int64_t  wall_ahead_ms, live_bytes      # of the monotonic clock; bytes of FRAMES: as of the last visits
    CoreCounters counters
    Sinks    sinks
    Buffer   scratch, tail
