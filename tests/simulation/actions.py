"""What producers, consumers and operators do, at random; each action predicts its own effect on the model."""

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server import commands
from tests.core.driven_engine import MS
from tests.simulation.model import (
    DELAYED,
    DONE,
    LEASED,
    READY,
    BucketModel,
    ChannelModel,
    ConsumerModel,
    Entry,
    Note,
    QueueModel,
)
from tests.simulation.oracles import Broken
from tests.simulation.world import FRAMES_REBUILT_PER_PASS, Asked, World

FAIRNESS_KEYS = ["ant", "bee", "cat", "dog", "elk"]
THROTTLE_KEYS = ["mail", "sms", "push"]
LONG_MS = 10**9


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

    def routed(self, queue: QueueModel, headers: dict[str, str]) -> tuple[str, int, int, frozenset[str]]:
        weight = number(headers.get("w", "1"))
        cost = number(headers.get("c", "1"))
        return (
            headers.get("k") or "default",
            min(1000, max(1, int(weight if weight is not None else 0))),
            min(10**9, max(1, int(cost * 1000 + 0.5))) if cost is not None else 1000,
            frozenset(v for name in ("t1", "t2") if (v := headers.get(name))),
        )

    def _headers(self, queue: QueueModel) -> dict[str, str]:
        rnd = self.random
        headers = {"k": rnd.choice(FAIRNESS_KEYS)} if rnd.random() < 0.9 else {}
        if rnd.random() < 0.2 and not queue.config["max_depth"]:  # refused messages change no weight
            headers["w"] = rnd.choice(["1", "2", "3", "7", "0", "x", "5000"])
        if rnd.random() < 0.3:
            headers["c"] = rnd.choice(["0.5", "1", "2", "3.25", "40", "-1", "huge"])
        if rnd.random() < self.world.throttled_share:
            headers["t1"] = rnd.choice(THROTTLE_KEYS)
            if rnd.random() < 0.3:
                headers["t2"] = rnd.choice(THROTTLE_KEYS)
        return headers

    def _message(self, queue: QueueModel) -> tuple[service.EnqueueMessage, Entry]:
        world, rnd = self.world, self.random
        world.messages += 1
        headers = self._headers(queue)
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
        if rnd.random() < 0.06 and queue.config["fsync"] and not queue.config["max_depth"]:
            message.options.dedup_key = rnd.choice("abcd")
        return message, entry

    def enqueue(self) -> None:
        world, rnd = self.world, self.random
        sources = [q for q in world.model.queues.values() if not q.is_dlq]
        if not sources:
            return
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
        world.ask(
            shape,
            request,
            self._enqueued,
            self._answered,
            name=queue.name,
            entries=[entry for entry in entries if entry is not None],
            items=list(zip(items, entries, strict=True)),
            newest=world.kept.newest_id,
            fsync=queue.config["fsync"],
        )

    def _enqueued(self, asked: Asked) -> None:
        """Carried out: routed and accepted, to be seen when it is answered."""
        world = self.world
        queue = world.model.queues.get(asked.notes["name"])
        asked.notes["queue"] = queue
        world.say(f"enqueue {[e.token for e in asked.notes['entries']]} to {asked.notes['name']}")
        if queue is None:
            return
        for message, entry in asked.notes["items"]:
            if entry is None:
                continue
            entry.queue = queue
            entry.executed_pass = world.pass_number
            options = message.options
            wall = world.engine.wall_ms
            if options.HasField("deliver_at"):
                at_ms = options.deliver_at.ToMilliseconds()
                entry.deliver_at_ms = at_ms if at_ms > wall else 0
            elif options.delay_ms:
                entry.deliver_at_ms = wall + options.delay_ms
            if options.HasField("ttl_ms"):
                entry.expires_ms = wall + options.ttl_ms
            entry.dedup_key = options.dedup_key
            if entry.dedup_key:
                first = queue.dedup.get(entry.dedup_key)
                if first is not None and first[1] > wall:
                    entry.first = first[0]
                    continue
                queue.dedup[entry.dedup_key] = (entry, wall + queue.config["dedup_window_ms"])
            queue.key(entry.key).weight = entry.weight

    def _answered(self, asked: Asked, status: int, payload: bytes) -> None:
        queue = asked.notes["queue"]
        results: list[tuple[int, str, int]]
        if asked.kind == commands.ENQUEUE:
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
        phase = 9 if asked.executed_pass == self.world.pass_number else 0
        for (message, entry), (code, message_id, offset) in zip(asked.notes["items"], results, strict=True):
            if entry is None:
                if code != 5:
                    raise Broken(f"a message to a queue that is not there was answered {code}")
            elif code == 0:
                self._stored(entry, queue, message_id, offset, asked, phase)
            elif not (code == 5 and (queue is None or queue.gone)) and not (
                code == 8 and queue.config["max_depth"]
            ):
                raise Broken(f"message {entry.token} was refused: {code}, {message.options}")
            elif queue is not None and queue.dedup.get(entry.dedup_key, (None, 0))[0] is entry:
                del queue.dedup[entry.dedup_key]

    def _stored(
        self, entry: Entry, queue: QueueModel | None, message_id: str, offset: int, asked: Asked, phase: int
    ) -> None:
        world = self.world
        if queue is None:
            raise Broken(f"message {entry.token} was stored in a queue that is not there")
        first = entry.first
        if first is not None:
            if first.id and first.id != message_id:
                raise Broken(f"dedup of {entry.token}: {message_id}, the first one is {first.id}")
            return
        if entry.dedup_key in queue.ghost_keys and message_id <= asked.notes["newest"]:
            queue.dedup.pop(entry.dedup_key, None)
            return  # the first one's answer was lost
        world.check_synced(asked)
        entry.id, entry.offset = message_id, offset
        world.kept.stored(entry, asked.notes["newest"])
        if queue.gone:
            return
        queue.log.append(entry)
        for channel in queue.channels.values():
            if channel.name in entry.excluded or offset < channel.start:
                continue
            note = Note(entry, channel, maybe=channel.name in entry.fuzzy)
            if entry.deliver_at_ms:
                note.state, note.due_ms = DELAYED, (entry.deliver_at_ms, entry.deliver_at_ms)
                note.delayed_at_ms = world.engine.mono_ns // MS
            else:
                place = (world.pass_number, phase, offset)
                note.place = None if world.pass_number <= channel.unordered_until or note.maybe else place
            channel.add(note)


class Consumers:
    """Streams, sessions and pulls; acks, nacks, extensions; those who leave without a word."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random

    def _place(self) -> tuple[QueueModel, ChannelModel] | None:
        queues = [q for q in self.world.model.queues.values() if q.channels]
        if not queues:
            return None
        queue = self.random.choice(queues)
        return queue, self.random.choice(list(queue.channels.values()))

    def open(self) -> None:
        world, rnd = self.world, self.random
        where = self._place()
        if where is None or len(world.model.consumers) > 12:
            return
        queue, channel = where
        most = rnd.choice([1, 3, 10, 256])
        kind = rnd.choice(["stream", "session", "pull", "pull"])
        if kind == "stream":
            batch = rnd.choice([1, 1, 4, 100])
            self._ask_open(
                commands.CONSUME_OPEN,
                service.ConsumeRequest(
                    queue=queue.name, channel=channel.name, max_in_flight=most, max_batch=batch
                ),
                ConsumerModel(0, kind, queue, channel.name, most, most),
            )
        elif kind == "session":
            credit = rnd.choice([0, 1, 2, most])
            opened = service.ConsumeSessionRequest.Open(
                queue=queue.name, channel=channel.name, max_in_flight=most, initial_credit=credit
            )
            limit = credit if 0 < credit < most else most
            self._ask_open(
                commands.SESSION_OPEN,
                service.ConsumeSessionRequest(open=opened),
                ConsumerModel(0, kind, queue, channel.name, most, limit),
            )
        else:
            wait_ms = rnd.choice([0, 0, 20, 5000])
            self._ask_open(
                commands.LEASE,
                service.LeaseRequest(
                    queue=queue.name, channel=channel.name, max_messages=most, wait_ms=wait_ms
                ),
                ConsumerModel(0, kind, queue, channel.name, most, most),
            )

    def _ask_open(self, kind: int, request: Any, consumer: ConsumerModel) -> None:
        asked = self.world.ask(kind, request, self._opened, self._open_answered, consumer=consumer)
        consumer.token = asked.token

    def _opened(self, asked: Asked) -> None:
        consumer = asked.notes["consumer"]
        queue = self.world.model.queues.get(consumer.queue.name)
        if queue is None or consumer.channel not in queue.channels:
            asked.notes["missing"] = True
            return
        consumer.queue = queue
        self.world.model.consumers[asked.token] = consumer
        self.world.say(f"{consumer.kind} {asked.token} opens {queue.name}/{consumer.channel}")

    def _open_answered(self, asked: Asked, status: int, payload: bytes) -> None:
        consumer = asked.notes["consumer"]
        expected = 5 if asked.notes.get("missing") or consumer.ended else 0
        if status != expected:
            raise Broken(f"{consumer.kind} {asked.token} was answered {status}, not {expected}")
        if consumer.kind != "pull":
            return
        self.world.model.consumers.pop(asked.token, None)
        if status == 0:
            found = service.LeaseResponse.FromString(payload).messages
            if len(found) > consumer.max_in_flight:
                raise Broken(f"pull {asked.token} asked for {consumer.max_in_flight} and got {len(found)}")
            self.world.take(consumer, found)

    # --- settling -----------------------------------------------------------------------------

    def _leased(self) -> list[Note]:
        return [n for n in self.world.model.leases.values() if n.state == LEASED]

    def settle(self) -> None:
        rnd = self.random
        leased = self._leased()
        if not leased:
            return
        some = rnd.sample(leased, min(len(leased), rnd.choice([1, 1, 3, 20])))
        first = some[0]
        same = [n for n in some if n.channel is first.channel]
        kind = rnd.choice(["ack", "ack", "ack", "nack", "extend", "bogus"])
        queue, channel = first.channel.queue.name, first.channel.name
        delay = rnd.choice([None, 0, 30, 2000])
        if kind == "extend":
            self._extend(first, queue, channel)
        elif kind == "bogus":
            self._settle_one(first, queue, channel, True, rnd.choice([999_999, 1]), None)
        elif rnd.random() < 0.3:
            by_lease = rnd.random() < 0.7 or self.world.cold or first.channel.queue.is_dlq
            lease_id = first.lease_id if by_lease else 0
            self._settle_one(first, queue, channel, kind == "ack", lease_id, delay)
        else:
            self._settle_many(same, queue, channel, kind == "ack", delay)

    def _settle_one(
        self, note: Note, queue: str, channel: str, ack: bool, lease_id: int, delay: int | None
    ) -> None:
        if ack:
            request: Any = service.AckRequest(
                queue=queue, channel=channel, message_id=note.entry.id, lease_id=lease_id
            )
        else:
            request = service.NackRequest(
                queue=queue,
                channel=channel,
                message_id=note.entry.id,
                lease_id=lease_id,
                error="no",
                delay_ms=delay,
            )
        self.world.ask(
            commands.ACK if ack else commands.NACK,
            request,
            self._settled,
            self._settle_answered,
            items=[(note, lease_id, note.entry.id)],
            ack=ack,
            delay=delay,
            fsync=note.channel.queue.config["fsync"],
            where=(queue, channel),
        )

    def _settle_many(self, some: list[Note], queue: str, channel: str, ack: bool, delay: int | None) -> None:
        rnd, world = self.random, self.world
        notes: dict[str, Any] = {
            "items": [(n, n.lease_id, n.entry.id) for n in some],
            "ack": ack,
            "delay": delay,
            "fsync": some[0].channel.queue.config["fsync"],
            "where": (queue, channel),
        }
        sessions = [
            c
            for c in world.model.consumers.values()
            if c.kind == "session" and not c.ended and (c.queue.name, c.channel) == (queue, channel)
        ]
        if sessions and rnd.random() < 0.7:
            world.engine.tokens += 1
            sequence = world.engine.tokens
            settle = service.Settle(
                sequence=sequence, lease_ids=[n.lease_id for n in some], error="no", delay_ms=delay
            )
            request = service.ConsumeSessionRequest(**{"ack" if ack else "nack": settle})
            session = rnd.choice(sessions)
            asked = world.ask(
                commands.SESSION, request, self._settled, None, token=session.token, session=session, **notes
            )
            asked.answered = self._session_settled
            asked.notes["sequence"] = sequence
            world.unanswered[sequence] = asked
            return
        items = [
            service.SettleItem(message_id=n.entry.id, lease_id=n.lease_id, error="no", delay_ms=delay)
            for n in some
        ]
        kind, batch = (
            (commands.ACK_BATCH, service.AckBatchRequest)
            if ack
            else (commands.NACK_BATCH, service.NackBatchRequest)
        )
        world.ask(
            kind,
            batch(queue=queue, channel=channel, items=items),
            self._settled,
            self._settle_answered,
            **notes,
        )

    def _settled(self, asked: Asked) -> None:
        world = self.world
        session = asked.notes.get("session")
        asked.notes["expected"] = expected = []
        if session is not None and (session.ended or session.token not in world.model.consumers):
            world.unanswered.pop(asked.notes["sequence"], None)
            return
        for position, (note, lease_id, message_id) in enumerate(asked.notes["items"]):
            if lease_id == 0:
                current = next(
                    (n for n in note.channel.all_notes() if n.entry.id == message_id and n.state == LEASED),
                    None,
                )
            else:
                current = world.model.leases.get(lease_id)
            queue = world.model.queues.get(asked.notes["where"][0])
            good = (
                current is not None
                and current.state == LEASED
                and current.entry.id == message_id
                and (current.channel.queue.name, current.channel.name) == asked.notes["where"]
                and current.channel.queue is queue
            )
            expected.append(good)
            if not good or current is None:
                continue
            world.end_lease(current)
            if asked.notes["ack"]:
                current.state, current.acked = DONE, True
            else:
                place = (world.pass_number, 1, asked.index, position)
                world.fail(current, asked.notes["delay"], place)
        world.say(
            f"{'ack' if asked.notes['ack'] else 'nack'} {[(i[1], e) for i, e in zip(asked.notes['items'], expected, strict=True)]}"
        )

    def _settle_answered(self, asked: Asked, status: int, payload: bytes) -> None:
        if asked.kind in (commands.ACK, commands.NACK):
            codes = [status]
        elif status == 5:
            codes = [5] * len(asked.notes["items"])
        else:
            codes = [r.code for r in service.SettleBatchResponse.FromString(payload).results]
        self._compare(asked, [code == 0 for code in codes])

    def _session_settled(self, asked: Asked, status: int, payload: bytes) -> None:
        failures = {f.lease_id for f in service.ConsumeSessionResponse.FromString(payload).settled.failures}
        self._compare(asked, [lease_id not in failures for _, lease_id, _ in asked.notes["items"]])

    def _compare(self, asked: Asked, codes: list[bool]) -> None:
        if any(codes):
            self.world.check_synced(asked)
        if codes != asked.notes["expected"] and not any(n.maybe for n, _, _ in asked.notes["items"]):
            ids = [(lease_id, note.entry.token) for note, lease_id, _ in asked.notes["items"]]
            raise Broken(f"settles {ids} were answered {codes}, not {asked.notes['expected']}")

    def _extend(self, note: Note, queue: str, channel: str) -> None:
        extend_ms = self.random.choice([1000, 5000, 60000])
        request = service.ExtendLeaseRequest(
            queue=queue,
            channel=channel,
            message_id=note.entry.id,
            lease_id=note.lease_id,
            extend_ms=extend_ms,
        )
        self.world.ask(
            commands.EXTEND_LEASE,
            request,
            self._extended,
            self._extend_answered,
            note=note,
            lease_id=note.lease_id,
            extend_ms=extend_ms,
        )

    def _extended(self, asked: Asked) -> None:
        note = asked.notes["note"]
        world = self.world
        current = world.model.leases.get(asked.notes["lease_id"])
        asked.notes["good"] = current is not None and current.state == LEASED
        if current is not None and current.state == LEASED:
            current.expires_ms = world.engine.wall_ms + asked.notes["extend_ms"]
            current.due_mono_ms = world.engine.mono_ns // MS + asked.notes["extend_ms"]
            world.say(f"extend {current.lease_id} of {note.entry.token} by {asked.notes['extend_ms']}")

    def _extend_answered(self, asked: Asked, status: int, payload: bytes) -> None:
        if (status == 0) != asked.notes["good"] and not asked.notes["note"].maybe:
            raise Broken(f"extending {asked.notes['lease_id']} was answered {status}")

    # --- what the edge reports ------------------------------------------------------------------

    def written(self) -> None:
        for consumer in list(self.world.model.consumers.values()):
            promised = consumer.reported
            while len(consumer.unwritten) > promised and self.random.random() < 0.8:
                promised += 1
                self.world.ask(commands.WRITTEN, b"", self._written, token=consumer.token, consumer=consumer)
            consumer.reported = promised

    def _written(self, asked: Asked) -> None:
        consumer = asked.notes["consumer"]
        if consumer.unwritten and not consumer.ended:
            consumer.unwritten.pop(0)
            consumer.reported -= 1

    def credit(self) -> None:
        sessions = [c for c in self.world.model.consumers.values() if c.kind == "session" and not c.ended]
        if not sessions:
            return
        session = self.random.choice(sessions)
        credit = self.random.choice([1, 5])
        self.world.ask(
            commands.SESSION,
            service.ConsumeSessionRequest(credit=credit),
            self._credited,
            token=session.token,
            consumer=session,
            credit=credit,
        )

    def _credited(self, asked: Asked) -> None:
        consumer = asked.notes["consumer"]
        consumer.limit = min(consumer.max_in_flight, consumer.limit + asked.notes["credit"])

    def close(self) -> None:
        consumers = [c for c in self.world.model.consumers.values() if not c.closing]
        if not consumers:
            return
        consumer = self.random.choice(consumers)
        consumer.closing = True
        release = consumer.kind == "session" and self.random.random() < 0.5
        if consumer.kind == "pull":
            self.world.ask(
                commands.CANCEL, b"", self._closed, token=consumer.token, consumer=consumer, release=False
            )
        elif consumer.kind == "session" and self.random.random() < 0.5:
            request = service.ConsumeSessionRequest(
                close=service.ConsumeSessionRequest.Close(release=release)
            )
            self.world.ask(
                commands.SESSION,
                request,
                self._closed,
                token=consumer.token,
                consumer=consumer,
                release=release,
            )
        else:
            self.world.ask(
                commands.CONSUMER_CLOSE,
                b"release" if release else b"",
                self._closed,
                token=consumer.token,
                consumer=consumer,
                release=release,
            )

    def _closed(self, asked: Asked) -> None:
        world, consumer = self.world, asked.notes["consumer"]
        if world.model.consumers.pop(consumer.token, None) is None:
            return
        world.say(f"{consumer.kind} {consumer.token} leaves, release {asked.notes['release']}")
        consumer.ended = True
        world.ended_by_us.add(consumer.token)
        world.unanswered.pop(consumer.token, None)
        back = [n for delivery in consumer.unwritten for n in delivery if n.holder == consumer.token]
        if asked.notes["release"]:
            back = [n for n in world.model.leases.values() if n.holder == consumer.token]
        for note in back:
            if note.state == LEASED and note.holder == consumer.token and note.lease_id in world.model.leases:
                world.end_lease(note)
                self.returned(note)

    def returned(self, note: Note) -> None:
        """As if it had never been delivered."""
        world = self.world
        note.state = READY
        for name in note.entry.throttles:
            if name in world.model.buckets and not note.channel.queue.is_dlq:
                world.on_curve.given_back(world.model.buckets[name])
        world.fair.given_back(note)
        if 0 < note.entry.expires_ms <= world.engine.wall_ms:
            if note.channel.queue.config.get("ttl_to_dlq") and not note.channel.queue.is_dlq:
                world.dead_letter(note)
            else:
                note.state, note.ended_ms = DONE, world.engine.wall_ms


class Operators:
    """Queues and channels come and go; settings, limits and policies change while messages wait."""

    def __init__(self, world: World, producers: Producers) -> None:
        self.world = world
        self.random = world.random
        self.producers = producers

    def create_queue(self) -> None:
        world, rnd = self.world, self.random
        name = rnd.choice(["q1", "q2", "q3"])
        config: dict[str, int] = {
            "visibility_ms": rnd.choice([1000, 5000, 30000]),
            "max_attempts": rnd.choice([0, 1, 2, 3, 20]) if not world.always_cold else 20,
            "fsync": int(rnd.random() < 0.7),
            "max_depth": rnd.choice([0, 0, 0, 30]),
            "dedup_window_ms": rnd.choice([1000, 300000]),
            "ttl_to_dlq": int(rnd.random() < 0.5),
            "retry_base_ms": rnd.choice([50, 500]),
            "retry_cap_ms": 2000,
            "retry_fixed": int(rnd.random() < 0.5),
            "jitter": int(rnd.random() < 0.3),
            "soft": rnd.choice([0, 0, LONG_MS]),
        }
        channels = rnd.choice([[], [], ["a"], ["a", "b"]])
        request = admin.CreateQueueRequest(name=name, config=self._config(config, channels))
        world.ask(
            commands.CREATE_QUEUE,
            request,
            self._created,
            self._create_answered,
            name=name,
            config=config,
            channels=channels,
            fsync=1,
        )

    @staticmethod
    def _config(config: dict[str, int], channels: list[str]) -> admin.QueueConfig:
        kinds = admin.RetryPolicy
        return admin.QueueConfig(
            visibility_timeout_ms=config["visibility_ms"],
            max_attempts=config["max_attempts"],
            durability=admin.DURABILITY_FSYNC if config["fsync"] else admin.DURABILITY_OS,
            max_depth=config["max_depth"],
            fairness_key_header="k",
            weight_header="w",
            cost_header="c",
            throttle_key_headers=["t1", "t2"],
            retry=admin.RetryPolicy(
                kind=kinds.KIND_FIXED if config["retry_fixed"] else kinds.KIND_EXPONENTIAL,
                base_ms=config["retry_base_ms"],
                cap_ms=config["retry_cap_ms"],
                jitter=0.5 if config["jitter"] and not config["retry_fixed"] else 0,
            ),
            dedup_window_ms=config["dedup_window_ms"],
            ttl_to_dlq=bool(config["ttl_to_dlq"]),
            retention=admin.Retention(soft_period_ms=config["soft"]),
            channels=channels,
        )

    def _created(self, asked: Asked) -> None:
        model, name = self.world.model, asked.notes["name"]
        asked.notes["exists"] = name in model.queues
        if asked.notes["exists"]:
            return
        self.world.say(f"create {name} {asked.notes['config']} {asked.notes['channels']}")
        queue = QueueModel(name, asked.notes["config"], number=2 * asked.token)
        for channel in asked.notes["channels"] or ["default"]:
            queue.channels[channel] = ChannelModel(channel, queue)
        dlq = QueueModel(f"{name}.dlq", {**asked.notes["config"], "max_depth": 0, "soft": 0}, is_dlq=True)
        dlq.number = queue.number + 1
        # Of its own settings a DLQ takes over two; the rest are defaults.
        dlq.config.update(retry_base_ms=100, retry_cap_ms=60000, retry_fixed=0, jitter=1, ttl_to_dlq=0)
        dlq.channels["default"] = ChannelModel("default", dlq)
        queue.dlq = dlq
        model.queues[name], model.queues[dlq.name] = queue, dlq

    def _create_answered(self, asked: Asked, status: int, payload: bytes) -> None:
        if status != (6 if asked.notes["exists"] else 0):
            raise Broken(f"creating {asked.notes['name']} was answered {status}")

    def _nobody_pulls(self) -> bool:
        """No pull in the mailbox: it would be served in the middle of a pass, between this and that."""
        return not any(asked.kind == commands.LEASE for asked in [*self.world.taken, *self.world.mailbox])

    def delete_queue(self) -> None:
        queues = [q for q in self.world.model.queues.values() if not q.is_dlq]
        if not queues or not self._nobody_pulls():
            return
        name = self.random.choice(queues).name
        self.world.ask(
            commands.DELETE_QUEUE,
            admin.DeleteQueueRequest(queue=name),
            self._deleted,
            self._expect,
            name=name,
            fsync=1,
        )

    def _deleted(self, asked: Asked) -> None:
        queue = self.world.model.queues.get(asked.notes["name"])
        asked.notes["expected"] = 0 if queue is not None else 5
        if queue is None:
            return
        self.world.say(f"delete {queue.name}")
        assert queue.dlq is not None
        for gone in (queue, queue.dlq):
            gone.gone = True
            del self.world.model.queues[gone.name]
            for channel in gone.channels.values():
                self._forget_channel(channel)

    def _forget_channel(self, channel: ChannelModel) -> None:
        world = self.world
        world.fair.reset(channel)
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

    # --- channels -------------------------------------------------------------------------------

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
        world.fair.reset(channel)
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

    # --- limits and policies ----------------------------------------------------------------------

    def throttle(self) -> None:
        rnd, world = self.random, self.world
        if not self._nobody_pulls():
            return
        key = rnd.choice(THROTTLE_KEYS)
        rate, burst = rnd.choice(
            [(1.0, 1.0), (20.0, 1.0), (5.0, 3.0), (100.0, 10.0), (0.0, 2.0), (10.0, 0.0)]
        )
        remove = rnd.random() < 0.3
        value = "" if remove else f"{rate},{burst}"
        request = admin.SetConfigRequest(key=f"throttle.{key}", value=value)
        world.ask(
            commands.SET_CONFIG,
            request,
            self._throttled,
            self._expect,
            key=key,
            rate=rate,
            burst=burst,
            remove=remove,
            expected=0,
            fsync=1,
        )

    def _throttled(self, asked: Asked) -> None:
        world, key = self.world, asked.notes["key"]
        world.say(f"throttle {asked.notes}")
        bucket = world.model.buckets.get(key)
        if asked.notes["remove"]:
            world.model.buckets.pop(key, None)
        elif bucket is None:
            burst = asked.notes["burst"]
            wall = world.engine.wall_ms
            world.model.buckets[key] = BucketModel(asked.notes["rate"], burst, burst, wall, wall)
        else:
            bucket.refill(world.engine.wall_ms)
            bucket.rate, bucket.burst = asked.notes["rate"], asked.notes["burst"]
            bucket.level = min(bucket.level, bucket.burst)
            bucket.since_ms = world.engine.wall_ms

    def key_policy(self) -> None:
        rnd, world = self.random, self.world
        queue = self._source()
        if queue is None or not self._nobody_pulls():
            return
        key = rnd.choice(FAIRNESS_KEYS)
        request = admin.SetKeyPolicyRequest(queue=queue.name, fairness_key=key)
        what = rnd.choice(["weight", "pause", "cap"])
        if what == "weight":
            request.weight = rnd.choice([0, 1, 4, 10])
        elif what == "pause":
            request.paused = rnd.random() < 0.4
        else:
            request.max_in_flight = rnd.choice([0, 0, 1, 3])
        world.ask(
            commands.SET_KEY_POLICY,
            request,
            self._policy_set,
            self._expect,
            name=queue.name,
            policy=request,
            fsync=1,
        )

    def _policy_set(self, asked: Asked) -> None:
        queue, request = self.world.model.queues.get(asked.notes["name"]), asked.notes["policy"]
        asked.notes["expected"] = 5 if queue is None else 0
        if queue is None:
            return
        self.world.say(f"policy {request}".replace("\n", " "))
        key = queue.key(request.fairness_key)
        if request.HasField("weight"):
            key.admin_weight = request.weight
        if request.HasField("paused"):
            key.paused = request.paused
        if request.HasField("max_in_flight"):
            key.cap = request.max_in_flight
        for channel in queue.channels.values():
            self.world.fair.reset(channel, request.fairness_key)

    # --- redrive ------------------------------------------------------------------------------------

    def redrive(self) -> None:
        """All that is dead in a queue, at a quiet moment."""
        world = self.world
        queue = self._source()
        if queue is None or world.always_cold:
            return
        world.quiet()
        queue = world.model.queues.get(queue.name)
        if queue is None or queue.dlq is None:
            return
        # A page moves no more than what is hot: have all of it read back first.
        world.ask(
            commands.PEEK_MESSAGES,
            admin.PeekMessagesRequest(queue=queue.dlq.name, max_messages=1000),
            answered=lambda *_: None,
        )
        world.quiet()
        pending = [n for n in world.model.pending(queue.dlq)]
        if not pending or len(pending) > 256:
            return
        request = admin.RedriveRequest(dlq_queue=queue.dlq.name, count=256)
        world.ask(
            commands.REDRIVE_MOVE,
            request,
            self._redriven,
            self._redrive_answered,
            queue=queue,
            pending=pending,
            fsync=1,
        )
        world.run_pass()

    def _redriven(self, asked: Asked) -> None:
        world, queue = self.world, asked.notes["queue"]
        asked.notes["moved"] = 0
        for note in asked.notes["pending"]:
            channel = queue.channels.get(note.entry.source)
            if channel is None or note.state not in (READY, DELAYED):
                continue
            asked.notes["moved"] += 1
            key, weight, cost, throttles = self.producers.routed(queue, note.entry.headers)
            entry = Entry(
                note.entry.token, queue, note.entry.headers, key, weight, cost, throttles, id=note.entry.id
            )
            entry.only = channel
            queue.log.append(entry)
            queue.key(key).weight = weight
            world.fair.reset(None, key)
            note.state, note.ended_ms = DONE, world.engine.wall_ms
            channel.add(Note(entry, channel, place=None, maybe=note.maybe))
        world.say(f"redrive {asked.notes['moved']} of {queue.name}")

    def _redrive_answered(self, asked: Asked, status: int, payload: bytes) -> None:
        moved = asked.notes["moved"]
        if status == 9 and moved == 0:
            return
        got = admin.RedriveResponse.FromString(payload).redriven if status == 0 else -1
        if got != moved and not any(n.maybe for n in asked.notes["pending"]):
            raise Broken(f"redrive was answered {status} and moved {got}, not {moved}")


def status_of(payload: bytes) -> messages.ItemStatus:
    return messages.ItemStatus.FromString(payload)
