"""Enqueues whose answers a crash swallowed: the log says which of them were stored."""

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from tests.core.driven_engine import MS
from tests.simulation.deliveries import Deliveries
from tests.simulation.model import (
    Entry,
    Note,
    QueueModel,
)


def read_log(world: Deliveries, queue: str) -> list[messages.Message]:
    """All that is retained; it is read from the disk, and the scheduler knows nothing of it."""
    reader = world.engine.core.log_reader(admin.ReadLogRequest(queue=queue).SerializeToString())
    found: list[messages.Message] = []
    while (piece := reader.read()) is not None:
        found += admin.ReadLogResponse.FromString(piece).messages
    return found


def is_another(world: Deliveries, queue: QueueModel, entry: Entry, offset: int) -> bool:
    """Whether an answer names not this message but one that nobody saw answered, whose dedup key it met."""
    if entry.dedup_key not in queue.ghost_keys:
        return False
    for message in read_log(world, queue.name):
        if message.metadata.offset == offset:
            return int(message.payload.split(b"|")[0]) != entry.token
    return True  # it is gone already


def haunt(world: Deliveries, ghosts: list[Entry]) -> None:
    """Called when the core is open again: what is in the log is there; the rest never was, or its time is over."""
    queues = {entry.queue.name: entry.queue for entry in ghosts if not entry.queue.gone}
    for queue in queues.values():
        stored = {int(m.payload.split(b"|")[0]): m for m in read_log(world, queue.name)}
        for entry in ghosts:
            if entry.queue is queue and entry.first is None:
                _haunt(world, queue, entry, stored.get(entry.token))


def _haunt(world: Deliveries, queue: QueueModel, entry: Entry, stored: messages.Message | None) -> None:
    if stored is not None:
        entry.id, entry.offset = stored.id, stored.metadata.offset
        world.kept.seen(entry)
    if entry.offset:
        entry.may_be_none = False
        queue.log.append(entry)
        for channel in queue.channels.values():
            if channel.name in entry.excluded or entry.offset < channel.start:
                continue
            note = Note(entry, channel, place=None, maybe=channel.name in entry.fuzzy)
            if entry.deliver_at_ms:
                due_ms = entry.deliver_at_ms
                note.delay((due_ms, due_ms), entry.delayed_from_ms, world.engine.mono_ns // MS)
            channel.add(note)
        return
    if not entry.expires_ms:
        queue.key(entry.key).was_none(entry)
    if queue.dedup.get(entry.dedup_key, (None, 0))[0] is entry:
        del queue.dedup[entry.dedup_key]
        queue.ghost_keys.add(entry.dedup_key)
    if entry.expires_ms:  # it may have been stored, and dropped or moved when the core was opened
        queue.ghosts[entry.token] = entry
