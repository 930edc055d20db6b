"""How the store answers: a status, and in the caller's own StoreError a sentence for people."""


cdef enum StoreStatus:
    STORE_OK = 0
    STORE_STALLED = 1       # tables or compaction lag behind; nothing written; try again later
    STORE_FULL = 2          # no space; nothing written; writes work again when there is space
    STORE_FAILED = 3        # the disk or the engine failed; see the text; restart needed
    STORE_IN_USE = 4        # open only: another process holds the directory
    STORE_UNWRITABLE = 5    # open only: cannot create or write the directory
    STORE_TOO_NEW = 6       # open only: a newer server wrote it
    STORE_DAMAGED = 7       # open: damage and stop_on_damage, or beyond what can be skipped;
                            # read: what this record lies in is gone, or fails its checksum
    STORE_NOT_FOUND = 8     # store_get only
    STORE_GONE = 9          # the data directory, or a file in use, was removed under the running server

cdef enum:
    STORE_ERROR_BYTES = 512

cdef struct StoreError "fila_store_error":
    int status                      # the last status that was not STORE_OK
    char text[STORE_ERROR_BYTES]    # one line, NUL-terminated

# after which nothing can be promised any more; any thread tells the first one
cdef struct StoreFailure "fila_store_failure":
    int state                       # 0, or being told, or told; only the two calls below touch it
    StoreError error                # not to be read before failure_is_reported


# Leaves `text`, in which one %s stands for `detail`, and answers with `status`. `error` may be NULL.
cdef int store_failed(StoreError* error, int status, const char* text, const char* detail) noexcept nogil
# Turns a text of RocksDB into a status and a sentence, and frees it.
cdef int store_classify(StoreError* error, char* message) noexcept nogil
# The same for a read: whatever will not be better at the next try is STORE_DAMAGED, as a file that is gone.
cdef int store_classify_read(StoreError* error, char* message) noexcept nogil
# The first failure stands: a later one is usually its consequence, and readers of the first must not see it
# change.
cdef void failure_report(StoreFailure* failure, const StoreError* error) noexcept nogil
cdef bint failure_is_reported(StoreFailure* failure) noexcept nogil
