"""How RocksDB is set up for each family, each number with its reason.

The load these numbers are for: frames of about 100 KB are written once, read back at most
once, and deleted soon after they came, nearly in the order they came. Everything else is
small records, deleted about as fast. Nothing is ever overwritten in place but a few counters.
"""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.storage.families cimport DEDUP, FRAMES, INDEX, KEYS, LEASES, SETTLED, STAGED, STATES
from fila_server.core.storage.rocksdb cimport *

cdef enum:
    SKIP_ANY_CORRUPTED_RECORD = 3   # wal_recovery_mode
    NO_COMPRESSION = 0
    INFO_LOG_WARN = 2
    LEVEL_COMPACTION = 0
    BINARY_SEARCH_WITH_FIRST_KEY = 3

cdef int64_t MIB = 1 << 20


cdef void default_store_options(StoreOptions* options) noexcept nogil:
    options.memtable_bytes = 28 * MIB
    options.memtable_count = 3
    options.wal_bytes_max = 256 * MIB
    options.block_cache_bytes = 8 * MIB
    options.blob_min_bytes = 4096
    options.ballast_bytes = 64 * MIB
    options.background_threads = 2
    options.stop_on_damage = False


cdef rocksdb_options_t* tuned_options(
        const StoreOptions* options, int family, rocksdb_cache_t* cache) noexcept nogil:
    cdef rocksdb_options_t* tuned = rocksdb_options_create()
    _tune_database(tuned, options)
    _tune_tables(tuned, family, cache)
    _tune_memtables(tuned, options, family)
    _tune_compaction(tuned)
    if (family == FRAMES or family == STAGED) and options.blob_min_bytes > 0:
        _tune_blobs(tuned, options)
    return tuned


cdef void _tune_database(rocksdb_options_t* tuned, const StoreOptions* options) noexcept nogil:
    rocksdb_options_set_create_if_missing(tuned, 1)
    rocksdb_options_set_create_missing_column_families(tuned, 1)
    # One flipped byte must not cost what was written after it, nor the start: skip the
    # damaged batch. That this loses nothing silently is the work of walscan.pyx.
    rocksdb_options_set_wal_recovery_mode(tuned, SKIP_ANY_CORRUPTED_RECORD)
    rocksdb_options_set_max_total_wal_size(tuned, <uint64_t>options.wal_bytes_max)
    rocksdb_options_set_max_background_jobs(tuned, options.background_threads)
    # Dirty pages go out as they come, so that no fdatasync has a second's worth to write.
    rocksdb_options_set_bytes_per_sync(tuned, <uint64_t>MIB)
    # Its own log: small, and only what deserves a look.
    rocksdb_options_set_info_log_level(tuned, INFO_LOG_WARN)
    rocksdb_options_set_max_log_file_size(tuned, <size_t>MIB)
    rocksdb_options_set_keep_log_file_num(tuned, 4)
    rocksdb_options_set_stats_dump_period_sec(tuned, 0)
    rocksdb_options_set_stats_persist_period_sec(tuned, 0)
    rocksdb_options_set_max_manifest_file_size(tuned, <size_t>(16 * MIB))
    # It has some KB after a start; 4 MiB would be taken from the disk for it each time.
    rocksdb_options_set_manifest_preallocation_size(tuned, <size_t>(64 * 1024))
    rocksdb_options_set_max_open_files(tuned, 512)
    # A start opens at most 16 tables, all others when somebody reads them. For that it would start 15 threads
    # a family, also where there is none to open: five sixths of the start of a small store.
    rocksdb_options_set_max_file_opening_threads(tuned, 1)


cdef void _tune_tables(rocksdb_options_t* tuned, int family, rocksdb_cache_t* cache) noexcept nogil:
    cdef rocksdb_block_based_table_options_t* tables = rocksdb_block_based_options_create()
    if cache != NULL:
        rocksdb_block_based_options_set_block_cache(tables, cache)
    # Index blocks in the cache too: memory stays bounded however large the backlog is.
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(tables, 1)
    # With each block's first key in the index, a damaged block is met only when a scan reaches it. Without,
    # it hides every smaller key of every other table, too.
    rocksdb_block_based_options_set_index_type(tables, BINARY_SEARCH_WITH_FIRST_KEY)
    # A block is what one flipped byte costs. In FRAMES it holds references of about 50 bytes to payloads.
    rocksdb_block_based_options_set_block_size(tables, 512 if family == FRAMES or family == STAGED else 4096)
    rocksdb_block_based_options_set_format_version(tables, 5)      # salvage.pyx knows its footer
    rocksdb_options_set_block_based_table_factory(tuned, tables)
    rocksdb_block_based_options_destroy(tables)
    # Payloads are the callers' bytes and often compressed already; processor time is scarcer than disk.
    rocksdb_options_set_compression(tuned, NO_COMPRESSION)


cdef void _tune_memtables(rocksdb_options_t* tuned, const StoreOptions* options, int family) noexcept nogil:
    if family == STAGED:                # comes in bursts, and is gone as soon as it is published
        rocksdb_options_set_write_buffer_size(tuned, <size_t>(8 * MIB))
        rocksdb_options_set_max_write_buffer_number(tuned, 6)
    elif family == FRAMES:
        rocksdb_options_set_write_buffer_size(tuned, <size_t>options.memtable_bytes)
        rocksdb_options_set_max_write_buffer_number(tuned, options.memtable_count)
        # Not several small ones merged at the flush: in 7.8.3 a flush that was asked for can then be
        # forgotten, and what waits for it (a compaction, the stop of the server) waits until the next
        # message comes.
    elif family in (INDEX, SETTLED, LEASES, STATES, DEDUP, KEYS):
        rocksdb_options_set_write_buffer_size(tuned, <size_t>(4 * MIB))
        rocksdb_options_set_max_write_buffer_number(tuned, 4)
    else:
        rocksdb_options_set_write_buffer_size(tuned, <size_t>MIB)
        rocksdb_options_set_max_write_buffer_number(tuned, 3)
    # Keep nothing in memory that is in a table already: that history serves transactions only.
    rocksdb_options_set_max_write_buffer_size_to_maintain(tuned, 0)


cdef void _tune_compaction(rocksdb_options_t* tuned) noexcept nogil:
    rocksdb_options_set_compaction_style(tuned, LEVEL_COMPACTION)
    rocksdb_options_set_level_compaction_dynamic_level_bytes(tuned, 1)
    rocksdb_options_set_level0_file_num_compaction_trigger(tuned, 4)
    rocksdb_options_set_target_file_size_base(tuned, <uint64_t>(16 * MIB))
    rocksdb_options_set_max_bytes_for_level_base(tuned, <uint64_t>(64 * MIB))
    # A write that asked for no slow-down is refused at the "slow down" marks already, so they
    # are moved up to the "stop" marks: a refusal then means that there truly is no room.
    rocksdb_options_set_level0_slowdown_writes_trigger(tuned, 48)
    rocksdb_options_set_level0_stop_writes_trigger(tuned, 64)
    rocksdb_options_set_soft_pending_compaction_bytes_limit(tuned, <size_t>(64 * 1024 * MIB))
    rocksdb_options_set_hard_pending_compaction_bytes_limit(tuned, <size_t>(128 * 1024 * MIB))
    # A table that is mostly deletions is compacted next: that is where disk comes back.
    rocksdb_options_add_compact_on_deletion_collector_factory(tuned, 128, 64)


cdef void _tune_blobs(rocksdb_options_t* tuned, const StoreOptions* options) noexcept nogil:
    rocksdb_options_set_enable_blob_files(tuned, 1)
    rocksdb_options_set_min_blob_size(tuned, <uint64_t>options.blob_min_bytes)
    # Frames die nearly in the order they came, so most blob files die whole; small files, sooner.
    rocksdb_options_set_blob_file_size(tuned, <uint64_t>(32 * MIB))
    # Copying live payloads out of half-dead files is switched on by reclaim.pyx for as long as it
    # needs it, and then for all files. Left on, it tripled what is written with a deep backlog.
    rocksdb_options_set_enable_blob_gc(tuned, 0)
    rocksdb_options_set_blob_gc_age_cutoff(tuned, 1.0)
    rocksdb_options_set_blob_gc_force_threshold(tuned, 1.0)
