"""What a key weighs by its messages: what the newest brought of those that were stored, or moved here.

    weight_brought ──► Core.brought ──► weights_record, with the messages ──► weights_written: or taken back

A weight counts from the pass on that takes its message in, for what waits already, too. It is below an
operator's word and the queue's table (Key).
"""

from libc.stdint cimport uint32_t

from fila_server.core.state.state cimport Core, Key

# A message was taken in that only the disk may refuse now.
cdef void weight_brought(Core* core, Key* key, uint32_t weight) noexcept nogil
# A message was moved here, which is written with the settles and never refused.
cdef void weight_moved(Core* core, Key* key, uint32_t weight) noexcept nogil
# Into the batch of the pass's messages; once a pass, behind all that may change a key's record.
cdef void weights_record(Core* core) noexcept nogil
# The disk took the pass's messages, or refused them; while their frames still hold their keys.
cdef void weights_written(Core* core, bint refused) noexcept nogil
