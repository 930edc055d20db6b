"""Everything we know of RocksDB's C API, and the only file that knows it.

Declarations of `rocksdb/c.h` as shipped with librocksdb 7.8.3; only what is used, so
that this page is also the list of what an upgrade has to keep. Conventions of the API:

- `errptr` must point to NULL on entry; on failure it is a malloc'd text, freed by
  `rocksdb_free`. The text is the only error code there is: store.pyx reads it.
- Keys and values are copied by the callee unless a name says "pinned".
- Nothing here raises or needs the GIL.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "rocksdb/c.h" nogil:
    ctypedef struct rocksdb_t:
        pass
    ctypedef struct rocksdb_cache_t:
        pass
    ctypedef struct rocksdb_checkpoint_t:
        pass
    ctypedef struct rocksdb_column_family_handle_t:
        pass
    ctypedef struct rocksdb_column_family_metadata_t:
        pass
    ctypedef struct rocksdb_compactoptions_t:
        pass
    ctypedef struct rocksdb_block_based_table_options_t:
        pass
    ctypedef struct rocksdb_flushoptions_t:
        pass
    ctypedef struct rocksdb_iterator_t:
        pass
    ctypedef struct rocksdb_livefiles_t:
        pass
    ctypedef struct rocksdb_options_t:
        pass
    ctypedef struct rocksdb_pinnableslice_t:
        pass
    ctypedef struct rocksdb_readoptions_t:
        pass
    ctypedef struct rocksdb_snapshot_t:
        pass
    ctypedef struct rocksdb_envoptions_t:
        pass
    ctypedef struct rocksdb_sstfilewriter_t:
        pass
    ctypedef struct rocksdb_universal_compaction_options_t:
        pass
    ctypedef struct rocksdb_writebatch_t:
        pass
    ctypedef struct rocksdb_writeoptions_t:
        pass

    # --- open and close ---------------------------------------------------------------
    rocksdb_t* rocksdb_open_column_families(
        const rocksdb_options_t* options, const char* name, int num_column_families,
        const char** column_family_names, const rocksdb_options_t** column_family_options,
        rocksdb_column_family_handle_t** column_family_handles, char** errptr)
    char** rocksdb_list_column_families(
        const rocksdb_options_t* options, const char* name, size_t* lencf, char** errptr)
    void rocksdb_list_column_families_destroy(char** list, size_t len)
    void rocksdb_column_family_handle_destroy(rocksdb_column_family_handle_t* handle)
    uint32_t rocksdb_column_family_handle_get_id(rocksdb_column_family_handle_t* handle)
    void rocksdb_repair_db(const rocksdb_options_t* options, const char* name, char** errptr)
    void rocksdb_cancel_all_background_work(rocksdb_t* db, unsigned char wait)
    void rocksdb_close(rocksdb_t* db)
    void rocksdb_free(void* ptr)

    # --- copy -------------------------------------------------------------------------
    rocksdb_checkpoint_t* rocksdb_checkpoint_object_create(rocksdb_t* db, char** errptr)
    void rocksdb_checkpoint_create(
        rocksdb_checkpoint_t* checkpoint, const char* checkpoint_dir, uint64_t log_size_for_flush,
        char** errptr)
    void rocksdb_checkpoint_object_destroy(rocksdb_checkpoint_t* checkpoint)

    # --- write ------------------------------------------------------------------------
    void rocksdb_write(
        rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_writebatch_t* batch, char** errptr)
    void rocksdb_flush_wal(rocksdb_t* db, unsigned char sync, char** errptr)
    void rocksdb_flush_cf(
        rocksdb_t* db, const rocksdb_flushoptions_t* options,
        rocksdb_column_family_handle_t* column_family, char** errptr)

    rocksdb_writebatch_t* rocksdb_writebatch_create()
    rocksdb_writebatch_t* rocksdb_writebatch_create_from(const char* rep, size_t size)
    void rocksdb_writebatch_destroy(rocksdb_writebatch_t* batch)
    void rocksdb_writebatch_clear(rocksdb_writebatch_t* batch)
    int rocksdb_writebatch_count(rocksdb_writebatch_t* batch)
    const char* rocksdb_writebatch_data(rocksdb_writebatch_t* batch, size_t* size)
    void rocksdb_writebatch_put_log_data(rocksdb_writebatch_t* batch, const char* blob, size_t len)
    void rocksdb_writebatch_put_cf(
        rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* column_family,
        const char* key, size_t klen, const char* value, size_t vlen)
    void rocksdb_writebatch_putv_cf(
        rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* column_family,
        int num_keys, const char* const* keys_list, const size_t* keys_list_sizes,
        int num_values, const char* const* values_list, const size_t* values_list_sizes)
    void rocksdb_writebatch_delete_cf(
        rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* column_family,
        const char* key, size_t klen)
    void rocksdb_writebatch_delete_range_cf(
        rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* column_family,
        const char* start_key, size_t start_key_len, const char* end_key, size_t end_key_len)

    rocksdb_writeoptions_t* rocksdb_writeoptions_create()
    void rocksdb_writeoptions_destroy(rocksdb_writeoptions_t* options)
    void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t* options, unsigned char value)
    void rocksdb_writeoptions_set_no_slowdown(rocksdb_writeoptions_t* options, unsigned char value)
    rocksdb_flushoptions_t* rocksdb_flushoptions_create()
    void rocksdb_flushoptions_destroy(rocksdb_flushoptions_t* options)
    void rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t* options, unsigned char value)

    # --- read -------------------------------------------------------------------------
    rocksdb_pinnableslice_t* rocksdb_get_pinned_cf(
        rocksdb_t* db, const rocksdb_readoptions_t* options,
        rocksdb_column_family_handle_t* column_family, const char* key, size_t keylen, char** errptr)
    const char* rocksdb_pinnableslice_value(const rocksdb_pinnableslice_t* slice, size_t* vlen)
    void rocksdb_pinnableslice_destroy(rocksdb_pinnableslice_t* slice)

    rocksdb_iterator_t* rocksdb_create_iterator_cf(
        rocksdb_t* db, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* column_family)
    void rocksdb_iter_destroy(rocksdb_iterator_t* iterator)
    unsigned char rocksdb_iter_valid(const rocksdb_iterator_t* iterator)
    void rocksdb_iter_seek_to_first(rocksdb_iterator_t* iterator)
    void rocksdb_iter_seek_to_last(rocksdb_iterator_t* iterator)
    void rocksdb_iter_seek(rocksdb_iterator_t* iterator, const char* k, size_t klen)
    void rocksdb_iter_seek_for_prev(rocksdb_iterator_t* iterator, const char* k, size_t klen)
    void rocksdb_iter_next(rocksdb_iterator_t* iterator)
    void rocksdb_iter_prev(rocksdb_iterator_t* iterator)
    const char* rocksdb_iter_key(const rocksdb_iterator_t* iterator, size_t* klen)
    const char* rocksdb_iter_value(const rocksdb_iterator_t* iterator, size_t* vlen)
    void rocksdb_iter_get_error(const rocksdb_iterator_t* iterator, char** errptr)

    const rocksdb_snapshot_t* rocksdb_create_snapshot(rocksdb_t* db)
    void rocksdb_release_snapshot(rocksdb_t* db, const rocksdb_snapshot_t* snapshot)

    rocksdb_readoptions_t* rocksdb_readoptions_create()
    void rocksdb_readoptions_destroy(rocksdb_readoptions_t* options)
    void rocksdb_readoptions_set_fill_cache(rocksdb_readoptions_t* options, unsigned char value)
    void rocksdb_readoptions_set_snapshot(rocksdb_readoptions_t* options, const rocksdb_snapshot_t* snapshot)
    void rocksdb_readoptions_set_verify_checksums(rocksdb_readoptions_t* options, unsigned char value)
    void rocksdb_readoptions_set_readahead_size(rocksdb_readoptions_t* options, size_t value)

    # --- what it holds, and giving disk back ------------------------------------------
    char* rocksdb_property_value_cf(
        rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const char* propname)
    int rocksdb_property_int(rocksdb_t* db, const char* propname, uint64_t* out_val)
    int rocksdb_property_int_cf(
        rocksdb_t* db, rocksdb_column_family_handle_t* column_family, const char* propname, uint64_t* out_val)
    uint64_t rocksdb_get_latest_sequence_number(rocksdb_t* db)
    void rocksdb_compact_range_cf_opt(
        rocksdb_t* db, rocksdb_column_family_handle_t* column_family, rocksdb_compactoptions_t* options,
        const char* start_key, size_t start_key_len, const char* limit_key, size_t limit_key_len)
    void rocksdb_suggest_compact_range_cf(
        rocksdb_t* db, rocksdb_column_family_handle_t* column_family,
        const char* start_key, size_t start_key_len, const char* limit_key, size_t limit_key_len,
        char** errptr)
    void rocksdb_delete_file_in_range_cf(
        rocksdb_t* db, rocksdb_column_family_handle_t* column_family,
        const char* start_key, size_t start_key_len, const char* limit_key, size_t limit_key_len,
        char** errptr)
    void rocksdb_disable_manual_compaction(rocksdb_t* db)
    void rocksdb_enable_manual_compaction(rocksdb_t* db)
    rocksdb_compactoptions_t* rocksdb_compactoptions_create()
    void rocksdb_compactoptions_destroy(rocksdb_compactoptions_t* options)
    void rocksdb_compactoptions_set_exclusive_manual_compaction(
        rocksdb_compactoptions_t* options, unsigned char value)
    void rocksdb_compactoptions_set_bottommost_level_compaction(
        rocksdb_compactoptions_t* options, unsigned char value)

    # --- options ----------------------------------------------------------------------
    rocksdb_options_t* rocksdb_options_create()
    rocksdb_options_t* rocksdb_options_create_copy(rocksdb_options_t* options)
    void rocksdb_set_options_cf(
        rocksdb_t* db, rocksdb_column_family_handle_t* handle, int count,
        const char* const* keys, const char* const* values, char** errptr)
    void rocksdb_options_destroy(rocksdb_options_t* options)
    void rocksdb_options_set_create_if_missing(rocksdb_options_t* options, unsigned char value)
    void rocksdb_options_set_create_missing_column_families(rocksdb_options_t* options, unsigned char value)
    void rocksdb_options_set_disable_auto_compactions(rocksdb_options_t* options, int value)
    void rocksdb_options_set_paranoid_checks(rocksdb_options_t* options, unsigned char value)
    void rocksdb_options_set_info_log_level(rocksdb_options_t* options, int value)
    void rocksdb_options_set_max_log_file_size(rocksdb_options_t* options, size_t value)
    void rocksdb_options_set_keep_log_file_num(rocksdb_options_t* options, size_t value)
    void rocksdb_options_set_stats_dump_period_sec(rocksdb_options_t* options, unsigned int value)
    void rocksdb_options_set_stats_persist_period_sec(rocksdb_options_t* options, unsigned int value)
    void rocksdb_options_set_write_buffer_size(rocksdb_options_t* options, size_t value)
    void rocksdb_options_set_max_write_buffer_number(rocksdb_options_t* options, int value)
    void rocksdb_options_set_max_write_buffer_size_to_maintain(rocksdb_options_t* options, int64_t value)
    void rocksdb_options_set_max_total_wal_size(rocksdb_options_t* options, uint64_t value)
    void rocksdb_options_set_wal_recovery_mode(rocksdb_options_t* options, int value)
    void rocksdb_options_set_wal_bytes_per_sync(rocksdb_options_t* options, uint64_t value)
    void rocksdb_options_set_bytes_per_sync(rocksdb_options_t* options, uint64_t value)
    void rocksdb_options_set_max_background_jobs(rocksdb_options_t* options, int value)
    void rocksdb_options_set_max_open_files(rocksdb_options_t* options, int value)
    void rocksdb_options_set_max_file_opening_threads(rocksdb_options_t* options, int value)
    void rocksdb_options_set_max_manifest_file_size(rocksdb_options_t* options, size_t value)
    void rocksdb_options_set_manifest_preallocation_size(rocksdb_options_t* options, size_t value)
    void rocksdb_options_set_compression(rocksdb_options_t* options, int value)
    void rocksdb_options_set_num_levels(rocksdb_options_t* options, int value)
    void rocksdb_options_set_level0_file_num_compaction_trigger(rocksdb_options_t* options, int value)
    void rocksdb_options_set_level0_slowdown_writes_trigger(rocksdb_options_t* options, int value)
    void rocksdb_options_set_level0_stop_writes_trigger(rocksdb_options_t* options, int value)
    void rocksdb_options_set_soft_pending_compaction_bytes_limit(rocksdb_options_t* options, size_t value)
    void rocksdb_options_set_hard_pending_compaction_bytes_limit(rocksdb_options_t* options, size_t value)
    void rocksdb_options_set_target_file_size_base(rocksdb_options_t* options, uint64_t value)
    void rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t* options, uint64_t value)
    void rocksdb_options_set_level_compaction_dynamic_level_bytes(
        rocksdb_options_t* options, unsigned char value)
    void rocksdb_options_set_max_compaction_bytes(rocksdb_options_t* options, uint64_t value)
    void rocksdb_options_set_compaction_style(rocksdb_options_t* options, int value)
    void rocksdb_options_set_universal_compaction_options(
        rocksdb_options_t* options, rocksdb_universal_compaction_options_t* universal)
    void rocksdb_options_add_compact_on_deletion_collector_factory(
        rocksdb_options_t* options, size_t window_size, size_t num_dels_trigger)
    void rocksdb_options_set_block_based_table_factory(
        rocksdb_options_t* options, rocksdb_block_based_table_options_t* table_options)
    void rocksdb_options_set_enable_blob_files(rocksdb_options_t* options, unsigned char value)
    void rocksdb_options_set_min_blob_size(rocksdb_options_t* options, uint64_t value)
    void rocksdb_options_set_blob_file_size(rocksdb_options_t* options, uint64_t value)
    void rocksdb_options_set_enable_blob_gc(rocksdb_options_t* options, unsigned char value)
    void rocksdb_options_set_blob_gc_age_cutoff(rocksdb_options_t* options, double value)
    void rocksdb_options_set_blob_gc_force_threshold(rocksdb_options_t* options, double value)

    void rocksdb_options_set_db_write_buffer_size(rocksdb_options_t* options, size_t value)
    void rocksdb_get_options_from_string(
        const rocksdb_options_t* base_options, const char* opts_str,
        rocksdb_options_t* new_options, char** errptr)

    rocksdb_universal_compaction_options_t* rocksdb_universal_compaction_options_create()
    void rocksdb_universal_compaction_options_destroy(rocksdb_universal_compaction_options_t* universal)
    void rocksdb_universal_compaction_options_set_max_size_amplification_percent(
        rocksdb_universal_compaction_options_t* universal, int value)

    rocksdb_block_based_table_options_t* rocksdb_block_based_options_create()
    void rocksdb_block_based_options_destroy(rocksdb_block_based_table_options_t* options)
    void rocksdb_block_based_options_set_block_size(
        rocksdb_block_based_table_options_t* options, size_t block_size)
    void rocksdb_block_based_options_set_block_cache(
        rocksdb_block_based_table_options_t* options, rocksdb_cache_t* block_cache)
    void rocksdb_block_based_options_set_cache_index_and_filter_blocks(
        rocksdb_block_based_table_options_t* options, unsigned char value)
    void rocksdb_block_based_options_set_format_version(
        rocksdb_block_based_table_options_t* options, int version)
    void rocksdb_block_based_options_set_index_type(
        rocksdb_block_based_table_options_t* options, int index_type)

    rocksdb_cache_t* rocksdb_cache_create_lru(size_t capacity)
    void rocksdb_cache_destroy(rocksdb_cache_t* cache)
    size_t rocksdb_cache_get_usage(rocksdb_cache_t* cache)

    # --- the tables of an open database, and one of our own making (salvage.pyx) ----------
    const rocksdb_livefiles_t* rocksdb_livefiles(rocksdb_t* db)
    int rocksdb_livefiles_count(const rocksdb_livefiles_t* files)
    const char* rocksdb_livefiles_name(const rocksdb_livefiles_t* files, int index)
    size_t rocksdb_livefiles_size(const rocksdb_livefiles_t* files, int index)
    void rocksdb_livefiles_destroy(const rocksdb_livefiles_t* files)
    rocksdb_envoptions_t* rocksdb_envoptions_create()
    void rocksdb_envoptions_destroy(rocksdb_envoptions_t* options)
    rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create(
        const rocksdb_envoptions_t* env, const rocksdb_options_t* io_options)
    void rocksdb_sstfilewriter_open(rocksdb_sstfilewriter_t* writer, const char* name, char** errptr)
    void rocksdb_sstfilewriter_delete(
        rocksdb_sstfilewriter_t* writer, const char* key, size_t keylen, char** errptr)
    void rocksdb_sstfilewriter_finish(rocksdb_sstfilewriter_t* writer, char** errptr)
    void rocksdb_sstfilewriter_destroy(rocksdb_sstfilewriter_t* writer)
