"""In which format a copy reads on, and a node bids (written.py). For the thread that follows."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fila_server.core.log.reading cimport HALT_FORMAT, HALT_NONE
from fila_server.core.log.record cimport MOVED, Record, takeover_says
from fila_server.core.runtime.confirming cimport (
    GROUP_BIDS, GROUP_FOLLOWS, GROUP_HALTS, Group, group_bid,
)
from fila_server.core.runtime.store_copy cimport StoreCopy
from fila_server.core.structures.atomics cimport atomic_store

NEWER = HALT_FORMAT                     # why a copy halts at a takeover of a newer format (StoreCopy.halted)

def reads_up_to(StoreCopy copy not None, uint16_t log_format):
    """Halt at a takeover whose owner writes a newer format than this one."""
    cdef Group* group = <Group*> copy.group
    group.reading.format_max = log_format


def goes_on(StoreCopy copy not None, uint16_t log_format):
    """One that halted there reads that takeover once more, up to this format."""
    cdef Group* group = <Group*> copy.group
    assert group.state == GROUP_HALTS and group.reading.halted == HALT_FORMAT
    group.reading.format_max = log_format
    group.reading.halted, group.reading.halted_at = HALT_NONE, 0
    # The takeover that it halted at comes next. It is this node's bid, or ends that one.
    atomic_store(&group.state, GROUP_BIDS if group.nonce else GROUP_FOLLOWS)


def bid(
        StoreCopy copy not None, uint64_t nonce, int64_t wall_ms, *, uint16_t log_format, bint is_moved=False,
        uint32_t incarnation=0):
    """Append a takeover of the term that is, of an owner that will write this format; False: the log takes
    nothing just now. `is_moved` and `incarnation` as StoreCopy.bid has them."""
    cdef Group* group = <Group*> copy.group
    cdef Record record
    cdef bytes name = copy.name.encode()
    memset(&record, 0, sizeof(Record))
    memcpy(record.cluster, <const char*> copy.cluster, 16)
    record.nonce, record.wall_ms, record.format = nonce, wall_ms, log_format
    record.incarnation = max(incarnation, group.reading.incarnation, <uint32_t> 1)
    record.flags = MOVED if is_moved else 0
    takeover_says(&record, name, b"", b"")
    return group_bid(group, &record)
