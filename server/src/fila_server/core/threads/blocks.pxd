"""Columns of what happened: filled by the scheduler thread, written to disk by another, whole blocks at a
time.

    scheduler    current block, filled without a lock and without an allocation
      full  ──►  list of full blocks  ──►  history thread wraps the columns and writes them
      empty ◄──  list of free blocks  ◄──

There are at most BLOCKS_MAX, and while the core opens as many more as what it finds needs. Where none is
free the current one is emptied and counted: the scheduler never waits, and the next block says that
something before it is missing. The lock is held for a few pointer moves.

A run is what one pass did alike with several messages of one key: one row, and one element a message in the
columns behind it. Before that they are put together in a Group (history/decisions.pxd). Names stand once a
block, as texts; a row has their numbers, and 0 means none.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.threads.locks cimport pthread_mutex_t

cdef enum:
    BLOCKS_MAX = 8                  # about 6 MB each, of which only what was ever filled is in memory
    RUNS_MAX = 8192
    MESSAGES_MAX = 65536
    TEXTS_MAX = 16384
    TEXT_BYTES_MAX = 1048576
    CHANGES_MAX = 1024
    INPUTS_MAX = 16384
    INPUT_BYTES_MAX = 2097152
    GROUP_MAX = 1024                # messages
    TEXTS_CACHED = 4096
    TEXTS_PER_ROW = 8               # a row's own, at most, and their bytes
    TEXT_BYTES_PER_ROW = 16384

cdef struct Block:
    Block*   next
    uint64_t number                 # counts on over all blocks that were begun
    int64_t  first_ms, last_ms      # of what is in it; first_ms 0: nothing
    uint32_t runs, messages, texts, text_bytes, changes, inputs, input_bytes
    # what was dropped right before it
    uint64_t gap_blocks
    int64_t  gap_from_ms, gap_to_ms
    # runs
    int64_t* at_us
    int64_t* pass_number
    uint8_t* kind
    int32_t* queue
    int32_t* channel
    int32_t* key
    int32_t* weight
    int32_t* priority
    int64_t* consumer
    int32_t* throttle_set
    int32_t* bucket
    int32_t* reason
    int64_t* replaces               # the offset of the message that its one message replaces; 0 = none
    int64_t* many                   # messages that are counted and not listed; 0 = they are listed
    int32_t* begins                 # its first message; runs + 1 of these
    # messages of runs
    int64_t* offset
    uint64_t* cost
    int32_t* attempts
    int32_t* place                  # in its group
    int32_t* held_ms
    int32_t* wait_no_consumer_ms
    int32_t* wait_share_ms
    int32_t* wait_throttle_ms
    int32_t* wait_delay_ms
    int32_t* wait_held_ms
    # texts
    int32_t* text_begins            # texts + 1 of these; text 0 is empty
    char*    text
    # changes
    int64_t* change_at_us
    int64_t* change_pass
    uint8_t* change_kind
    int32_t* change_queue
    int32_t* change_channel
    int32_t* change_name
    int32_t* change_value
    double*  change_rate
    double*  change_burst
    # inputs
    uint8_t* input_kind
    int64_t* input_pass
    int64_t* input_at_ms
    int64_t* input_token
    int64_t* input_a
    int64_t* input_b
    int64_t* input_c
    uint8_t* input_goes_on          # its bytes go on in the next row
    int32_t* input_begins           # inputs + 1 of these
    char*    input

cdef struct RunKey:                 # what messages of one run have in common
    uint64_t pass_number
    const void* channel
    const void* key
    uint64_t key_hash
    uint64_t consumer
    int32_t  bucket, reason
    uint8_t  kind

cdef struct Waited:                 # a delivery's wait by cause
    int32_t no_consumer_ms
    int32_t share_ms
    int32_t throttle_ms
    int32_t delay_ms
    int32_t held_ms

cdef struct Reported:               # one message of a group
    int64_t  offset
    uint64_t cost
    int32_t  attempts, held_ms
    Waited   waited
    uint16_t next                   # of its run; GROUP_MAX: none

cdef struct Run:                    # those of one key and priority, which become one row
    uint64_t replaces               # as the column has it
    int32_t  key, buckets           # texts of the current block
    int32_t  weight, priority
    uint16_t first, last

cdef struct Group:                  # what its messages have in common is in the RunKey
    int32_t  queue, channel, key    # texts of the current block; the key's of its newest message
    uint32_t count, run_count
    Reported     reported[GROUP_MAX]
    Run      runs[GROUP_MAX]
    uint16_t run_of[TEXTS_MAX]      # by the text of the key

cdef struct History "fila_history":
    pthread_mutex_t lock
    Block*   current
    Block*   free_blocks
    Block*   full
    Block*   full_last
    uint32_t made
    uint32_t of_opening             # of these, made while the core opened and not given back since
    uint64_t begun
    uint64_t dropped                # blocks
    uint32_t cut_wanted             # raised by the history thread: hand over what there is
    int64_t  hour                   # of the current block
    # what is recorded
    uint32_t sample                 # one message in so many has its decisions recorded
    uint8_t  headers                # HeadersKept
    bint     quiet                  # recovery: nothing is decided yet
    bint     inputs_over            # the broker stops: what follows is not replayed
    RunKey   run
    Group    group
    # what ends a message, said right before it ends
    uint8_t  ending
    const char* ending_reason
    uint64_t ending_consumer
    int32_t  ending_held_ms
    # where texts of the current block may be found again, by their hash
    int32_t  cache[TEXTS_CACHED]
    Buffer   scratch, cuts, kept, routings

cdef History* history_new() noexcept nogil
cdef void history_free(History* history) noexcept nogil

# --- the scheduler's side
# Hand over the current block, if there is anything in it, and begin another.
cdef void block_end(History* history) noexcept nogil
# Where a text stands among the current block's; the caller sees to the room.
cdef int32_t block_text(History* history, const char* at, uint32_t length, uint64_t hash) noexcept nogil
cdef inline bint block_has_texts(Block* block) noexcept nogil:
    return (
        block.texts + TEXTS_PER_ROW < TEXTS_MAX and block.text_bytes + TEXT_BYTES_PER_ROW < TEXT_BYTES_MAX
    )

# --- the other side
cdef Block* block_take(History* history) noexcept nogil          # the oldest full one, or NULL
cdef void block_give_back(History* history, Block* block) noexcept nogil
