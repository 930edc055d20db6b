"""RocksDB and its directory: batches in, one sync, reads, and what damage leaves. Begin at opening and store."""
