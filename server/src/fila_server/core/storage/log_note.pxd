"""A note of what the write-ahead log must still hold, so that log files that are gone or cut are told with
what they held.

    rocksdb/synced      "synced 1234 log 56 first 1000 log 58 first 1200 ... sum 0123abcd", twice

`synced` is the number of a record that was on the disk for certain: all up to it were answered. Behind it are
the log files, oldest first, each with the number of its first record (0 = it has none yet). A log that is not
named came later, so all its records are behind `synced`.

The note is at most a second old. It has two places, written and synced in turn: a power cut can tear one,
and the other one, a second older, says less and is as true.

With the oldest log that RocksDB needs (manifest.pxd) the rule is: from the first record of that log to
`synced` each number must be there. A note that is gone is damage too. The mirror of the MANIFEST tells
that there was one: it is made after the first note, and a store that was copied in has neither.
"""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.storage.families cimport Store

# Upkeep thread, each second; nothing is written when nothing was synced.
cdef void lognote_write(Store* store) noexcept nogil
# Behind an opening, before the mirror is made: the note of the run before counts no more.
cdef void lognote_begin(Store* store) noexcept nogil
# Before the database is opened, and before the scan of its log: fills store.promised, and counts into
# store.wal the files that are gone. Returns the number of the first record that must be there, 0 when that is
# not known.
cdef uint64_t lognote_read(Store* store, int64_t oldest_log) noexcept nogil
