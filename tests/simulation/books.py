"""What the core says it has, against what the model has, while the clock stands still."""

from collections.abc import Callable
from functools import partial

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila_server.core.protocol import commands
from tests.core.test_bounded_work import PASS_WORK_MAX, count
from tests.native.coreprobe import wrong_ages
from tests.simulation.asked import Asked
from tests.simulation.limit_model import NAMES
from tests.simulation.model import (
    DECIDING,
    DELAYED,
    DONE,
    LEASED,
    READY,
    ChannelModel,
    Note,
    QueueModel,
)
from tests.simulation.oracles import Broken
from tests.simulation.world import World


def _keep(payloads: list[bytes], _asked: Asked, _status: int, payload: bytes) -> None:
    payloads.append(payload)


class Books:
    """Compares numbers, and finds what is left lying."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.judged = 0
        self.judged_idle = 0
        self.judged_work = 0
        self.lets: Callable[[Note], bool] = lambda _note: True
        """Whether all limits that it names have enough for it."""

    def check(self) -> None:
        """GetStats against the model; the clock stands still and nothing is under way."""
        self.world.quiet()
        for queue in list(self.world.model.queues.values()):
            for channel in [None, *queue.channels.values()]:
                self._check_stats(queue, channel)
        if wrong := wrong_ages(self.world.engine.core):
            raise Broken(f"a look at every message finds other ages than the core keeps: {wrong}")
        self._check_idle()
        self._check_work()

    def _check_work(self) -> None:
        """Frames and messages looked at, whatever there was to do: a pass ends, and others get their turn."""
        self.judged_work += 1
        work = count(self.world.engine, "pass_work_max")
        if work > PASS_WORK_MAX:
            raise Broken(f"a pass looked at {work} frames and messages, {PASS_WORK_MAX} are its bound")

    def stats(self, queue: QueueModel, channel: ChannelModel | None = None) -> admin.GetStatsResponse:
        got: list[tuple[int, bytes]] = []
        request = admin.GetStatsRequest(queue=queue.name, channel=channel.name if channel else "")
        self.world.ask(
            commands.GET_STATS, request, answered=lambda _, status, payload: got.append((status, payload))
        )
        self.world.run_pass()
        if not got or got[0][0]:
            raise Broken(f"GetStats of {queue.name} was answered {got}")
        return admin.GetStatsResponse.FromString(got[0][1])

    def _check_stats(self, queue: QueueModel, channel: ChannelModel | None) -> None:
        self.judged += 1
        stats = self.stats(queue, channel)
        notes = [n for c in queue.channels.values() if channel in (None, c) for n in c.all_notes()]
        sure_pending = {id(n.entry) for n in notes if n.state in (READY, DELAYED) and not n.maybe}
        may_pending = {id(n.entry) for n in notes if n.state in (READY, DELAYED)}
        leased = {id(n.entry) for n in notes if n.state in (LEASED, DECIDING) and not n.maybe}
        may_leased = {id(n.entry) for n in notes if n.state in (LEASED, DECIDING)}
        source = self.world.model.queues.get(queue.name.removesuffix(".dlq"))
        ghosts = len(queue.ghosts)
        if queue.is_dlq and source is not None:  # some may have died unseen
            ghosts = len(source.ghosts) * len(source.channels)
        name = f"{queue.name}/{channel.name if channel else '*'}"
        # A crash kept the world from seeing that these are leased: for them time to live does not count.
        lost = self.world.lost_leases()
        over = sum(n.state == DONE and n.ended_ms >= 0 for n in notes) if lost else 0
        unseen = min(lost, len(may_pending) + over + ghosts)
        if not len(sure_pending) - unseen <= stats.depth <= len(may_pending) + ghosts:
            raise Broken(
                f"depth of {name} is {stats.depth}, not {len(sure_pending)}..{len(may_pending) + ghosts}:"
                f" {self._peeked(queue, channel)}"
            )
        if not len(leased) <= stats.in_flight <= len(may_leased) + unseen:
            raise Broken(f"in_flight of {name} is {stats.in_flight}, not {len(leased)}..{len(may_leased)}")
        self._check_weights(queue, stats)
        sure_keys = {n.entry.key for n in notes if n.state in (READY, DELAYED) and not n.maybe}
        may_keys = {n.entry.key for n in notes if n.state in (READY, DELAYED)}
        if not unseen and not ghosts and not len(sure_keys) <= stats.active_fairness_keys <= len(may_keys):
            raise Broken(
                f"{name} has {stats.active_fairness_keys} active keys, not {len(sure_keys)}..{len(may_keys)}"
            )

    @staticmethod
    def _check_weights(queue: QueueModel, stats: admin.GetStatsResponse) -> None:
        """A weight is set by an admin, else by the weight table, else by the newest enqueue or redrive.

        The last one is kept while the key has pending or leased messages.
        """
        for row in stats.per_key_stats:
            is_known = (row.pending_count or row.in_flight) and queue.key(row.key).is_sure
            if is_known and row.weight != queue.key(row.key).due_weight:
                raise Broken(f"{queue.name} weighs {row.key} {row.weight}, not {queue.key(row.key)}")

    def _peeked(self, queue: QueueModel, channel: ChannelModel | None) -> str:
        """What is pending for the core and not for the model, and the other way round."""
        found = []
        for each in [channel] if channel else queue.channels.values():
            core = {int(m.payload.split(b"|")[0]) for m in self.peek(queue, each)}
            model = {n.entry.token for n in each.all_notes() if n.state in (READY, DELAYED)}
            found.append(f"{each.name}: core only {core - model}, model only {model - core}")
        return "; ".join(found)

    def peek(self, queue: QueueModel, channel: ChannelModel) -> list[messages.Message]:
        found: list[bytes] = []
        request = admin.PeekMessagesRequest(queue=queue.name, channel=channel.name, max_messages=1000)
        self.world.ask(commands.PEEK_MESSAGES, request, answered=partial(_keep, found))
        self.world.quiet()
        return list(admin.PeekMessagesResponse.FromString(found[0]).messages)

    def _leased_unseen(self, queue: QueueModel, channel: ChannelModel) -> set[Note]:
        """Those whose leases ran out while their bytes were read back, and wait for only the core knows how long;
        and those that are still leased for somebody whom a crash kept from seeing them."""
        failed: set[Note] = set()
        pending: set[Note] = set()
        for message in self.peek(queue, channel):
            meta = message.metadata
            token = int(message.payload.split(b"|")[0])
            note = self.world.find(channel, token, meta.dead_letter.source_channel, meta.offset)
            if note is not None:
                pending.add(note)
                if meta.attempt_count > (note.attempts or 0):
                    failed.add(note)
        if self.world.lost_leases():
            failed.update(note for note in channel.all_notes() if note.state == READY and note not in pending)
        return failed

    def _check_idle(self) -> None:
        """Nothing that could go may be left lying while somebody has room for it."""
        for queue in self.world.model.queues.values():
            # A timer is a nanosecond later than its token, so at that very moment the token may still be there.
            levels = {
                t.key: t.tokens - (1e-6 if t.rate_per_second else 0)
                for t in self.stats(queue).per_throttle_stats
            }
            for channel in queue.channels.values():
                if not self._has_room(queue, channel):
                    continue
                self.judged_idle += 1
                unseen = self._leased_unseen(queue, channel) if self.world.always_cold else set()
                for note in channel.all_notes():
                    key = queue.key(note.entry.key)
                    held = self._held(channel, note.entry.key)
                    # Those that are leased for somebody whom a crash kept from seeing them are held as well.
                    held += sum(1 for other in unseen if other.entry.key == note.entry.key)
                    if (
                        note.state == READY
                        and not note.maybe
                        and note not in unseen
                        and not key.paused
                        and not (key.cap and held >= key.cap)
                        and not (queue.in_order and self._may_wait_for_another(channel, note))
                        and (
                            queue.is_dlq
                            or all(levels.get(t, 9) >= 1 for t in note.entry.throttles - {*NAMES})
                        )
                        and (queue.is_dlq or self.lets(note))
                    ):
                        raise Broken(f"{note} could go, somebody has room, and it does not; levels {levels}")

    @staticmethod
    def _held(channel: ChannelModel, key: str) -> int:
        return sum(1 for n in channel.all_notes() if n.holds_its_key and n.entry.key == key)

    def _may_wait_for_another(self, channel: ChannelModel, note: Note) -> bool:
        """Where keys are in order: whether an earlier message of its key may be there."""
        if channel.queue.ghosts or self.world.lost_leases():
            return True
        others = [
            other
            for other in channel.all_notes()
            if other is not note and other.entry.key == note.entry.key and other.state != DONE
        ]
        return any(
            other.maybe or (other.state == READY and _may_stand_before(other, note)) for other in others
        )

    def _has_room(self, queue: QueueModel, channel: ChannelModel) -> bool:
        for consumer in self.world.model.consumers.values():
            if consumer.ended or consumer.queue is not queue or consumer.channel != channel.name:
                continue
            if consumer.kind == "pull" and consumer.token in self.world.unanswered:
                return True
            held = sum(1 for n in self.world.model.leases.values() if n.holder == consumer.token)
            if consumer.kind != "pull" and len(consumer.unwritten) == 0 and held < consumer.limit:
                return True
        return False


def _may_stand_before(one: Note, other: Note) -> bool:
    return one.place is None or other.place is None or one.place <= other.place
