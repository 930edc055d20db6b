"""Producers at random: each enqueue predicts what it does to the model."""

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.requests.parsed_frame import ParsedFrame
from fila_server.hooks.packed import Routing
from tests.core.driven_engine import MS
from tests.simulation.asked import Asked
from tests.simulation.ghosts import is_another
from tests.simulation.limit_model import MENTIONED
from tests.simulation.model import (
    Entry,
    Note,
    QueueModel,
)
from tests.simulation.oracles import Broken
from tests.simulation.producer_routing import NOTHING_SAID, Said, something_said
from tests.simulation.room import room_of
from tests.simulation.world import World

FAIRNESS_KEYS = ["ant", "bee", "cat", "dog", "elk"]
THROTTLE_KEYS = ["mail", "sms", "push"]
LONG_MS = 10**9
BOUNDED = {"q2"}  # where policies change: the queues whose capacity does,
SHIFTING = {"q3"}  # and those whose durability does


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class Producers:
    """Enqueues in all three shapes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random

    def routed(
        self,
        queue: QueueModel,
        headers: dict[str, str],
        hooked: Routing | None = None,
        said: Said = NOTHING_SAID,
    ) -> tuple[str, int, int, frozenset[str]]:
        """What the hook gives overrides what the producer said, and that the declarative policy."""
        read = queue.headers
        weight = number(headers.get(read.weight, "1"))
        cost = number(headers.get(read.cost, "1"))
        key = said.fairness_key or headers.get(read.key) or "default"
        weight, cost = said.weight or weight, said.cost / 1000 if said.cost else cost
        throttles = frozenset(v for name in read.throttles if (v := headers.get(name)))
        if hooked is not None:
            key = (hooked.fairness_key or b"").decode() or key
            weight = hooked.weight if hooked.weight is not None else weight
            cost = hooked.cost if hooked.cost is not None else cost
            if hooked.throttle_keys is not None:
                throttles = frozenset(name.decode() for name in hooked.throttle_keys if name)
        if read.key_limit:
            throttles |= {read.key_limit + key}
        return (
            key,
            min(1000, max(1, int(weight if weight is not None else 0))),
            min(10**9, max(1, int(cost * 1000 + 0.5))) if cost is not None else 1000,
            throttles,
        )

    def may_refuse(self, queue: QueueModel) -> bool:
        return bool(queue.config["max_depth"]) or (self.world.policy and queue.name in BOUNDED)

    def some_headers(self, queue: QueueModel) -> dict[str, str]:
        rnd = self.random
        headers = {"k": rnd.choice(FAIRNESS_KEYS)} if rnd.random() < 0.9 else {}
        if rnd.random() < 0.2 and not self.may_refuse(queue):  # refused messages change no weight
            headers["w"] = rnd.choice(["1", "2", "3", "7", "0", "x", "5000"])
        if rnd.random() < 0.3:
            headers["c"] = rnd.choice(["0.5", "1", "2", "3.25", "40", "-1", "huge"])
        if rnd.random() < self.world.throttled_share:
            headers["t1"] = rnd.choice(THROTTLE_KEYS)
            if rnd.random() < 0.3:
                headers["t2"] = rnd.choice(THROTTLE_KEYS)
        return headers | self.limited()

    def limited(self) -> dict[str, str]:
        """Headers that name one limit, or two."""
        chance = self.world.limit_chance
        if chance.random() >= self.world.limited_share:
            return {}
        headers = {"t1": chance.choice(MENTIONED)}
        if chance.random() < 0.5:
            headers["t2"] = chance.choice(MENTIONED)
        return headers

    def _message(self, queue: QueueModel) -> tuple[service.EnqueueMessage, Entry]:
        world, rnd = self.world, self.random
        world.messages += 1
        headers = self.some_headers(queue)
        key, weight, cost, throttles = self.routed(queue, headers)
        entry = Entry(world.messages, queue, headers, key, weight, cost, throttles)
        size = rnd.choice([0, 10, 200, 2000])
        message = service.EnqueueMessage(payload=b"%d|" % entry.token + b"." * size, headers=headers)
        if rnd.random() < 0.08:
            message.options.delay_ms = rnd.choice([1, 50, 3000])
        elif rnd.random() < 0.03:
            at = Timestamp()
            at.FromMilliseconds(world.engine.wall_ms + rnd.choice([-500, 700]))
            message.options.deliver_at.CopyFrom(at)
        if rnd.random() < 0.06:
            message.options.ttl_ms = rnd.choice([5, 400, 5000])
        # Under `os` a batch that meets a duplicate is answered later than its other messages are seen.
        may_wait = not queue.config["fsync"] or (self.world.policy and queue.name in SHIFTING)
        if rnd.random() < 0.06 and not may_wait and not self.may_refuse(queue):
            message.options.dedup_key = rnd.choice("abcd")
        if world.priority_chance.random() < world.prioritized_share and not message.options.dedup_key:
            entry.priority = message.options.priority = world.priority_chance.choice([0, 1, 2, 3])
        if world.routing_chance.random() < world.routed_share and not message.options.dedup_key:
            entry.said = something_said(
                world.routing_chance, FAIRNESS_KEYS, may_weigh=not self.may_refuse(queue)
            )
            entry.said.put(message.options)
        return message, entry

    def enqueue(self) -> None:
        made = self.frame()
        if made is not None:
            self.ask(*made)

    def frame(self) -> tuple[int, Any, QueueModel, list[tuple[service.EnqueueMessage, Entry | None]]] | None:
        """A frame for some queue: its shape, its request, and what is in it."""
        world, rnd = self.world, self.random
        sources = [q for q in world.model.queues.values() if not q.is_dlq]
        if not sources:
            return None
        queue = rnd.choice(sources)
        shape = rnd.choice([commands.ENQUEUE, commands.ENQUEUE_BATCH, commands.ENQUEUE_STREAM])
        count = 1 if shape == commands.ENQUEUE else rnd.choice([1, 2, 5, 20])
        pairs = [self._message(queue) for _ in range(count)]
        items = [message for message, _ in pairs]
        entries: list[Entry | None] = [entry for _, entry in pairs]
        if shape != commands.ENQUEUE and rnd.random() < 0.1:  # a bad neighbour
            items.insert(0, service.EnqueueMessage(queue="nowhere", payload=b"-1|"))
            entries.insert(0, None)
        request: Any
        if shape == commands.ENQUEUE:
            request = service.EnqueueRequest(
                queue=queue.name, headers=items[0].headers, payload=items[0].payload
            )
            if items[0].HasField("options"):
                request.options.CopyFrom(items[0].options)
        else:
            request = service.EnqueueBatchRequest(queue=queue.name, messages=items)
            if shape == commands.ENQUEUE_STREAM:
                request = service.EnqueueStreamRequest(sequence=world.messages, batch=request)
        return shape, request, queue, list(zip(items, entries, strict=True))

    def ask(
        self,
        shape: int,
        request: Any,
        queue: QueueModel,
        items: list[tuple[service.EnqueueMessage, Entry | None]],
        parsed: ParsedFrame | None = None,
    ) -> None:
        self.world.ask(
            shape,
            request,
            self.enqueued,
            self.answered,
            parsed=parsed,
            name=queue.name,
            entries=[entry for _, entry in items if entry is not None],
            items=items,
            newest=self.world.kept.newest_id,
        )

    def enqueued(self, asked: Asked) -> None:
        """Carried out: routed and accepted, to be seen when it is answered."""
        world = self.world
        queue = world.model.queues.get(asked.notes["name"])
        asked.notes["queue"] = queue
        world.say(f"enqueue {[e.token for e in asked.notes['entries']]} to {asked.notes['name']}")
        if queue is None:
            return
        asked.notes["fsync"] = queue.config["fsync"]
        asked.notes["room"] = room_of(world, queue)
        for message, entry in asked.notes["items"]:
            if entry is None:
                continue
            entry.queue, entry.fsync = queue, queue.config["fsync"]
            entry.key, entry.weight, entry.cost, entry.throttles = self.routed(
                queue, entry.headers, entry.hooked, entry.said
            )
            entry.executed_pass = world.pass_number
            options = message.options
            is_unasked = entry.said != NOTHING_SAID and not queue.lets_producers_route
            if is_unasked or (queue.in_order and options.HasField("priority")):
                entry.is_refused = True
                continue
            wall = entry.delayed_from_ms = world.engine.wall_ms
            if options.HasField("deliver_at"):
                at_ms = options.deliver_at.ToMilliseconds()
                entry.deliver_at_ms = at_ms if at_ms > wall else 0
            elif options.delay_ms:
                entry.deliver_at_ms = wall + options.delay_ms
            if options.HasField("ttl_ms"):
                entry.expires_ms = entry.stored_expires_ms = wall + options.ttl_ms
            entry.dedup_key = options.dedup_key
            if entry.dedup_key:
                first = queue.dedup.get(entry.dedup_key)
                if first is not None and first[1] > wall:
                    entry.first = first[0]
                    continue
                entry.window_ends_ms = wall + queue.config["dedup_window_ms"]
                queue.dedup[entry.dedup_key] = (entry, entry.window_ends_ms)
            entry.may_be_none = bool(asked.notes["room"].bound) or (
                entry.dedup_key in queue.ghost_keys or entry.dedup_key in queue.over_once
            )
            queue.key(entry.key).enqueued(entry)

    def answered(self, asked: Asked, status: int, payload: bytes) -> None:
        queue = asked.notes["queue"]
        results: list[tuple[int, str, int]]
        if asked.kind in (commands.ENQUEUE, commands.FIRE):
            one = service.EnqueueResponse.FromString(payload) if status == 0 else service.EnqueueResponse()
            results = [(status, one.message_id, one.offset)]
        else:
            kind = (
                service.EnqueueBatchResponse
                if asked.kind == commands.ENQUEUE_BATCH
                else service.EnqueueStreamResponse
            )
            if status:
                raise Broken(f"a batch was refused as a whole: {status}")
            results = [(r.error.code, r.message_id, r.offset) for r in kind.FromString(payload).results]
        if len(results) != len(asked.notes["items"]):
            raise Broken(f"{len(results)} results for {len(asked.notes['items'])} messages")
        pairs = list(zip(asked.notes["items"], results, strict=True))
        if queue is not None:
            asked.notes["room"].check([code for (_, entry), (code, _, _) in pairs if entry is not None])
        for (_, entry), (code, _, _) in pairs:
            if entry is not None and queue is not None and code == 8 and not entry.is_refused:
                queue.key(entry.key).was_none(entry)
        for (message, entry), (code, message_id, offset) in pairs:
            if entry is None:
                if code != 5:
                    raise Broken(f"a message to a queue that is not there was answered {code}")
            elif entry.is_refused and code == 0:
                raise Broken(f"message {entry.token} says what its queue does not take, and it took it")
            elif code == 0:
                self._stored(entry, queue, message_id, offset, asked)
            elif not (
                (code == 5 and (queue is None or queue.gone))
                or (code == 8 and asked.notes["room"].bound)
                or (code == 3 and entry.is_refused)
            ):
                raise Broken(f"message {entry.token} was refused: {code}, {message.options}")
            elif queue is not None and queue.dedup.get(entry.dedup_key, (None, 0))[0] is entry:
                del queue.dedup[entry.dedup_key]

    def _stored(
        self, entry: Entry, queue: QueueModel | None, message_id: str, offset: int, asked: Asked
    ) -> None:
        world = self.world
        if queue is None:
            raise Broken(f"message {entry.token} was stored in a queue that is not there")
        first = entry.first
        if first is not None:
            if first.id and first.id != message_id:
                raise Broken(f"dedup of {entry.token}: {message_id}, the first one is {first.id}")
            return
        if is_another(world, queue, entry, offset):  # or it is gone already: it stays one that may be none
            queue.dedup.pop(entry.dedup_key, None)
            return
        if entry.dedup_key in queue.over_once and queue.over_once[entry.dedup_key][0].id == message_id:
            queue.key(entry.key).was_none(entry)
            queue.dedup[entry.dedup_key] = queue.over_once[entry.dedup_key]
            entry.id = message_id
            return
        world.check_synced(asked)
        entry.id, entry.offset, entry.may_be_none = message_id, offset, False
        world.kept.stored(entry, asked.notes["newest"])
        if queue.gone:
            return
        queue.log.append(entry)
        for channel in queue.channels.values():
            if channel.name in entry.excluded or offset < channel.start:
                continue
            note = Note(entry, channel, maybe=channel.name in entry.fuzzy)
            if entry.deliver_at_ms:
                due_ms = entry.deliver_at_ms
                note.delay((due_ms, due_ms), entry.delayed_from_ms, world.engine.mono_ns // MS)
            else:
                own_pass = asked.executed_pass == world.pass_number
                # Under `os` a frame's answer may come after its messages are seen, where it waits for the first message
                # of another one's dedup key, or with them, where an older frame's sync holds up both.
                is_known = own_pass or entry.fsync
                place = (world.pass_number, 9 if own_pass else 0, offset)
                note.place = world.place(note, place) if is_known and not note.maybe else None
            channel.add(note)


def status_of(payload: bytes) -> messages.ItemStatus:
    return messages.ItemStatus.FromString(payload)
