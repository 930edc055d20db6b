"""Whether each delivery kept what docs/fairness.md promises, judged from what was recorded alone.

Replay asks whether the core decides the same again, so a fault that the recording build shares with this one stays
unseen. Here nothing compiled decides: a message's life is followed row by row, a slow twin in Python says whose turn it
is (channel_twin.py), and limits are counted in fractions (allowances.py).
"""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fila_server.history_files.allowances import Allowances
from fila_server.history_files.channel_twin import (
    DELAYED,
    HELD,
    LEASED,
    OVER,
    READY,
    UNKNOWN,
    ChannelTwin,
    Flow,
    Message,
)
from fila_server.history_files.channels import Channel
from fila_server.history_files.lines import Line
from fila_server.history_files.rows import (
    CAME,
    ENDED,
    HAS_NO_ROW_YET,
    OF_LIMITS,
    REPLACED,
    Row,
    gave_way,
    what_follows,
)

NOT_JUDGED = (
    "waits, and how long messages were held (replay compares them)",
    "how keys share a limit of costs alone, several limits, or one that lets all go at once that wait",
    "how channels and consumers take turns",
    "limits by a pattern, budgets, limits that learn, shadows",
    "the pace of delivery: whether a message could have gone sooner",
    "the order of a queue with strict key order, dedup, and what scripts decided",
)
"""What no delivery is judged by."""

MESSAGES_PER_DELIVERY_MAX = 512
DELAYS_TOGETHER_MAX = 512
"""If more delays end in one pass, some may end in the next."""
NOT_WHOLE = "of queues that were there before the recording"
MADE_ANEW = "of queues and channels that were deleted, sought or read from the past"
UNSURE = "of keys that a limit, a cap, a pause or a script may have kept from their turn"
UNTOLD = "of queues in which messages were replaced, in a recording that does not tell by which"


@dataclass
class Judgement:
    """What was found."""

    passes: int = 0
    deliveries: int = 0
    turns: int = 0
    """Deliveries whose turn was judged."""
    shares: int = 0
    """Deliveries that waited for a limit, of keys whose shares of it were judged."""
    wrong: list[str] = field(default_factory=list)
    """The first few faults, a sentence each."""
    faults: int = 0
    not_judged: Counter[str] = field(default_factory=Counter)
    """Deliveries whose turn was not judged, by why."""


class Judge:
    """Takes changes and decisions pass by pass, and says what broke a promise."""

    FAULTS_REPORTED = 10

    def __init__(self, quantum: int, untold: Collection[str] = ()) -> None:
        """untold: queues in which messages were replaced, where no row tells by which."""
        self._untold = untold
        self._quantum = quantum
        self._allowed = Allowances()
        self._channels: dict[tuple[str, str], Channel] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._made_here: set[str] = set()
        self._room: dict[int, int] = {}
        self._held: Counter[int] = Counter()
        self._keys_changed: set[tuple[str, str]] = set()
        self._later: dict[tuple[str, str], set[int]] = defaultdict(set)
        """Offsets of messages that get a delay in this pass, by channel."""
        self._pass = 0
        self._now_ns = 0
        self.found = Judgement()

    # --- what a pass brings --------------------------------------------------------------------

    def take(
        self, number: int, before_ns: int, now_ns: int, changes: Iterable[Mapping[str, Any]], rows: list[Row]
    ) -> None:
        """Judge one pass, by its number. Passes come in their order; those without rows may be left out.

        before_ns, now_ns: the monotonic clocks of the pass before it, and its own.
        """
        self._pass, self._now_ns = number, max(self._now_ns, now_ns)
        self._allowed.now_ns = self._now_ns
        self._keys_changed.clear()
        for change in changes:
            self._changed(change)
        follows = what_follows(rows)
        self._later.clear()
        for row in rows:
            if row.kind == "delayed":
                self._later[row.queue, row.channel].add(row.offset)
        self._arrivals_end(number - 2, number - 1)
        self._delays_end(number - 1, before_ns)
        delays_ended = False
        delivered: dict[int, int] = {}
        for row, following in zip(rows, follows, strict=True):
            if row.kind == "delivered":
                if not delays_ended:
                    self._arrivals_end(number, number)
                    self._delays_end(number, self._now_ns)
                    delays_ended = True
                delivered[row.consumer] = delivered.get(row.consumer, 0) + 1
            self._decided(row, following)
        if not delays_ended:
            self._arrivals_end(number - 1, number)
            self._delays_end(number, self._now_ns)
        self._deliveries_end(delivered)

    def _changed(self, change: Mapping[str, Any]) -> None:
        kind, queue = change["kind"], change["queue"]
        if kind == "limit":
            self._allowed.limit_changed(change)
            self._a_limit_may_hold()
            for channel in self._channels.values():
                for line in channel.lines.values():
                    line.forget_all()
                if not self._allowed.at_once(change["name"]):
                    channel.lines.pop(change["name"], None)
        elif kind == "key":
            self._key_changed(queue, change)
        elif kind in ("queue_created", "queue_updated"):
            if kind == "queue_created":
                self._made_here.add(queue)
            self._queue_says(queue, json.loads(change["value"]) if change["value"] else {})
        elif kind == "queue_deleted":
            for channel in self._channels.values():
                if channel.queue == queue:
                    self._blur(channel)
            self._made_here.discard(queue)
            self._allowed.queue_deleted(queue)
        elif kind in ("channel_deleted", "channel_sought"):
            self._blur(self._channel(queue, change["channel"]))
        elif kind in ("consumer_joined", "consumer_room"):
            said = json.loads(change["value"])
            self._room[said["consumer"]] = said["room"]

    def _a_limit_may_hold(self) -> None:
        for channel in self._channels.values():
            for flow in channel.turns:
                if flow.named and self._allowed.is_limited(flow.named):
                    channel.turns.is_unsure(flow)

    def _key_changed(self, queue: str, change: Mapping[str, Any]) -> None:
        key = self._allowed.key_changed(change)
        self._keys_changed.add((queue, change["name"]))
        for flow in self._flows(queue, change["name"]):
            self._key_says(queue, flow)
            if key.weight and key.weight != flow.weight:
                self._turns_of(queue, flow).weighs(flow, key.weight, self._pass)

    def _queue_says(self, queue: str, said: dict[str, Any]) -> None:
        before = self._settings.get(queue, {})
        self._settings[queue] = said
        if "key_defaults" in before or "key_defaults" in said:
            self._allowed.defaults_changed(queue)
        for flow in self._flows(queue, None):
            self._key_says(queue, flow)

    def _flows(self, queue: str, key: str | None) -> list[Flow]:
        return [
            flow
            for channel in self._channels.values()
            if channel.queue == queue
            for flow in channel.turns
            if key is None or flow.key == key
        ]

    def _turns_of(self, queue: str, flow: Flow) -> ChannelTwin:
        return next(
            channel.turns
            for channel in self._channels.values()
            if channel.queue == queue and any(each is flow for each in channel.turns)
        )

    def _key_says(self, queue: str, flow: Flow) -> None:
        """Whether its key may be kept from its turn."""
        settings = self._settings.get(queue, {})
        key = self._allowed.keys.get((queue, flow.key))
        flow.is_held = (
            (key is not None and key.holds)
            or bool(settings.get("key_defaults"))
            or settings.get("key_order") == "KEY_ORDER_STRICT"
            or bool(settings.get("ttl_to_dlq") or settings.get("key_limit"))
        )
        if flow.is_held:
            for channel in self._channels.values():
                for line in channel.lines.values():
                    line.steps_out(flow)
        if flow.is_held and flow.ready:
            self._turns_of(queue, flow).is_unsure(flow)

    def _channel(self, queue: str, name: str) -> Channel:
        channel = self._channels.get((queue, name))
        if channel is None:
            is_whole = queue in self._made_here or queue.removesuffix(".dlq") in self._made_here
            channel = Channel(queue, name, ChannelTwin(self._quantum), is_whole)
            self._channels[queue, name] = channel
        return channel

    def _message(self, channel: Channel, row: Row) -> Message:
        flow = channel.turns.flow(row.key, row.weight)
        if flow.ready == flow.unknown == 0:
            self._key_says(channel.queue, flow)
            flow.is_sure = not flow.is_held
        message = Message(row.offset, flow, row.cost)
        channel.turns.is_unknown(message)
        if not channel.queue.endswith(".dlq"):
            message.throttle_keys, message.priority = row.throttle_keys, row.priority
            flow.named.update(row.throttle_keys)
            if row.throttle_keys not in flow.sets:
                flow.sets.add(row.throttle_keys)
                for limit, line in channel.lines.items():
                    line.look(flow, self._at_once(flow, limit), self._pass)
        flow.cheapest = min(flow.cheapest, row.cost) if flow.dearest else row.cost
        flow.dearest = max(flow.dearest, row.cost)
        channel.messages[row.offset] = message
        return message

    # --- a message's life ----------------------------------------------------------------------

    def _decided(self, row: Row, following: str) -> None:
        channel = self._channel(row.queue, row.channel)
        if row.kind in OF_LIMITS:
            self._waits(channel, row)
            return
        if channel.is_blurred:
            if row.kind == "delivered":
                self.found.deliveries += 1
                self.found.not_judged[MADE_ANEW] += 1
            return
        if row.kind in CAME:
            self._comes(channel, row, following)
            return
        message = channel.messages.get(row.offset)
        if row.kind == "delivered":
            self.found.deliveries += 1
            if message is None and channel.is_whole:
                self._fault(row, "nobody knows of this message")
            self._delivered(channel, message or self._message(channel, row), row)
        elif message is None:
            if channel.is_whole:  # otherwise it was there before the recording
                self._fault(row, "it was over already")
        elif row.kind == "delayed":
            self._delayed(channel, message, row)
        elif row.kind in ("returned", "nacked", "expired"):
            self._ends_badly(channel, message, row, following)
        elif row.kind in ENDED:
            self._is_over(channel, message, row)

    def _waits(self, channel: Channel, row: Row) -> None:
        """Messages begin to wait for a limit, or one of them goes on."""
        if channel.is_blurred or not channel.is_whole:
            return
        line = channel.lines.get(row.bucket)
        if line is None:
            line = channel.lines[row.bucket] = Line(row.bucket, self._quantum)
        flow = channel.turns.flow(row.key, row.weight)
        line.waits(flow, row.throttle_keys, row.messages if row.kind == "throttled" else -1)
        line.look(flow, self._at_once(flow, row.bucket), self._pass)

    def _at_once(self, flow: Flow, limit: str) -> int:
        """How many tokens of a limit can be spoken for at once; 0: a key may be held by something else, too."""
        is_alone = not flow.is_held and self._allowed.only_limit(flow.sets) == limit
        return self._allowed.at_once(limit) if is_alone else 0

    def _share(self, channel: Channel, message: Message, row: Row) -> None:
        """Whether the keys that wait for the limit that it named share it as is promised."""
        flow = message.flow
        for limit, line in channel.lines.items():
            at_once = self._at_once(flow, limit)
            line.look(flow, at_once, self._pass)
            said = line.goes(flow, row.cost, at_once)
            self.found.shares += said is not None
            if said:
                self._fault(row, said)

    def _comes(self, channel: Channel, row: Row, following: str) -> None:
        if row.kind == "rewound":
            self._blur(channel)
            return
        if row.offset in channel.messages:
            self._fault(row, "it is in the channel already")
            return
        message = self._message(channel, row)
        self._look_at_the_weight(channel, message.flow, row)
        if row.replaces:
            channel.replaces(message, row.replaces, self._pass)
        elif following != "delayed" and following not in ENDED:
            self._look_at_limits(message)
            channel.turns.becomes_ready(message, self._pass)

    def _arrivals_end(self, came_until: int, in_pass: int) -> None:
        for channel in self._channels.values():
            for message in channel.arrived(came_until, self._later[channel.queue, channel.name]):
                self._look_at_limits(message)
                channel.turns.delay_ends(message, in_pass)

    def _gave_way(self, channel: Channel, before: Message, was: str, *, replaced: bool) -> None:
        message = channel.gave_way(before, self._later[channel.queue, channel.name], replaced=replaced)
        if message is not None:
            self._look_at_limits(message)
            is_strict = self._settings.get(channel.queue, {}).get("key_order") == "KEY_ORDER_STRICT"
            channel.stands(message, before, was, self._pass, is_strict=is_strict)

    def _look_at_limits(self, message: Message) -> None:
        message.is_limited = self._allowed.is_limited(message.throttle_keys)

    def _look_at_the_weight(self, channel: Channel, flow: Flow, row: Row) -> None:
        key = self._allowed.keys.get((channel.queue, flow.key))
        if (channel.queue, flow.key) in self._keys_changed:
            return  # before or after the row, nobody knows
        if key is not None and key.weight and row.weight != key.weight:
            self._fault(row, f"its key has the weight {key.weight}, and counted as {row.weight}")
        if row.weight != flow.weight:
            if flow.ready:  # since when, nobody knows: a script or a header said so
                channel.turns.is_unsure(flow)
            channel.turns.weighs(flow, row.weight, self._pass)

    def _delivered(self, channel: Channel, message: Message, row: Row) -> None:
        flow = message.flow
        self._look_at_the_weight(channel, flow, row)
        if message.cost != row.cost:
            self._fault(row, f"it costs {message.cost / 1000:g}, and counted as {row.cost / 1000:g}")
        if message.state == LEASED:
            self._fault(row, "somebody has it: two leases at a time")
            return
        if channel.is_whole and message.failures != row.attempt:
            self._fault(row, f"it failed {message.failures} times, and counted as {row.attempt}")
        if message.state == HELD and message.behind is not None and message.behind.state == LEASED:
            self._fault(row, f"offset {message.behind.offset}, which it replaces, is leased")
        if message.state == READY and message.successor is not None:
            self._fault(row, f"offset {message.successor.offset} had replaced it")
        if message.state == DELAYED:
            self._fault(row, f"it is delayed for {(message.due_ns - self._now_ns) / 1e6:.0f} ms more")
        settings = self._settings.get(channel.queue, {})
        if settings.get("paused"):
            self._fault(row, "its queue is paused")
        if channel.name in settings.get("paused_channels", ()):
            self._fault(row, "its channel is paused")
        if channel.lines:
            self._share(channel, message, row)
        if message.state == READY:
            self._turn(channel, message, row)
        else:
            channel.turns.goes_unseen(message)
            self.found.not_judged[UNSURE if channel.is_whole else NOT_WHOLE] += 1
        self._held[row.consumer] += 1
        channel.last_consumer = row.consumer
        at = (channel.queue, channel.name, flow.key)
        said = self._allowed.taken(at, message.throttle_keys, message.cost)
        if said:
            self._fault(row, said)

    def _turn(self, channel: Channel, message: Message, row: Row) -> None:
        said = channel.turns.goes(message, self._pass)
        if not channel.is_whole:
            self.found.not_judged[NOT_WHOLE] += 1
        elif channel.queue in self._untold:
            self.found.not_judged[UNTOLD] += 1
        elif said is None:
            self.found.not_judged[UNSURE] += 1
        else:
            self.found.turns += 1
            if said:
                self._fault(row, said)

    def _delayed(self, channel: Channel, message: Message, row: Row) -> None:
        """The message came, or failed, in the row before."""
        if message.state in (UNKNOWN, HELD):
            message.takes_place = False
            channel.turns.is_known(message, DELAYED)
            message.due_ns = self._now_ns + row.held_ms * 1_000_000
            heapq.heappush(channel.delays, (message.due_ns, message.offset, message))

    def _delays_end(self, in_pass: int, now_ns: int) -> None:
        for channel in self._channels.values():
            ended = 0
            while channel.delays and channel.delays[0][0] <= now_ns:
                due_ns, _, message = heapq.heappop(channel.delays)
                if message.state != DELAYED or message.due_ns != due_ns:
                    continue
                ended += 1
                if message.behind is not None:
                    channel.turns.is_known(message, HELD)
                    continue
                self._look_at_limits(message)
                channel.turns.delay_ends(message, in_pass)
                if ended > DELAYS_TOGETHER_MAX:
                    channel.turns.is_unsure(message.flow)

    def _ends_badly(self, channel: Channel, message: Message, row: Row, following: str) -> None:
        """A delivery came back, or failed."""
        if message.state != LEASED:
            self._fault(row, "it ended, and nobody had it")
            return
        self._lease_ends(channel, message, row, back=row.kind == "returned")
        message.failures += row.kind != "returned"
        message.ended_in = self._pass
        if row.kind == "returned" and following not in (*ENDED, REPLACED):
            self._look_at_limits(message)
            channel.turns.comes_back(message, self._pass)
            return
        channel.turns.is_unknown(message)
        if row.kind == "returned" or following == HAS_NO_ROW_YET:
            # What it cost may have come back; it may be ready at once, or a script is asked.
            channel.turns.is_unsure(message.flow)
        if message.successor is not None and following == HAS_NO_ROW_YET:  # it becomes a dead letter
            self._gave_way(channel, message, LEASED, replaced=False)

    def _lease_ends(self, channel: Channel, message: Message, row: Row, *, back: bool) -> None:
        self._held[row.consumer] -= 1
        at = (channel.queue, channel.name, message.flow.key)
        self._allowed.ended(at, message.throttle_keys, message.cost, back=back)

    def _is_over(self, channel: Channel, message: Message, row: Row) -> None:
        if row.kind == "acked" and message.state != LEASED:
            self._fault(row, "it was acked, and nobody had it")
        was = message.state
        if was == READY:
            channel.turns.leaves(message)
        else:
            if was == LEASED:
                self._lease_ends(channel, message, row, back=False)
            channel.turns.is_known(message, OVER)
        del channel.messages[row.offset]
        if message.successor is not None:
            was = LEASED if message.ended_in == self._pass else was
            self._gave_way(channel, message, was, replaced=gave_way(row))
        if message.behind is not None and message.behind.successor is message:
            message.behind.successor = None  # it was taken back, and that one goes on

    def _blur(self, channel: Channel) -> None:
        """Messages of before and after have the same names from here on. Nobody tells how what was leased ends, so it
        counts as given back now."""
        channel.is_blurred = True
        for message in channel.messages.values():
            if message.state == LEASED:
                at = (channel.queue, channel.name, message.flow.key)
                self._allowed.ended(at, message.throttle_keys, message.cost, back=True)
        channel.messages.clear()
        channel.delays.clear()
        channel.arriving.clear()
        channel.lines.clear()

    # --- the end of a pass ---------------------------------------------------------------------

    def _deliveries_end(self, delivered: Mapping[int, int]) -> None:
        """Say of each channel whether its last delivery ended before its consumer was full: it may have been the
        size of the messages, and then the broker had looked at whose turn comes next."""
        for channel in self._channels.values():
            consumer = channel.last_consumer
            if consumer not in delivered:
                continue
            room = self._room.get(consumer)
            is_full = room is not None and self._held[consumer] >= room
            is_long = delivered[consumer] >= MESSAGES_PER_DELIVERY_MAX
            channel.turns.ended_early = not (is_full or is_long) and any(flow.ready for flow in channel.turns)

    def _fault(self, row: Row, said: str) -> None:
        self.found.faults += 1
        if len(self.found.wrong) < self.FAULTS_REPORTED:
            self.found.wrong.append(
                f"{row.kind} of {row.queue}/{row.channel} key {row.key!r} offset {row.offset} in pass {self._pass}: "
                f"{said}"
            )
