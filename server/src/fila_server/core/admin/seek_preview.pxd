"""What a seek would do, counted and not done; a part of the channel's frames a command.

    SEEK_PREVIEW    SeekPart: an offset or a moment, and where this part begins (0: at the oldest)
                    -> SeekCount: the offset it would be at, how many messages of this part would be delivered
                    again, how many not any more, how many leases it would end, and where the next part begins
                    (0: that was all)
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void seek_preview(Core* core, Command* command) noexcept nogil
