"""The way of full blocks to Python: their columns as memory, and their lists moved together."""

from libc.stdint cimport int32_t

from fila_server.core.threads.blocks cimport RUNS_MAX, Block, History

cdef class Recording:
    cdef History* history
    cdef readonly bint closed           # the core is; what is full by now is all that comes

cdef class RecordedBlock:
    cdef Recording source
    cdef Block* block
    cdef Lists* gathered                # NULL until somebody asks for lists
    cdef tuple _list(self, int what, const void* column, size_t size)
    cdef dict _columns(self)
    cdef dict _lists(self)


# --- lists of a block's rows -----------------------------------------------------------------
# The lists of a block's rows, as files have them: where all messages of a row are alike in something, which
# is the rule, one element says it of all of them, and a kind that says nothing of it has none.
#
# Encoding elements of lists is most of what a history costs, so they are moved together before, on the thread
# that writes them; the scheduler fills one element a message, which is the least for it.

cdef enum Listed:
    LISTED_COST
    LISTED_ATTEMPTS
    LISTED_HELD
    LISTED_NO_CONSUMER
    LISTED_SHARE
    LISTED_THROTTLE
    LISTED_DELAY
    LISTED_WAIT_HELD
    LISTED                              # how many there are

cdef struct Lists:
    int32_t begins[LISTED][RUNS_MAX + 1]        # where each row's begins; behind the last, where it ends

# Moves the elements together, in the block's own columns: once for each time that it is full.
cdef void lists_gather(Lists* lists, Block* block) noexcept nogil
