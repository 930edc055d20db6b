"""Channels come, go, move and are emptied while messages wait."""

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from tests.simulation.asked import Asked
from tests.simulation.model import (
    DELAYED,
    DONE,
    LEASED,
    READY,
    ChannelModel,
    QueueModel,
)
from tests.simulation.oracles import Broken
from tests.simulation.producers import FAIRNESS_KEYS, Producers
from tests.simulation.starts import start_at
from tests.simulation.world import World

PASSES_OF_A_SEEK = 4
"""In which it may still be taking apart what it left."""


class ChannelOperators:
    """What is done to the channels of a queue, at random; Operators adds what is done to queues."""

    def __init__(self, world: World, producers: Producers) -> None:
        self.world = world
        self.random = world.random
        self.producers = producers
        self.one_channel = False  # a queue: then an id names one dead letter, and a DLQ may have a script

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

    def nobody_pulls(self) -> bool:
        """No pull in the mailbox: it would be served in the middle of a pass, between this and that."""
        return not any(asked.kind == commands.LEASE for asked in [*self.world.taken, *self.world.mailbox])

    def _source(self) -> QueueModel | None:
        queues = [q for q in self.world.model.queues.values() if not q.is_dlq]
        return self.random.choice(queues) if queues else None

    def create_channel(self) -> None:
        queue = self._source()
        if queue is None or len(queue.channels) > 3 or self.one_channel:
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
        start_at(self.world, channel, 0 if asked.notes["oldest"] else None, asked)

    def seek(self) -> None:
        queue = self._source()
        if queue is None or not queue.channels or not self.nobody_pulls():
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
        self._may_die_first(channel)
        self.world.say(f"seek {channel.queue.name}/{channel.name} to {to}")
        start_at(self.world, channel, None if to >= 1 << 59 else to, asked)

    def _may_die_first(self, channel: ChannelModel) -> None:
        """A seek that comes close behind another waits until that one has taken apart what it left, to the end of the
        pass or longer, and what is over by then dies before it."""
        world, queue = self.world, channel.queue
        if world.pass_number <= queue.sought_pass + PASSES_OF_A_SEEK:
            for note in channel.all_notes():
                if note.state in (READY, DELAYED) and 0 < note.entry.expires_ms <= world.engine.wall_ms:
                    world.drop(note)
                    for letter in note.buried:
                        letter.maybe = True
        queue.sought_pass = world.pass_number

    def delete_channel(self) -> None:
        queue = self._source()
        if queue is None or len(queue.channels) < 2 or not self.nobody_pulls():
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
        asked.notes["expected"] = 0 if channel is not None else 5
        if channel is None:
            return
        self.world.say(f"delete channel {channel.queue.name}/{channel.name}")
        if (
            self.world.was_cold
        ):  # what died, and had yet to be read back for its dead letter, goes with the channel
            for note in channel.all_notes():
                for dead in note.buried:
                    dead.maybe = dead.maybe or not dead.entry.offset
        self._forget_channel(channel)
        del channel.queue.channels[channel.name]

    def purge(self) -> None:
        world, rnd = self.world, self.random
        queues = [q for q in world.model.queues.values() if q.channels]
        if not queues or not self.nobody_pulls():
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
        if queue is None or (channel_name and channel_name not in queue.channels):
            asked.notes["expected"] = 5
            return
        world.say(f"purge {queue.name}/{channel_name} key {key}")
        unseen = bool(world.unseen) or world.lost_leases() > 0
        for channel in queue.channels.values():
            if channel_name not in (None, channel.name):
                continue
            for note in channel.all_notes():
                if note.state in (READY, DELAYED) and key in (None, note.entry.key):
                    if note.entry.offset == 0 or note.maybe or unseen:
                        note.maybe = True  # on its way and not to be seen by a purge yet, or leased perhaps
                    else:
                        note.state, note.ended_ms = DONE, world.engine.wall_ms
