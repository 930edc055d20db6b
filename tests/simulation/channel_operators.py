"""Channels come, go, move and are emptied while messages wait."""

from fila.v1 import admin_pb2 as admin
from fila_server import commands
from tests.simulation.asked import Asked
from tests.simulation.model import (
    DELAYED,
    DONE,
    LEASED,
    READY,
    ChannelModel,
    Entry,
    Note,
    QueueModel,
)
from tests.simulation.oracles import Broken
from tests.simulation.producers import FAIRNESS_KEYS, LONG_MS, Producers
from tests.simulation.world import FRAMES_REBUILT_PER_PASS, World


class ChannelOperators:
    """What is done to the channels of a queue, at random; Operators adds what is done to queues."""

    def __init__(self, world: World, producers: Producers) -> None:
        self.world = world
        self.random = world.random
        self.producers = producers

    def _forget_channel(self, channel: ChannelModel) -> None:
        world = self.world
        world.fair.interrupt(channel)
        for note in channel.all_notes():
            if note.state == LEASED:
                world.end_lease(note)
            note.state = DONE
        for consumer in list(world.model.consumers.values()):
            if consumer.queue is channel.queue and consumer.channel == channel.name:
                consumer.ended = True
                if consumer.kind != "pull":
                    del world.model.consumers[consumer.token]
                    self.world.ended_by_us.add(consumer.token)

    def _expect(self, asked: Asked, status: int, payload: bytes) -> None:
        if status == 0:
            self.world.check_synced(asked)
        if status != asked.notes["expected"]:
            raise Broken(f"command {asked.kind} {asked.notes} was answered {status}")

    def _nobody_pulls(self) -> bool:
        """No pull in the mailbox: it would be served in the middle of a pass, between this and that."""
        return not any(asked.kind == commands.LEASE for asked in [*self.world.taken, *self.world.mailbox])

    def _source(self) -> QueueModel | None:
        queues = [q for q in self.world.model.queues.values() if not q.is_dlq]
        return self.random.choice(queues) if queues else None

    def _under_way(self, queue: QueueModel) -> list[Entry]:
        """Carried out and not answered: offsets given, or about to be."""
        return [e for e in self.world.under_way() if e.queue is queue] + list(queue.ghosts.values())

    def create_channel(self) -> None:
        queue = self._source()
        if queue is None or len(queue.channels) > 3:
            return
        name = self.random.choice(["a", "b", "c"])
        oldest = self.random.random() < 0.5
        request = admin.CreateChannelRequest(queue=queue.name, channel=name)
        if oldest:
            request.oldest = True
        else:
            request.head = True
        self.world.ask(
            commands.CREATE_CHANNEL,
            request,
            self._channel_created,
            self._expect,
            name=queue.name,
            channel=name,
            oldest=oldest,
            fsync=1,
        )

    def _channel_created(self, asked: Asked) -> None:
        queue = self.world.model.queues.get(asked.notes["name"])
        name = asked.notes["channel"]
        asked.notes["expected"] = 5 if queue is None else 6 if name in queue.channels else 0
        if asked.notes["expected"] or queue is None:
            return
        self.world.say(f"channel {queue.name}/{name}, oldest {asked.notes['oldest']}")
        channel = queue.channels[name] = ChannelModel(name, queue)
        self._start_at(channel, 0 if asked.notes["oldest"] else None, asked)

    def _start_at(self, channel: ChannelModel, offset: int | None, asked: Asked) -> None:
        """The channel starts anew: at an offset, or (None) at the head."""
        world, queue = self.world, channel.queue
        now = world.pass_number
        self._forget_notes(channel)
        for entry in self._under_way(queue):
            if offset is None:
                (
                    entry.fuzzy
                    if entry.executed_pass == now or entry.token in queue.ghosts
                    else entry.excluded
                ).add(channel.name)
            else:
                entry.fuzzy.add(channel.name) if offset else None
        channel.start = 0 if offset is None else offset
        if offset is None:
            channel.start = 1
            return
        others = {
            id(n.entry)
            for c in queue.channels.values()
            if c is not channel
            for n in c.all_notes()
            if n.state != DONE and not n.maybe
        } | set(self._undone)
        known = sorted(
            (e for e in self._entries(queue) if e.offset >= offset or not e.offset), key=lambda e: e.offset
        )
        if len(known) >= FRAMES_REBUILT_PER_PASS or world.cold:
            channel.unordered_until = now + len(known) // FRAMES_REBUILT_PER_PASS + 3
        for entry in known:
            if 0 < entry.expires_ms <= world.engine.wall_ms or entry.only not in (None, channel):
                continue
            retained = queue.config["soft"] >= LONG_MS or id(entry) in others
            place = (now, 1, asked.index, entry.offset) if entry.offset and retained else None
            if now <= channel.unordered_until:
                place = None
            channel.add(Note(entry, channel, place=place, maybe=not retained or not entry.offset))

    def _entries(self, queue: QueueModel) -> list[Entry]:
        """Everything the log ever had; moved-back ones are known by the notes that they made."""
        seen = {id(e): e for e in queue.log}
        for channel in queue.channels.values():
            for note in channel.all_notes():
                seen.setdefault(id(note.entry), note.entry)
        for entry in self._forgotten:
            seen.setdefault(id(entry), entry)
        return list(seen.values())

    def _forget_notes(self, channel: ChannelModel) -> None:
        world = self.world
        world.fair.interrupt(channel)
        self._undone = [id(n.entry) for n in channel.all_notes() if n.state != DONE and not n.maybe]
        self._forgotten = [n.entry for n in channel.all_notes()]
        for note in channel.all_notes():
            if note.state == LEASED:
                world.end_lease(note)
            note.state = DONE
        channel.notes.clear()

    def seek(self) -> None:
        queue = self._source()
        if queue is None or not queue.channels or not self._nobody_pulls():
            return
        channel = self.random.choice(list(queue.channels))
        offsets = [e.offset for e in queue.log if e.offset]
        to = self.random.choice([0, 1 << 60, *self.random.sample(offsets, min(3, len(offsets)))])
        request = admin.SeekChannelRequest(queue=queue.name, channel=channel, offset=to)
        self.world.ask(
            commands.SEEK_CHANNEL,
            request,
            self._seeked,
            self._expect,
            name=queue.name,
            channel=channel,
            to=to,
            fsync=1,
        )

    def _seeked(self, asked: Asked) -> None:
        queue = self.world.model.queues.get(asked.notes["name"])
        channel = queue.channels.get(asked.notes["channel"]) if queue is not None else None
        asked.notes["expected"] = 0 if channel is not None else 5
        if channel is None:
            return
        to = asked.notes["to"]
        self.world.say(f"seek {channel.queue.name}/{channel.name} to {to}")
        self._start_at(channel, None if to >= 1 << 59 else to, asked)

    def delete_channel(self) -> None:
        queue = self._source()
        if queue is None or len(queue.channels) < 2 or not self._nobody_pulls():
            return
        channel = self.random.choice(list(queue.channels))
        request = admin.DeleteChannelRequest(queue=queue.name, channel=channel)
        self.world.ask(
            commands.DELETE_CHANNEL,
            request,
            self._channel_deleted,
            self._expect,
            name=queue.name,
            channel=channel,
            fsync=1,
        )

    def _channel_deleted(self, asked: Asked) -> None:
        queue = self.world.model.queues.get(asked.notes["name"])
        channel = queue.channels.get(asked.notes["channel"]) if queue is not None else None
        if channel is None and asked.notes["channel"] == "default" and queue is not None:
            asked.notes["expected"] = 5
            return
        asked.notes["expected"] = 0 if channel is not None else 5
        if channel is None:
            return
        self.world.say(f"delete channel {channel.queue.name}/{channel.name}")
        self._forget_channel(channel)
        del channel.queue.channels[channel.name]

    def purge(self) -> None:
        world, rnd = self.world, self.random
        queues = [q for q in world.model.queues.values() if q.channels]
        if not queues or not self._nobody_pulls():
            return
        queue = rnd.choice(queues)
        channel = rnd.choice([None, *queue.channels])
        key = rnd.choice([None, *FAIRNESS_KEYS])
        request = admin.PurgeQueueRequest(queue=queue.name, fairness_key=key, channel=channel)
        world.ask(
            commands.PURGE_QUEUE,
            request,
            self._purged,
            self._expect,
            name=queue.name,
            channel=channel,
            key=key,
            fsync=1,
        )

    def _purged(self, asked: Asked) -> None:
        world, queue = self.world, self.world.model.queues.get(asked.notes["name"])
        channel_name, key = asked.notes["channel"], asked.notes["key"]
        asked.notes["expected"] = 0
        if queue is None or (channel_name is not None and channel_name not in queue.channels):
            asked.notes["expected"] = 5
            return
        world.say(f"purge {queue.name}/{channel_name} key {key}")
        for channel in queue.channels.values():
            if channel_name not in (None, channel.name):
                continue
            for note in channel.all_notes():
                if note.state in (READY, DELAYED) and key in (None, note.entry.key):
                    if note.entry.offset == 0 or note.maybe:
                        note.maybe = True  # on its way, and perhaps not to be seen by a purge yet
                    else:
                        note.state, note.ended_ms = DONE, world.engine.wall_ms
