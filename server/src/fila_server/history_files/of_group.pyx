"""A replay of what the owner of a group recorded: there each pass that tells something has its epoch."""

from fila_server.core.replay.replay cimport Replay
from fila_server.core.structures.atomics cimport atomic_store


def runs_in_group(Replay replay not None):
    """It goes on as an owner's core; of one that is behind its base, and has been fed nothing.

    Its opening was that of a broker alone, which promises lease ids at once. An owner's are promised once
    the log has its first record, and the recorded passes say when that was.
    """
    replay.core.shared.in_group = True
    atomic_store(&replay.core.shared.durable, 0)
    replay.core.durable = replay.core.lease_id_durable = 0
