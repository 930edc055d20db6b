"""Few messages bring another weight than their key has: only those are noted, with what it was before."""

from libc.stdint cimport uint16_t

from fila_server.core.formats.records cimport key_record_put
from fila_server.core.scheduling.flows cimport key_reconsider
from fila_server.core.state.state cimport Brought
from fila_server.core.structures.buffer cimport must_realloc


cdef void _weigh(Core* core, Key* key, uint16_t weight) noexcept nogil:
    key.weight = weight
    if not key.admin_weight and not key.table_weight:
        key_reconsider(core, key)


cdef void _note(Core* core, Key* key, uint16_t weight, bint is_moved) noexcept nogil:
    cdef Brought* brought
    if core.brought_count == core.brought_capacity:
        core.brought_capacity = core.brought_capacity * 2 + 16
        core.brought = <Brought*> must_realloc(core.brought, core.brought_capacity * sizeof(Brought))
    brought = &core.brought[core.brought_count]
    core.brought_count += 1
    brought.key, brought.weight, brought.before = key, weight, key.weight
    brought.is_moved = is_moved
    brought.was_recorded = False


cdef void weight_brought(Core* core, Key* key, uint32_t weight) noexcept nogil:
    if key.weight == weight:
        return
    _note(core, key, <uint16_t> weight, False)
    _weigh(core, key, <uint16_t> weight)


cdef void weight_moved(Core* core, Key* key, uint32_t weight) noexcept nogil:
    if core.brought_count:              # even the weight that it has: who brought that may be refused
        _note(core, key, <uint16_t> weight, True)
    if key.weight == weight:
        return
    _weigh(core, key, <uint16_t> weight)
    key_record_put(core, core.settles, key)


cdef void weights_record(Core* core) noexcept nogil:
    cdef Brought* brought
    cdef uint32_t i
    for i in range(core.brought_count):         # before any is put: a key may stand here more than once
        brought = &core.brought[i]
        brought.was_recorded = brought.key.recorded
    for i in range(core.brought_count):
        if not core.brought[i].is_moved:
            key_record_put(core, core.enqueues, core.brought[i].key)


cdef void weights_written(Core* core, bint refused) noexcept nogil:
    """What was refused is taken back as if it had never come: all of it, the last first, and then what was
    moved here is given again, in its order."""
    cdef Brought* brought
    cdef uint32_t count = core.brought_count
    cdef uint32_t i = count
    core.brought_count = 0
    while refused and i > 0:
        i -= 1
        _weigh(core, core.brought[i].key, core.brought[i].before)
    for i in range(count if refused else 0):
        if core.brought[i].is_moved:
            _weigh(core, core.brought[i].key, core.brought[i].weight)
    for i in range(count if refused else 0):
        brought = &core.brought[i]
        brought.key.recorded = brought.was_recorded
        if brought.was_recorded:        # with the weight that was refused, where an operator did it just now
            key_record_put(core, core.settles, brought.key)
