"""What is published moves into its queues: a staged frame becomes an ordinary one, between two passes.

    INTENT is durable ──► the reader thread brings a frame ──► lifecycle/enqueue takes it like a producer's
    ──► the pass is written: the frame, the end of what was staged of it, and the cursor, in one batch
    ──► the next frame, or DONE

A crash finds a frame staged or moved, never both. What has moved is seen once it is synced, whatever the
queue's durability. Where the disk refuses the piece is tried again; nothing of it was written.
"""

from fila_server.core.state.state cimport Core

cdef bint sinks_turn(Core* core) noexcept nogil       # a stage. True: there is more
