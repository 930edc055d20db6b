"""A note of what the write-ahead log must still hold, so that a log
file that somebody deleted is told with its size.

    rocksdb/synced      "synced 1234 log 56 first 1000 manifest MANIFEST-000055 789 sum 0123abcd"

`synced` is the number of a record that was on the disk for certain, `log` the oldest log file and `first` the
number of its first record. The note is at most a second old and needs no sync of its own: an older one says
less, and a torn one, which fails its checksum, says nothing.

Two things prove a loss, and nothing that RocksDB does by itself looks like either:
- the store ends before `synced`;
- the file `log` is gone, and no table was written since the note (the
  MANIFEST still has the noted size): RocksDB deletes a
  log only when all of it is in tables, and `log` is noted only if both were the same a
  second before, so that it cannot have been on its way out already.
"""

from fila_server.core.storage.families cimport Store

# Upkeep thread, each second.
cdef void lognote_write(Store* store) noexcept nogil
# Before the database is opened, behind the scan of its log: counts into store.wal what deleted files held.
cdef void lognote_check_files(Store* store) noexcept nogil
# Behind it: what is missing at the end.
cdef void lognote_check_end(Store* store) noexcept nogil
