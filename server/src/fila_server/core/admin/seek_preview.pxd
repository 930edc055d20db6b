"""What a seek would do, counted and not done; a part of the channel's frames a command.

    SEEK_PREVIEW    {1 queue, 2 channel, 3 offset or 4 moment, 5 where this part begins (0: at the oldest)}
                    -> {1 the offset it would be at, 2 messages of this part that would be delivered again,
                        3 messages of this part that would not be delivered any more, 4 leases it would end,
                        5 where the next part begins (0: that was all)}
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void seek_preview(Core* core, Command* command) noexcept nogil
