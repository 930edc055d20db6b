"""A later message of a dedup key takes the place of an earlier one, in each channel by itself.

    stored     the frame of the later one names the earlier one's offset: that one write decides
    visible    reveal.pyx lists it, UNPLACED; with a channel's lease that ends its successor is listed, too
    resolved   here, before a command, a timer or a delivery of the next pass can see either of them

    the earlier one is        it                      the later one
    waiting, being decided    gives way               stands where it stood
    delayed                   gives way               is delayed by what its own frame says, or goes
    leased                    runs on, and fails once at most
                                                      is HELD behind that lease; what was held there
                                                      gives way
    done                                              goes

After a crash recovery lists what the frames name once more: what was resolved already finds nothing to do.
"""

from fila_server.core.state.state cimport Core

cdef void replacings_turn(Core* core) noexcept nogil
