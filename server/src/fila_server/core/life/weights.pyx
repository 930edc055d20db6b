"""Few messages bring another weight than their key has: only those are noted, with what it was before."""

from libc.stdint cimport uint16_t

from fila_server.core.records.records cimport key_record_put
from fila_server.core.state.state cimport Brought
from fila_server.core.structures.buffer cimport must_realloc
from fila_server.core.turns.flows cimport key_reconsider


cdef void _weigh(Core* core, Key* key, uint16_t weight) noexcept nogil:
    key.weight = weight
    if not key.admin_weight and not key.table_weight:
        key_reconsider(core, key)


cdef void weight_brought(Core* core, Key* key, uint32_t weight) noexcept nogil:
    cdef Brought* brought
    if key.weight == weight:
        return
    if core.brought_count == core.brought_capacity:
        core.brought_capacity = core.brought_capacity * 2 + 16
        core.brought = <Brought*> must_realloc(core.brought, core.brought_capacity * sizeof(Brought))
    brought = &core.brought[core.brought_count]
    core.brought_count += 1
    brought.key, brought.weight, brought.before = key, <uint16_t> weight, key.weight
    brought.was_recorded = False
    _weigh(core, key, brought.weight)


cdef void weight_moved(Core* core, Key* key, uint32_t weight) noexcept nogil:
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
        key_record_put(core, core.enqueues, core.brought[i].key)


cdef void weights_written(Core* core, bint refused) noexcept nogil:
    cdef Brought* brought
    cdef uint32_t i = core.brought_count
    core.brought_count = 0
    while refused and i > 0:            # the last first: a key may stand here more than once
        i -= 1
        brought = &core.brought[i]
        if brought.key.weight == brought.weight:        # else a message that was moved gave it another since
            _weigh(core, brought.key, brought.before)
        brought.key.recorded = brought.was_recorded
        if brought.was_recorded:        # with the weight that was refused, where an operator did it just now
            key_record_put(core, core.settles, brought.key)
