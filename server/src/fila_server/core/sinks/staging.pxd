"""Stage: messages are put aside on the disk, under the key of their frame.

Queue and bounds are checked here, and a hook has decided already; offset, id, delays, times to live and dedup
keys are for the moment of publication. The frame is written with new messages, so a full disk refuses it
alone.
"""

from libc.stdint cimport uint8_t

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

# STAGE; True: answered, and the caller's to free
cdef bint stage(Core* core, Command* command) noexcept nogil
# 0, or why the batch was not written
cdef void staged_written(Core* core, uint8_t refused) noexcept nogil
