"""The fairness keys of one channel as somebody who watches it wants to see them: those that lead in an order,
and those that are named.

    WATCH_ROWS  WatchPage: a slice of `cells` of the table of keys from `cursor` on, at most `most` rows an
                order, of `orders` (bit n - 1 is WatchStatsRequest.Order n), and `keys` by name; with
                `slice_only` no others
                -> WatchedRows: a KeyState each, where the next slice begins (0: at the start), and the
                channel's QueueState
    FIND_KEYS   FindPage: of the part from `cursor` on, keys that begin with `prefix`, at most `most`; with
                `rival_work`, not those with most pending, but those from whose turns a rival takes most that
                has so much, where a round grants it `rival_grant_after` and not `rival_grant_before`
                -> KeyRows: a KeyState each, where the next part begins (0: that was all), how many matched,
                and by what each row was ranked

A cursor comes with the table's size when it was told: in a table of another one it means nothing.

Keys that were lately active have a row in the channel's table of clocks (scheduling/clocks). All of these are
looked at; of the others a slice, so that a client that asks each second comes by each. One of these that
waits gets a row if there is room. Rates are of the time since the look before, and told of keys with a row.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void watch_command(Core* core, Command* command) noexcept nogil
