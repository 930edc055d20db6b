"""What a message is shared and limited by: fairness key, weight, cost, throttle keys; and what keys weigh by
it."""

from libc.stdint cimport uint32_t, uint8_t

from fila_server.core.protocol.packed_routing cimport Routing
from fila_server.core.protocol.protobuf cimport Item
from fila_server.core.state.state cimport Building, Core, Key, Queue
from fila_server.core.threads.mailbox cimport Command

# Fills in key, set and cost (with a reference each) and takes over the weight; 0, or why it is refused.
cdef uint8_t route(Core* core, Queue* queue, Command* command, Item* item, Building* b) noexcept nogil
# The same, where what a hook decided (NULL = nothing) doesn't travel with the item.
cdef uint8_t route_as(
    Core* core, Queue* queue, Command* command, Item* item, const Routing* hooked, Building* b) noexcept nogil
# Whether it could be routed, with nothing made or changed; 0, or why not.
cdef uint8_t route_check(Core* core, Queue* queue, Command* command, Item* item) noexcept nogil
# As a message without any headers: for one that must not be refused, whatever the settings say by now.
cdef void route_plainly(Core* core, Queue* queue, Building* b) noexcept nogil


# --- what a key weighs by its messages -------------------------------------------------------
# What a key weighs by its messages: what the newest brought of those that were stored, or moved here.
#
#     weight_brought ──► Core.brought ──► weights_record, with the messages ──► weights_written: or taken back
#
# A weight counts from the pass on that takes its message in, for what waits already, too. It is below an
# operator's word and the queue's table (Key).

# A message was taken in that only the disk may refuse now.
cdef void weight_brought(Core* core, Key* key, uint32_t weight) noexcept nogil
# A message was moved here, which is written with the settles and never refused.
cdef void weight_moved(Core* core, Key* key, uint32_t weight) noexcept nogil
# Into the batch of the pass's messages; once a pass, behind all that may change a key's record.
cdef void weights_record(Core* core) noexcept nogil
# The disk took the pass's messages, or refused them; while their frames still hold their keys.
cdef void weights_written(Core* core, bint refused) noexcept nogil
