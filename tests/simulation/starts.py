"""A channel that starts anew, at an offset of the log or at its head."""

from tests.simulation.asked import Asked
from tests.simulation.model import (
    DONE,
    LEASED,
    ChannelModel,
    Entry,
    Note,
    QueueModel,
)
from tests.simulation.producers import LONG_MS
from tests.simulation.world import FRAMES_REBUILT_PER_PASS, World


def start_at(world: World, channel: ChannelModel, offset: int | None, asked: Asked) -> None:
    """The channel starts anew: at an offset, or (None) at the head."""
    queue, now = channel.queue, world.pass_number
    forgotten = channel.all_notes()
    undone = {id(n.entry) for n in forgotten if n.state != DONE and not n.maybe}
    _forget_notes(world, channel)
    for entry in _under_way(world, queue) if offset is None else ():
        same_pass = entry.executed_pass == now or entry.token in queue.ghosts
        (entry.fuzzy if same_pass else entry.excluded).add(channel.name)
    channel.start = offset or 0
    if offset is None:
        channel.start = 1
        return
    for entry in (
        e for e in world.under_way() if e.queue is queue
    ):  # its offset alone says now whether this channel gets it
        entry.excluded.discard(channel.name)
        entry.fuzzy.discard(channel.name)
    others = {
        id(n.entry)
        for c in queue.channels.values()
        if c is not channel
        for n in c.all_notes()
        if n.state != DONE and not n.maybe
    } | undone
    known = sorted(
        (e for e in _entries(queue, forgotten) if e.offset >= offset or not e.offset), key=lambda e: e.offset
    )
    if len(known) >= FRAMES_REBUILT_PER_PASS or world.cold:
        channel.unordered_until = now + len(known) // FRAMES_REBUILT_PER_PASS + 3
    for entry in known:
        if 0 < entry.expires_ms <= world.engine.wall_ms or entry.only not in (None, channel):
            continue
        kept = queue.config["soft"] >= LONG_MS and not queue.retention_changed
        retained = kept or id(entry) in others
        note = Note(entry, channel, maybe=not retained or not entry.offset)
        note.place = None if note.maybe else world.place(note, (now, 1, asked.index, entry.offset))
        channel.add(note)


def _under_way(world: World, queue: QueueModel) -> list[Entry]:
    """Carried out and not answered: offsets given, or about to be."""
    return [e for e in world.under_way() if e.queue is queue] + list(queue.ghosts.values())


def _entries(queue: QueueModel, forgotten: list[Note]) -> list[Entry]:
    """Everything the log ever had; moved-back ones are known by the notes that they made."""
    seen = {id(e): e for e in queue.log}
    for channel in queue.channels.values():
        for note in channel.all_notes():
            seen.setdefault(id(note.entry), note.entry)
    for note in forgotten:
        seen.setdefault(id(note.entry), note.entry)
    return list(seen.values())


def _forget_notes(world: World, channel: ChannelModel) -> None:
    world.fair.interrupt(channel)
    for note in channel.all_notes():
        if note.state == LEASED:
            world.end_lease(note)
        note.state = DONE
    channel.notes.clear()
