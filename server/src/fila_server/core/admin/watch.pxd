"""The fairness keys of one channel as somebody who watches it wants to see them: those that lead in an order,
and those that are named.

    WATCH_ROWS  {1 queue, 2 channel, 3 where in the table of keys this slice begins, 4 the table's size when
                 that was told, 5 cells of the slice, 6 most rows an order, 7 orders: bit n - 1 is
                 WatchStatsRequest.Order n, 8 repeated: a key, 9 of the slice alone}
                -> {1 repeated: KeyState, 2 where the next slice begins (0: at the start), 3 QueueState of the
                    channel, 4 the table's size}
    FIND_KEYS   {1 queue, 2 channel, 3 where this part begins, 4 the table's size when that was told, 5 keys
                 that begin so, 6 most rows; 7 what a rival has, 8 what a round grants it, 9 what one would:
                 then not those with most pending, but those from whose turns that takes most}
                -> {1 repeated: KeyState, 2 where the next part begins (0: that was all), 3 how many matched,
                    4 the table's size, 5 repeated: by what each row was ranked}

Keys that were lately active have a row in the channel's table of clocks (scheduling/clocks). All of these are
looked at; of the others a slice, so that a client that asks each second comes by each. One of these that
waits gets a row if there is room. Rates are of the time since the look before, and told of keys with a row.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void watch_command(Core* core, Command* command) noexcept nogil
