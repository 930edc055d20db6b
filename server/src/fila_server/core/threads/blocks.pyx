"""A block is one piece of memory with its columns behind it, so filling a row is stores and nothing else. A
text is looked up in a small cache by its hash; where another one stands in its cell it is written once
more."""

from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.structures.buffer cimport buffer_free, must_malloc
from fila_server.core.threads.locks cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef inline void* _carve(char** at, size_t bytes) noexcept nogil:
    cdef char* here = at[0]
    at[0] += (bytes + 63) & ~<size_t> 63
    return here


cdef char* _rows_carve(Block* b, char* at) noexcept nogil:
    b.at_us = <int64_t*> _carve(&at, RUNS_MAX * 8)
    b.pass_number = <int64_t*> _carve(&at, RUNS_MAX * 8)
    b.kind = <uint8_t*> _carve(&at, RUNS_MAX)
    b.queue = <int32_t*> _carve(&at, RUNS_MAX * 4)
    b.channel = <int32_t*> _carve(&at, RUNS_MAX * 4)
    b.key = <int32_t*> _carve(&at, RUNS_MAX * 4)
    b.weight = <int32_t*> _carve(&at, RUNS_MAX * 4)
    b.priority = <int32_t*> _carve(&at, RUNS_MAX * 4)
    b.consumer = <int64_t*> _carve(&at, RUNS_MAX * 8)
    b.throttle_set = <int32_t*> _carve(&at, RUNS_MAX * 4)
    b.bucket = <int32_t*> _carve(&at, RUNS_MAX * 4)
    b.reason = <int32_t*> _carve(&at, RUNS_MAX * 4)
    b.replaces = <int64_t*> _carve(&at, RUNS_MAX * 8)
    b.many = <int64_t*> _carve(&at, RUNS_MAX * 8)
    b.begins = <int32_t*> _carve(&at, (RUNS_MAX + 1) * 4)
    b.offset = <int64_t*> _carve(&at, MESSAGES_MAX * 8)
    b.cost = <uint64_t*> _carve(&at, MESSAGES_MAX * 8)
    b.attempts = <int32_t*> _carve(&at, MESSAGES_MAX * 4)
    b.place = <int32_t*> _carve(&at, MESSAGES_MAX * 4)
    b.held_ms = <int32_t*> _carve(&at, MESSAGES_MAX * 4)
    b.wait_no_consumer_ms = <int32_t*> _carve(&at, MESSAGES_MAX * 4)
    b.wait_share_ms = <int32_t*> _carve(&at, MESSAGES_MAX * 4)
    b.wait_throttle_ms = <int32_t*> _carve(&at, MESSAGES_MAX * 4)
    b.wait_delay_ms = <int32_t*> _carve(&at, MESSAGES_MAX * 4)
    b.wait_held_ms = <int32_t*> _carve(&at, MESSAGES_MAX * 4)
    b.text_begins = <int32_t*> _carve(&at, (TEXTS_MAX + 1) * 4)
    b.text = <char*> _carve(&at, TEXT_BYTES_MAX)
    return at


cdef char* _changes_and_inputs_carve(Block* b, char* at) noexcept nogil:
    b.change_at_us = <int64_t*> _carve(&at, CHANGES_MAX * 8)
    b.change_pass = <int64_t*> _carve(&at, CHANGES_MAX * 8)
    b.change_kind = <uint8_t*> _carve(&at, CHANGES_MAX)
    b.change_queue = <int32_t*> _carve(&at, CHANGES_MAX * 4)
    b.change_channel = <int32_t*> _carve(&at, CHANGES_MAX * 4)
    b.change_name = <int32_t*> _carve(&at, CHANGES_MAX * 4)
    b.change_value = <int32_t*> _carve(&at, CHANGES_MAX * 4)
    b.change_rate = <double*> _carve(&at, CHANGES_MAX * 8)
    b.change_burst = <double*> _carve(&at, CHANGES_MAX * 8)
    b.input_kind = <uint8_t*> _carve(&at, INPUTS_MAX)
    b.input_pass = <int64_t*> _carve(&at, INPUTS_MAX * 8)
    b.input_at_ms = <int64_t*> _carve(&at, INPUTS_MAX * 8)
    b.input_token = <int64_t*> _carve(&at, INPUTS_MAX * 8)
    b.input_a = <int64_t*> _carve(&at, INPUTS_MAX * 8)
    b.input_b = <int64_t*> _carve(&at, INPUTS_MAX * 8)
    b.input_c = <int64_t*> _carve(&at, INPUTS_MAX * 8)
    b.input_goes_on = <uint8_t*> _carve(&at, INPUTS_MAX)
    b.input_begins = <int32_t*> _carve(&at, (INPUTS_MAX + 1) * 4)
    b.input = <char*> _carve(&at, INPUT_BYTES_MAX)
    return at


cdef Block* _block_new() noexcept nogil:
    """In one piece: its columns stand behind it."""
    cdef Block sizes
    cdef size_t bytes = <size_t> _changes_and_inputs_carve(&sizes, _rows_carve(&sizes, NULL))
    cdef Block* b = <Block*> must_malloc(sizeof(Block) + 64 + bytes)
    cdef char* at = <char*> b + sizeof(Block)
    memset(b, 0, sizeof(Block))
    at += 64 - <size_t> at % 64
    _changes_and_inputs_carve(b, _rows_carve(b, at))
    return b


cdef void _empty(History* history, Block* b) noexcept nogil:
    """What it says of a gap before it stays."""
    b.next = NULL
    b.runs = b.messages = b.changes = b.inputs = b.input_bytes = b.text_bytes = 0
    b.first_ms = b.last_ms = 0
    b.begins[0] = b.input_begins[0] = 0
    b.texts = 1
    b.text_begins[0] = b.text_begins[1] = 0
    history.begun += 1
    b.number = history.begun
    memset(history.cache, 0, sizeof(history.cache))
    memset(&history.run, 0, sizeof(RunKey))


cdef History* history_new() noexcept nogil:
    cdef History* history = <History*> must_malloc(sizeof(History))
    memset(history, 0, sizeof(History))
    pthread_mutex_init(&history.lock, NULL)
    history.sample = 1
    history.current = _block_new()
    history.made = 1
    _empty(history, history.current)
    return history


cdef void _list_free(Block* block) noexcept nogil:
    cdef Block* following
    while block != NULL:
        following = block.next
        free(block)
        block = following


cdef void history_free(History* history) noexcept nogil:
    """Blocks that are still taken are their taker's loss: it gives them back first."""
    _list_free(history.free_blocks)
    _list_free(history.full)
    free(history.current)
    buffer_free(&history.scratch)
    buffer_free(&history.cuts)
    buffer_free(&history.kept)
    buffer_free(&history.routings)
    pthread_mutex_destroy(&history.lock)
    free(history)


# --- the scheduler's side ----------------------------------------------------------------------

cdef Block* _next(History* history, Block* ended) noexcept nogil:
    """Put a full block on the list and get an empty one; NULL, and nothing was put: there is none.

    While the core opens nobody takes blocks yet, nor is anybody served who could be held up: what it found,
    which is about as large as its index, gets as many as it needs. They do not count among BLOCKS_MAX, so
    that what is decided right behind it, while they are still being written, finds as many as ever; as many
    are freed again, the first that come back.
    """
    cdef Block* b
    cdef bint is_new
    pthread_mutex_lock(&history.lock)
    b = history.free_blocks
    if b != NULL:
        history.free_blocks = b.next
    is_new = b == NULL and (history.quiet or history.made - history.of_opening < BLOCKS_MAX)
    history.made += is_new
    history.of_opening += is_new and history.quiet
    if b != NULL or is_new:
        if history.full_last == NULL:
            history.full = ended
        else:
            history.full_last.next = ended
        history.full_last = ended
    pthread_mutex_unlock(&history.lock)
    if is_new:
        b = _block_new()                # while the first few come; never in the middle of a long run
    return b


cdef void block_end(History* history) noexcept nogil:
    cdef Block* b = history.current
    cdef Block* following
    if b.first_ms == 0 and b.gap_blocks == 0:
        return
    following = _next(history, b)
    if following != NULL:
        following.gap_blocks = 0
        following.gap_from_ms = following.gap_to_ms = 0
        _empty(history, following)
        history.current = following
        return
    history.dropped += 1
    if b.gap_blocks == 0:
        b.gap_from_ms = b.first_ms
    b.gap_to_ms = b.last_ms
    b.gap_blocks += 1
    _empty(history, b)


cdef int32_t block_text(History* history, const char* at, uint32_t length, uint64_t hash) noexcept nogil:
    cdef Block* b = history.current
    cdef uint32_t cell = <uint32_t> (hash % TEXTS_CACHED)
    cdef int32_t found = history.cache[cell]
    if length == 0:
        return 0
    if (
        found and <uint32_t> (b.text_begins[found + 1] - b.text_begins[found]) == length
        and memcmp(b.text + b.text_begins[found], at, length) == 0
    ):
        return found
    found = <int32_t> b.texts
    memcpy(b.text + b.text_bytes, at, length)
    b.text_bytes += length
    b.texts += 1
    b.text_begins[b.texts] = <int32_t> b.text_bytes
    history.cache[cell] = found
    return found


# --- the other side ----------------------------------------------------------------------------

cdef Block* block_take(History* history) noexcept nogil:
    cdef Block* b
    pthread_mutex_lock(&history.lock)
    b = history.full
    if b != NULL:
        history.full = b.next
        if history.full == NULL:
            history.full_last = NULL
        b.next = NULL
    pthread_mutex_unlock(&history.lock)
    return b


cdef void block_give_back(History* history, Block* block) noexcept nogil:
    pthread_mutex_lock(&history.lock)
    if history.of_opening:
        history.of_opening -= 1
        history.made -= 1
    else:
        block.next = history.free_blocks
        history.free_blocks = block
        block = NULL
    pthread_mutex_unlock(&history.lock)
    free(block)                         # for one that only the opening needed; else nothing
