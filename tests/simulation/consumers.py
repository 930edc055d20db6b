"""Consumers at random: they open, settle, extend, write, leave; each act predicts its own effect on the model."""

from collections.abc import Callable, Iterable
from typing import Any

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import MS
from tests.simulation.asked import Asked
from tests.simulation.model import (
    DONE,
    LEASED,
    READY,
    ChannelModel,
    ConsumerModel,
    Note,
    QueueModel,
)
from tests.simulation.oracles import Broken
from tests.simulation.world import World

ANYWHERE = 1 << 63  # the offset of an entry that was not seen yet


def fits(said: Iterable[service.LimitFeedback], note: Note) -> bool:
    """It is about limits that the message names."""
    return all(each.limit in ("", *note.entry.throttles) for each in said)


class Consumers:
    """Streams, sessions and pulls; acks, nacks, extensions; those who leave without a word."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.feedback: Callable[[Iterable[str]], list[service.LimitFeedback]] = lambda _names: []
        """What is told of providers with a settle of a message that names these throttle keys."""

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
                wait_ms,
            )

    def _ask_open(self, kind: int, request: Any, consumer: ConsumerModel, wait_ms: int = 0) -> None:
        asked = self.world.ask(
            kind, request, self._opened, self._open_answered, consumer=consumer, wait_ms=wait_ms
        )
        consumer.token = asked.token

    def _opened(self, asked: Asked) -> None:
        consumer = asked.notes["consumer"]
        queue = self.world.model.queues.get(consumer.queue.name)
        if queue is None or consumer.channel not in queue.channels:
            asked.notes["missing"] = True
            return
        consumer.queue = queue
        asked.notes["waits_until_ms"] = self.world.engine.mono_ns // MS + asked.notes["wait_ms"]
        self.world.model.consumers[asked.token] = consumer
        self.world.say(f"{consumer.kind} {asked.token} opens {queue.name}/{consumer.channel}")

    def _open_answered(self, asked: Asked, status: int, payload: bytes) -> None:
        consumer = asked.notes["consumer"]
        expected = 5 if asked.notes.get("missing") or consumer.ended else 0
        if consumer.kind == "pull" and consumer.ended and status == 0 and not payload:
            # A large queue is taken apart over several passes: its wait may be over before its channel's turn comes.
            due_ms = asked.notes["waits_until_ms"]
            expected = 0 if due_ms <= self.world.engine.mono_ns // MS else 5
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
        said = self.feedback(note.entry.throttles)
        if ack:
            request: Any = service.AckRequest(
                queue=queue, channel=channel, message_id=note.entry.id, lease_id=lease_id, feedback=said
            )
        else:
            request = service.NackRequest(
                queue=queue,
                channel=channel,
                message_id=note.entry.id,
                lease_id=lease_id,
                error="no",
                delay_ms=delay,
                feedback=said,
            )
        self.world.ask(
            commands.ACK if ack else commands.NACK,
            request,
            self._settled,
            self._settle_answered,
            items=[(note, lease_id, note.entry.id)],
            said=[said],
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
            said = self.feedback(frozenset().union(*(n.entry.throttles for n in some)))
            settle = service.Settle(
                sequence=sequence,
                lease_ids=[n.lease_id for n in some],
                error="no",
                delay_ms=delay,
                feedback=said,
            )
            request = (
                service.ConsumeSessionRequest(ack=settle)
                if ack
                else service.ConsumeSessionRequest(nack=settle)
            )
            session = rnd.choice(sessions)
            asked = world.ask(
                commands.SESSION, request, self._settled, None, token=session.token, session=session, **notes
            )
            asked.answered = self._session_settled
            asked.notes["sequence"], asked.notes["said"] = sequence, [said] * len(some)
            world.unanswered[sequence] = asked
            return
        notes["said"] = [self.feedback(n.entry.throttles) for n in some]
        items = [
            service.SettleItem(
                message_id=n.entry.id, lease_id=n.lease_id, error="no", delay_ms=delay, feedback=said
            )
            for n, said in zip(some, notes["said"], strict=True)
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
            world.settled_late.add(asked.notes["sequence"])
            return
        where = world.model.queues.get(asked.notes["where"][0])
        asked.notes["fsync"] = where.config["fsync"] if where is not None else 0
        nack = asked.notes.get("sequence", asked.token)
        if not asked.notes["ack"]:
            asked.notes["open"] = []  # failures that are being decided
            world.nacks[nack] = asked
        for position, (note, lease_id, message_id) in enumerate(asked.notes["items"]):
            if lease_id == 0:
                # Of two entries of one message, redriven and sought back, the older is taken while both are leased.
                current = min(
                    (n for n in note.channel.all_notes() if n.entry.id == message_id and n.state == LEASED),
                    key=lambda n: n.entry.offset or ANYWHERE,
                    default=None,
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
            said = asked.notes["said"][position]
            good = good and current is not None and fits(said, current)
            expected.append(good)
            asked.notes.setdefault("meant", []).append(current if good else None)
            if not good or current is None:
                continue
            was_limited = world.hears(said, current)
            world.end_lease(current)
            if asked.notes["ack"]:
                current.state, current.acked = DONE, True
            elif was_limited:
                self._back_in_its_place(current)
            else:
                place = (world.pass_number, 1, asked.index, position)
                world.fail(current, asked.notes["delay"], place, "no", nack)
        results = [(item[1], code) for item, code in zip(asked.notes["items"], expected, strict=True)]
        world.say(f"{'ack' if asked.notes['ack'] else 'nack'} {results}")

    def _back_in_its_place(self, note: Note) -> None:
        """Its provider refused it, which is no failure: it goes back uncounted, and gives back none of its tokens."""
        world = self.world
        note.state, note.returned_pass = READY, world.pass_number
        world.fair.given_back(note)
        if 0 < note.entry.expires_ms <= world.engine.wall_ms:
            world.drop(note)

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
        if self.world.still_open(asked):
            raise Broken(f"a nack was answered while its failures were being decided: {asked.notes['open']}")
        if any(codes):
            self.world.check_synced(asked)
        for note, was_taken in zip(asked.notes.get("meant", []), codes, strict=False):
            if note is not None and was_taken and asked.notes["ack"]:
                self.world.one_end.ended(note, "an ack")
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
        unwritten = [n for delivery in consumer.unwritten for n in delivery if n.holder == consumer.token]
        back = unwritten
        if asked.notes["release"]:
            back = [n for n in world.model.leases.values() if n.holder == consumer.token]
        for note in back:
            if note.state == LEASED and note.holder == consumer.token and note.lease_id in world.model.leases:
                world.end_lease(note)
                self.returned(note)
                if note in unwritten and 0 < note.entry.expires_ms <= world.engine.wall_ms:
                    world.drop(note)

    def returned(self, note: Note) -> None:
        """As if it had never been delivered. What was written and is over by now dies as the pass ends, with what else
        is over then: a seek that comes before has it forgotten, like all that is leased."""
        world = self.world
        note.state, note.returned_pass = READY, world.pass_number
        for name in note.entry.throttles:
            if name in world.model.buckets and not note.channel.queue.is_dlq:
                world.on_curve.given_back(world.model.buckets[name], len(world.unseen))
        world.within_limits.given_back(world.model, note)
        world.fair.given_back(note)
