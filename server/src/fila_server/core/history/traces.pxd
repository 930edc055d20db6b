"""Which messages' ways through the broker are told as spans, and those spans (threads/spans).

A message whose headers carry a `traceparent` of a recorded trace gets a span when it is stored, when its
script routes it, when it is sent, and when it comes back or is done with: children of the producer's span.

    enqueue     from the pass that takes it (with a script: from when it was shown to that) to the disk
    policy      what its on_enqueue or on_failure script took
    deliver     from its enqueue, or from when its last lease ended, to when it was sent
    settle      from then to what its consumer said, or to the end of its lease

Nothing here decides anything or is looked at by what does. Callers look at `core.traces` first: it is NULL
where no spans are wanted.
"""

from libc.stdint cimport uint64_t, uint8_t

from fila_server.core.state.state cimport Core, Delivery, Lease, Slot
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

cdef void traces_turn(Core* core) noexcept nogil                            # a pass begins
# Before any of the command's messages is taken: their bytes are still its own.
cdef void enqueue_traced(Core* core, Command* command) noexcept nogil
cdef void enqueue_written_traced(Core* core, Command* command, uint8_t refused) noexcept nogil
cdef void delivery_traced(Core* core, Delivery* delivery) noexcept nogil    # its bytes are hot
# Right before the lease ends.
cdef void lease_traced(Core* core, Lease* lease, int outcome, Slice why) noexcept nogil
# What became of a failed message that its script was asked about; the lease is the one that failed.
cdef void decision_traced(Core* core, Slot* slot, uint64_t lease_id, int outcome) noexcept nogil
