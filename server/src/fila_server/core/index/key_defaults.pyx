"""The walk goes over the cells of the table of keys while keys come and go.

A key that goes moves others back, though never before the cell that their hash names: no farther than the
table's `reach`. So each piece begins that far before the end of the last, and passes no key by. A table of
another size is walked anew. A key that is met twice has nothing to learn.
"""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.index.keys cimport key_drop_if_idle
from fila_server.core.scheduling.allowances cimport key_take_defaults
from fila_server.core.scheduling.flows cimport key_reconsider
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.pending cimport DefaultsWalk
from fila_server.core.state.state cimport Key
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport map64_get, textmap_next


cdef void _begin_piece(Queue* queue, DefaultsWalk* walk) noexcept nogil:
    if walk.capacity != queue.keys.capacity:
        walk.cursor = 0
    else:
        walk.cursor -= min(walk.cursor, max(walk.reach, queue.keys.reach) + 1)
    walk.capacity, walk.reach = queue.keys.capacity, queue.keys.reach


cdef bint _some(Core* core, Queue* queue, DefaultsWalk* walk) noexcept nogil:
    """True: all of them know."""
    cdef Key* key
    _begin_piece(queue, walk)
    while stage_goes_on(core):
        key = <Key*> textmap_next(&queue.keys, &walk.cursor)
        if key == NULL:
            return True
        core.counters.work += 1
        if not key_take_defaults(core, key):
            continue
        if key.refs:
            key_reconsider(core, key)
            continue
        key_drop_if_idle(core, key)     # one that rested may be as new now; then another is in its cell
        _begin_piece(queue, walk)
    return False


cdef DefaultsWalk* _walk_of(Core* core, Queue* queue) noexcept nogil:
    cdef DefaultsWalk* walk = core.key_defaulting.walks
    while walk != NULL and walk.queue_number != queue.number:
        walk = walk.next
    if walk == NULL:
        walk = <DefaultsWalk*> must_malloc(sizeof(DefaultsWalk))
        memset(walk, 0, sizeof(DefaultsWalk))
        walk.queue_number = queue.number
        walk.next = core.key_defaulting.walks
        core.key_defaulting.walks = walk
    return walk


cdef void defaults_changed(Core* core, Queue* queue) noexcept nogil:
    if queue.keys.count == 0:
        return
    _walk_of(core, queue).cursor = 0
    defaults_turn(core)


cdef bint defaults_turn(Core* core) noexcept nogil:
    cdef DefaultsWalk** at = &core.key_defaulting.walks
    cdef DefaultsWalk* walk
    cdef Queue* queue
    while at[0] != NULL and stage_goes_on(core):
        walk = at[0]
        queue = <Queue*> map64_get(&core.queues_by_number, walk.queue_number)
        if queue == NULL or _some(core, queue, walk):
            at[0] = walk.next
            free(walk)
        else:
            at = &walk.next
    return core.key_defaulting.walks != NULL


cdef void defaults_forget(Core* core) noexcept nogil:
    cdef DefaultsWalk* walk
    while core.key_defaulting.walks != NULL:
        walk = core.key_defaulting.walks
        core.key_defaulting.walks = walk.next
        free(walk)
