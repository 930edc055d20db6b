"""The history as Python takes it: full blocks, their columns as memory that nobody copies.

A RecordedBlock's memoryviews are good until it is given back; then the scheduler fills the same memory anew.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free

from fila_server.core.history.decisions cimport (
    ACKED, DELAYED_FOR, DELIVERED, EXPIRED, NACKED, RELEASED, RETURNED,
)
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.threads.blocks cimport block_end, block_give_back, block_take, history_free, history_new

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)

cdef enum:
    LOOK_US = 5000


cdef class Recording:
    """What one core records; it outlives the core, so that the last blocks can be written after its end."""

    def __cinit__(self, uint32_t sample=1, uint8_t headers=1):
        self.history = history_new()
        self.history.sample = sample
        self.history.headers = headers
        self.history.quiet = True

    def __dealloc__(self):
        history_free(self.history)

    @property
    def dropped(self):
        """Blocks that were emptied because none was free."""
        return self.history.dropped

    def cut(self):
        """Ask the next pass for what there is, however little."""
        self.history.cut_wanted = 1

    def end_block(self):
        """Make what there is a full block now; only while nobody runs the core's passes."""
        block_end(self.history)

    def take(self, uint32_t wait_ms=0):
        """The oldest full block, or None when none came for `wait_ms`."""
        cdef Block* block = NULL
        cdef uint32_t waited_us = 0
        cdef RecordedBlock taken
        with nogil:
            while True:
                block = block_take(self.history)
                if block != NULL or waited_us >= wait_ms * 1000 or self.closed:
                    break
                usleep(LOOK_US)
                waited_us += LOOK_US
        if block == NULL:
            return None
        taken = RecordedBlock.__new__(RecordedBlock)
        taken.source, taken.block = self, block
        return taken


cdef inline object _view(const void* at, size_t bytes):
    return PyMemoryView_FromMemory(<char*> at, <Py_ssize_t> bytes, PyBUF_READ)


cdef class RecordedBlock:
    """One full block; `give_back` ends it."""

    def __dealloc__(self):
        self.give_back()

    def give_back(self):
        """Let the scheduler have it again. Nothing of it may be read any more."""
        if self.block != NULL:
            block_give_back(self.source.history, self.block)
            self.block = NULL
        free(self.gathered)
        self.gathered = NULL

    @property
    def counts(self):
        """Rows: runs, messages, texts, changes, inputs."""
        cdef Block* b = self.block
        return b.runs, b.messages, b.texts, b.changes, b.inputs

    @property
    def times(self):
        """First and last wall clock of what is in it, in ms; (0, 0): it only tells of a gap."""
        return self.block.first_ms, self.block.last_ms

    @property
    def gap(self):
        """What is missing right before it: blocks, and from when to when, in ms."""
        return self.block.gap_blocks, self.block.gap_from_ms, self.block.gap_to_ms

    def columns(self):
        """Every column but those of lists by its name, as it lies in memory."""
        if self.block == NULL:
            raise ValueError("the block was given back")
        return self._columns()

    def lists(self):
        """Lists of rows by name: where each row's begins and the last one's ends, and the elements."""
        if self.block == NULL:
            raise ValueError("the block was given back")
        if self.gathered == NULL:
            self.gathered = <Lists*> must_malloc(sizeof(Lists))
            with nogil:
                lists_gather(self.gathered, self.block)
        return self._lists()

    cdef tuple _list(self, int what, const void* column, size_t size):
        cdef const int32_t* begins = self.gathered.begins[what]
        cdef size_t runs = self.block.runs
        return _view(begins, (runs + 1) * 4), _view(column, <size_t> begins[runs] * size)

    cdef dict _lists(self):
        cdef Block* b = self.block
        return {
            "costs": self._list(LISTED_COST, b.cost, 8),
            "attempts": self._list(LISTED_ATTEMPTS, b.attempts, 4),
            "held_ms": self._list(LISTED_HELD, b.held_ms, 4),
            "wait_no_consumer_ms": self._list(LISTED_NO_CONSUMER, b.wait_no_consumer_ms, 4),
            "wait_share_ms": self._list(LISTED_SHARE, b.wait_share_ms, 4),
            "wait_throttle_ms": self._list(LISTED_THROTTLE, b.wait_throttle_ms, 4),
            "wait_delay_ms": self._list(LISTED_DELAY, b.wait_delay_ms, 4),
            "wait_held_ms": self._list(LISTED_WAIT_HELD, b.wait_held_ms, 4),
        }

    cdef dict _columns(self):
        cdef Block* b = self.block
        cdef size_t runs = b.runs, messages = b.messages, changes = b.changes, inputs = b.inputs
        return {
            "at_us": _view(b.at_us, runs * 8), "pass": _view(b.pass_number, runs * 8),
            "kind": _view(b.kind, runs), "queue": _view(b.queue, runs * 4),
            "channel": _view(b.channel, runs * 4), "key": _view(b.key, runs * 4),
            "weight": _view(b.weight, runs * 4), "priority": _view(b.priority, runs * 4),
            "consumer": _view(b.consumer, runs * 8),
            "throttle_set": _view(b.throttle_set, runs * 4), "bucket": _view(b.bucket, runs * 4),
            "reason": _view(b.reason, runs * 4), "many": _view(b.many, runs * 8),
            "replaces": _view(b.replaces, runs * 8),
            "begins": _view(b.begins, (runs + 1) * 4),
            "offset": _view(b.offset, messages * 8), "place": _view(b.place, messages * 4),
            "text_begins": _view(b.text_begins, (b.texts + 1) * 4), "text": _view(b.text, b.text_bytes),
            "change_at_us": _view(b.change_at_us, changes * 8),
            "change_pass": _view(b.change_pass, changes * 8), "change_kind": _view(b.change_kind, changes),
            "change_queue": _view(b.change_queue, changes * 4),
            "change_channel": _view(b.change_channel, changes * 4),
            "change_name": _view(b.change_name, changes * 4),
            "change_value": _view(b.change_value, changes * 4),
            "change_rate": _view(b.change_rate, changes * 8),
            "change_burst": _view(b.change_burst, changes * 8),
            "input_kind": _view(b.input_kind, inputs), "input_pass": _view(b.input_pass, inputs * 8),
            "input_at_ms": _view(b.input_at_ms, inputs * 8), "input_token": _view(b.input_token, inputs * 8),
            "input_a": _view(b.input_a, inputs * 8), "input_b": _view(b.input_b, inputs * 8),
            "input_c": _view(b.input_c, inputs * 8), "input_goes_on": _view(b.input_goes_on, inputs),
            "input_begins": _view(b.input_begins, (inputs + 1) * 4),
            "input": _view(b.input, b.input_bytes),
        }


# --- lists of a block's rows -----------------------------------------------------------------
# What is kept of a column never comes behind what it is taken from, so a column is its own place.

ctypedef fused Element:
    int32_t
    uint64_t


cdef inline bint _says(uint8_t kind, int what) noexcept nogil:
    """Whether rows of a kind have this list."""
    if what <= LISTED_ATTEMPTS:
        return True
    if what == LISTED_HELD:
        return (
            kind == RELEASED or kind == RETURNED or kind == NACKED or kind == EXPIRED or kind == DELAYED_FOR
            or kind == ACKED
        )
    return kind == DELIVERED


cdef void _gather(Lists* lists, const Block* b, int what, Element* column) noexcept nogil:
    cdef int32_t* begins = lists.begins[what]
    cdef uint32_t row, i, first, end
    cdef uint32_t to = 0
    cdef Element unlike, one
    begins[0] = 0
    for row in range(b.runs):
        first, end = <uint32_t> b.begins[row], <uint32_t> b.begins[row + 1]
        if first < end and _says(b.kind[row], what):
            one = column[first]
            unlike = 0
            for i in range(first, end):
                unlike |= column[i] ^ one
            column[to] = one
            to += 1
            if unlike:
                for i in range(first + 1, end):
                    column[to] = column[i]
                    to += 1
        begins[row + 1] = <int32_t> to


cdef void lists_gather(Lists* lists, Block* block) noexcept nogil:
    _gather(lists, block, LISTED_COST, block.cost)
    _gather(lists, block, LISTED_ATTEMPTS, block.attempts)
    _gather(lists, block, LISTED_HELD, block.held_ms)
    _gather(lists, block, LISTED_NO_CONSUMER, block.wait_no_consumer_ms)
    _gather(lists, block, LISTED_SHARE, block.wait_share_ms)
    _gather(lists, block, LISTED_THROTTLE, block.wait_throttle_ms)
    _gather(lists, block, LISTED_DELAY, block.wait_delay_ms)
    _gather(lists, block, LISTED_WAIT_HELD, block.wait_held_ms)
