"""From the settings, flat as Config.engine_settings gives them, to what the core and its store go by."""

from fila_server.core.state.state cimport Core
from fila_server.core.storage.families cimport StoreOptions

cdef void core_configure(Core* core, dict settings) except *
cdef void store_configure(StoreOptions* options, bint stop_on_damage, dict settings) except *
