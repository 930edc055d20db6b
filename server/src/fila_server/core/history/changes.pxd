"""What was changed, and who comes and goes, as rows of the history: settings, limits, policies of keys,
channels, seeks, consumers and their room. A replay reads none of it; who looks at decisions wants to know
what they were under.

The numbers of ChangeKind are those of history_files/columns.py; a test holds the two together. Each says it
once it holds.
"""

from fila_server.core.state.limits cimport Limit
from fila_server.core.state.state cimport Channel, Consumer, Core, Key, Queue

cdef enum ChangeKind:
    CHANGED_LIMIT = 1           # name; rate and burst of one in messages; value: other parts
    CHANGED_QUEUE_CREATED = 2   # value: its settings, as they are stored
    CHANGED_QUEUE_UPDATED = 3
    CHANGED_QUEUE_DELETED = 4
    CHANGED_CHANNEL_CREATED = 5     # value: its first offset
    CHANGED_CHANNEL_DELETED = 6
    CHANGED_CHANNEL_SOUGHT = 7      # value: the offset that it begins at now
    CHANGED_KEY = 8             # name: the fairness key; rate and burst; value: weight, pause and cap
    CHANGED_CONSUMER_JOINED = 9     # name: as it calls itself; value: its number and room
    CHANGED_CONSUMER_ROOM = 10
    CHANGED_CONSUMER_LEFT = 11

cdef void limit_changed(Core* core, const Limit* limit) noexcept nogil
cdef void queue_changed(Core* core, int kind, Queue* queue) noexcept nogil
cdef void channel_changed(Core* core, int kind, Channel* channel) noexcept nogil
cdef void key_changed(Core* core, Key* key) noexcept nogil
cdef void consumer_changed(Core* core, int kind, Consumer* consumer) noexcept nogil     # nothing of a pull
