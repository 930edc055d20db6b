"""Structs that the state holds by pointer alone, so that a change of one compiles its users again and not all
that know the state. A module that looks into one takes it from where it is declared, by the same C name.
"""

cdef extern from *:
    struct Group "fila_group"                   # runtime/confirming
    struct History "fila_history"               # threads/blocks
    struct Load "fila_load"                     # threads/reader
    struct Loader "fila_loader"
    struct Outbox "fila_outbox"                 # threads/outbox
    struct Outboxes "fila_outboxes"
    struct Store "fila_store"                   # storage/families
    struct StoreError "fila_store_error"        # storage/status
    struct StoreFailure "fila_store_failure"
    struct Traces "fila_traces"                 # threads/spans
    struct Upkeep "fila_upkeep"                 # storage/reclaim
    struct Watch "fila_watch"                   # storage/watch
    struct rocksdb_writebatch_t
